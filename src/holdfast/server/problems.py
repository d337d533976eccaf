"""Errors as problem details (RFC 9457)."""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from holdfast.core.errors import HoldfastError, InvalidInput, Overloaded, ShuttingDown, TimedOut
from holdfast.core.text import render
from holdfast.core.wires import HTTP_STATUS

MEDIA_TYPE = "application/problem+json"
READING = ("GET", "HEAD")


class WrongMethod(InvalidInput):
    """The path exists, but not with this method."""

    def __init__(self, method: str, allowed: list[str]) -> None:
        super().__init__(f"{method[:40]!r} is not allowed here", next=f"Use {' or '.join(allowed)}.", allowed=allowed)
        self.allowed = allowed


def require_read_method(method: str) -> None:
    """Refuse methods other than GET and HEAD."""
    if method not in READING:
        raise WrongMethod(method, list(READING))


class WrongMediaType(InvalidInput):
    """The operation does not accept the media type of the body."""

    def __init__(self, given: str, wanted: str) -> None:
        why = f"Content-Type is {given[:100]!a}" if given else "there is no Content-Type header"
        super().__init__("unsupported media type", why=why, next=f"Send {wanted}.")


class SlowBody(TimedOut):
    """The body did not arrive in time."""


class SlowHead(TimedOut):
    """The request line and the headers did not arrive in time."""


class TurnFailed(HoldfastError):
    """An agent's turn failed. It has the stored error of the turn, which is meant for the caller."""

    def __init__(self, failure: Mapping[str, Any], **details: object) -> None:
        what: str = failure.get("what", "the turn failed")
        details |= {name: failure[name] for name in ("limit", "retry_after") if name in failure}
        super().__init__(what, why=failure.get("why", ""), next=failure.get("next", ""), **details)
        self.failure_code: str = failure.get("code", self.code)


# Errors with an HTTP status of their own; on the other wires they have the code of their base class.
STATUS_ON_HTTP_ALONE: dict[type[HoldfastError], int] = {
    WrongMethod: HTTPStatus.METHOD_NOT_ALLOWED,
    WrongMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    SlowBody: HTTPStatus.REQUEST_TIMEOUT,
    SlowHead: HTTPStatus.REQUEST_TIMEOUT,
}


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A problem (RFC 9457). `code` is stable. `detail` says what failed, why, and what to do next."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str
    request_id: str
    what: str
    why: str = ""
    next: str = ""
    details: dict[str, Any] = {}


def status_of(error: HoldfastError | type[HoldfastError]) -> int:
    """Return the HTTP status of an error."""
    kind = error if isinstance(error, type) else type(error)
    return STATUS_ON_HTTP_ALONE.get(kind) or HTTP_STATUS[code_of(error)]


def code_of(error: HoldfastError | type[HoldfastError]) -> str:
    """Return the code that the caller gets."""
    return error.failure_code if isinstance(error, TurnFailed) else error.code


def problem_of(error: HoldfastError, *, instance: str, request_id: str) -> Problem:
    """Return the problem for an error. The reason of a server error is only in the log, not in the problem."""
    status, code = status_of(error), code_of(error)
    public = error
    if isinstance(error, TurnFailed):
        pass
    elif status == HTTPStatus.INTERNAL_SERVER_ERROR:
        public = HoldfastError("internal error", next="Report it with the request id. The server's log has the cause.")
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        public = HoldfastError(error.what, next=error.next)
    return Problem(
        type=f"urn:holdfast:problem:{code}",
        title=code.replace("_", " ").capitalize(),
        status=status,
        detail=str(public),
        code=code,
        instance=instance,
        request_id=request_id,
        what=public.what,
        why=public.why,
        next=public.next,
        details=public.details,
    )


def problem_response(error: HoldfastError, *, instance: str, request_id: str, challenge: str | None = None) -> Response:
    """Return the response to a failed request. `challenge` is its `WWW-Authenticate` header, if it needs one."""
    problem = problem_of(error, instance=instance, request_id=request_id)
    headers: dict[str, str] = {}
    if challenge is not None:
        headers["www-authenticate"] = challenge
    if isinstance(error, WrongMethod):
        headers["allow"] = ", ".join(error.allowed)
    wait = error.details.get("retry_after")
    if isinstance(error, Overloaded | TurnFailed) and isinstance(wait, int | float):
        headers["retry-after"] = str(math.ceil(wait))
    if isinstance(error, ShuttingDown | SlowBody):
        headers["connection"] = "close"
    return Response(render(problem), problem.status, headers, MEDIA_TYPE)
