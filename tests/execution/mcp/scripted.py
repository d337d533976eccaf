"""MCP servers that answer as a test says, and sessions with them that need no database."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from aiohttp import web

from holdfast.core.text import parse, render
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.mcp.channel import MessageChannel
from holdfast.execution.mcp.connections import Upstream
from holdfast.execution.mcp.servers import McpServers
from holdfast.execution.mcp.stdio import Programs, ServerProgram
from holdfast.mcp.inputs import Forwarded, InputRequest, Reply
from holdfast.mcp.protocol import LEGACY, METHOD_NOT_FOUND, MODERN
from holdfast.skills.client import NoClient
from tests.execution.backend import Service

Message = Mapping[str, Any]
Handler = Callable[[web.Request, Message], Awaitable[web.StreamResponse]]

TENANT = "00000000-0000-0000-0000-000000000001"
CALL = "tools/call"
TELL: Mapping[str, Any] = {"name": "tell", "arguments": {}}
ABOUT = {"capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "scripted", "version": "1"}}
INITIALIZED: Message = {"protocolVersion": LEGACY[0], **ABOUT}
DISCOVERED: Message = {"supportedVersions": [MODERN], **ABOUT}
TOLD: Message = {"content": [{"type": "text", "text": "told"}]}


def response(id: object, result: Message) -> dict[str, Any]:
    """A response with a result."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def failure(id: object, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """A response with an error."""
    error = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": id, "error": error if data is None else {**error, "data": data}}


def reply(message: Message, status: int = 200, *, session: str | None = None) -> web.Response:
    """A message as a response of HTTP."""
    headers = {} if session is None else {"Mcp-Session-Id": session}
    return web.Response(body=render(message), content_type="application/json", status=status, headers=headers)


class Stream:
    """A stream of events that answers a request."""

    def __init__(self, response: web.StreamResponse) -> None:
        self.response = response

    @classmethod
    async def begin(cls, request: web.Request) -> "Stream":
        """Send its headers."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        return cls(response)

    async def send(self, *messages: Message) -> None:
        """Send messages, all at once."""
        await self.response.write(b"".join(b"data: " + render(each) + b"\n\n" for each in messages))


class ScriptedServer(Service):
    """An MCP server at `/mcp`. `handlers` answer methods, `answers_of_client` are the responses that it was sent."""

    def __init__(self, *, modern: bool = False) -> None:
        super().__init__()
        self.methods = Counter[str]()
        self.answers_of_client: list[Message] = []
        self.handlers: dict[str, Handler] = {}
        self.will_answer("/mcp", self._answer)
        self.will_return("server/discover" if modern else "initialize", DISCOVERED if modern else INITIALIZED)
        self.will_return(CALL, TOLD)

    def will_return(self, method: str, result: Message) -> None:
        """Answer a method with a result."""

        async def handle(_: web.Request, message: Message) -> web.StreamResponse:
            return reply(response(message["id"], result))

        self.handlers[method] = handle

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            handler = self.handlers.get(request.method)
            return web.Response(status=405) if handler is None else await handler(request, {})
        message = parse(await request.read())
        if "method" not in message:
            self.answers_of_client.append(message)
            return web.Response(status=202)
        self.methods[message["method"]] += 1
        handler = self.handlers.get(message["method"])
        if handler is not None:
            return await handler(request, message)
        if "id" not in message:
            return web.Response(status=202)
        return reply(failure(message["id"], METHOD_NOT_FOUND, "unknown method"))


class ScriptedProgram(MessageChannel):
    """The pipes of a program. `handle` gets each message, and calls `write` with what the program writes."""

    def __init__(self, handle: Callable[["ScriptedProgram", Message], None] | None) -> None:
        self._handle = handle
        self._output: asyncio.Queue[Message] = asyncio.Queue()
        self.received: list[Message] = []

    def write(self, message: Message) -> None:
        """Write a message."""
        self._output.put_nowait(message)

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Take a message."""
        self.received.append(message)
        if self._handle is not None:
            self._handle(self, message)

    async def messages(self) -> AsyncIterator[Message]:
        """Yield what it writes. Without `handle`, it ends at once."""
        while self._handle is not None:
            yield await self._output.get()

    async def close(self) -> str:
        """End."""
        return "the program ended with 1"


class ScriptedPrograms:
    """Starts scripted programs: `script` returns the n-th one."""

    def __init__(self, script: Callable[[int], ScriptedProgram]) -> None:
        self._script = script
        self.started: list[ScriptedProgram] = []

    async def start(self, program: ServerProgram, *, limit: int) -> ScriptedProgram:
        """Start one."""
        self.started.append(self._script(len(self.started)))
        return self.started[-1]


class AskedClient(NoClient):
    """A client that takes everything, declares `capabilities`, and answers each question with `answer`."""

    wants_progress = True
    level = "debug"

    def __init__(self, answer: Message | None = None, **capabilities: Any) -> None:
        self.capabilities = capabilities
        self.answer = answer or {"action": "accept", "content": {}}
        self.got: list[Any] = []
        self.asked: dict[str, Forwarded] = {}

    async def progress(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Keep a report."""
        self.got.append(message)

    async def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Keep a log."""
        self.got.append((logger, data))

    async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
        """Keep the questions, and answer them."""
        self.asked |= cast(Mapping[str, Forwarded], requests)
        return {name: Reply(self.answer) for name in requests}


@asynccontextmanager
async def sessions(programs: ScriptedPrograms | None = None) -> AsyncGenerator[McpServers]:
    """Sessions with servers on this machine."""
    given = cast(Programs, programs)
    about = {"name": "us", "version": "1"}
    async with (
        Egress(AllowedHosts.parse(["127.0.0.1"])) as egress,
        McpServers(egress, given, about=about, limit=10**7, patience=60) as servers,
    ):
        yield servers


def server_at(service: Service, user: str = "", **more: Any) -> Upstream:
    """A scripted server, for a user."""
    return Upstream(TENANT, "first", f"{service.url}/mcp", {}, user=user, **more)


def program(user: str = "", **more: Any) -> Upstream:
    """A scripted program, for a user."""
    return Upstream(TENANT, "first", "", {}, ServerProgram(("scripted",), {}), user=user, **more)
