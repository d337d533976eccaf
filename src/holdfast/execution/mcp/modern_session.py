"""Sessions with servers of the modern version (2026-07-28). They have no state: each request says all it needs."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Protocol, cast

from holdfast.core.errors import LimitReached, Unavailable
from holdfast.execution.mcp.exchange import SAMPLING, Exchange, Replies
from holdfast.execution.mcp.messages import Message, params_of, result_of
from holdfast.mcp import protocol
from holdfast.mcp.headers import MirroredArgument, headers_of
from holdfast.mcp.inputs import CAPABILITIES, Forwarded, MissingCapability
from holdfast.mcp.protocol import MISSING_CAPABILITY, MODERN, McpError
from holdfast.skills.client import SILENT, Client

MAX_ROUNDS = 20  # in which a server asks for input before it answers
CLIENT_INFO = protocol.PREFIX + "clientInfo"
READING = ("server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list",
           "resources/read", "prompts/get", "completion/complete")  # fmt: skip

_ids = count(1)


def next_id() -> int:
    """Return a new id of a request."""
    return next(_ids)


class ModernServer(Protocol):
    """Sends a request to a server, and returns the response. Notifications go to the exchange.

    `again`: it can be sent a second time if the connection was closed. `is_gone`: the connection has ended.
    """

    is_gone: bool = False

    async def request(
        self, exchange: Exchange, message: Message, headers: Mapping[str, str], *, again: bool
    ) -> Message: ...

    async def close(self) -> None: ...


class ModernSession:
    """Sends requests to a server. `about` is this client."""

    def __init__(self, server: ModernServer, *, about: Mapping[str, Any]) -> None:
        self.server = server
        self._about = about

    async def request(
        self,
        exchange: Exchange,
        method: str,
        params: Mapping[str, Any],
        *,
        mirrored: Sequence[MirroredArgument] = (),
        again: bool = False,
    ) -> Mapping[str, Any]:
        """Send a request, and return the result. `again`: it can be sent twice without harm."""
        again = again or method in READING
        sent = dict(params)
        for _ in range(MAX_ROUNDS):
            sent["_meta"] = self._meta(exchange.client, exchange.capabilities, params)
            result = await self._send(exchange, method, sent, mirrored, again=again)
            if result.get("resultType", "complete") != "input_required":
                return result
            requests = requests_of(result.get("inputRequests"), exchange)
            replies: Replies = await exchange.ask(requests) if requests else {}
            sent = {**params, "inputResponses": dict(replies)}
            if "requestState" in result:
                sent["requestState"] = result["requestState"]
        raise LimitReached("the server was not heard out", why=f"it asked for input more than {MAX_ROUNDS} times")

    def listening(self, lists: Sequence[str]) -> tuple[Message, Mapping[str, str]]:
        """Return the request, and its headers, for a stream of changes of lists, such as `tools`."""
        method, wanted = "subscriptions/listen", {f"{name}ListChanged": True for name in lists}
        params = {"notifications": wanted, "_meta": self._meta(SILENT, {}, {})}
        return {"jsonrpc": "2.0", "id": next_id(), "method": method, "params": params}, headers_of(
            MODERN, method, params
        )

    async def close(self) -> None:
        """Close the connection, if there is one."""
        await self.server.close()

    async def _send(
        self,
        exchange: Exchange,
        method: str,
        params: Mapping[str, Any],
        mirrored: Sequence[MirroredArgument],
        *,
        again: bool,
    ) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": next_id(), "method": method, "params": params}
        headers = headers_of(MODERN, method, params, mirrored)
        try:
            return result_of(await self.server.request(exchange, message, headers, again=again))
        except McpError as error:
            missing = (error.data or {}).get("requiredCapabilities")
            if error.code == MISSING_CAPABILITY and isinstance(missing, dict):
                raise MissingCapability(cast(dict[str, Any], missing)) from None
            raise

    def _meta(self, client: Client, capabilities: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        given: object = params.get("_meta")
        meta: dict[str, Any] = {
            **(cast(dict[str, Any], given) if isinstance(given, dict) else {}),
            protocol.VERSION: MODERN,
            protocol.CAPABILITIES: capabilities,
            CLIENT_INFO: self._about,
        }
        if client.wants_progress:
            meta["progressToken"] = next_id()
        if client.level is not None:
            meta[protocol.LOG_LEVEL] = client.level
        return meta


def requests_of(given: object, exchange: Exchange) -> dict[str, Forwarded]:
    """Return the questions of a server by their names. Raise Unavailable if it may not ask one of them."""
    found: dict[str, Forwarded] = {}
    for name, each in cast(dict[str, Any], given if isinstance(given, dict) else {}).items():
        request = cast(dict[str, Any], each if isinstance(each, dict) else {})
        capability = CAPABILITIES.get(str(request.get("method")))
        if capability is None:
            raise Unavailable(f"the server asks for {str(request.get('method'))[:100]!r}, which no client can answer")
        if capability == SAMPLING and not exchange.sampling:
            raise Unavailable(
                "the server asks for the model of the client",
                why="its source does not allow that",
                next="Ask an operator to set --sampling for the source.",
            )
        if capability not in exchange.capabilities:
            raise MissingCapability({capability: {}})
        found[name] = Forwarded(str(request["method"]), params_of(request))
    return found
