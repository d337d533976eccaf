"""MCP over lines of text, such as standard input and output: one client, modern or legacy, one message per line.

A request that states its version is modern and independent. `initialize` opens the session of a legacy client, to which
all its other requests belong. Each answer is sent as soon as it is ready, in any order.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

from holdfast.access.principals import Principal
from holdfast.core.errors import HoldfastError, Overloaded
from holdfast.core.ids import uuid7
from holdfast.core.text import parse_large, render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp import modern
from holdfast.gateway.mcp.answers import RequestId, encode_error, encode_result, error_of
from holdfast.gateway.mcp.changes import ListChanges
from holdfast.gateway.mcp.eras import is_modern
from holdfast.gateway.mcp.legacy.messages import CANCELLED, INITIALIZE, Initialization, kind_of
from holdfast.gateway.mcp.line_session import LineSession, Write
from holdfast.gateway.mcp.modern import ModernRequest, id_of
from holdfast.gateway.mcp.requests import Result
from holdfast.gateway.mcp.subscriptions import acknowledgement, change_notification, wanted_of
from holdfast.mcp.protocol import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, VERSION, McpError

AT_ONCE = 100  # concurrent requests of the client
GRACE = 1.0  # seconds for open requests after the end of the input; clients wait for about two


class Stdio:
    """Serves one client; `write` sends a line, and waits while the client does not read."""

    def __init__(self, gateway: Gateway, caller: Principal, write: Write) -> None:
        self._gateway = gateway
        self._caller = caller
        self._write = write
        self._requests: dict[RequestId, asyncio.Task[None]] = {}
        self._streams: set[RequestId] = set()  # `subscriptions/listen`: they end only when cancelled
        self._session: LineSession | None = None
        self._stack = AsyncExitStack()

    async def serve(self, lines: AsyncIterator[bytes]) -> None:
        """Answer until the input ends; then give open requests a moment to finish."""
        async with self._stack:
            async for line in lines:
                if line.strip():
                    await self._take(line)
            await self._finish()

    async def _take(self, line: bytes) -> None:
        try:
            message = await parse_large(line)
        except HoldfastError as error:
            await self._refuse(None, McpError(PARSE_ERROR, str(error)))
            return
        try:
            kind = kind_of(message)
        except McpError as error:
            await self._refuse(id_of(message), error)
            return
        match kind:
            case "notification":
                self._handle_notification(message)
            case "response":
                if self._session is not None:
                    self._session.take(message)
            case "request":
                await self._begin(message["id"], message)

    async def _begin(self, id: RequestId, message: dict[str, Any]) -> None:
        if id in self._requests:
            await self._refuse(id, McpError(INVALID_REQUEST, "a request with this `id` is being answered"))
            return
        if len(self._requests) >= AT_ONCE:
            await self._refuse(id, Overloaded(f"{AT_ONCE} requests are being answered already", retry_after=1))
            return
        if message["method"] == INITIALIZE:  # answered at once, because the next lines belong to its session
            await self._answer(id, message)
            return
        task = self._requests[id] = asyncio.create_task(self._answer(id, message), name=f"mcp request {id!r:.40}")
        task.add_done_callback(lambda _: self._forget(id))

    def _handle_notification(self, message: dict[str, Any]) -> None:
        cancelled = message.get("params", {}).get("requestId") if message["method"] == CANCELLED else None
        task = self._requests.get(cancelled) if isinstance(cancelled, str | int) else None
        if task is not None:
            task.cancel()

    async def _answer(self, id: RequestId, message: dict[str, Any]) -> None:
        """Answer a request; a cancelled request gets no answer."""
        uses_modern = is_modern(message, None)
        try:
            result = await (self._modern(message) if uses_modern else self._answer_in_session(message))
        except Exception as error:  # noqa: BLE001 - the client always gets an answer
            await self._refuse(id, error, uses_modern=uses_modern)
        else:
            await self._write(encode_result(id, result))

    async def _refuse(self, id: RequestId | None, error: Exception, *, uses_modern: bool = True) -> None:
        await self._write(encode_error(id, error_of(error, modern=uses_modern, request_id=str(uuid7()))))

    async def _modern(self, message: dict[str, Any]) -> Result:
        envelope = ModernRequest.of(message)
        if envelope.method == modern.LISTEN:
            return await self._listen(envelope)

        async def notify(method: str, params: Mapping[str, Any]) -> None:
            await self._write(render({"jsonrpc": "2.0", "method": method, "params": params}))

        return await modern.answer(envelope, self._gateway, self._caller, notify)

    async def _listen(self, envelope: ModernRequest) -> Result:
        wanted = wanted_of(envelope.params)
        self._streams.add(envelope.id)
        async with ListChanges.of(self._gateway).watch(self._caller, wanted) as watch:
            await self._write(render(acknowledgement(envelope.id, watch.wanted)))
            while True:
                for change in await watch.next():
                    await self._write(render(change_notification(envelope.id, change)))

    async def _answer_in_session(self, message: dict[str, Any]) -> Result:
        if self._session is not None:
            return await self._session.answer(message)
        if message["method"] != INITIALIZE:
            which = f"say so in `_meta`, as `{VERSION}`, or begin with `{INITIALIZE}`"
            raise McpError(INVALID_PARAMS, f"the version of the protocol is unknown: {which}")
        hello = Initialization.of(message)
        session = LineSession(self._gateway, self._caller, self._write, hello)
        self._session = await self._stack.enter_async_context(session)
        return hello.answer

    def _forget(self, id: RequestId) -> None:
        self._requests.pop(id, None)
        self._streams.discard(id)

    async def _finish(self) -> None:
        for id in [*self._streams]:
            self._requests[id].cancel()
        if self._requests:
            await asyncio.wait(self._requests.values(), timeout=GRACE)
        left = [*self._requests.values()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
