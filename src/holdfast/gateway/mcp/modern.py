"""Modern requests (2026-07-28): each is independent, and states its version and what its client can be asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from holdfast.access.principals import Principal
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.about import CAPABILITIES, INSTRUCTIONS
from holdfast.gateway.mcp.answers import RequestId
from holdfast.gateway.mcp.headers import MirroredHeaders, mirrored_in
from holdfast.gateway.mcp.methods import METHODS
from holdfast.gateway.mcp.modern_client import ModernClient
from holdfast.gateway.mcp.notified_client import Notify
from holdfast.gateway.mcp.request_state import Answers, Origin, RequestState, RequestStates, answers_of
from holdfast.gateway.mcp.requests import McpRequest, Result
from holdfast.mcp import protocol
from holdfast.mcp.about import SERVER
from holdfast.mcp.headers import NAMED
from holdfast.mcp.inputs import MissingCapability, wire_of
from holdfast.mcp.protocol import INVALID_PARAMS, INVALID_REQUEST, LOG_LEVELS, METHOD_NOT_FOUND, MODERN, McpError
from holdfast.skills.client import InputRequired

DISCOVER: Final = "server/discover"
LISTEN: Final = "subscriptions/listen"
META: Final = {protocol.SERVER_INFO: SERVER}
NOT_FOUND: Final = 404

# Milliseconds for which a client may cache a result. A client that listens is notified of changes at once.
FRESH: Final[Mapping[str, int]] = {
    DISCOVER: 60_000,
    "tools/list": 5_000,
    "prompts/list": 5_000,
    "resources/list": 5_000,
    "resources/templates/list": 5_000,
    "resources/read": 0,
}


@dataclass(frozen=True, slots=True)
class ModernRequest:
    """A well-formed request; `meta` is its `_meta`."""

    id: RequestId
    method: str
    params: Mapping[str, Any]
    meta: Mapping[str, Any]

    @classmethod
    def of(cls, message: object, mirror: MirroredHeaders | None = None) -> "ModernRequest":
        """Parse a message; raise McpError if it is malformed, or its headers do not match."""
        if not isinstance(message, dict):
            raise McpError(INVALID_REQUEST, "one request is taken at a time: the body has to be one JSON object")
        fields = cast(dict[str, Any], message)
        id, method, params = fields.get("id"), fields.get("method"), fields.get("params", {})
        if fields.get("jsonrpc") != "2.0" or not isinstance(method, str) or not isinstance(params, dict):
            raise McpError(
                INVALID_REQUEST, "a request has `jsonrpc` 2.0, an `id`, a `method`, and an object as `params`"
            )
        if id_of(fields) is None:
            raise McpError(INVALID_REQUEST, "the `id` of a request has to be a text or an integer")
        params = cast(dict[str, Any], params)
        meta = params.get("_meta")
        if not isinstance(meta, dict) or not (protocol.VERSION in meta and protocol.CAPABILITIES in meta):
            needed = f"`{protocol.VERSION}` and `{protocol.CAPABILITIES}`"
            raise McpError(INVALID_PARAMS, f"`params._meta` has to be an object with {needed}")
        version = cast(object, meta[protocol.VERSION])
        if mirror is not None:
            mirror.check(version, method, params)
        if version != MODERN:
            raise unsupported(version)
        envelope = cls(cast(RequestId, id), method, params, cast(dict[str, Any], meta))
        envelope.check()
        return envelope

    def check(self) -> None:
        """Reject malformed values in `_meta`."""
        meta = self.meta
        if not isinstance(meta[protocol.CAPABILITIES], dict):
            raise McpError(INVALID_PARAMS, f"`{protocol.CAPABILITIES}` has to be an object")
        if protocol.LOG_LEVEL in meta and meta[protocol.LOG_LEVEL] not in LOG_LEVELS:
            raise McpError(INVALID_PARAMS, f"`{protocol.LOG_LEVEL}` has to be one of {', '.join(LOG_LEVELS)}")
        token = meta.get("progressToken")
        if token is not None and (isinstance(token, bool) or not isinstance(token, str | int | float)):
            raise McpError(INVALID_PARAMS, "`progressToken` has to be a text or a number")


def id_of(message: object) -> RequestId | None:
    """Return the id of a message, if it has a valid one."""
    id = cast(dict[str, Any], message).get("id") if isinstance(message, dict) else None
    return id if isinstance(id, str | int) and not isinstance(id, bool) else None


def is_notification(message: object) -> bool:
    """Whether a message is a notification, which gets no answer."""
    if not isinstance(message, dict) or "id" in message:
        return False
    fields = cast(dict[str, Any], message)
    return fields.get("jsonrpc") == "2.0" and isinstance(fields.get("method"), str)


def unsupported(version: object) -> McpError:
    """Return the error for an unsupported version."""
    requested = version if isinstance(version, str) else str(version)
    data = {"supported": list(protocol.SUPPORTED), "requested": requested[:100]}
    return McpError(protocol.UNSUPPORTED_VERSION, "this version of the protocol is not supported", data)


def complete_result(method: str, result: Result) -> Result:
    """Add the fields that every modern result has."""
    whole = {"resultType": "complete", **result, "_meta": {**META, **result["_meta"]} if "_meta" in result else META}
    if method in FRESH:
        whole |= {"ttlMs": FRESH[method], "cacheScope": "private"}
    return whole


async def answer(
    envelope: ModernRequest, gateway: Gateway, caller: Principal, notify: Notify, mirror: MirroredHeaders | None = None
) -> Result:
    """Return the result of a request; `notify` sends notifications before it, `mirror` has the request's headers."""
    method, params = envelope.method, envelope.params
    if method == DISCOVER:
        about = {"supportedVersions": protocol.SUPPORTED, "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}
        return complete_result(method, about)
    handler = METHODS.get(method)
    if handler is None:
        raise McpError(METHOD_NOT_FOUND, f"there is no method {method!r:.100}", status=NOT_FOUND)
    if method == "tools/call" and mirror is not None:
        await _check_arguments(mirror, gateway, caller, params)
    client = await _client(envelope, gateway, caller, notify)
    try:
        result = await handler(McpRequest(method, params, gateway, caller, client, MODERN))
    except InputRequired as waiting:
        return await _input_required(waiting, client, gateway, Origin(caller, method, params))
    except MissingCapability as error:
        required = {"requiredCapabilities": error.missing}
        raise McpError(protocol.MISSING_CAPABILITY, error.what, required) from None
    return complete_result(method, result)


async def _check_arguments(
    mirror: MirroredHeaders, gateway: Gateway, caller: Principal, params: Mapping[str, Any]
) -> None:
    view = await gateway.tools(caller)
    name, arguments = params.get("name"), params.get("arguments")
    listed = view.by_name.get(name) if isinstance(name, str) else None
    if listed is not None and (mirrored := mirrored_in(view, listed)):
        mirror.check_arguments(mirrored, cast(dict[str, Any], arguments) if isinstance(arguments, dict) else {})


async def _client(envelope: ModernRequest, gateway: Gateway, caller: Principal, notify: Notify) -> ModernClient:
    params, meta = envelope.params, envelope.meta
    answers: Answers = {}
    state: RequestState | None = None
    if envelope.method in NAMED and ("inputResponses" in params or "requestState" in params):
        given = _input_responses(params)
        state = await _state(params, gateway, Origin(caller, envelope.method, params))
        answers = answers_of(given, state)
    return ModernClient(
        notify,
        gateway.engine.database,
        answers,
        state,
        capabilities=meta[protocol.CAPABILITIES],
        progress_token=meta.get("progressToken"),
        level=meta.get(protocol.LOG_LEVEL),
    )


def _input_responses(params: Mapping[str, Any]) -> Answers:
    """Return the answers that come with this request."""
    given = params.get("inputResponses", {})
    if not isinstance(given, dict) or not all(isinstance(each, dict) for each in cast(dict[str, Any], given).values()):
        raise McpError(INVALID_PARAMS, "`inputResponses` has to be an object of objects")
    return cast(dict[str, dict[str, Any]], given)


async def _state(params: Mapping[str, Any], gateway: Gateway, origin: Origin) -> RequestState | None:
    """Return the state that comes with this request: what the client was asked and has answered. None without one."""
    if "requestState" not in params:
        return None
    now = await gateway.engine.database.now()
    return RequestStates.of(gateway).open(params["requestState"], origin, now=now)


async def _input_required(waiting: InputRequired, client: ModernClient, gateway: Gateway, origin: Origin) -> Result:
    """Return the result that asks the client for input. The client then repeats the request with its answers."""
    assert origin.method in NAMED, f"{origin.method} cannot ask its client"
    now = await gateway.engine.database.now()
    return {
        "resultType": "input_required",
        "inputRequests": {name: wire_of(request) for name, request in waiting.requests.items()},
        "requestState": RequestStates.of(gateway).seal(
            origin, waiting.requests, client.used, now=now, waiting=client.waiting, digests=client.digests
        ),
        "_meta": META,
    }
