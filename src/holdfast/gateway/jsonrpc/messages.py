"""Messages of JSON-RPC 2.0: parses requests from decoded values, and encodes the answers. Pure."""

from dataclasses import dataclass
from typing import Any, cast

from msgspec import UNSET

from holdfast.core.errors import InvalidInput
from holdfast.core.text import render
from holdfast.gateway.jsonrpc.failures import RpcFailure, failure_of
from holdfast.mcp.protocol import INVALID_REQUEST

VERSION = "2.0"

Params = dict[str, Any] | list[Any]


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """A call; `id` is UNSET for a notification."""

    method: str
    params: Params
    id: Any

    @property
    def is_notification(self) -> bool:
        """Whether the client expects no answer."""
        return self.id is UNSET


@dataclass(frozen=True, slots=True)
class Malformed:
    """An invalid request, and the failure to answer it with; `id` is None if it cannot be read."""

    id: Any
    failure: RpcFailure


def read(value: object) -> RpcRequest | Malformed:
    """Parse a request."""
    if not isinstance(value, dict):
        return Malformed(None, invalid_request("a request is an object", "Send one with `jsonrpc`, `method` and `id`."))
    message = cast(dict[str, Any], value)
    id = message.get("id", UNSET)
    if id is not UNSET and not _is_id(id):
        return Malformed(
            None, invalid_request("`id` is neither a text nor a number nor null", "Send one of these, or none.")
        )
    method, params = message.get("method"), message.get("params", UNSET)
    if message.get("jsonrpc") != VERSION:
        wrong = invalid_request(f'`jsonrpc` is not "{VERSION}"', f'Send "jsonrpc": "{VERSION}".')
    elif not isinstance(method, str):
        wrong = invalid_request("`method` is no text", "Name a method; `rpc.discover` lists them.")
    elif params is not UNSET and not isinstance(params, dict | list):
        wrong = invalid_request("`params` is neither an object nor a list", "Send one of them, or leave it out.")
    else:
        return RpcRequest(method, cast(Params, {} if params is UNSET else params), id)
    return Malformed(None if id is UNSET else id, wrong)


def invalid_request(why: str, next: str) -> RpcFailure:
    """Return the failure for an invalid request."""
    error = InvalidInput("this is not a JSON-RPC 2.0 request", why=why, next=next)
    return failure_of(error, request_id="", code=INVALID_REQUEST)


def result_answer(id: Any, payload: bytes) -> bytes:
    """Encode the answer to a call whose result is already JSON."""
    return b'{"jsonrpc":"2.0","result":%b,"id":%b}' % (payload, render(id))


def error_answer(id: Any, failure: RpcFailure) -> bytes:
    """Encode the answer to a failed call."""
    error = {"code": failure.code, "message": failure.title, "data": failure.status}
    return render({"jsonrpc": VERSION, "error": error, "id": id})


def _is_id(value: object) -> bool:
    return value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))
