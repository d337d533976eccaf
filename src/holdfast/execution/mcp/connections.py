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
from holdfast.execution.identity.sent_identity import SentIdentity
from holdfast.execution.mcp.channel import ChannelServer
from holdfast.execution.mcp.exchange import NO_HEADERS, NO_SECRETS, Exchange
from holdfast.execution.mcp.http import HttpServer, UnexpectedStatus
from holdfast.execution.mcp.legacy_session import HttpSession, LegacyServer, LegacySession
from holdfast.execution.mcp.messages import Message, is_response, result_of
from holdfast.execution.mcp.modern_session import ModernSession
from holdfast.execution.mcp.sse import SseChannel
from holdfast.execution.mcp.stdio import Programs, ServerProgram
from holdfast.execution.redaction import Redaction
from holdfast.mcp.protocol import INVALID_PARAMS, LEGACY, METHOD_NOT_FOUND, MODERN, UNSUPPORTED_VERSION, McpError
from holdfast.skills.client import SILENT

FORGET_VERSIONS = 600.0  # seconds after which a server is asked again which versions it speaks
DISCOVER_SECONDS = 20.0  # for a program to start and to say which versions it speaks
OPEN_SECONDS = 60.0  # for a stream of changes to be open
HANDSHAKE_SECONDS = 20.0  # for the handshake of a session
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before a program that failed is started again
REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
SERVER_ERROR = 500
UNKNOWN = (METHOD_NOT_FOUND, INVALID_PARAMS, UNSUPPORTED_VERSION)  # how servers of earlier versions answer discovery
NO_MODERN = NO_STREAMABLE_HTTP = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)

OPENED = "notifications/subscriptions/acknowledged"

Changed = Callable[["Upstream", str], None]  # takes the method of a notification of a server


