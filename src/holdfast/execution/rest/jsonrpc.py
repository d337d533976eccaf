"""Calls of JSON-RPC services over HTTP: one request, one answer. The params and the result are passed on unchanged."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import msgspec

from holdfast.core.errors import HoldfastError, InvalidInput, Unavailable
from holdfast.core.text import parse
from holdfast.execution.rest.requests import WireRequest, wire_request
from holdfast.execution.rest.responses import IN_DOUBT, MAX_ANSWER_VALUES, to_result
from holdfast.execution.rest.runner import Dialect
from holdfast.execution.runner import Result
from holdfast.skills.request import RequestBody, RpcMethod
from holdfast.skills.tool import Tool

ID = 1  # of each request: an HTTP exchange has only one
BODY = RequestBody("application/json", argument="call")


def rpc_request(tool: Tool, arguments: Mapping[str, Any], secrets: Mapping[str, str]) -> WireRequest:
    """Build the request of a call."""
    request = tool.request
    if request is None or request.rpc is None:
        raise InvalidInput(f"{tool.name} cannot be called", why="it has no JSON-RPC method")
    envelope = {"jsonrpc": "2.0", "id": ID, "method": request.rpc.name, "params": _params(request.rpc, arguments)}
    with_body = replace(tool, request=msgspec.structs.replace(request, body=BODY, accept="application/json"))
    return wire_request(with_body, {"call": envelope}, secrets)


def rpc_result(
    status: int, headers: Mapping[str, str], body: bytes, *, method: str = "POST", idempotent: bool = False
) -> Result:
    """Convert an answer to a result. An error of the service is a failed result with its code, message and data."""
    message = _message(body)
    if message is None:
        if status >= 300:
            return to_result(status, headers, body, method=method, idempotent=idempotent)
        raise Unavailable(
            "the service did not answer with JSON-RPC 2.0",
            why="its answer is not an object with `jsonrpc`, the `id` of the request, and a `result` or an `error`",
            next="" if idempotent else IN_DOUBT,
        )
    if "error" in message:
        return Result(message["error"], failed=True)
    return Result(message["result"])


def _params(method: RpcMethod, arguments: Mapping[str, Any]) -> dict[str, Any] | list[Any]:
    """Return the params: by name, or by position up to the last one that is given."""
    if not method.positions:
        return dict(arguments)
    given = [number for number, name in enumerate(method.positions, 1) if name in arguments]
    return [arguments.get(name) for name in method.positions[: max(given, default=0)]]


def _message(body: bytes) -> dict[str, Any] | None:
    """Return the answer to the request; None if this is none."""
    try:
        found: object = parse(body, limit=len(body), most_values=MAX_ANSWER_VALUES)
    except HoldfastError:
        return None
    message = cast(dict[str, Any], found) if isinstance(found, dict) else {}
    is_answer = message.get("jsonrpc") == "2.0" and message.get("id") == ID
    # An error that was raised before the request was understood has no id.
    is_refusal = message.get("jsonrpc") == "2.0" and message.get("id") is None and "error" in message
    return message if (is_answer or is_refusal) and ("result" in message) != ("error" in message) else None


JSON_RPC = Dialect(rpc_request, rpc_result)
