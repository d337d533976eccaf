"""HTTP+SSE, the MCP transport before streamable HTTP: `GET /mcp/sse` and `POST /mcp/message`.

A session ends with its stream. A POST can reach another process than that of the stream: its responses are stored, and
the process of the stream sends them.
"""

from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from holdfast.core.errors import InvalidInput
from holdfast.core.text import parse_large
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.mcp.answers import encode_error, encode_result, error_of
from holdfast.gateway.mcp.legacy.messages import INITIALIZE, Initialization, Message, Posted
from holdfast.gateway.mcp.legacy.sessions import McpSession, McpSessions
from holdfast.gateway.mcp.legacy.stored_streams import StoredStreams
from holdfast.gateway.mcp.modern import id_of
from holdfast.mcp.protocol import INVALID_REQUEST, LEGACY, PARSE_ERROR, McpError
from holdfast.server.authentication import Authentication
from holdfast.server.gateway_request import GatewayRequest
from holdfast.server.mcp.event_stream import McpEventStream, encode_event
from holdfast.server.mcp.legacy.exchanges import AcceptedTypes, SseExchange
from holdfast.server.mcp.legacy.running_requests import RunningRequests
from holdfast.server.mcp.legacy.session_stream import SessionStream
from holdfast.server.problems import WrongMethod

STREAM_PATH: Final = "/mcp/sse"
MESSAGE_PATH: Final = "/mcp/message"
OLDEST: Final = LEGACY[-1]  # the version of a session until the client names its own


class SseEndpoint:
    """The endpoint for HTTP+SSE."""

    def __init__(self, gateways: Gateways, authentication: Authentication, calls: RunningRequests) -> None:
        self._gateways = gateways
        self._authentication = authentication
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        http_request = await GatewayRequest.of(self._authentication, scope, receive, send)
        method, path = scope["method"], scope["path"].removeprefix(scope.get("root_path", ""))
        if method != (allowed := "GET" if path == STREAM_PATH else "POST"):
            raise WrongMethod(method, [allowed])
        gateway = self._gateways.of(http_request.caller.tenant)
        message: object = None
        try:
            if method == "GET":
                AcceptedTypes.of(http_request.headers.get("accept")).check(stream=True)
                await self._open(http_request, gateway)
            else:
                session = await self._session(http_request, gateway)
                message = await _message(http_request)
                await self._take(http_request, gateway, session, message)
        except McpError as error:
            body = encode_error(id_of(message), error_of(error, modern=False))
            await http_request.answer(body, status=error.status)

    async def _open(self, http_request: GatewayRequest, gateway: Gateway) -> None:
        """Begin a session and send its stream. The session ends with the stream."""
        sessions, streams = McpSessions.of(gateway), StoredStreams(gateway)
        async with McpEventStream(http_request) as client:
            id, session = await sessions.begin(http_request.caller, OLDEST, {}, transport="sse")
            try:
                address = f"{http_request.scope.get('root_path', '')}{MESSAGE_PATH}?session_id={id}"
                await SessionStream(client, gateway, session, http_request.caller).run(
                    b"event: endpoint\ndata: %b\n\n" % address.encode(),
                    lambda message, _: encode_event(message),  # without an id: a lost stream cannot be resumed
                    lambda: streams.take(session),
                )
            finally:
                await sessions.end(session)

    async def _session(self, http_request: GatewayRequest, gateway: Gateway) -> McpSession:
        ids = parse_qs(http_request.scope["query_string"].decode("latin-1")).get("session_id", [])
        if len(ids) != 1:
            raise McpError(INVALID_REQUEST, f"`session_id` is missing: {STREAM_PATH} gives the address to post to")
        return await McpSessions.of(gateway).find(http_request.caller, ids[0], transport="sse")

    async def _take(self, http_request: GatewayRequest, gateway: Gateway, session: McpSession, message: object) -> None:
        """Handle a message or a batch. The responses go to the stream."""
        posted = Posted.of(message, session.version, most=gateway.engine.config.gateway.max_batch)
        await http_request.answer(b"", status=HTTPStatus.ACCEPTED)
        for each in posted.others:
            await self._calls.take(gateway, session, each)
        exchange = SseExchange(gateway, session)
        if posted.requests and posted.requests[0]["method"] == INITIALIZE:
            await exchange.respond(await _initialize(gateway, session, posted.requests[0]))
        elif posted.requests:
            await self._calls.run(http_request, gateway, session, posted.requests, exchange)


async def _initialize(gateway: Gateway, session: McpSession, message: Message) -> bytes:
    try:
        hello = Initialization.of(message)
        await McpSessions.of(gateway).introduce(session, hello.version, hello.client)
    except McpError as error:
        return encode_error(message["id"], error_of(error, modern=False))
    return encode_result(message["id"], hello.answer)


async def _message(http_request: GatewayRequest) -> object:
    http_request.require_json()
    try:
        return await parse_large(await http_request.body())
    except InvalidInput as error:
        raise McpError(PARSE_ERROR, str(error)) from None
