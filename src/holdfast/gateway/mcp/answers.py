"""Answers: what a request of MCP is answered with; the one place where an exception becomes an error of the protocol.

what was raised                       what the client is told
McpError                              its code, message and data
an error of ours                      what, why and what next, by the code that MCP has for it
of those on our side (5xx)            without the reason
anything else, and what is broken     that something broke here, and the id under which the log has the reason
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from holdfast.core.errors import HoldfastError
from holdfast.core.text import render
from holdfast.core.wires import HTTP_STATUS, MCP_CODE
from holdfast.mcp.protocol import INTERNAL_ERROR, INVALID_PARAMS, NO_RESOURCE, McpError

BROKE = "something broke here. Report it with the request id: the log has the reason under it."

RequestId = str | int

log = logging.getLogger(__name__)


def answered(id: RequestId, result: Mapping[str, Any]) -> bytes:
    """A request is answered with a result."""
    # Each part by itself: an id may have in it what only the slower way of writing takes, and that takes no raw JSON.
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (render(id), render(result))


def refused(id: RequestId | None, error: Mapping[str, Any]) -> bytes:
    """A request is answered with an error; `id` is None where it could not be read."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (render(id), render(error))


def error_of(error: Exception, *, modern: bool, request_id: str = "") -> dict[str, Any]:
    """What a client is told of an exception: `code`, `message`, and `data` where there is more to say."""
    if isinstance(error, McpError):
        code = INVALID_PARAMS if modern and error.code == NO_RESOURCE else error.code
        told: dict[str, Any] = {"code": code, "message": error.message}
        return told if error.data is None else {**told, "data": error.data}
    if not isinstance(error, HoldfastError) or HTTP_STATUS[error.code] == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request %s broke: %s", request_id, error, exc_info=error)
        return {"code": INTERNAL_ERROR, "message": BROKE, "data": {"code": "broken", "requestId": request_id}}
    if HTTP_STATUS[error.code] >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("request %s failed: %s", request_id, error)
        message, details = str(HoldfastError(error.what, next=error.next)), {}
    else:
        message, details = str(error), error.details
    return {"code": MCP_CODE[error.code], "message": message, "data": {**details, "code": error.code}}
