"""Answers: encodes results and errors of MCP requests. Only here, an exception becomes an error of the protocol.

exception                             what the client receives
McpError                              its code, message and data
HoldfastError                         what, why, next and the details, with the code that MCP has for it
HoldfastError of the server (5xx)     the same without the reason and the details
any other, and what is broken (500)   that something broke, and the request id, under which the log has the reason
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from holdfast.core.errors import HoldfastError
from holdfast.core.text import render
from holdfast.core.wires import HTTP_STATUS, MCP_CODE
from holdfast.mcp.protocol import INTERNAL_ERROR, INVALID_PARAMS, NO_RESOURCE, McpError

BROKE = "internal error. Report it with the request id. The server's log has the cause."

RequestId = str | int

log = logging.getLogger(__name__)


def encode_result(id: RequestId, result: Mapping[str, Any]) -> bytes:
    """Encode the answer to a request that has a result."""
    # Each part is encoded by itself: an id with a lone surrogate needs the slow encoder, which cannot take raw JSON.
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (render(id), render(result))


def encode_error(id: RequestId | None, error: Mapping[str, Any]) -> bytes:
    """Encode the answer to a request that failed; `id` is None if it could not be read."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (render(id), render(error))


def error_of(error: Exception, *, modern: bool, request_id: str = "") -> dict[str, Any]:
    """Return the error object for an exception: `code`, `message` and, if there is more to say, `data`."""
    if isinstance(error, McpError):
        code = INVALID_PARAMS if modern and error.code == NO_RESOURCE else error.code
        fields: dict[str, Any] = {"code": code, "message": error.message}
        return fields if error.data is None else {**fields, "data": error.data}
    if not isinstance(error, HoldfastError) or HTTP_STATUS[error.code] == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request %s broke: %s", request_id, error, exc_info=error)
        return {"code": INTERNAL_ERROR, "message": BROKE, "data": {"code": "broken", "requestId": request_id}}
    if HTTP_STATUS[error.code] >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("request %s failed: %s", request_id, error)
        message, details = str(HoldfastError(error.what, next=error.next)), {}
    else:
        message, details = str(error), error.details
    return {"code": MCP_CODE[error.code], "message": message, "data": {**details, "code": error.code}}
