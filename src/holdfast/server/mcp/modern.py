"""MCP 2026-07-28 over HTTP: each request gets a JSON object, or an event stream that ends with the response."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import lru_cache
from http import HTTPStatus
from time import monotonic
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect

from holdfast.core.errors import HoldfastError, Overloaded
from holdfast.core.text import render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.mcp import subscriptions
from holdfast.gateway.mcp.answers import encode_error, encode_result, error_of
from holdfast.gateway.mcp.changes import ListChanges
from holdfast.gateway.mcp.headers import MirroredHeaders
from holdfast.gateway.mcp.modern import LISTEN, ModernRequest, answer, id_of, is_notification, unsupported
from holdfast.mcp.headers import VERSION
from holdfast.mcp.protocol import INVALID_REQUEST, MODERN, McpError
from holdfast.server.challenges import is_challenged
from holdfast.server.gateway_request import GatewayRequest
from holdfast.server.mcp.event_stream import STREAM, McpEventStream, encode_event, wait_for_disconnect
from holdfast.server.request_limits import QUICK
from holdfast.server.streams import HEARTBEAT, SIGN_OF_LIFE

ACCEPT = b"accept"
MARGIN = 10.0  # seconds beyond the timeout of a call, for its response
FORMS = (("application/json", "application/*"), ("text/event-stream", "text/*"))  # the client must accept both

Value = TypeVar("Value")


class ModernHttp:
    """Handles the requests of clients without sessions."""

    def __init__(self, gateways: Gateways) -> None:
        self._gateways = gateways

    async def post(self, http_request: GatewayRequest, message: object) -> None:
        """Handle a POST of a client."""
        try:
            mirror = MirroredHeaders(http_request.scope["headers"])
            if not _accepts(mirror.text(ACCEPT) or ""):
                why = "the client has to accept application/json and text/event-stream"
                raise McpError(INVALID_REQUEST, why, status=HTTPStatus.NOT_ACCEPTABLE)
            if is_notification(message):
                await self._take(http_request, mirror.text(VERSION))
                return
            envelope = ModernRequest.of(message, mirror)
        except McpError as error:
            await http_request.answer(encode_error(id_of(message), error_of(error, modern=True)), status=error.status)
            return
        gateway = self._gateways.of(http_request.caller.tenant)
        if envelope.method == LISTEN:
            await self._listen(http_request, envelope, gateway)
        else:
            await self._call(http_request, envelope, gateway, mirror)

    async def _take(self, http_request: GatewayRequest, version: str | None) -> None:
        """Accept a notification. None has an effect: a client cancels a request by disconnecting."""
        if version is not None and version != MODERN:
            raise unsupported(version)
        await http_request.answer(b"", status=HTTPStatus.ACCEPTED)

    async def _call(
        self, http_request: GatewayRequest, envelope: ModernRequest, gateway: Gateway, mirror: MirroredHeaders
    ) -> None:
        exchange = ModernExchange(http_request, patience=gateway.engine.config.gateway.timeout + MARGIN)
        try:
            result = await exchange.run(answer(envelope, gateway, http_request.caller, exchange.notify, mirror))
            body, status = encode_result(envelope.id, result), HTTPStatus.OK
        except ClientDisconnect:
            raise
        except Exception as error:
            if is_challenged(error) and not exchange.streams:
                raise
            details = error_of(error, modern=True, request_id=http_request.slot.request_id)
            body, status = encode_error(envelope.id, details), _status_of(error)
        await exchange.end(body, status)

    async def _listen(self, http_request: GatewayRequest, envelope: ModernRequest, gateway: Gateway) -> None:
        id, client = envelope.id, McpEventStream(http_request)
        async with AsyncExitStack() as stack:
            try:
                wanted = subscriptions.wanted_of(envelope.params)
                await stack.enter_async_context(client)
                watching = ListChanges.of(gateway).watch(http_request.caller, wanted, wake=client.woken)
                watch = await stack.enter_async_context(watching)
            except (McpError, HoldfastError) as error:
                if is_challenged(error):
                    raise
                details = error_of(error, modern=True, request_id=http_request.slot.request_id)
                await http_request.answer(encode_error(id, details), status=_status_of(error))
                return
            await client.begin(encode_event(render(subscriptions.acknowledgement(id, watch.wanted))))
            while await client.wait(HEARTBEAT):
                for change in watch.take():
                    await client.send(encode_event(render(subscriptions.change_notification(id, change))))
            await client.send(encode_event(encode_result(id, subscriptions.end_result(id))))


class ModernExchange:
    """One request and its response: a JSON object, or an event stream if something is sent before the response."""

    def __init__(self, http_request: GatewayRequest, *, patience: float) -> None:
        self._http_request = http_request
        self._patience = patience
        self._sending = asyncio.Lock()
        self.streams = False  # the response is an event stream, whose status is sent
        self._ended = False
        self._end_by: Exception | None = None  # the reason to cancel the work
        self._last_sent = 0.0  # the time of the last event
        self._watching: asyncio.Task[None] | None = None

    async def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Return the result of the work. Cancel it if the client disconnects or its access ends, and raise the reason.

        Raises ClientDisconnect if the client disconnects.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        timer = loop.call_later(QUICK, self._watch, task)  # a fast call is not watched
        try:
            return await work
        except asyncio.CancelledError:
            if self._end_by is not None and task.uncancel() == 0:
                raise self._end_by from None
            raise
        finally:
            timer.cancel()
            if self._watching is not None:
                self._watching.cancel()
                await asyncio.wait([self._watching])

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification before the response. The first one starts the stream."""
        await self._send(encode_event(render({"jsonrpc": "2.0", "method": method, "params": params})))

    async def end(self, body: bytes, status: int) -> None:
        """Send the response, as the last event if there is a stream."""
        async with self._sending:
            self._ended = True
            if self.streams:
                await self._http_request.send({"type": "http.response.body", "body": encode_event(body)})
            else:
                await self._http_request.answer(body, status=status)

    async def _send(self, data: bytes) -> None:
        async with self._sending:
            if self._ended:  # a task of the call still runs
                return
            if not self.streams:
                self.streams = True
                await self._http_request.send(
                    {"type": "http.response.start", "status": HTTPStatus.OK, "headers": [*STREAM]}
                )
            await self._http_request.send({"type": "http.response.body", "body": data, "more_body": True})
            self._last_sent = monotonic()

    def _watch(self, task: "asyncio.Task[Any]") -> None:
        self._watching = asyncio.create_task(self._keep_alive(task), name="mcp call")

    async def _keep_alive(self, task: "asyncio.Task[Any]") -> None:
        """Extend the timeout of a call, send keep-alives, and cancel it if the client disconnects or loses access."""
        with suppress(Overloaded):  # it keeps the usual timeout
            self._http_request.slot.stay(self._patience)
        disconnect, self._last_sent = asyncio.ensure_future(wait_for_disconnect(self._http_request)), monotonic()
        with self._http_request.caller_session.watched() as ended:
            try:
                while not (await _wait_for_any([disconnect, ended], HEARTBEAT - monotonic() + self._last_sent)):
                    if monotonic() - self._last_sent >= HEARTBEAT:
                        await self._send(SIGN_OF_LIFE)  # so that no proxy closes an idle connection
                self._end_by = ended.result() if ended.done() else ClientDisconnect()
            except HoldfastError as error:
                self._end_by = error
            finally:
                disconnect.cancel()
        task.cancel()


async def _wait_for_any(futures: "Sequence[asyncio.Future[Any]]", seconds: float) -> bool:
    """Wait until one is done, at most `seconds`. Return whether one is done."""
    done, _ = await asyncio.wait(futures, timeout=max(0.01, seconds), return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


@lru_cache(100)
def _accepts(accept: str) -> bool:
    """Whether a client accepts both JSON and event streams."""
    kinds = {kind.partition(";")[0].strip().lower() for kind in accept.split(",")}
    return "*/*" in kinds or all(kinds.intersection(forms) for forms in FORMS)


def _status_of(error: Exception) -> int:
    """Return the HTTP status of an error: that of a protocol error, else 200."""
    return error.status if isinstance(error, McpError) else HTTPStatus.OK
