"""No body keeps others waiting, whatever it is and wherever it comes in."""

import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from holdfast.core.config import Config
from tests.execution.backend import Service
from tests.processes import Processes
from tests.server.hostile_bodies import BYTES, HOSTILE
from tests.server.mcp_wire import begin, mirror, modern, of_session
from tests.server.stalls import StallServer, start_stall_server
from tests.server.wire import connect

pytestmark = pytest.mark.req("SAFE-06")

LONGEST = 0.25  # seconds
TRIES = 3  # of a body that took longer: another process may have taken the caches
FRAME = 2_900_000  # bytes of a large frame of a socket

JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}
SELECTED = (
    "large floats",
    "integers of 4299 digits",
    "objects with a list",
    "members",
    "as many large floats as are taken",
    "as many objects as are taken",
    "deep objects",
    "a text",
    "a text of half characters",
)

Send = Callable[["Desk", bytes], Awaitable[object]]


class Desk:
    """A server, and the back end and the model that it asks; both answer what a test wants them to."""

    def __init__(self, server: StallServer, service: Service) -> None:
        self.server = server
        self.service = service
        self.session = ""  # of an older MCP client

    @classmethod
    async def opened(cls, server: StallServer, service: Service) -> "Desk":
        """With a topic, a tool of a back end, and everything loaded that is loaded at first use."""
        desk = cls(server, service)
        made = await server.ask("POST", "/api/topics", json={"name": "news"})
        assert made.status == 201, made
        operation = {"summary": "Look", "x-ai-enabled": True, "responses": {"200": {"description": "so"}}}
        info, servers = {"title": "Back", "version": "1"}, [{"url": service.url}]
        document = {"openapi": "3.1.0", "info": info, "servers": servers, "paths": {"/look": {"get": operation}}}
        made = await server.ask("POST", "/api/sources", json={"name": "back", "document": json.dumps(document)})
        assert made.status == 201, made
        async with connect(server.port) as wire:
            desk.session = await begin(wire)
        for send in ENTRIES.values():
            await send(desk, b"[1]")
        return desk

    async def chat(self, *events: bytes) -> None:
        """Have the model answer so, once, and then in a word."""
        answers = iter([b"".join(b"data: %b\n\n" % event for event in events)])

        async def answer(_: web.Request) -> web.Response:
            body = next(answers, b'data: {"choices":[{"delta":{"content":"Yes"},"finish_reason":"stop"}]}\n\n')
            return web.Response(body=body + b"data: [DONE]\n\n", content_type="text/event-stream")

        self.service.will_answer("/v1/chat/completions", answer)
        await self.server.ask("POST", "/api/chat", json={"agent_id": "support", "message": "hello"})


def http(method: str, path: str, before: bytes = b"", after: bytes = b"", headers: Mapping[str, str] = JSON) -> Send:
    """Sends the value within a request's body."""
    return lambda desk, value: desk.server.ask(method, path, body=before + value + after, headers=headers)


async def call_mcp(desk: Desk, value: bytes) -> None:
    body = modern("tools/call", {"name": "echo", "arguments": {"value": "@"}})
    data = json.dumps(body).encode().replace(b'"@"', value)
    await desk.server.ask("POST", "/mcp", body=data, headers={**mirror(body), **JSON})


async def call_in_session(desk: Desk, value: bytes) -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"value":%b}}}' % value
    await desk.server.ask("POST", "/mcp", body=data, headers={**of_session(desk.session), **JSON})


async def post_to_stream(desk: Desk, value: bytes) -> None:
    async with connect(desk.server.port) as wire:
        await wire.send(b"GET /mcp/sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n")
        await wire.reply_without_body()
        async for chunk in wire.chunks():
            if b"data: " in chunk:
                path = chunk.partition(b"data: ")[2].split()[0].decode()
                await desk.server.ask("POST", path, body=value, headers=JSON)
                break


async def send_frames(desk: Desk, value: bytes) -> None:
    frames = value[:FRAME].decode(errors="replace"), f'{{"type":"message","text":{value.decode(errors="replace")}}}'
    kind = Subprotocol("holdfast.v1+json")
    for frame in frames:
        if len(frame) > FRAME + 100:
            continue
        async with open_socket(f"ws://127.0.0.1:{desk.server.port}/ws/support", subprotocols=[kind]) as socket:
            await socket.recv()
            with suppress(ConnectionClosed):
                await socket.send(frame)
                await socket.recv()


def answered(kind: str) -> Send:
    """Has a back end answer with the value."""

    async def call(desk: Desk, value: bytes) -> None:
        desk.service.will_answer("/look", body=value, content_type=kind)
        await desk.server.ask("POST", "/api/tools/get_look/call", json={})

    return call


async def send_event(desk: Desk, value: bytes) -> None:
    await desk.chat(value[:4_000_000])


async def send_arguments(desk: Desk, value: bytes) -> None:
    arguments = json.dumps('{"value":' + value[:3_000_000].decode(errors="replace") + "}").encode()
    function = b'{"name":"echo","arguments":%b}' % arguments
    await desk.chat(
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":%b}]}}]}' % function,
        b'{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}',
    )


