"""Opens connections with MCP servers: finds out which versions a server speaks, and over which transport."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from time import monotonic
from typing import Any, cast
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from holdfast.core.errors import HoldfastError, TimedOut, Unavailable
from holdfast.core.text import render
from holdfast.execution.egress import Egress
from holdfast.execution.mcp.channel import ChannelServer
from holdfast.execution.mcp.exchange import NO_SECRETS, Exchange
from holdfast.execution.mcp.http import HttpServer, UnexpectedStatus
from holdfast.execution.mcp.legacy_session import HttpSession, LegacyServer, LegacySession
from holdfast.execution.mcp.messages import Message, is_response
from holdfast.execution.mcp.modern_session import ModernSession
from holdfast.execution.mcp.sse import SseChannel
from holdfast.execution.mcp.stdio import Programs, ServerProgram
from holdfast.execution.redaction import Redaction
from holdfast.mcp.inputs import MissingCapability
from holdfast.mcp.protocol import LEGACY, MODERN, McpError
from holdfast.skills.client import SILENT

FORGET_VERSIONS = 600.0  # seconds after which a server is asked again which versions it speaks
DISCOVER_SECONDS = 20.0  # for a program to start and to say which versions it speaks
OPEN_SECONDS = 60.0  # for a stream of changes to be open
HANDSHAKE_SECONDS = 20.0  # for the handshake of a session
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before a program that failed is started again
SERVER_ERROR = 500
NO_STREAMABLE_HTTP = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)

OPENED = "notifications/subscriptions/acknowledged"

Changed = Callable[["Upstream", str], None]  # takes the method of a notification of a server


@dataclass(frozen=True)
class Upstream:
    """A server, and for whom it is called: an address, or a program that is started.

    `headers` contain secrets, which `redaction` removes from what the server says. `user` is "" for sessions that users
    share.
    """

    tenant: str
    source: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    program: ServerProgram | None = None
    sampling: bool = False
    user: str = ""
    redaction: Redaction = field(default=NO_SECRETS, repr=False, compare=False)

    @cached_property
    def key(self) -> str:
        """Identifies the server, with the credentials by which it is called."""
        program = None if self.program is None else [self.program.command, sorted(self.program.environment.items())]
        known = [self.tenant, self.source, self.url, sorted(self.headers.items()), program, self.sampling]
        return hashlib.blake2s(render(known)).hexdigest()

    def is_for_same_user(self, other: "Upstream") -> bool:
        """Whether another one is the same server, for the same user."""
        return (self.key, self.user) == (other.key, other.user)

    @property
    def name(self) -> str:
        """Names the server in errors."""
        return urlsplit(self.url).hostname or "the server" if self.program is None else self.program.command[0]


class McpConnections:
    """Opens connections. `about` is what servers learn of us, `limit` the most bytes of a response.

    `changed` takes the notifications that belong to no request.
    """

    def __init__(
        self, egress: Egress, programs: Programs, *, about: Mapping[str, Any], limit: int, changed: Changed
    ) -> None:
        self._egress = egress
        self._programs = programs
        self._about = about
        self._limit = limit
        self._changed = changed
        self._versions: dict[str, tuple[float, frozenset[str]]] = {}
        self._sse: set[str] = set()  # servers that only have the first transport
        self._discovered: dict[str, ChannelServer] = {}  # programs that nobody has used yet
        self._failures: dict[str, _Failures] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def close(self) -> None:
        """Stop the programs that nobody has used."""
        for server in self._discovered.values():
            await server.close()
        self._discovered.clear()

    async def versions_of(self, upstream: Upstream) -> frozenset[str]:
        """Return the versions that a server speaks, as far as we do."""
        known = self._known_versions(upstream)
        if known is None:
            async with self._locks.setdefault(upstream.key, asyncio.Lock()):
                known = self._known_versions(upstream)
                if known is None:
                    found = self._ask_program(upstream) if upstream.program is not None else self._ask(upstream)
                    known = await found
                    self._versions[upstream.key] = monotonic(), known
        return known

    async def open_modern(self, upstream: Upstream) -> ModernSession:
        """Return a new session with a server that speaks the modern version."""
        server = self.http(upstream) if upstream.program is None else await self._start(upstream)
        return ModernSession(server, about=self._about)

    async def open_legacy(self, upstream: Upstream, capabilities: Mapping[str, Any]) -> LegacySession:
        """Return a new session with a server, in which it may ask for what is in `capabilities`."""
        if upstream.program is not None:
            with self._failures_of(upstream):
                return await self._shake_hands(await self._start(upstream), capabilities)
        if upstream.key not in self._sse:
            try:
                return await self._shake_hands(HttpSession(self.http(upstream)), capabilities)
            except UnexpectedStatus as error:
                if error.status not in NO_STREAMABLE_HTTP:
                    raise
        channel = SseChannel(self.http(upstream))
        await channel.open()
        self._sse.add(upstream.key)
        return await self._shake_hands(self._channel_server(upstream, channel), capabilities)

    async def listen(self, upstream: Upstream, lists: Sequence[str]) -> None:
        """Wait on the stream on which a server at an address announces changes of lists, until it ends.

        What has changed before the stream was open is unknown: that counts as a change, too.
        """

        async def receive(message: Message) -> bool:
            limit.reschedule(None)  # the stream is open
            self._changed(upstream, str(message.get("method")))
            return "id" in opening and is_response(message, opening["id"])

        opening: Message = {}
        async with asyncio.timeout(OPEN_SECONDS) as limit:
            if MODERN in await self.versions_of(upstream):
                opening, headers = ModernSession(self.http(upstream), about=self._about).listening(lists)
                await self.http(upstream).post(opening, headers, receive, again=True, counted=False)
                return
            session = await self.open_legacy(upstream, {})
        self._changed(upstream, OPENED)
        try:
            if isinstance(session.server, HttpSession):
                await session.server.listen(receive)
            elif isinstance(session.server, ChannelServer):
                await session.server.wait()
        finally:
            await session.close()

    def http(self, upstream: Upstream) -> HttpServer:
        """Return a server at an address."""
        return HttpServer(self._egress, upstream.url, upstream.headers, limit=self._limit)

    async def _shake_hands(self, server: LegacyServer, capabilities: Mapping[str, Any]) -> LegacySession:
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                session = await LegacySession.open(server, about=self._about, capabilities=capabilities)
        except TimeoutError:
            why = f"it did not answer within {HANDSHAKE_SECONDS:g} seconds"
            raise TimedOut("the MCP server did not open a session", why=why, next="Try again later.") from None
        if capabilities and isinstance(server, ChannelServer):
            server.serialize()
        return session

    def _known_versions(self, upstream: Upstream) -> frozenset[str] | None:
        asked_at, versions = self._versions.get(upstream.key, (0.0, frozenset[str]()))
        is_current = upstream.program is not None or monotonic() - asked_at < FORGET_VERSIONS
        return versions if versions and is_current else None

    async def _ask(self, upstream: Upstream) -> frozenset[str]:
        try:
            return await self._discover(self.http(upstream))
        except UnexpectedStatus as error:
            if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) or error.status >= SERVER_ERROR:
                raise
            return frozenset(LEGACY)

    async def _ask_program(self, upstream: Upstream) -> frozenset[str]:
        """Ask a program. It is kept for the first session, unless the question has ended it."""
        with self._failures_of(upstream):
            server = await self._start(upstream)
            try:
                async with asyncio.timeout(DISCOVER_SECONDS):
                    versions = await self._discover(server)
            except (TimeoutError, Unavailable):
                versions = frozenset(LEGACY)
                await server.close()
            except BaseException:
                await server.close()
                raise
        if not server.is_gone:
            self._discovered[upstream.key] = server
        return versions

    async def _discover(self, server: HttpServer | ChannelServer) -> frozenset[str]:
        session = ModernSession(server, about=self._about)
        try:
            found = await session.request(Exchange(SILENT), "server/discover", {})
        except (McpError, MissingCapability):  # a server of an earlier version does not know the method
            return frozenset(LEGACY)
        given: object = found.get("supportedVersions")
        known = {str(each) for each in cast(list[Any], given)} if isinstance(given, list) else set[str]()
        return frozenset(known & {MODERN, *LEGACY}) or frozenset({MODERN})

    async def _start(self, upstream: Upstream) -> ChannelServer:
        """Start a program, or return the one that was started to ask it for its versions."""
        server = self._discovered.pop(upstream.key, None)
        if server is not None and not server.is_gone:
            return server
        assert upstream.program is not None
        return self._channel_server(upstream, await self._programs.start(upstream.program, limit=self._limit))

    def _channel_server(self, upstream: Upstream, channel: Any) -> ChannelServer:
        return ChannelServer(channel, notify=lambda method: self._changed(upstream, method))

    def _failures_of(self, upstream: Upstream) -> "_Failures":
        return self._failures.setdefault(upstream.key, _Failures(upstream.name))


class _Failures:
    """Counts how often in a row a program failed to start. Inside of the block, it is started; not too often."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._until = 0.0
        self._last: HoldfastError | None = None

    def __enter__(self) -> None:
        wait = self._until - monotonic()
        if wait > 0 and self._last is not None:
            raise Unavailable(
                f"the program {self._name} was not started again",
                why=f"it has failed {self._count} times: {self._last.what}"
                + (f", because {self._last.why}" if self._last.why else ""),
                next=f"Correct the source. The next start is possible in {wait:.0f} seconds.",
            )

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._count = 0
        elif isinstance(error, HoldfastError):
            self._count += 1
            self._last = error
            self._until = monotonic() + min(FIRST_PAUSE * 2 ** (self._count - 1), LONGEST_PAUSE)
