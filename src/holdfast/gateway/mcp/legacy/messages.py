"""Legacy messages (2025-11-25 and before): each belongs to a session, which begins with `initialize`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, cast

from holdfast.core.text import render
from holdfast.gateway.mcp.about import CAPABILITIES, INSTRUCTIONS
from holdfast.gateway.mcp.legacy.client import LegacyClient
from holdfast.gateway.mcp.methods import METHODS
from holdfast.gateway.mcp.modern import id_of
from holdfast.gateway.mcp.requests import McpRequest, Result
from holdfast.mcp.about import SERVER
from holdfast.mcp.protocol import INVALID_PARAMS, INVALID_REQUEST, LEGACY, LOG_LEVELS, METHOD_NOT_FOUND, McpError
from holdfast.skills.client import InputRequired

INITIALIZE: Final = "initialize"
CANCELLED: Final = "notifications/cancelled"
REQUEST_CANCELLED: Final = -32800  # code of a cancelled request: its stream has to end with an answer
BATCHES: Final = "2025-03-26"  # the only version with batches
MAX_ABOUT: Final = 64 * 1024  # bytes of capabilities and client info

Kind = Literal["request", "notification", "response"]
Message = Mapping[str, Any]


class SessionSettings(Protocol):
    """The settings that a client makes in its session."""

    async def set_level(self, level: str) -> None:
        """Set the lowest level of the logs that the client receives."""
        ...

    async def subscribe(self, uri: str) -> None:
        """Subscribe to changes of a resource."""
        ...

    async def unsubscribe(self, uri: str) -> None:
        """Unsubscribe from changes of a resource."""
        ...


@dataclass(frozen=True, slots=True)
class Initialization:
    """The `initialize` of a session: the version to answer in, and what the client says about itself."""

    version: str
    client: Mapping[str, Any]

    @classmethod
    def of(cls, message: Message) -> "Initialization":
        """Parse `initialize`; for an unknown version, answer with the newest legacy version."""
        params = message.get("params")
        fields = cast(dict[str, Any], params) if isinstance(params, dict) else {}
        version, capabilities, info = (fields.get(name) for name in ("protocolVersion", "capabilities", "clientInfo"))
        if not isinstance(version, str) or not isinstance(capabilities, dict) or not isinstance(info, dict):
            raise McpError(INVALID_PARAMS, "`initialize` has a `protocolVersion`, `capabilities` and a `clientInfo`")
        client = {"capabilities": cast(dict[str, Any], capabilities), "info": cast(dict[str, Any], info)}
        if len(render(client)) > MAX_ABOUT:
            raise McpError(INVALID_PARAMS, f"`capabilities` and `clientInfo` have at most {MAX_ABOUT} bytes")
        return cls(version if version in LEGACY else LEGACY[0], client)

    @property
    def answer(self) -> Result:
        """The result of `initialize`."""
        return {
            "protocolVersion": self.version,
            "capabilities": CAPABILITIES,
            "serverInfo": SERVER,
            "instructions": INSTRUCTIONS,
        }


@dataclass(frozen=True, slots=True)
class Posted:
    """The messages that a client posts together: requests, and others, which get no answer; `batch`: as a list."""

    requests: Sequence[Message]
    others: Sequence[Message]
    batch: bool

    @classmethod
    def of(cls, given: object, version: str, *, most: int) -> "Posted":
        """Parse what a client posts in a session of this version; raise McpError if that is not allowed."""
        batch = isinstance(given, list)
        messages = cast(list[Any], given) if batch else [given]
        if batch and version != BATCHES:
            raise McpError(INVALID_REQUEST, "one message is taken at a time: the body has to be one JSON object")
        if not 0 < len(messages) <= most:
            raise McpError(INVALID_REQUEST, f"a batch has 1 to {most} messages")
        kinds = [(kind_of(each), cast(Message, each)) for each in messages]
        if batch and any(each.get("method") == INITIALIZE for _, each in kinds):
            raise McpError(INVALID_REQUEST, f"`{INITIALIZE}` is in no batch")
        requests = [each for kind, each in kinds if kind == "request"]
        return cls(requests, [each for kind, each in kinds if kind != "request"], batch)


def kind_of(message: object) -> Kind:
    """Return the kind of a message; raise McpError if it is malformed."""
    fields = cast(dict[str, Any], message) if isinstance(message, dict) else {}
    if fields.get("jsonrpc") == "2.0":
        if isinstance(fields.get("method"), str) and isinstance(fields.get("params", {}), dict):
            if "id" not in fields:
                return "notification"
            if id_of(fields) is not None:
                return "request"
        elif "method" not in fields and "id" in fields and ("result" in fields) != ("error" in fields):
            return "response"
    raise McpError(INVALID_REQUEST, "this is not a JSON-RPC 2.0 request, notification or response")


async def answer(
    request: McpRequest,
    client: LegacyClient,
    state: SessionSettings,
    *,
    check: Callable[[], Awaitable[None]] | None = None,
) -> Result:
    """Return the result of a request; `client` is the client of the request.

    `check` rejects a caller who has lost access. It runs before a tool runs again, because answers can take long.
    """
    match request.method:
        case "ping":
            return {}
        case "logging/setLevel":
            level = request.text("level")
            if level not in LOG_LEVELS:
                raise McpError(INVALID_PARAMS, f"`level` has to be one of {', '.join(LOG_LEVELS)}")
            await state.set_level(level)
            return {}
        case "resources/subscribe":
            request.caller.require("read")
            await state.subscribe(request.text("uri"))
            return {}
        case "resources/unsubscribe":
            await state.unsubscribe(request.text("uri"))
            return {}
        case method:
            return await _handle(method, request, client, check)


async def _handle(
    method: str, request: McpRequest, client: LegacyClient, check: Callable[[], Awaitable[None]] | None
) -> Result:
    handler = METHODS.get(method)
    if handler is None:
        raise McpError(METHOD_NOT_FOUND, f"there is no method {method!r:.100}")
    while True:
        try:
            return await handler(request)
        except InputRequired:
            await client.wait_for_answers()
        if check is not None:
            await check()
