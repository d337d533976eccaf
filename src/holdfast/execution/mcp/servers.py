"""The sessions with the MCP servers of all sources, and the exchanges that wait for their clients."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple, cast
from uuid import uuid4
from weakref import WeakValueDictionary

from holdfast.core.background import PeriodicJob
from holdfast.core.errors import LimitReached, Unavailable
from holdfast.core.text import render
from holdfast.execution.egress import Egress
from holdfast.execution.mcp.connections import OPENED, McpConnections, Upstream
from holdfast.execution.mcp.exchange import Exchange, capabilities_for
from holdfast.execution.mcp.http import SessionGone
from holdfast.execution.mcp.legacy_session import LegacySession
from holdfast.execution.mcp.modern_session import ModernSession
from holdfast.execution.mcp.stdio import Programs
from holdfast.mcp.headers import MirroredArgument
from holdfast.mcp.protocol import LEGACY, MODERN, SERVER_INFO
from holdfast.skills.client import SILENT, Client

IDLE = 300.0  # seconds after which a session that nobody uses is closed
PAUSE = 15.0  # seconds between two looks for such sessions
GATHER = 0.2  # seconds in which changes of a source are one change
MAX_SESSIONS = 100  # with one server
MAX_PROGRAMS = 20  # of one server that is a program
MAX_OF_USER = 8  # sessions of one user with one server: its clients can declare different capabilities
MAX_OF_TENANT = 400  # sessions of one tenant, with all servers
MAX_PARALLEL = 4  # sessions of one user with a server that takes one request at a time
SHARED = -1
MAX_WAITING = 1000  # exchanges that wait for their clients

CHANGES = (OPENED, *(f"notifications/{name}/list_changed" for name in ("tools", "prompts", "resources")))

Session = ModernSession | LegacySession


class SessionKey(NamedTuple):
    """Identifies a session: the server, what it may ask for, and whose session it is.

    `number`: a user has several with a server that takes one request at a time. SHARED: the session has no state, so
    that all users share it.
    """

    server: str
    capabilities: str
    user: str
    number: int


@dataclass(slots=True)
class _Kept:
    """A session that is kept. `uses` counts the exchanges in progress. `is_over`: it ends with the last of them."""

    upstream: Upstream
    session: Session
    uses: int = 0
    used_at: float = field(default_factory=monotonic)
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An exchange that waits for its client: for whom it is, and until when it waits."""

    exchange: Exchange
    owner: str
    until: float


