"""Changes: notifies listeners when a list of tools, prompts or resources has changed, or a single resource.

While there are listeners, lists are checked once a second and when the registry changes. A listener is notified only if
its own list has changed. Changes of a resource are counted in a row (skills/resource_updates.py). The counts are
checked once a second and when any node notifies the channel `holdfast_gateway`.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from math import inf
from time import monotonic
from typing import Any, Final, Literal, NamedTuple

from holdfast.access.principals import Principal
from holdfast.core.errors import Forbidden
from holdfast.core.text import render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.inventory import ToolSnapshot
from holdfast.gateway.mcp.methods import METHODS
from holdfast.gateway.mcp.requests import McpRequest
from holdfast.mcp.protocol import MODERN
from holdfast.postgres.sql import statements
from holdfast.skills.client import SILENT
from holdfast.skills.resource_updates import digest_of

REGISTRY = "holdfast_registry"  # notified at each revision of the registry
CHANNEL = "holdfast_gateway"  # notified when a resource has changed
LOOK = 1.0  # seconds between two checks
PAUSE = 0.1  # seconds before each check, so that many changes at a time cause one check

Kind = Literal["tools", "prompts", "resources"]
Sources = tuple[ToolSnapshot, tuple[object, ...]]  # what lists are made of: the tools, and the prompts and resources
Digests = dict[tuple[Principal, Kind], bytes]  # of lists, by caller and kind
LISTS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    "resources": ("resources/list", "resources/templates/list"),
}

sql = statements(__name__)
log = logging.getLogger(__name__)


class ResourceVersion(NamedTuple):
    """How often a resource has changed, and how many seconds ago it last did."""

    version: int
    age: float


NEVER: Final = ResourceVersion(0, inf)


@dataclass(frozen=True, slots=True)
class WantedChanges:
    """The lists and resources whose changes a listener wants."""

    lists: frozenset[Kind] = frozenset()
    uris: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ListChange:
    """The notification of a change, the same for modern and legacy clients."""

    method: str
    params: Mapping[str, Any]

    @classmethod
    def of_list(cls, kind: Kind) -> "ListChange":
        """Return the notification that a list has changed."""
        return cls(f"notifications/{kind}/list_changed", {})

    @classmethod
    def of_resource(cls, uri: str) -> "ListChange":
        """Return the notification that a resource has changed."""
        return cls("notifications/resources/updated", {"uri": uri})


class ListWatch:
    """Collects changes for one caller until they are taken, each once. `wanted` can be replaced.

    `wake` is set when something has changed.
    """

    def __init__(self, caller: Principal, wanted: WantedChanges, wake: asyncio.Event) -> None:
        self.caller = caller
        self._since: dict[str, float] = {}
        self.wanted = wanted
        self._known: dict[Kind, bytes] = {}
        self._lists: dict[Kind, None] = {}
        self._uris: dict[str, None] = {}
        self._versions: dict[str, int] = {}
        self._wake = wake

    @property
    def wanted(self) -> WantedChanges:
        """The wanted changes, without those that the caller may not read."""
        return self._wanted

    @wanted.setter
    def wanted(self, wanted: WantedChanges) -> None:
        self._wanted = wanted if "read" in self.caller.scopes else WantedChanges(wanted.lists & {"tools"})
        self._since = {uri: self._since.get(uri, monotonic()) for uri in self._wanted.uris}

    async def next(self) -> list[ListChange]:
        """Wait until something has changed, and return it."""
        while not (changes := self.take()):
            await self._wake.wait()
            self._wake.clear()
        return changes

    def take(self) -> list[ListChange]:
        """Return what has changed since the last call, if anything."""
        changes = [ListChange.of_list(kind) for kind in self._lists if kind in self.wanted.lists]
        changes += [ListChange.of_resource(uri) for uri in self._uris if uri in self.wanted.uris]
        self._lists, self._uris = {}, {}
        return changes

    def record_digest(self, kind: Kind, digest: bytes) -> None:
        """Record the current digest of a list."""
        if self._known.setdefault(kind, digest) != digest:
            self._known[kind] = digest
            self._lists[kind] = None
            self._wake.set()

    def record_versions(self, counted: Mapping[str, ResourceVersion]) -> None:
        """Record how often the wanted resources have changed; of a new one, only changes since it was wanted count."""
        now = monotonic()
        changed = [
            uri
            for uri, (version, age) in counted.items()
            if (age < now - self._since.get(uri, now) if uri not in self._versions else self._versions[uri] != version)
        ]
        self._versions = {uri: version for uri, (version, _) in counted.items()}
        if changed:
            self._uris |= dict.fromkeys(sorted(changed))
            self._wake.set()


class ListChanges:
    """Notifies the listeners of one tenant's gateway. Without listeners, it checks nothing."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._watches: set[ListWatch] = set()
        self._following: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()
        self._sources: Sources | None = None
        self._due: set[ListWatch] = set()  # watches whose lists may have changed

    @classmethod
    def of(cls, gateway: Gateway) -> "ListChanges":
        """Return the changes of a gateway."""
        return gateway.cache.get(cls, lambda: cls(gateway))

    @asynccontextmanager
    async def watch(
        self, caller: Principal, wanted: WantedChanges, *, wake: asyncio.Event | None = None
    ) -> AsyncGenerator[ListWatch]:
        """Watch what changes for a caller from now on; `wake` is set when something has changed."""
        watch = ListWatch(caller, wanted, wake or asyncio.Event())
        self._watches.add(watch)
        if self._following is None:
            self._listening = asyncio.Event()
            self._following = asyncio.create_task(self._follow(self._listening), name="gateway changes")
        try:
            await self._listening.wait()
            await self._gateway.inventory.current()
            await self._check_watch(watch, {})
            await self._check_resources([watch])
            yield watch
        finally:
            self._watches.discard(watch)
            await self._stop()

    async def _stop(self) -> None:
        """Stop checking if there are no listeners."""
        if not self._watches and self._following is not None:
            following, self._following = self._following, None
            following.cancel()
            await asyncio.wait([following])

    async def _follow(self, listening: asyncio.Event) -> None:
        async with self._gateway.engine.postgres.listen(REGISTRY, CHANNEL) as wake:
            listening.set()
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK):
                        await wake.wait()
                await asyncio.sleep(PAUSE)
                wake.clear()
                try:
                    await self._check_resources(self._watches)
                    await self._check_lists()
                except Exception as error:  # noqa: BLE001 - listeners stay until a check works again
                    log.warning("cannot see what has changed, trying again: %s", error)

    async def _check_resources(self, watches: Iterable[ListWatch]) -> None:
        """Check which of the wanted resources have changed."""
        wanted = {watch: {uri: digest_of(uri) for uri in watch.wanted.uris} for watch in watches if watch.wanted.uris}
        if not wanted:
            return
        digests = sorted({digest for uris in wanted.values() for digest in uris.values()})
        rows = await self._gateway.engine.database.all(sql("resource_versions"), digests)
        found = {row["uri_digest"]: ResourceVersion(row["version"], row["age"]) for row in rows}
        for watch, uris in wanted.items():
            watch.record_versions({uri: found.get(digest, NEVER) for uri, digest in uris.items()})

    async def _check_lists(self) -> None:
        """Check all lists if what they are made of has changed; otherwise only those whose last check failed."""
        snapshot, offerings = await self._gateway.inventory.current(), self._gateway.offerings
        sources = (snapshot, (*(await offerings.prompts()).values(), *await offerings.resources()))
        if self._sources is None or snapshot is not self._sources[0] or sources[1] != self._sources[1]:
            self._sources, self._due = sources, {*self._watches}
        found: Digests = {}
        for watch in self._due & self._watches:
            try:
                await self._check_watch(watch, found)
            except Exception as error:  # noqa: BLE001 - the other listeners are still notified
                log.warning("cannot see what has changed for %r, trying again: %s", watch.caller.user, error)
            else:
                self._due.discard(watch)

    async def _check_watch(self, watch: ListWatch, found: Digests) -> None:
        """Check the wanted lists of a watch; `found` caches the digests of this check."""
        for kind in watch.wanted.lists:
            key = (watch.caller, kind)
            if key not in found:
                found[key] = await self._digest(*key)
            watch.record_digest(kind, found[key])

    async def _digest(self, caller: Principal, kind: Kind) -> bytes:
        """Return the digest of a list; a list that the caller may not see counts as empty."""
        digest = sha256()
        with suppress(Forbidden):
            for method in LISTS[kind]:
                async for page in self._pages(caller, method):
                    digest.update(page)
        return digest.digest()

    async def _pages(self, caller: Principal, method: str) -> AsyncGenerator[bytes]:
        handler, params = METHODS.get(method), dict[str, Any]()
        while handler is not None:
            page = await handler(McpRequest(method, params, self._gateway, caller, SILENT, MODERN))
            yield render(page)
            if "nextCursor" not in page:
                return
            params = {"cursor": page["nextCursor"]}
