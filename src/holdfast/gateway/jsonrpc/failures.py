"""Failures: errors of calls, as JSON-RPC codes and as our own status object. Pure."""

from http import HTTPStatus

import msgspec

from holdfast.access.principals import MissingScope
from holdfast.core.errors import CommandFailed, HoldfastError, RateLimited
from holdfast.core.wires import HTTP_STATUS, JSONRPC_CODE
from holdfast.execution.outcomes import Outcome
from holdfast.mcp.protocol import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

# The titles that the specification gives to its own codes. The titles of other failures come from our error codes.
TITLES = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid Request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
}


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """An error of a call: `message` says what happened, `description` also why and what to do next.

    `limit` and `retry_after`, in seconds, say which limit was reached and when to try again. `scope` names all scopes
    that the call needs.
    """

    status_code: int
    code: str
    message: str
    description: str
    severity: str = "ERROR"
    limit: str | msgspec.UnsetType = msgspec.UNSET
    retry_after: float | msgspec.UnsetType = msgspec.UNSET
    scope: str | msgspec.UnsetType = msgspec.UNSET


class RpcFailure(Exception):
    """Raised when a call has no result."""

    def __init__(self, code: int, status: Status) -> None:
        super().__init__(status.description)
        self.code = code
        self.status = status

    @property
    def title(self) -> str:
        """The title of this kind of failure."""
        return TITLES.get(self.code) or self.status.code.replace("_", " ").capitalize()


def failure_of(error: HoldfastError, *, request_id: str, code: int | None = None) -> RpcFailure:
    """Return the failure for an error; `code` overrides the JSON-RPC code if the protocol has its own for it."""
    status = HTTP_STATUS[error.code]
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return internal_failure(error.code, request_id=request_id)
    public = HoldfastError(error.what, next=error.next) if status > HTTPStatus.INTERNAL_SERVER_ERROR else error
    described = Status(status, error.code, public.what, str(public))
    if isinstance(error, RateLimited):
        limit = str(error.details["limit"])
        described = msgspec.structs.replace(described, limit=limit, retry_after=error.retry_after)
    if isinstance(error, MissingScope):
        described = msgspec.structs.replace(described, scope=str(error.details["scope"]))
    return RpcFailure(code or JSONRPC_CODE[error.code], described)


def failure_of_outcome(outcome: Outcome, *, request_id: str) -> RpcFailure:
    """Return the failure for a failed call: with the message of the service, unless it broke."""
    code = outcome.code or CommandFailed.code
    known = code if code in HTTP_STATUS else CommandFailed.code  # an app may have its own errors
    status = HTTP_STATUS[known]
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return internal_failure(code, request_id=request_id)
    if outcome.outward is not None:
        return RpcFailure(JSONRPC_CODE[known], Status(status, code, outcome.outward, outcome.outward))
    what = outcome.text if outcome.status == "unknown" else outcome.error or outcome.text
    return RpcFailure(JSONRPC_CODE[known], Status(status, code, what, outcome.text))


def internal_failure(code: str = HoldfastError.code, *, request_id: str) -> RpcFailure:
    """Return a failure that the caller can do nothing about. The reason is only in the log."""
    public = HoldfastError(
        "internal error", next=f"Report it with the request id {request_id}. The server's log has the cause."
    )
    return RpcFailure(JSONRPC_CODE[code], Status(HTTP_STATUS[code], code, public.what, str(public)))