@dataclass(frozen=True)
class Upstream:
    """A server, and for whom it is called: an address, or a program that is started.

    `headers` contain secrets, which `redaction` removes from what the server says. `user` is "" for sessions that users
    share. `identity` says who calls: it changes from call to call, and no session that users share keeps it.
    """

    tenant: str
    source: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    program: ServerProgram | None = None
    sampling: bool = False
    user: str = ""
    redaction: Redaction = field(default=NO_SECRETS, repr=False, compare=False)
    identity: SentIdentity | None = field(default=None, repr=False, compare=False)

    @cached_property
    def key(self) -> str:
        """Identifies the server, with the credentials by which it is called."""
        program = None if self.program is None else [self.program.command, sorted(self.program.environment.items())]
        known = [self.tenant, self.source, self.url, sorted(self.headers.items()), program, self.sampling]
        return hashlib.blake2s(render(known)).hexdigest()

    @property
    def caller_headers(self) -> Mapping[str, str]:
        """The headers that say who calls."""
        return NO_HEADERS if self.identity is None else self.identity.headers

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
                    if known is None:  # a handshake will show whether that is so
                        return frozenset(LEGACY)
                    self._versions[upstream.key] = monotonic(), known
        return known

    async def open_modern(self, upstream: Upstream) -> ModernSession:
        """Return a new session with a server that speaks the modern version."""
        if upstream.program is None:
            return ModernSession(self.http(upstream), about=self._about)
        server = self._take_discovered(upstream)
        if server is None:
            with self._failures_of(upstream):
                server = await self._start(upstream)
                try:
                    async with asyncio.timeout(DISCOVER_SECONDS):
                        await self._discover(server, upstream)  # as in a handshake, it shows that the program works
                except TimeoutError:
                    await server.close()
                    raise self._silence(upstream) from None
                except BaseException:
                    await server.close()
                    raise
        return ModernSession(server, about=self._about)

    async def open_legacy(self, upstream: Upstream, capabilities: Mapping[str, Any]) -> LegacySession:
        """Return a new session with a server, in which it may ask for what is in `capabilities`."""
        if upstream.program is not None:
            with self._failures_of(upstream):
                server = self._take_discovered(upstream) or await self._start(upstream)
                return await self._shake_hands(upstream, server, capabilities)
        if upstream.key not in self._sse:
            try:
                return await self._shake_hands(upstream, HttpSession(self.http(upstream)), capabilities)
            except UnexpectedStatus as error:
                if error.status not in NO_STREAMABLE_HTTP:
                    raise
        channel = SseChannel(self.http(upstream), upstream.caller_headers)
        await channel.open()
        self._sse.add(upstream.key)
        return await self._shake_hands(upstream, self._channel_server(upstream, channel), capabilities)

    async def listen(self, upstream: Upstream, lists: Sequence[str]) -> None:
        """Wait on the stream on which a server at an address announces changes of lists, until it ends.

        What has changed before the stream was open is unknown: that counts as a change, too.
        """

        async def receive(message: Message) -> bool:
            limit.reschedule(None)  # the stream is open
            if message.get("method") is None:
                result_of(message)  # raises the error that there is no stream
            self._changed(upstream, str(message.get("method")))
            return "id" in opening and is_response(message, opening["id"])

        opening: Message = {}
        async with asyncio.timeout(OPEN_SECONDS) as limit:
            if MODERN in await self.versions_of(upstream):
                opening, headers = ModernSession(self.http(upstream), about=self._about).listening(lists)
                sent = {**headers, **upstream.caller_headers}
                await self.http(upstream).post(opening, sent, receive, again=True, counted=False)
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

    async def _shake_hands(
        self, upstream: Upstream, server: LegacyServer, capabilities: Mapping[str, Any]
    ) -> LegacySession:
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                session = await LegacySession.open(
                    server, about=self._about, capabilities=capabilities, headers=upstream.caller_headers
                )
        except TimeoutError:
            why = f"it did not answer within {HANDSHAKE_SECONDS:g} seconds"
            raise TimedOut("the MCP server did not open a session", why=why, next="Try again later.") from None
        if capabilities and isinstance(server, ChannelServer):
            server.serialize()
        if self._known_versions(upstream) is None:  # it was not certain
            self._versions[upstream.key] = monotonic(), frozenset(LEGACY)
        return session

    def _known_versions(self, upstream: Upstream) -> frozenset[str] | None:
        asked_at, versions = self._versions.get(upstream.key, (0.0, frozenset[str]()))
        is_current = upstream.program is not None or monotonic() - asked_at < FORGET_VERSIONS
        return versions if versions and is_current else None

    async def _ask(self, upstream: Upstream) -> frozenset[str] | None:
        """Ask a server at an address. None: its answer is an error that servers of earlier versions may give, too."""
        try:
            async with asyncio.timeout(DISCOVER_SECONDS):
                return await self._discover(self.http(upstream), upstream)
        except TimeoutError:
            raise self._silence(upstream) from None
        except UnexpectedStatus as error:
            if error.status in REFUSALS or not HTTPStatus.BAD_REQUEST <= error.status < SERVER_ERROR:
                raise
            return frozenset(LEGACY) if error.status in NO_MODERN else None
        except McpError as error:
            return frozenset(LEGACY) if error.code in UNKNOWN or error.status in NO_MODERN else None

    async def _ask_program(self, upstream: Upstream) -> frozenset[str] | None:
        """Ask a program. It is kept for the first session. None: it answers with an error, ends, or does not answer.

        Programs of earlier versions may do that, because the request comes before the handshake.
        """
        failures = self._failures_of(upstream)
        failures.check()
        try:
            server = await self._start(upstream)
        except HoldfastError as error:
            failures.add(error)
            raise
        versions: frozenset[str] | None = None
        try:
            async with asyncio.timeout(DISCOVER_SECONDS):
                versions = await self._discover(server, upstream)
        except McpError as error:
            versions = frozenset(LEGACY) if error.code in UNKNOWN else None
        except (TimeoutError, Unavailable):
            pass
        finally:
            if versions is None:
                await server.close()
        if versions is not None:
            self._discovered[upstream.key] = server
        return versions

    async def _discover(self, server: HttpServer | ChannelServer, upstream: Upstream) -> frozenset[str]:
        session = ModernSession(server, about=self._about)
        found = await session.request(Exchange(SILENT, headers=upstream.caller_headers), "server/discover", {})
        given: object = found.get("supportedVersions")
        known = {str(each) for each in cast(list[Any], given)} if isinstance(given, list) else set[str]()
        return frozenset(known & {MODERN, *LEGACY}) or frozenset({MODERN})

    def _silence(self, upstream: Upstream) -> TimedOut:
        return TimedOut(f"{upstream.name} did not say within {DISCOVER_SECONDS:g} seconds which versions it speaks")

    async def _start(self, upstream: Upstream) -> ChannelServer:
        assert upstream.program is not None
        return self._channel_server(upstream, await self._programs.start(upstream.program, limit=self._limit))

    def _take_discovered(self, upstream: Upstream) -> ChannelServer | None:
        """Return the program that was started to ask it for its versions, if it still runs."""
        server = self._discovered.pop(upstream.key, None)
        return None if server is None or server.is_gone else server

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

    def check(self) -> None:
        """Raise Unavailable if it is too early to start the program again."""
        wait = self._until - monotonic()
        if wait > 0 and self._last is not None:
            raise Unavailable(
                f"the program {self._name} was not started again",
                why=f"it has failed {self._count} times: {self._last.what}"
                + (f", because {self._last.why}" if self._last.why else ""),
                next=f"Correct the source. The next start is possible in {wait:.0f} seconds.",
            )

    def __enter__(self) -> None:
        self.check()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._count = 0
        elif isinstance(error, HoldfastError | McpError):
            self.add(error)

    def add(self, error: HoldfastError | McpError) -> None:
        """Count a failure."""
        self._count += 1
        self._last = error if isinstance(error, HoldfastError) else Unavailable(error.message)
        self._until = monotonic() + min(FIRST_PAUSE * 2 ** (self._count - 1), LONGEST_PAUSE)
