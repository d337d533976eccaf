"""The runner of tools of other MCP servers."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from holdfast.core.errors import Forbidden, HoldfastError, InvalidInput, TimedOut, Unavailable
from holdfast.core.text import render
from holdfast.execution.egress import checked_url
from holdfast.execution.identity.sent_identity import SentIdentity
from holdfast.execution.mcp.connections import Upstream
from holdfast.execution.mcp.exchange import Exchange
from holdfast.execution.mcp.http import UnexpectedStatus
from holdfast.execution.mcp.modern_session import READING
from holdfast.execution.mcp.servers import McpServers
from holdfast.execution.mcp.stdio import ServerProgram
from holdfast.execution.redaction import Redaction
from holdfast.execution.rest.requests import fill_secrets, secrets_in
from holdfast.execution.rest.runner import LEAD, Identify, Secrets, redact_error, secret_values
from holdfast.execution.runner import IN_DOUBT, Result
from holdfast.mcp.content import text_of_json
from holdfast.mcp.headers import MirroredArgument, mirrored_of
from holdfast.mcp.protocol import McpError
from holdfast.postgres.database import Database
from holdfast.skills.client import InputRequired
from holdfast.skills.request import Backend, McpServer
from holdfast.skills.run import Run
from holdfast.skills.sources.mcp import with_scheme
from holdfast.skills.tool import Tool

CALL = "tools/call"
NOBODY = Run(None, None, None, None, None, "", "")
TIMEOUT = 60.0  # seconds

Found = TypeVar("Found")


class McpBackends:
    """Finds the servers of one tenant's sources, with their secrets."""

    def __init__(
        self,
        database: Database,
        servers: McpServers,
        secrets: Secrets,
        *,
        commands: Collection[str] = (),
        timeout: float = TIMEOUT,
        identify: Identify | None = None,
    ) -> None:
        self.servers = servers
        self._database = database
        self._secrets = secrets
        self._commands = commands  # that the operator allows
        self._timeout = timeout  # of a request, unless its source has one
        self._identify = identify

    async def upstream(
        self, backend: Backend, run: Run | None = None, *, tool: str | None = None
    ) -> tuple[Upstream, Redaction]:
        """Return the server of a source for the caller of a run, or for nobody, and the redaction of its secrets."""
        server = server_of(backend)
        if server.command:
            self._check_command(server.command)
        values = await secret_values(
            self._secrets,
            secrets_in(backend.headers) | secrets_in(server.env),
            lambda: f"the program {server.command[0]}" if server.command else urlsplit(server.url).hostname or "",
            f"the source {backend.source}",
        )
        variables = {name: fill_secrets(value, values) for name, value in server.env.items()}
        redaction = Redaction(values.values())
        identity = await self._identity(backend, run or NOBODY, tool)
        if identity is not None:
            redaction = redaction.and_also(identity.redaction)
        return (
            Upstream(
                str(await self._database.tenant()),
                backend.source,
                server.url,
                {name: fill_secrets(value, values) for name, value in backend.headers.items()},
                ServerProgram(server.command, variables) if server.command else None,
                server.sampling,
                "" if server.shared or run is None else user_of(run),
                redaction,
                identity,
            ),
            redaction,
        )

    async def _identity(self, backend: Backend, run: Run, tool: str | None) -> SentIdentity | None:
        if backend.identity is None:
            return None
        if self._identify is None:
            raise Unavailable(f"the source {backend.source} was not called", why="this process cannot say who calls")
        origin = str(checked_url(server_of(backend).url).origin())
        return await self._identify(backend, run, tool=tool, kind="mcp_server", origin=origin)

    def _check_command(self, command: Sequence[str]) -> None:
        if command[0] not in self._commands:
            raise Forbidden(
                f"the program {command[0]} was not started",
                why="the operator of this server has not allowed it",
                next="Ask an operator to add it to the setting execution.commands.",
            )

    async def request(self, backend: Backend, method: str, params: Mapping[str, Any], run: Run) -> Mapping[str, Any]:
        """Send a request other than a call of a tool, and return its result. Questions go to the run's client."""
        upstream, _ = await self.upstream(backend, run)

        def owner() -> str:
            return owner_of(upstream, run, method, params)

        async def call(upstream: Upstream) -> Mapping[str, Any]:
            exchange = self.servers.resume(run.client.waiting, owner()) if run.client.waiting else None
            if exchange is None:
                exchange = self.servers.begin(upstream, method, params, client=run.client)
            result = finish(self.servers, exchange, run, owner)
            return await within(timeout, result, upstream, is_idempotent=method in READING)

        timeout = self._timeout if backend.timeout is None else backend.timeout
        return await with_renewal(upstream, call)