async def import_document(desk: Desk, value: bytes) -> None:
    document = '{"openapi":"3.1.0","paths":' + value.decode(errors="replace") + "}"
    await desk.server.ask("POST", "/api/sources", json={"name": "other", "document": document})


METHOD = b'{"jsonrpc":"2.0","id":1,"method":"shop.example/market/count/1.0","params":{"items":'
ENVELOPE = b'{"host":"shop.example","service":"market","action":"count","version":"1.0","data":{"items":'
FILE = b'{"format":"holdfast.memories","version":1}\n'
TOOL = b'{"description":"x","kind":"function","reference":"a:b","parameters":{"properties":{"a":{"enum":'

ENTRIES: Mapping[str, Send] = {
    "/rpc": http("POST", "/rpc"),
    "/rpc, a method": http("POST", "/rpc", METHOD, b"}}"),
    "/rpc, an envelope": http("POST", "/rpc", ENVELOPE, b"}}"),
    "/mcp": call_mcp,
    "/mcp, a session": call_in_session,
    "/mcp/message": post_to_stream,
    "a socket": send_frames,
    "/api/chat": http("POST", "/api/chat", b'{"agent_id":"support","message":', b"}"),
    "a call": http("POST", "/api/tools/echo/call", b'{"arguments":{"value":', b"}}"),
    "a tool's schema": http("PUT", "/api/tools/other", TOOL, b"}}}}"),
    "a memory": http("POST", "/api/memories", b'{"memories":[{"content":"x","metadata":{"a":', b"}}]}"),
    "a file of memories": http("POST", "/api/memories/import", FILE, headers=LINES),
    "a state": http("POST", "/api/conversations", b'{"state":{"a":', b"}}"),
    "a record": http("POST", "/api/topics/news/records", b'{"value":', b"}"),
    "a command": http("POST", "/api/commands", b'{"skill":"unknown","arguments":{"a":', b"}}"),
    "a document": import_document,
    "a back end's answer": answered("application/json"),
    "a back end's text": answered("text/plain"),
    "a model's event": send_event,
    "a model's arguments": send_arguments,
}


@asynccontextmanager
async def opened(processes: Processes, config: Config) -> AsyncGenerator[Desk]:
    async with Service().serving() as service:
        settings = {
            "HOLDFAST_EXECUTION__ALLOW_PRIVATE": "127.0.0.1",
            "HOLDFAST_LLM__MODEL": "openai:scripted",
            "HOLDFAST_LLM__BASE_URL": f"{service.url}/v1",
            "HOLDFAST_LLM__API_KEY": "none",
            "HOLDFAST_LLM__ATTEMPTS": "1",
        }
        yield await Desk.opened(start_stall_server(processes, config, **settings), service)
        processes.end_all()


@pytest.fixture
async def desk(config: Config, processes: Processes) -> AsyncIterator[Desk]:
    """A server in a process of its own."""
    async with opened(processes, config) as desk:
        yield desk


async def longest_stall(desk: Desk, send: Send, value: bytes) -> tuple[float, float]:
    """The longest stall while a body is handled, in CPU time, and the longest that `/healthz` took."""
    found: list[tuple[float, float]] = []
    while len(found) < TRIES and (not found or found[-1][0] > LONGEST):
        await desk.server.stall()
        async with desk.server.watched() as delays:
            await send(desk, value)
        found.append((await desk.server.stall(), max(delays, default=0.0)))
    return min(found)


async def stalls(desk: Desk, names: tuple[str, ...], size: int) -> dict[str, float]:
    """The longest stall by body and entry point; each body's worst is told."""
    found: dict[str, float] = {}
    for name in names:
        value = HOSTILE[name](size)
        worst = {entry: await longest_stall(desk, send, value) for entry, send in ENTRIES.items()}
        found |= {f"{name} to {entry}": stall for entry, (stall, _) in worst.items()}
        where, (stall, delay) = max(worst.items(), key=lambda each: each[1])
        sys.stdout.write(f"{name:40} {stall * 1000:4.0f} ms at {where}; /healthz took {delay * 1000:4.0f} ms there\n")
    return found


async def test_hostile_bodies_keep_nobody_waiting(desk: Desk) -> None:
    found = await stalls(desk, SELECTED, FRAME)

    assert {where: stall for where, stall in found.items() if stall > LONGEST} == {}


@pytest.mark.soak
@pytest.mark.alone
async def test_every_hostile_body_keeps_nobody_waiting_wherever_it_comes_in(desk: Desk) -> None:
    found = await stalls(desk, tuple(HOSTILE), BYTES)

    assert len(HOSTILE) >= 40
    assert {where: stall for where, stall in found.items() if stall > LONGEST} == {}


async def test_a_body_that_takes_too_long_is_refused_with_what_and_why(desk: Desk) -> None:
    refused = await desk.server.ask(
        "POST", "/api/conversations", body=b'{"a":' + HOSTILE["digits"](BYTES), headers=JSON
    )
    called = await desk.server.ask("POST", "/rpc", body=HOSTILE["large floats"](BYTES), headers=JSON)

    assert (refused.status, refused.code) == (413, "too_large")
    assert "more than 100,000 values" in refused.json()["detail"]
    assert called.json()["error"]["data"]["code"] == "too_large"
