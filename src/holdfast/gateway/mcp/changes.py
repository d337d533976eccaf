"""Changes: what is not as it was for those who listen: lists of tools, prompts and resources, and single resources.

Lists are looked at once a second while somebody listens, and at once when the registry changes, and told of only where
the listener's own has changed. Changes of a resource are counted in a row (skills/updates.py), looked at when the
channel `holdfast_gateway` is notified, by whatever node, and once a second.
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
from holdfast.gateway.inventory import Stock
from holdfast.gateway.mcp.methods import METHODS
from holdfast.gateway.mcp.requests import Request
from holdfast.mcp.protocol import MODERN
from holdfast.postgres.sql import statements
from holdfast.skills.client import SILENT
from holdfast.skills.updates import digest_of

REGISTRY = "holdfast_registry"  # notified at each revision of the registry
CHANNEL = "holdfast_gateway"  # notified when a resource has changed
KEPT = "mcp changes"  # under which a gateway keeps them
LOOK = 1.0  # seconds between two looks
PAUSE = 0.1  # seconds at least: what changes much is looked at once

Kind = Literal["tools", "prompts", "resources"]
Sources = tuple[Stock, tuple[object, ...]]  # what lists are made of: the registry, and what the program declares
Digests = dict[tuple[Principal, Kind], bytes]  # of lists, by whose they are
LISTS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    "resources": ("resources/list", "resources/templates/list"),
}

sql = statements(__name__)
log = logging.getLogger(__name__)


class Counted(NamedTuple):
    """How often a resource has changed, and how many seconds ago it did last."""

    version: int
    age: float


NEVER: Final = Counted(0, inf)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants to be told of: that lists have changed, or resources."""

    lists: frozenset[Kind] = frozenset()
    uris: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """What has changed, as both eras tell it."""

    method: str
    params: Mapping[str, Any]

    @classmethod
    def of_list(cls, kind: Kind) -> "Change":
        """A list is not what it was."""
        return cls(f"notifications/{kind}/list_changed", {})

    @classmethod
    def of_resource(cls, uri: str) -> "Change":
        """A resource is not what it was."""
        return cls("notifications/resources/updated", {"uri": uri})


class Watch:
    """What has changed for one caller since they asked last, each thing once; what is `wanted` may change.

    `wake` is set when something has.
    """

    def __init__(self, caller: Principal, wanted: Wanted, wake: asyncio.Event) -> None:
        self.caller = caller
        self._since: dict[str, float] = {}
        self.wanted = wanted
        self._known: dict[Kind, bytes] = {}
        self._lists: dict[Kind, None] = {}
        self._uris: dict[str, None] = {}
        self._versions: dict[str, int] = {}
        self._wake = wake

    @property
    def wanted(self) -> Wanted:
        """What they are told of: that of what they want which they may read."""
        return self._wanted

    @wanted.setter
    def wanted(self, wanted: Wanted) -> None:
        self._wanted = wanted if "read" in self.caller.scopes else Wanted(wanted.lists & {"tools"})
        self._since = {uri: self._since.get(uri, monotonic()) for uri in self._wanted.uris}

    async def next(self) -> list[Change]:
        """What has changed; it waits until something has."""
        while not (changes := self.taken()):
            await self._wake.wait()
            self._wake.clear()
        return changes

    def taken(self) -> list[Change]:
        """What has changed, if anything has."""
        changes = [Change.of_list(kind) for kind in self._lists if kind in self.wanted.lists]
        changes += [Change.of_resource(uri) for uri in self._uris if uri in self.wanted.uris]
        self._lists, self._uris = {}, {}
        return changes

    def seen(self, kind: Kind, digest: bytes) -> None:
        """A list has this digest now."""
        if self._known.setdefault(kind, digest) != digest:
            self._known[kind] = digest
            self._lists[kind] = None
            self._wake.set()

    def updated(self, counted: Mapping[str, Counted]) -> None:
        """How often the resources that they want have changed; of a new one, whether it has since it was wanted."""
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