class McpServers(PeriodicJob):
    """Opens sessions on first use, keeps them, and closes those that nobody uses. `about` is what servers learn of us.

    `limit` is the most bytes of a response, `patience` how many seconds an exchange waits for its client. `on_change`
    is called with a tenant and a source when its server says that its lists have changed.
    """

    def __init__(
        self, egress: Egress, programs: Programs, *, about: Mapping[str, Any], limit: int, patience: float
    ) -> None:
        super().__init__("closing of MCP sessions", pause=PAUSE)
        self._connections = McpConnections(egress, programs, about=about, limit=limit, changed=self._changed)
        self._patience = patience
        self.on_change: Callable[[str, str], None] = _nothing
        self._sessions: dict[SessionKey, _Kept] = {}
        self._opening: dict[SessionKey, Upstream] = {}
        self._locks: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()
        self._waiting: dict[str, _Waiting] = {}
        self._ending: set[Exchange] = set()
        self._changes: dict[tuple[str, str], asyncio.TimerHandle] = {}

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        for change in self._changes.values():
            change.cancel()
        for waiting in self._waiting.values():
            self.cancel(waiting.exchange)
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                await asyncio.gather(*(exchange.wait() for exchange in self._ending))
        for kept in self._sessions.values():
            await kept.session.close()
        self._sessions.clear()
        await self._connections.close()

    async def step(self) -> None:
        """Close sessions that nobody uses, and end exchanges whose clients do not come back."""
        now = monotonic()
        for key, kept in [*self._sessions.items()]:
            if not kept.uses and now - kept.used_at > IDLE:
                del self._sessions[key]
                await kept.session.close()
        for id, waiting in [*self._waiting.items()]:
            if waiting.until < now:
                del self._waiting[id]
                self.cancel(waiting.exchange)
        self._ending = {exchange for exchange in self._ending if not exchange.ended}

    async def call(
        self,
        upstream: Upstream,
        method: str,
        params: Mapping[str, Any],
        *,
        client: Client = SILENT,
        mirrored: Sequence[MirroredArgument] = (),
        again: bool = False,
    ) -> Mapping[str, Any]:
        """Send a request that does not wait for its client, and return the result. See `begin` for the parameters."""
        exchange = self.begin(upstream, method, params, client=client, mirrored=mirrored, again=again)
        return await self._result_of(exchange, client)

    def begin(
        self,
        upstream: Upstream,
        method: str,
        params: Mapping[str, Any],
        *,
        client: Client = SILENT,
        mirrored: Sequence[MirroredArgument] = (),
        again: bool = False,
    ) -> Exchange:
        """Begin a request. `mirrored`: arguments that headers repeat. `again`: it can be sent twice without harm."""

        async def work(exchange: Exchange) -> Mapping[str, Any]:
            why = ""
            for _ in range(2):
                try:
                    return await self._request(exchange, upstream, method, params, mirrored, again=again)
                except SessionGone as error:  # the server has not seen the request
                    why = str(error)
            next = "Look into the logs of that server."
            raise Unavailable(f"{upstream.name} ends each session at once", why=why, next=next)

        return Exchange(
            client, work, redaction=upstream.redaction, sampling=upstream.sampling, headers=upstream.caller_headers
        )

    def cancel(self, exchange: Exchange) -> None:
        """End an exchange, and tell its server. This does not wait for the server."""
        exchange.cancel()
        self._ending.add(exchange)

    def wait_for_client(self, exchange: Exchange, owner: str) -> str:
        """Keep an exchange until its client comes back; return the id by which `owner` finds it."""
        if len(self._waiting) >= MAX_WAITING:
            self.cancel(exchange)
            raise LimitReached("the call was given up", why=f"{MAX_WAITING} calls wait for answers of their clients")
        id = uuid4().hex
        self._waiting[id] = _Waiting(exchange, owner, monotonic() + self._patience)
        return id

    def resume(self, id: str, owner: str) -> Exchange | None:
        """Return the exchange that waits for its client, if there is one with this id and owner."""
        waiting = self._waiting.get(id)
        if waiting is None or waiting.owner != owner:
            return None
        del self._waiting[id]
        return waiting.exchange

    async def listen(self, upstream: Upstream, lists: Sequence[str]) -> None:
        """Call `on_change` when a server at an address says that lists have changed, until its stream ends."""
        await self._connections.listen(upstream, lists)

    async def restart(self, upstream: Upstream) -> None:
        """End the processes of a program in this process, after their calls: the next call starts it anew."""
        for key, kept in [*self._sessions.items()]:
            if kept.upstream.key == upstream.key and kept.upstream.program is not None:
                del self._sessions[key]
                kept.is_over = True
                if not kept.uses:
                    await kept.session.close()

    async def speaks_modern(self, upstream: Upstream) -> bool:
        """Whether a server speaks the modern version."""
        return MODERN in await self._connections.versions_of(upstream)

    async def about(self, upstream: Upstream) -> Mapping[str, Any]:
        """Return what a server says of itself: `capabilities`, `serverInfo`, `instructions`, `protocolVersions`."""

        async def work(_: Exchange) -> Mapping[str, Any]:
            return await self._about(upstream)

        return await self._result_of(Exchange(SILENT, work, redaction=upstream.redaction), SILENT)

    async def _about(self, upstream: Upstream) -> Mapping[str, Any]:
        versions = await self._connections.versions_of(upstream)
        if MODERN in versions:
            found = await self.call(upstream, "server/discover", {})
            info: object = cast(dict[str, Any], found.get("_meta") or {}).get(SERVER_INFO)
        else:
            kept = await self._session(upstream, SILENT)
            assert isinstance(kept.session, LegacySession)
            found = kept.session.initialized
            info = found.get("serverInfo")
        return {
            "capabilities": found.get("capabilities") or {},
            "serverInfo": info or {},
            "instructions": found.get("instructions") or "",
            "protocolVersions": sorted(versions),
        }

    async def _result_of(self, exchange: Exchange, client: Client) -> Mapping[str, Any]:
        try:
            return await exchange.result(client)
        except BaseException:
            self.cancel(exchange)
            raise

    async def _request(
        self,
        exchange: Exchange,
        upstream: Upstream,
        method: str,
        params: Mapping[str, Any],
        mirrored: Sequence[MirroredArgument],
        *,
        again: bool,
    ) -> Mapping[str, Any]:
        kept = await self._session(upstream, exchange.client)
        kept.uses += 1
        try:
            return await kept.session.request(exchange, method, params, mirrored=mirrored, again=again)
        except SessionGone:
            self._forget(kept)
            raise
        finally:
            kept.uses -= 1
            kept.used_at = monotonic()
            if kept.is_over and not kept.uses:
                await kept.session.close()

    async def _session(self, upstream: Upstream, client: Client) -> _Kept:
        """Return the session for a client: of the client's own generation, if the server speaks it.

        One that is open is found without a lock, and users do not wait for each other while theirs are opened.
        """
        versions = await self._connections.versions_of(upstream)
        is_modern = MODERN in versions and (client.is_modern or not versions & frozenset(LEGACY))
        capabilities = {} if is_modern else capabilities_for(client, sampling=upstream.sampling)
        wanted = MODERN if is_modern else render(capabilities).decode()
        while True:
            kept, key = self._find(upstream, wanted)
            if kept is not None:
                return kept
            async with self._locks.setdefault(key, asyncio.Lock()):
                if self._find(upstream, wanted) != (None, key):  # somebody else has opened it
                    continue
                self._opening[key] = upstream
                try:
                    await self._make_room(upstream)
                    if is_modern:
                        kept = _Kept(upstream, await self._connections.open_modern(upstream))
                    else:
                        kept = _Kept(upstream, await self._connections.open_legacy(upstream, capabilities))
                finally:
                    del self._opening[key]
                if _is_stateless(kept.session):
                    key = SessionKey(upstream.key, wanted, "", SHARED)
                self._sessions[key] = kept
                return kept

    def _find(self, upstream: Upstream, wanted: str) -> tuple[_Kept | None, SessionKey]:
        """Return a session that can be used, or the key of the one that has to be opened."""
        key = SessionKey(upstream.key, wanted, "", SHARED)
        kept = self._alive(key)
        if kept is not None or (wanted == MODERN and upstream.program is None):
            return kept, key
        for number in range(MAX_PARALLEL):
            key = SessionKey(upstream.key, wanted, upstream.user, number)
            kept = self._alive(key)
            if kept is None or not (kept.uses and _is_serial(kept.session)):
                break
        return kept, key

    def _alive(self, key: SessionKey) -> _Kept | None:
        """Return a session that is kept, unless its connection has ended."""
        kept = self._sessions.get(key)
        if kept is not None and kept.session.server.is_gone:
            del self._sessions[key]
            return None
        return kept

    async def _make_room(self, upstream: Upstream) -> None:
        """Close an idle session if there are too many with the one that is being opened: first one of the same user."""
        of_server = MAX_SESSIONS if upstream.program is None else MAX_PROGRAMS
        rules: Sequence[tuple[int, str, Callable[[Upstream], bool]]] = (
            (MAX_OF_USER if upstream.user else of_server, "of this user with it", upstream.is_for_same_user),
            (of_server, "with it", lambda each: each.key == upstream.key),
            (MAX_OF_TENANT, "of the tenant", lambda each: each.tenant == upstream.tenant),
        )
        for most, which, belongs in rules:
            ours = {key: kept for key, kept in self._sessions.items() if belongs(kept.upstream)}
            if len(ours) + sum(belongs(each) for each in self._opening.values()) <= most:
                continue
            idle = [key for key, kept in ours.items() if not kept.uses]
            if not idle:
                raise LimitReached("the MCP server was not called", why=f"all {most} sessions {which} are in use")
            first = min(idle, key=lambda key: (key.user != upstream.user, self._sessions[key].used_at))
            await self._sessions.pop(first).session.close()

    def _changed(self, upstream: Upstream, method: str) -> None:
        """Tell once of all changes within a moment: a server may announce them as often as it likes."""
        source = upstream.tenant, upstream.source
        if method not in CHANGES or source in self._changes:
            return

        def tell() -> None:
            del self._changes[source]
            self.on_change(*source)

        self._changes[source] = asyncio.get_running_loop().call_later(GATHER, tell)

    def _forget(self, kept: _Kept) -> None:
        self._sessions = {key: each for key, each in self._sessions.items() if each is not kept}


def _is_serial(session: Session) -> bool:
    return isinstance(session, LegacySession) and session.server.is_serial


def _is_stateless(session: Session) -> bool:
    return isinstance(session, LegacySession) and session.server.is_stateless


def _nothing(_tenant: str, _source: str) -> None:
    pass