class McpRunner:
    """Calls tools of MCP servers. Each call is one request, and its result is passed on unchanged."""

    def __init__(self, backends: McpBackends) -> None:
        self._backends = backends
        self._servers = backends.servers

    async def run(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Call the tool on its server."""
        if tool.request is None or tool.request.mcp is None or tool.backend is None:
            raise InvalidInput(f"{tool.name} cannot be called", why="it belongs to no MCP server")
        if tool.backend.timeout is not None and tool.timeout is None:
            timeout = min(timeout, tool.backend.timeout)
        upstream, redaction = await self._backends.upstream(tool.backend, run, tool=tool.name)
        params = {"name": tool.request.mcp.name, "arguments": dict(arguments)}

        async def call(upstream: Upstream) -> Mapping[str, Any]:
            exchange = await self._exchange(tool, upstream, params, run)
            result = finish(self._servers, exchange, run, lambda: owner_of(upstream, run, CALL, params))
            return await within(timeout, result, upstream, is_idempotent=tool.idempotent)

        try:
            found = await with_renewal(upstream, call)
        except McpError as error:
            return Result(f"{error.message} (code {error.code})", failed=True)
        except HoldfastError as error:
            raise redact_error(error, redaction) from None
        return result_of(found, tool.backend)

    async def _exchange(self, tool: Tool, upstream: Upstream, params: Mapping[str, Any], run: Run) -> Exchange:
        """Return the exchange that waits for this client's answers, or begin one."""
        if run.client.waiting:
            waiting = self._servers.resume(run.client.waiting, owner_of(upstream, run, CALL, params))
            if waiting is not None:
                return waiting
            if not tool.idempotent and not await self._servers.speaks_modern(upstream):
                raise Unavailable(
                    f"the call of {tool.name} that waited for the answers is gone",
                    why="the process that made it stopped, or the answers came too late",
                    next=IN_DOUBT,
                )
        return self._servers.begin(
            upstream, CALL, params, client=run.client, mirrored=_mirrored(tool), again=tool.idempotent
        )


async def within(
    timeout: float, call: Awaitable[Mapping[str, Any]], upstream: Upstream, *, is_idempotent: bool
) -> Mapping[str, Any]:
    """Return the result of a call. Raise TimedOut after `timeout` seconds."""
    try:
        async with asyncio.timeout(timeout - min(LEAD, timeout / 10)):
            return await call
    except TimeoutError:
        next = "Try again." if is_idempotent else IN_DOUBT
        raise TimedOut(f"{upstream.name} did not respond within {timeout:g} seconds", next=next) from None


async def finish(servers: McpServers, exchange: Exchange, run: Run, owner: Callable[[], str]) -> Mapping[str, Any]:
    """Return the result of an exchange. If it waits for its client, keep it until the client comes back.

    `owner` returns what identifies the client and its call. Few calls need it.
    """
    try:
        return await exchange.result(run.client)
    except InputRequired:
        run.client.waiting = servers.wait_for_client(exchange, owner())
        raise
    except UnexpectedStatus as refused:
        servers.cancel(exchange)
        if exchange.has_asked:  # it is no refusal of the whole call, a part of which the server has processed
            raise Unavailable(refused.what, why=refused.why, next=refused.next) from None
        raise
    except BaseException:
        servers.cancel(exchange)
        raise


async def with_renewal(upstream: Upstream, call: Callable[[Upstream], Awaitable[Found]]) -> Found:
    """Call a server, and once more with a new token if it has refused one that was kept.

    With the status 401, it says that it has not processed the request.
    """
    try:
        return await call(upstream)
    except UnexpectedStatus as refused:
        identity = upstream.identity
        if refused.status != HTTPStatus.UNAUTHORIZED or identity is None or identity.renew is None:
            raise
        renewed = await identity.renew()
        if renewed is None:
            raise
    redaction = upstream.redaction.and_also(renewed.redaction)
    return await call(replace(upstream, identity=renewed, redaction=redaction))


def server_of(backend: Backend) -> McpServer:
    """Return the MCP server of a source."""
    if backend.mcp is None:
        raise InvalidInput(f"the source {backend.source} is not an MCP server")
    return backend.mcp


def user_of(run: Run) -> str:
    """Return for whom a run calls, so that nobody gets another's session."""
    return render([run.user, run.agent]).decode()


def result_of(found: Mapping[str, Any], backend: Backend) -> Result:
    """Convert the result of a server. The value is its structured content, or its text."""
    content: object = found.get("content")
    if not isinstance(content, list) or not all(isinstance(each, dict) for each in cast(list[Any], content)):
        raise Unavailable("the MCP server returned an invalid result", why="its `content` is not a list of objects")
    blocks = [with_scheme(each, backend) for each in cast(list[dict[str, Any]], content)]
    result = {**found, "content": blocks}
    result.pop("resultType", None)
    text = text_of_json(blocks)
    structured: object = found.get("structuredContent")
    value = structured if structured is not None else text
    failed = found.get("isError") is True
    return Result(text if failed and text else value, failed=failed, plain=True, mcp=result)


def owner_of(upstream: Upstream, run: Run, method: str, params: Mapping[str, Any]) -> str:
    """Return what has to be the same when a client comes back to an exchange."""
    known = [upstream.tenant, upstream.source, run.user, run.agent, method, dict(params)]
    return hashlib.blake2s(render(known)).hexdigest()


def _mirrored(tool: Tool) -> tuple[MirroredArgument, ...]:
    if tool.id is None:
        return tuple(mirrored_of(tool.parameters))
    return _mirrored_of_version(_Versioned(tool))


class _Versioned:
    """A tool as a key: two are equal if they are the same version of the same tool."""

    __slots__ = ("tool",)

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    def __hash__(self) -> int:
        return hash((self.tool.id, self.tool.version))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Versioned) and (self.tool.id, self.tool.version) == (
            other.tool.id,
            other.tool.version,
        )


@lru_cache(maxsize=4096)
def _mirrored_of_version(each: _Versioned) -> tuple[MirroredArgument, ...]:
    return tuple(mirrored_of(each.tool.parameters))
