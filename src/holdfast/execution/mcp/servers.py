"""The sessions with the MCP servers of all sources, and the exchanges that wait for their clients."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from time import monotonic
from typing import Any, cast
from uuid import uuid4

from holdfast.core.background import PeriodicJob
from holdfast.core.errors import LimitReached
from holdfast.core.text import render
from holdfast.execution.egress import Egress
from holdfast.execution.mcp.exchange import Exchange
from holdfast.execution.mcp.http import HttpServer, SessionGone, UnexpectedStatus
from holdfast.execution.mcp.legacy_session import HttpSession, LegacySession
from holdfast.execution.mcp.modern_session import ModernSession, capabilities_for
from holdfast.mcp.headers import MirroredArgument
from holdfast.mcp.inputs import MissingCapability
from holdfast.mcp.protocol import LEGACY, MODERN, SERVER_INFO, McpError
from holdfast.skills.client import SILENT, Client

IDLE = 300.0  # seconds after which a session that nobody uses is closed
PAUSE = 15.0  # seconds between two looks for such sessions
MAX_SESSIONS = 100  # with one server
FORGET_VERSIONS = 600.0  # seconds after which a server is asked again which versions it speaks
MAX_WAITING = 1000  # exchanges that wait for their clients
SERVER_ERROR = 500

Session = ModernSession | LegacySession


@dataclass(frozen=True)
class Upstream:
    """A server, and for whom it is called. `headers` contain secrets, `user` is "" for sessions that users share."""

    tenant: str
    source: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    sampling: bool = False
    user: str = ""

    @cached_property
    def key(self) -> str:
        """Identifies the server, with the credentials by which it is called."""
        known = [self.tenant, self.source, self.url, sorted(self.headers.items()), self.sampling]
        return hashlib.blake2s(render(known)).hexdigest()


@dataclass(slots=True)
class _Kept:
    """A session that is kept. `uses` counts the exchanges in progress."""

    session: Session
    uses: int = 0
    used_at: float = field(default_factory=monotonic)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An exchange that waits for its client: for whom it is, and until when it waits."""

    exchange: Exchange
    owner: str
    until: float


class McpServers(PeriodicJob):
    """Opens sessions on first use, keeps them, and closes those that nobody uses. `about` is what servers learn of us.

    `limit` is the most bytes of a response, `patience` how many seconds an exchange waits for its client.
    """

    def __init__(self, egress: Egress, *, about: Mapping[str, Any], limit: int, patience: float) -> None:
        super().__init__("closing of MCP sessions", pause=PAUSE)
        self._egress = egress
        self._client_info = about
        self._limit = limit
        self._patience = patience
        self._sessions: dict[tuple[str, ...], _Kept] = {}
        self._versions: dict[str, tuple[float, frozenset[str]]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._ending: set[Exchange] = set()

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        for waiting in self._waiting.values():
            self.cancel(waiting.exchange)
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                await asyncio.gather(*(exchange.wait() for exchange in self._ending))
        for kept in self._sessions.values():
            await kept.session.close()
        self._sessions.clear()

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
        try:
            return await exchange.result(client)
        except BaseException:
            self.cancel(exchange)
            raise

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
            try:
                return await self._request(exchange, upstream, method, params, mirrored, again=again)
            except SessionGone:  # the server has not seen the request
                return await self._request(exchange, upstream, method, params, mirrored, again=again)

        return Exchange(client, work)

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

    async def speaks_modern(self, upstream: Upstream) -> bool:
        """Whether a server speaks the modern version."""
        return MODERN in await self._versions_of(upstream)

    async def about(self, upstream: Upstream) -> Mapping[str, Any]:
        """Return what a server says of itself: `capabilities`, `serverInfo`, `instructions`, `protocolVersions`."""
        versions = await self._versions_of(upstream)
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

    async def _session(self, upstream: Upstream, client: Client) -> _Kept:
        """Return the session for a client: of the client's own generation, if the server speaks it."""
        versions = await self._versions_of(upstream)
        if MODERN in versions and (client.is_modern or not versions & frozenset(LEGACY)):
            key = (upstream.key, MODERN)
            if key not in self._sessions:
                self._sessions[key] = _Kept(
                    ModernSession(self._http(upstream), about=self._client_info, sampling=upstream.sampling)
                )
            return self._sessions[key]
        capabilities = capabilities_for(client, sampling=upstream.sampling)
        wanted = render(capabilities).decode()
        shared, own = (upstream.key, wanted, ""), (upstream.key, wanted, upstream.user)
        async with self._locks.setdefault(upstream.key, asyncio.Lock()):
            kept = self._sessions.get(shared) or self._sessions.get(own)
            if kept is None:
                await self._make_room(upstream.key)
                server = HttpSession(self._http(upstream))
                session = await LegacySession.open(server, about=self._client_info, capabilities=capabilities)
                kept = self._sessions[shared if server.is_stateless else own] = _Kept(session)
            return kept

    async def _make_room(self, key: str) -> None:
        """Close the session that was not used for longest, if there are too many with a server."""
        ours = [(kept.used_at, known) for known, kept in self._sessions.items() if known[0] == key]
        if len(ours) < MAX_SESSIONS:
            return
        idle = sorted(each for each in ours if not self._sessions[each[1]].uses)
        if not idle:
            raise LimitReached("the MCP server was not called", why=f"all {MAX_SESSIONS} sessions with it are in use")
        await self._sessions.pop(idle[0][1]).session.close()

    async def _versions_of(self, upstream: Upstream) -> frozenset[str]:
        """Return the versions that a server speaks, as far as we do."""
        asked_at, versions = self._versions.get(upstream.key, (0.0, frozenset[str]()))
        if versions and monotonic() - asked_at < FORGET_VERSIONS:
            return versions
        async with self._locks.setdefault(upstream.key, asyncio.Lock()):
            asked_at, versions = self._versions.get(upstream.key, (0.0, frozenset[str]()))
            if not versions or monotonic() - asked_at >= FORGET_VERSIONS:
                versions = await self._discover(upstream)
                self._versions[upstream.key] = monotonic(), versions
            return versions

    async def _discover(self, upstream: Upstream) -> frozenset[str]:
        session = ModernSession(self._http(upstream), about=self._client_info)
        try:
            found = await session.request(Exchange(SILENT), "server/discover", {})
        except UnexpectedStatus as error:
            if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) or error.status >= SERVER_ERROR:
                raise
            return frozenset(LEGACY)
        except (McpError, MissingCapability):  # a server of an earlier version does not know the method
            return frozenset(LEGACY)
        given: object = found.get("supportedVersions")
        known = {str(each) for each in cast(list[Any], given)} if isinstance(given, list) else set[str]()
        return frozenset(known & {MODERN, *LEGACY}) or frozenset({MODERN})

    def _forget(self, kept: _Kept) -> None:
        self._sessions = {key: each for key, each in self._sessions.items() if each is not kept}

    def _http(self, upstream: Upstream) -> HttpServer:
        return HttpServer(self._egress, upstream.url, upstream.headers, limit=self._limit)
