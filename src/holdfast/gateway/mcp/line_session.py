"""The session of a legacy client that sends lines, in memory. It ends with the connection."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self, cast

from holdfast.access.principals import Principal
from holdfast.core.text import render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.changes import LISTS, ListChanges, ListWatch, WantedChanges
from holdfast.gateway.mcp.legacy import messages
from holdfast.gateway.mcp.legacy.client import LegacyClient
from holdfast.gateway.mcp.legacy.messages import Initialization, Message, SessionSettings
from holdfast.gateway.mcp.legacy.questions import Answers
from holdfast.gateway.mcp.legacy.sessions import MOST_SUBSCRIPTIONS, USUAL_LEVEL
from holdfast.gateway.mcp.requests import McpRequest, Result
from holdfast.mcp.protocol import INVALID_PARAMS, INVALID_REQUEST, McpError

Write = Callable[[bytes], Awaitable[None]]


class LocalAnswers(Answers):
    """Answers to questions, which arrive in this process."""

    def __init__(self, ids: Sequence[str]) -> None:
        loop = asyncio.get_running_loop()
        self._by_id: dict[str, asyncio.Future[Message]] = {id: loop.create_future() for id in ids}

    def take(self, message: Message) -> None:
        """Take an answer; ignore it if nobody asked the question, or if it is already answered."""
        id: object = message["id"]
        waiting = self._by_id.get(id) if isinstance(id, str) else None
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def wait(self, seconds: float) -> Mapping[str, Any]:
        """Return the answers by question id: all, or those that arrived in time."""
        await asyncio.wait(self._by_id.values(), timeout=seconds)
        return {id: answer.result() for id, answer in self._by_id.items() if answer.done()}


class LineSession(SessionSettings):
    """Answers the requests of one session and sends changes, inside an `async with` block."""

    def __init__(self, gateway: Gateway, caller: Principal, write: Write, hello: Initialization) -> None:
        self._gateway = gateway
        self._caller = caller
        self._write = write
        self._hello = hello
        self._level = USUAL_LEVEL
        self._wanted = WantedChanges(frozenset(LISTS))
        self._watch: ListWatch | None = None
        self._expected: set[LocalAnswers] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._watch = await self._stack.enter_async_context(
            ListChanges.of(self._gateway).watch(self._caller, self._wanted)
        )
        sending = asyncio.create_task(self._send_changes(self._watch), name="mcp changes")
        self._stack.push_async_callback(asyncio.wait, [sending])
        self._stack.callback(sending.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def answer(self, message: Message) -> Result:
        """Return the result of a request."""
        method, params = cast(str, message["method"]), cast(dict[str, Any], message.get("params", {}))
        if method == messages.INITIALIZE:
            raise McpError(INVALID_REQUEST, "the session has begun already")
        client = LegacyClient(
            self._send,
            self._expect_answers,
            _stay_connected,
            params,
            capabilities=self._hello.client["capabilities"],
            limit=60 * self._gateway.engine.config.gateway.state_minutes,
            level=self._level,
        )
        request = McpRequest(method, params, self._gateway, self._caller, client, self._hello.version)
        try:
            return await messages.answer(request, client, self)
        finally:
            await client.close()

    def take(self, response: Message) -> None:
        """Take the client's answer to a question."""
        for answers in self._expected:
            answers.take(response)

    async def set_level(self, level: str) -> None:
        """Set the lowest level of the logs that the client receives."""
        self._level = level

    async def subscribe(self, uri: str) -> None:
        """Subscribe to changes of a resource."""
        if len(self._wanted.uris) >= MOST_SUBSCRIPTIONS:
            raise McpError(INVALID_PARAMS, f"a session watches at most {MOST_SUBSCRIPTIONS} resources")
        self._set_wanted(self._wanted.uris | {uri})

    async def unsubscribe(self, uri: str) -> None:
        """Unsubscribe from changes of a resource."""
        self._set_wanted(self._wanted.uris - {uri})

    def _set_wanted(self, uris: frozenset[str]) -> None:
        self._wanted = WantedChanges(self._wanted.lists, uris)
        if self._watch is not None:
            self._watch.wanted = self._wanted

    @asynccontextmanager
    async def _expect_answers(self, ids: Sequence[str]) -> AsyncGenerator[Answers]:
        answers = LocalAnswers(ids)
        self._expected.add(answers)
        try:
            yield answers
        finally:
            self._expected.discard(answers)

    async def _send_changes(self, watch: ListWatch) -> None:
        while True:
            for change in await watch.next():
                await self._send({"jsonrpc": "2.0", "method": change.method, "params": change.params})

    async def _send(self, message: Message) -> None:
        await self._write(render(message))


async def _stay_connected() -> None:
    """Do nothing: a client that sends lines stays connected."""