class Changes:
    """Tells those who listen to one tenant's gateway; nothing is looked at while nobody does."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._watches: set[Watch] = set()
        self._following: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()
        self._sources: Sources | None = None
        self._due: set[Watch] = set()  # those whose lists may have changed

    @classmethod
    def of(cls, gateway: Gateway) -> "Changes":
        """The changes of a gateway."""
        found = gateway.kept.get(KEPT)
        if found is None:
            found = gateway.kept[KEPT] = cls(gateway)
        return found

    @asynccontextmanager
    async def watch(
        self, caller: Principal, wanted: Wanted, *, wake: asyncio.Event | None = None
    ) -> AsyncGenerator[Watch]:
        """What changes for a caller from now on; `wake` is set when something has."""
        watch = Watch(caller, wanted, wake or asyncio.Event())
        self._watches.add(watch)
        if self._following is None:
            self._listening = asyncio.Event()
            self._following = asyncio.create_task(self._follow(self._listening), name="gateway changes")
        try:
            await self._listening.wait()
            await self._gateway.inventory.current()
            await self._look(watch, {})
            await self._look_at_resources([watch])
            yield watch
        finally:
            self._watches.discard(watch)
            await self._stop()

    async def _stop(self) -> None:
        """Look no more, if nobody listens."""
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
                    await self._look_at_resources(self._watches)
                    await self._look_anew()
                except Exception as error:  # noqa: BLE001 - those who listen do so until it can be seen again
                    log.warning("cannot see what has changed, trying again: %s", error)

    async def _look_at_resources(self, watches: Iterable[Watch]) -> None:
        """Tell which of the resources that are wanted have changed."""
        wanted = {watch: {uri: digest_of(uri) for uri in watch.wanted.uris} for watch in watches if watch.wanted.uris}
        if not wanted:
            return
        digests = sorted({digest for uris in wanted.values() for digest in uris.values()})
        rows = await self._gateway.engine.database.all(sql("resource_versions"), digests)
        found = {row["uri_digest"]: Counted(row["version"], row["age"]) for row in rows}
        for watch, uris in wanted.items():
            watch.updated({uri: found.get(digest, NEVER) for uri, digest in uris.items()})

    async def _look_anew(self) -> None:
        """Look at all lists, if there is anything that could have changed one; again at what could not be seen."""
        stock, offerings = await self._gateway.inventory.current(), self._gateway.offerings
        sources = (stock, (*(await offerings.prompts()).values(), *await offerings.resources()))
        if self._sources is None or stock is not self._sources[0] or sources[1] != self._sources[1]:
            self._sources, self._due = sources, {*self._watches}
        found: Digests = {}
        for watch in self._due & self._watches:
            try:
                await self._look(watch, found)
            except Exception as error:  # noqa: BLE001 - the others are told nevertheless
                log.warning("cannot see what has changed for %r, trying again: %s", watch.caller.user, error)
            else:
                self._due.discard(watch)

    async def _look(self, watch: Watch, found: Digests) -> None:
        """Look at the lists that are wanted; `found` are those that were looked at just now."""
        for kind in watch.wanted.lists:
            key = (watch.caller, kind)
            if key not in found:
                found[key] = await self._digest(*key)
            watch.seen(kind, found[key])

    async def _digest(self, caller: Principal, kind: Kind) -> bytes:
        """What tells a list from any other; one that the caller may not see is like an empty one."""
        digest = sha256()
        with suppress(Forbidden):
            for method in LISTS[kind]:
                async for page in self._pages(caller, method):
                    digest.update(page)
        return digest.digest()

    async def _pages(self, caller: Principal, method: str) -> AsyncGenerator[bytes]:
        handler, params = METHODS.get(method), dict[str, Any]()
        while handler is not None:
            page = await handler(Request(method, params, self._gateway, caller, SILENT, MODERN))
            yield render(page)
            if "nextCursor" not in page:
                return
            params = {"cursor": page["nextCursor"]}
