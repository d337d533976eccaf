"""`POST /rpc`: JSON-RPC 2.0, and the older envelope format."""

from starlette.types import Receive, Scope, Send

from holdfast.gateway.gateways import Gateways
from holdfast.gateway.jsonrpc.dispatcher import Dispatcher
from holdfast.server.authentication import Authentication
from holdfast.server.gateway_request import GatewayRequest
from holdfast.server.problems import WrongMethod

MARGIN = 10.0  # seconds beyond the timeout of a call, to end it and to send the response


class RpcEndpoint:
    """The endpoint for JSON-RPC calls of services and tools."""

    def __init__(self, gateways: Gateways, authentication: Authentication) -> None:
        self._gateways = gateways
        self._authentication = authentication

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["method"] != "POST":
            raise WrongMethod(scope["method"], ["POST"])
        http_request = await GatewayRequest.of(self._authentication, scope, receive, send)
        http_request.require_json()
        body = await http_request.body()
        gateway = self._gateways.of(http_request.caller.tenant)
        slot = http_request.slot
        dispatcher = Dispatcher(
            gateway, http_request.caller, request_id=slot.request_id, envelopes=self._gateways.envelope_calls
        )
        with slot.extend_timeout(gateway.engine.config.gateway.timeout + MARGIN):
            reply = await dispatcher.dispatch(body)
        await http_request.answer(reply.body or b"", status=reply.status)
