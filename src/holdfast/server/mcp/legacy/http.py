"""MCP 2025-11-25 and before over streamable HTTP: sessions and resumable streams."""

from http import HTTPStatus
from typing import Final, cast

from holdfast.core.ids import uuid7
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.mcp.answers import RequestId, encode_error, encode_result, error_of
from holdfast.gateway.mcp.legacy.messages import INITIALIZE, Initialization, Message, Posted, kind_of
from holdfast.gateway.mcp.legacy.sessions import McpSession, McpSessions
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.gateway.mcp.legacy.stored_streams import StoredStreams, position_of
from holdfast.gateway.mcp.modern import id_of
from holdfast.mcp.protocol import INVALID_REQUEST, LEGACY, McpError
from holdfast.server.gateway_request import GatewayRequest
from holdfast.server.mcp.event_stream import McpEventStream, encode_event, encode_first_event
from holdfast.server.mcp.legacy.exchanges import NEWEST, AcceptedTypes, HttpExchange
from holdfast.server.mcp.legacy.running_requests import RunningRequests
from holdfast.server.mcp.legacy.session_stream import LISTEN, SessionStream

SESSION: Final = "mcp-session-id"
VERSION: Final = "mcp-protocol-version"
LAST_EVENT: Final = "last-event-id"
LOOK: Final = 1.0  # seconds between two polls of a resumed stream


class LegacyHttp:
    """Streamable HTTP with sessions, on `/mcp`."""

    def __init__(self, gateways: Gateways, calls: RunningRequests) -> None:
        self._gateways = gateways
        self._calls = calls

    async def post(self, http_request: GatewayRequest, message: object) -> None:
        """Handle a POST: a message or a batch."""
        try:
            forms = AcceptedTypes.of(http_request.headers.get("accept"))
            forms.check()
            opening: Message = cast(Message, message) if isinstance(message, dict) else {}
            if opening.get("method") == INITIALIZE:
                await self._begin(http_request, opening, forms)
            else:
                await self._take(http_request, cast(object, message), forms)
        except McpError as error:
            await _refuse(http_request, error, id_of(cast(object, message)))

    async def get(self, http_request: GatewayRequest) -> None:
        """Handle a GET: open the stream of a session, or resume a stream that the client lost."""
        try:
            AcceptedTypes.of(http_request.headers.get("accept")).check(stream=True)
            gateway, session = await self._session(http_request)
            last = http_request.headers.get(LAST_EVENT)
            if last is not None and not last.startswith(LISTEN):
                await _resume(http_request, gateway, session, last)
                return
        except McpError as error:
            await _refuse(http_request, error)
            return
        async with McpEventStream(http_request) as client:
            listening = SessionStream(client, gateway, session, http_request.caller)
            first = encode_first_event(listening.position) if session.version == NEWEST else b""
            await listening.run(first, encode_event, returned=last is not None)

    async def delete(self, http_request: GatewayRequest) -> None:
        """Handle a DELETE: end the session."""
        try:
            gateway, session = await self._session(http_request)
        except McpError as error:
            await _refuse(http_request, error)
            return
        await McpSessions.of(gateway).end(session)
        await http_request.answer(b"", status=HTTPStatus.NO_CONTENT)

    async def _begin(self, http_request: GatewayRequest, message: Message, forms: AcceptedTypes) -> None:
        if kind_of(message) != "request":
            raise McpError(INVALID_REQUEST, f"`{INITIALIZE}` is a request: it has an `id`")
        hello = Initialization.of(message)
        sessions = McpSessions.of(self._gateways.of(http_request.caller.tenant))
        id, _ = await sessions.begin(http_request.caller, hello.version, hello.client)
        await forms.answer(http_request, encode_result(message["id"], hello.answer), ((SESSION.encode(), id.encode()),))

    async def _take(self, http_request: GatewayRequest, message: object, forms: AcceptedTypes) -> None:
        gateway, session = await self._session(http_request)
        posted = Posted.of(message, session.version, most=gateway.engine.config.gateway.max_batch)
        for each in posted.others:
            await self._calls.take(gateway, session, each)
        if not posted.requests:
            await http_request.answer(b"", status=HTTPStatus.ACCEPTED)
            return
        ids = [each["id"] for each in posted.requests]
        exchange = HttpExchange(http_request, gateway, session, ids, forms, batch=posted.batch)
        await self._calls.run(http_request, gateway, session, posted.requests, exchange)

    async def _session(self, http_request: GatewayRequest) -> tuple[Gateway, McpSession]:
        """Return the session of a request. Raises McpError if there is none."""
        version, id = http_request.headers.get(VERSION), http_request.headers.get(SESSION)
        if version is not None and version not in LEGACY:
            text = f"the version {version[:40]!r} is not one of {', '.join(LEGACY)}"
            raise McpError(INVALID_REQUEST, text)
        if id is None:
            text = "the header Mcp-Session-Id is missing. `initialize` begins a session, and its answer has the header."
            raise McpError(INVALID_REQUEST, text)
        gateway = self._gateways.of(http_request.caller.tenant)
        return gateway, await McpSessions.of(gateway).find(http_request.caller, id)


async def _resume(http_request: GatewayRequest, gateway: Gateway, session: McpSession, last: str) -> None:
    """Send the messages of a stream after the last one that the client has, until the response ends it."""
    streams, signals = StoredStreams(gateway), Signals.of(gateway)
    stream, number = position_of(last) or ("", 0)
    part = await streams.after(session, stream, number)
    if part is None:
        raise McpError(INVALID_REQUEST, "there is no such stream any more. Send the request again.")
    token = uuid7().hex  # ordered by time: the newest reader has the greatest token and gets the stream
    async with McpEventStream(http_request) as client, signals.subscribe(session.key, "events", client.woken.set):
        await streams.take_up(session, stream, token)
        await client.begin()
        while part is not None and part.reader <= token:
            for number, message in part.messages:
                await client.send(encode_event(message, f"{stream}.{number}"))
            if part.over or (not part.messages and not await client.wait(LOOK)):
                return
            part = await streams.after(session, stream, number)


async def _refuse(http_request: GatewayRequest, error: McpError, id: RequestId | None = None) -> None:
    await http_request.answer(encode_error(id, error_of(error, modern=False)), status=error.status)
