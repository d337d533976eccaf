"""Calls: the requests of clients with sessions that run in this process.

The process that received a request runs it to the end, even if the client disconnects. It stops early if the client
cancels it, through any process, or if the session or the caller's access ends.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any, Final

from holdfast.core.errors import Forbidden, HoldfastError, Unauthenticated
from holdfast.core.text import render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.answers import RequestId, encode_error, encode_result, error_of
from holdfast.gateway.mcp.legacy.call_states import CallStates
from holdfast.gateway.mcp.legacy.client import LegacyClient
from holdfast.gateway.mcp.legacy.messages import CANCELLED, REQUEST_CANCELLED, Message, answer, kind_of
from holdfast.gateway.mcp.legacy.questions import Questions
from holdfast.gateway.mcp.legacy.sessions import McpSession, McpSessions
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.gateway.mcp.requests import McpRequest
from holdfast.mcp.protocol import INVALID_REQUEST
from holdfast.server.challenges import is_challenged
from holdfast.server.gateway_request import GatewayRequest
from holdfast.server.mcp.legacy.exchanges import LegacyExchange

QUICK: Final = 1.0  # seconds before the first heartbeat of a request
BEAT: Final = 4.5  # seconds between two heartbeats
MARGIN: Final = 10.0  # seconds beyond the timeout of a call, for its response
LONGEST_ID: Final = 200  # characters of a request id whose cancellation is passed to other processes

SESSION_ENDED: Final = "its session has ended"

Running = dict[tuple[str, str], asyncio.Task[bytes]]  # by session key and request id

log = logging.getLogger(__name__)


class RunningRequests:
    """Runs the requests of this process, and handles notifications and responses of clients."""

    def __init__(self) -> None:
        self._running: Running = {}

    async def take(self, gateway: Gateway, session: McpSession, message: Message) -> None:
        """Handle a notification or a response of a client."""
        if kind_of(message) == "response":
            await Questions(gateway).answer(session, message)
        elif message["method"] == CANCELLED:
            about = render(message.get("params", {}).get("requestId")).decode(errors="replace")
            working = self._running.get((session.key, about))
            if working is not None:
                _cancel(working)
            elif len(about) <= LONGEST_ID:
                await CallStates(gateway).cancel(session, about)

    async def run(
        self,
        http_request: GatewayRequest,
        gateway: Gateway,
        session: McpSession,
        requests: Sequence[Message],
        exchange: LegacyExchange,
    ) -> None:
        """Run requests, and return when all are answered."""
        await RequestBatch(http_request, gateway, session, exchange, self._running).run(requests)


class RequestBatch:
    """Runs the requests of one POST.

    Each gets exactly one response, even if it is cancelled: cancellation stops the work, not the response.
    """

    def __init__(
        self,
        http_request: GatewayRequest,
        gateway: Gateway,
        session: McpSession,
        exchange: LegacyExchange,
        running: Running,
    ) -> None:
        self._http_request = http_request
        self._gateway = gateway
        self._states = CallStates(gateway)
        self._settings = gateway.engine.config.gateway
        self._sessions = McpSessions.of(gateway)
        self._session = session
        self._exchange = exchange
        self._running = running
        self._working: dict[str, asyncio.Task[bytes]] = {}  # by request id
        self._room = asyncio.Semaphore(self._settings.batch_parallel)
        self._why = "the request was cancelled"
        self._started_at = monotonic()
        self._signalled = asyncio.Event()

    async def run(self, requests: Sequence[Message]) -> None:
        """Run the requests and send their responses. Raises an error that is the HTTP response to the only one."""
        seconds = self._settings.timeout + 60.0 * self._settings.state_minutes + MARGIN
        async with Signals.of(self._gateway).subscribe(self._session.key, "calls", self._signalled.set):
            # Start all before the first await, so that a cancellation reaches all of them.
            answering = [asyncio.create_task(answer) for answer in [self._begin(each) for each in requests]]
            keeping_alive = asyncio.create_task(self._keep_alive(), name="mcp exchange")
            checking = asyncio.create_task(self._check_on_signal(), name="mcp exchange signals")
            try:
                with self._http_request.slot.extend_timeout(seconds):
                    await asyncio.wait(answering)
            finally:
                self._end("the server stops" if self._http_request.slot.stopping.is_set() else "it took too long")
                keeping_alive.cancel()
                checking.cancel()
                await asyncio.wait([keeping_alive, checking, *answering])
                await self._exchange.close()
        for task in answering:
            task.result()

    def _begin(self, message: Message) -> Coroutine[Any, Any, None]:
        """Start the work on a request, and return the coroutine that sends its response."""
        id: RequestId = message["id"]
        key = self._session.key, render(id).decode()
        if key in self._running:
            error = {"code": INVALID_REQUEST, "message": "a request of this id is being answered"}
            return self._exchange.respond(encode_error(id, error))
        working = asyncio.create_task(self._work(message), name="mcp request")
        self._running[key] = self._working[key[1]] = working
        working.add_done_callback(lambda _: self._running.pop(key))
        return self._answer(id, working)

    async def _answer(self, id: RequestId, working: asyncio.Task[bytes]) -> None:
        await asyncio.wait([working])
        if working.cancelled():
            body = encode_error(id, {"code": REQUEST_CANCELLED, "message": self._why})
        else:
            body = working.result()
        await self._exchange.respond(body)

    async def _work(self, message: Message) -> bytes:
        """Return the response to a request. Raises an error that is the HTTP response."""
        id, params = message["id"], message.get("params", {})
        questions = Questions(self._gateway)
        client = LegacyClient(
            self._exchange.send_message,
            lambda ids: questions.ask(self._session, ids),
            self._exchange.detach,
            params,
            capabilities=self._session.capabilities,
            limit=60.0 * self._settings.state_minutes,
            level=self._session.level,
        )
        request = McpRequest(
            message["method"], params, self._gateway, self._http_request.caller, client, self._session.version
        )
        settings = self._sessions.settings_of(self._session)
        try:
            try:
                async with self._room:
                    result = await answer(request, client, settings, check=self._http_request.caller_session.check)
            finally:
                await client.close()
            return encode_result(id, result)
        except Exception as error:
            if is_challenged(error) and await self._exchange.refuse():
                raise
            return encode_error(id, error_of(error, modern=False, request_id=self._http_request.slot.request_id))

    async def _keep_alive(self) -> None:
        """Send heartbeats for long requests. Cancel them when their session or the caller's access ends."""
        await asyncio.sleep(QUICK)
        with self._http_request.caller_session.watched() as ended:
            while True:
                try:
                    await self._http_request.caller_session.check()
                    await self._check_state()  # a notification can get lost
                    await self._exchange.beat()
                except (Unauthenticated, Forbidden):
                    break
                except HoldfastError as error:
                    log.warning("a stream of MCP could not be kept alive, trying again: %s", error)
                if (await asyncio.wait([ended], timeout=BEAT))[0]:
                    break
        self._end("the access that it was made by has ended")

    async def _check_on_signal(self) -> None:
        """Read the rows after each notification that the requests may have changed."""
        while True:
            await self._signalled.wait()
            self._signalled.clear()
            try:
                await self._check_state()
            except HoldfastError as error:
                log.warning("the state of an MCP request cannot be read; retrying: %s", error)

    async def _check_state(self) -> None:
        """Read from the rows whether requests are cancelled, the session has ended, or the stream was resumed."""
        worked, ids = timedelta(seconds=monotonic() - self._started_at), list(self._working)
        state = await self._states.read(self._session, ids, worked=worked, stream=self._exchange.stream)
        if not state.alive:
            self._sessions.forget(self._session)
            self._end(SESSION_ENDED)
        for id in state.cancelled:
            _cancel(self._working[id])
        if state.resumed:
            self._exchange.stop_sending()

    def _end(self, why: str) -> None:
        """Cancel all requests."""
        self._why = why
        for working in self._working.values():
            _cancel(working)


def _cancel(working: asyncio.Task[bytes]) -> None:
    """Cancel a task, unless it is already being cancelled: a second cancellation would interrupt its clean-up."""
    if not working.cancelling():
        working.cancel()
