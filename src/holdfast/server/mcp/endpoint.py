"""`/mcp`: streamable HTTP, for clients with sessions (2025-11-25 and before) and without (2026-07-28)."""

from http import HTTPStatus

from starlette.types import Receive, Scope, Send

from holdfast.core.errors import InvalidInput
from holdfast.core.text import parse_large
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.mcp.answers import encode_error
from holdfast.gateway.mcp.eras import is_modern
from holdfast.mcp.headers import VERSION
from holdfast.mcp.protocol import MODERN, PARSE_ERROR
from holdfast.server.authentication import Authentication
from holdfast.server.gateway_request import GatewayRequest
from holdfast.server.mcp.legacy.http import LegacyHttp
from holdfast.server.mcp.legacy.running_requests import RunningRequests
from holdfast.server.mcp.modern import ModernHttp
from holdfast.server.problems import WrongMethod


class McpEndpoint:
    """The endpoint for MCP. It answers each client in the protocol version of the client."""

    def __init__(self, gateways: Gateways, authentication: Authentication, calls: RunningRequests) -> None:
        self._authentication = authentication
        self._legacy = LegacyHttp(gateways, calls)
        self._modern = ModernHttp(gateways)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        http_request = await GatewayRequest.of(self._authentication, scope, receive, send)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        version = headers[VERSION].strip().decode("latin-1") if VERSION in headers else None
        match scope["method"]:
            case "POST":
                await self._post(http_request, version)
            case "GET" | "DELETE" if version == MODERN:
                raise WrongMethod(scope["method"], ["POST"])
            case "GET":
                await self._legacy.get(http_request)
            case "DELETE":
                await self._legacy.delete(http_request)
            case method:
                raise WrongMethod(method, ["GET", "POST", "DELETE"])

    async def _post(self, http_request: GatewayRequest, version: str | None) -> None:
        http_request.require_json()
        try:
            message = await parse_large(await http_request.body())
        except InvalidInput as error:
            await http_request.answer(
                encode_error(None, {"code": PARSE_ERROR, "message": str(error)}), status=HTTPStatus.BAD_REQUEST
            )
            return
        if is_modern(message, version):
            await self._modern.post(http_request, message)
        else:
            await self._legacy.post(http_request, message)
