"""Channels: connections on which the messages of all requests come and go, such as the pipes of a program."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

from holdfast.core.background import end_task
from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.execution.mcp.exchange import MAX_MESSAGES, NO_HEADERS, Exchange
from holdfast.execution.mcp.http import IN_DOUBT, SessionGone
from holdfast.execution.mcp.legacy_session import LegacyServer, answer
from holdfast.execution.mcp.messages import Message, params_of, refusal
from holdfast.execution.mcp.modern_session import ModernServer

CANCEL_SECONDS = 2.0
BREATH = 100  # messages between two pauses
MAX_REQUESTS = 1000  # at the same time
MAX_ANSWERS = 100  # to requests of a server, in the making
MAX_WAITING = 1000  # notifications of one request that its client has not read yet

log = logging.getLogger(__name__)

Notify = Callable[[str], None]  # takes the method of a notification that belongs to no request


class MessageChannel(Protocol):
    """A connection with a server, for messages in both directions."""

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a message. Raise Unavailable if the server is gone. Only requests of HTTP have headers."""
        ...

    def messages(self) -> AsyncIterator[Message]:
        """Yield the messages of the server until the connection ends."""
        ...

    async def close(self) -> str:
        """Close the connection, and return why it ended, as far as that is known."""
        ...


class ChannelServer(LegacyServer, ModernServer):
    """Sends requests over a channel, several at a time. `notify` takes notifications that belong to no request."""

    def __init__(self, channel: MessageChannel, *, notify: Notify) -> None:
        self._channel = channel
        self._notify = notify
        self._turn = asyncio.Semaphore(MAX_REQUESTS)
        self._requests: dict[object, _Pending] = {}
        self._answers: set[asyncio.Task[None]] = set()
        self._unwanted = 0  # messages since the last response
        self._gone: HoldfastError | None = None
        self._reader = asyncio.create_task(self._read(), name="messages of an MCP server")

    def serialize(self) -> None:
        """Send one request at a time from now on.

        A server of the versions before 2026-07-28 does not say for which request it asks its client something.
        """
        self._turn, self.is_serial = asyncio.Semaphore(1), True

    async def request(
        self,
        exchange: Exchange,
        message: Message,
        headers: Mapping[str, str] | None = None,
        *,
        again: bool = False,
    ) -> Message:
        """Send a request, and return the response. `headers` and `again` have no meaning here."""
        async with self._turn:
            if self._gone is not None:
                raise SessionGone
            pending = self._requests[message["id"]] = _Pending(exchange, params_of(message))
            try:
                await self._channel.send(message, exchange.headers)
                return await pending.response()
            except asyncio.CancelledError:
                await self._cancel(message, exchange.headers)
                raise
            finally:
                del self._requests[message["id"]]

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a notification or a response."""
        await self._channel.send(message, headers)

    def agree(self, version: str) -> None:
        """Do nothing: messages on a channel do not repeat the version."""

    async def wait(self) -> None:
        """Wait until the connection has ended."""
        await asyncio.wait([self._reader])

    async def close(self) -> None:
        """Close the connection."""
        await end_task(self._reader)
        await self._end(Unavailable("the connection with the MCP server was closed"))

    async def _read(self) -> None:
        ended: HoldfastError = Unavailable("the MCP server ended its connection")
        try:
            async for message in self._channel.messages():
                self._unwanted += 1
                if self._unwanted > MAX_MESSAGES:
                    ended = Unavailable("the MCP server was cut off", why=f"it sent {MAX_MESSAGES:,} messages unasked")
                    break
                if self._unwanted % BREATH == 0:  # a pipe that is always full would block the event loop
                    await asyncio.sleep(0)
                self._take(message)
        except HoldfastError as error:
            ended = error
        except Exception as error:
            log.exception("internal error: the messages of an MCP server cannot be read")
            ended = Unavailable("the messages of the MCP server cannot be read", why=type(error).__name__)
        await self._end(ended)

    async def _end(self, error: HoldfastError) -> None:
        if self._gone is not None:
            return
        self._gone, self.is_gone = error, True
        reason = await self._channel.close()
        for pending in self._requests.values():
            pending.end(Unavailable(error.what, why=error.why or reason, next=error.next or IN_DOUBT))
        for task in self._answers:
            task.cancel()

    def _take(self, message: Message) -> None:
        method = message.get("method")
        if method is None:
            pending = self._requests.get(message.get("id"))
            if pending is not None:
                self._unwanted = 0
                pending.end(message)
        elif "id" in message:
            if len(self._answers) >= MAX_ANSWERS:  # the server does not read them
                raise Unavailable("the MCP server was cut off", why=f"it has {MAX_ANSWERS} requests of its own open")
            task = asyncio.create_task(self._answer(message), name="answer to an MCP server")
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)
        else:
            self._hand_on(str(method), message)

    def _hand_on(self, method: str, message: Message) -> None:
        """Pass a notification on to the requests that it may belong to."""
        params = params_of(message)
        if method == "notifications/progress":
            pendings = [each for each in self._requests.values() if each.token == params.get("progressToken")]
        elif method == "notifications/message":  # it does not say to which request it belongs
            pendings = [*self._requests.values()] if len(self._requests) == 1 else []
        else:
            self._notify(method)
            return
        for pending in pendings:
            pending.add(message)

    async def _answer(self, question: Message) -> None:
        pendings = [*self._requests.values()]
        response: dict[str, Any]
        headers = pendings[-1].exchange.headers if pendings else NO_HEADERS
        if len(pendings) == 1:
            response = await answer(pendings[0].exchange, question)
        elif question.get("method") == "ping":
            response = {"jsonrpc": "2.0", "id": question.get("id"), "result": {}}
        else:
            response = refusal(question.get("id"))
        with suppress(HoldfastError):
            await self._channel.send(response, headers)

    async def _cancel(self, message: Message, headers: Mapping[str, str]) -> None:
        if self._gone is not None or message["method"] == "initialize":
            return
        params = {"requestId": message["id"], "reason": "the caller has gone"}
        with suppress(HoldfastError, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._channel.send(
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}, headers
                )


class _Pending:
    """A request that waits for its response. `token` is that of its progress.

    Notifications wait for a client that reads slowly, and not the messages of other requests for them.
    """

    __slots__ = ("_messages", "exchange", "token")

    def __init__(self, exchange: Exchange, params: Mapping[str, Any]) -> None:
        meta: object = params.get("_meta")
        self.exchange = exchange
        self.token: object = cast(dict[str, Any], meta).get("progressToken") if isinstance(meta, dict) else None
        self._messages: asyncio.Queue[Message | HoldfastError] = asyncio.Queue()

    def add(self, notification: Message) -> None:
        """Add a notification. Those that nobody takes are dropped above a limit."""
        if self._messages.qsize() < MAX_WAITING:
            self._messages.put_nowait(notification)

    def end(self, response: Message | HoldfastError) -> None:
        """End the request with its response, or with the error why there is none."""
        self._messages.put_nowait(response)

    async def response(self) -> Message:
        """Return the response, after the notifications before it."""
        while True:
            found = await self._messages.get()
            if isinstance(found, HoldfastError):
                raise found
            if "method" not in found:
                return found
            await self.exchange.notify(found["method"], params_of(found))
