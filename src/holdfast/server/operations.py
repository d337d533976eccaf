"""Operations of the HTTP API: each is declared once, and its route, checks and documentation come from that.

An operation is a coroutine function. Its first parameter is the `ApiCall`. `body` is the decoded body of the request.
Parameters that the path names come from the path, all others from the query. The return type is the type of the
response, and the first line of the docstring is the summary.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast, get_args, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.access.principals import Principal, Scope
from holdfast.authorization import Authorization
from holdfast.core.config import Config
from holdfast.core.errors import Forbidden, HoldfastError, InvalidInput, TooLarge, Unauthenticated
from holdfast.engine import Engine
from holdfast.gateway.gateways import Gateways
from holdfast.server.authentication import CallerSession
from holdfast.server.problems import SlowBody, WrongMediaType
from holdfast.server.request_limits import SLOT, RequestSlot

# The scope that an operation needs, or: `nobody`: no authentication; `anybody`: optional authentication;
# `somebody`: authentication, with any scope.
Needs = Scope | Literal["nobody", "anybody", "somebody"]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
JSON_LINES = "application/x-ndjson"
BYTES = "application/octet-stream"  # of a body that an operation reads as it arrives; it can have any other type
BodyFormat = Literal[
    "application/json", "application/x-www-form-urlencoded", "application/x-ndjson", "application/octet-stream"
]
OperationFunction = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=OperationFunction)


class BodyStream:
    """A body that the operation reads as it arrives, so that nothing holds it as a whole."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @property
    def media_type(self) -> str:
        """The media type that the client sent; empty if there is none."""
        return self._request.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._request.stream():
            if part:
                yield part


@dataclass(slots=True)
class ApiCall:
    """The context of one request, passed to its operation."""

    engine: Engine  # of the caller's tenant
    request: Request
    caller_session: CallerSession | None  # None without authentication
    status: int  # of the response
    instance: str  # the public identifier of this server
    gateways: Gateways
    # For the entry of an audited request: what it is about, if its path does not say it, and what its body says.
    target: str = ""
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    called: bool = False  # a tool was called, which has an entry of its own

    @property
    def caller(self) -> Principal | None:
        """The caller; None if it is not authenticated."""
        return None if self.caller_session is None else self.caller_session.caller

    @property
    def principal(self) -> Principal:
        """The caller, for operations that need authentication."""
        assert self.caller_session is not None
        return self.caller_session.caller

    @property
    def authorization(self) -> Authorization:
        """The checks of what the caller may read and change."""
        return Authorization(self.engine, self.principal)

    @property
    def slot(self) -> RequestSlot:
        """The request's place and timeout."""
        return cast(RequestSlot, self.request.scope[SLOT])


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """A value from the path or the query."""

    name: str
    place: Literal["path", "query"]
    type: Any
    default: Any  # msgspec.UNSET if there is none
    encoded_twice: bool = False


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One request of the HTTP API: a method, a path, its input and its output."""

    method: Method
    path: str
    needs: Needs
    status: int
    or_status: int | None  # an alternative status, with the same type of result
    run: OperationFunction
    body: Any  # the type of the body; None if it has none
    body_format: BodyFormat
    max_body_bytes: int | Callable[[Config], int] | None  # if the limit is higher than that of all operations
    signs_in: bool  # it is a sign-in, with limits of its own
    result: Any  # the type of the result
    response_format: str  # the media type of a `Response` that `run` returns
    streams: bool  # `run` can return a `Response` instead of the result
    parameters: tuple[ApiParameter, ...]
    errors: frozenset[type[HoldfastError]]
    tag: str
    audited: bool  # each request has an entry in the audit
    kept: tuple[str, ...]  # fields of the body that the entry keeps
    calls_tool: bool  # a request that ends before the tool is called has an entry as its call

    @property
    def name(self) -> str:
        """The operation id, for generated clients."""
        return self.run.__name__

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return (self.run.__doc__ or "").strip().partition("\n")[0]

    @property
    def takes_stream(self) -> bool:
        """Whether it reads its body as it arrives."""
        return self.body is BodyStream

    @property
    def larger_limit(self) -> int:
        """The limit of its body, in bytes, if it is higher than that of all operations, else 0."""
        assert not callable(self.max_body_bytes), "`with_limits` was not called"
        return self.max_body_bytes or 0

    def with_limits(self, config: Config) -> "ApiOperation":
        """Return the operation with the limit of its body as the settings have it."""
        limit = self.max_body_bytes
        return replace(self, max_body_bytes=limit(config)) if callable(limit) else self


class ApiOperations(list[ApiOperation]):
    """The operations of one tag."""

    def __init__(self, tag: str) -> None:
        super().__init__()
        self._tag = tag

    def declare(
        self,
        method: Method,
        path: str,
        *,
        needs: Needs,
        status: int = 200,
        or_status: int | None = None,
        errors: Sequence[type[HoldfastError]] = (),
        body_format: BodyFormat = "application/json",
        max_body_bytes: int | Callable[[Config], int] | None = None,
        signs_in: bool = False,
        response_format: str = "text/html",
        audit: bool | Sequence[str] | None = None,
        calls_tool: bool = False,
    ) -> Callable[[H], H]:
        """Declare a coroutine function as an operation. `errors` are its errors in addition to the usual ones.

        `audit`: whether each request has an entry in the audit, or which fields of the body the entry keeps. By
        default, requests that change something with the scope `admin` or `operator` have one, without the body.
        `calls_tool`: the entry is that of the call. The operation sets `called` when it makes the call.
        """
        changes_as_admin = method != "GET" and needs in ("admin", "operator")
        audited = changes_as_admin if audit is None else bool(audit)
        kept = () if audit is None or isinstance(audit, bool) else tuple(audit)

        def register(run: H) -> H:
            hints = get_type_hints(run, include_extras=True)
            body, result = hints.get("body"), hints["return"]
            streams = Response in get_args(result)
            if streams:
                (result,) = (type for type in get_args(result) if type is not Response)
            parameters = tuple(
                _parameter(given, hints[given.name], path)
                for given in list(inspect.signature(run).parameters.values())[1:]
                if given.name != "body"
            )
            usual: set[type[HoldfastError]] = set()
            if needs not in ("nobody", "anybody"):
                usual |= {Unauthenticated, Forbidden}
            if body is not None:
                usual |= {InvalidInput, TooLarge, WrongMediaType, SlowBody}
            if parameters:
                usual.add(InvalidInput)
            self.append(
                ApiOperation(
                    method=method,
                    path=path,
                    needs=needs,
                    status=status,
                    or_status=or_status,
                    run=run,
                    body=body,
                    body_format=body_format,
                    max_body_bytes=max_body_bytes,
                    signs_in=signs_in,
                    result=result,
                    response_format=response_format,
                    streams=streams,
                    parameters=parameters,
                    errors=frozenset(usual | set(errors)),
                    tag=self._tag,
                    audited=audited,
                    kept=kept,
                    calls_tool=calls_tool,
                )
            )
            return run

        return register


def _parameter(given: inspect.Parameter, type: Any, path: str) -> ApiParameter:
    place = "path" if f"{{{given.name}}}" in path else "query"
    default = msgspec.UNSET if given.default is inspect.Parameter.empty else given.default
    marks = [meta.extra or {} for meta in get_args(type) if isinstance(meta, msgspec.Meta)]
    return ApiParameter(given.name, place, type, default, any("encoded_twice" in extra for extra in marks))
