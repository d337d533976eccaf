"""Operations: each is declared once, and its route, its checks and its documentation come from the declaration.

An operation is a coroutine function. Its first parameter is the `Call`; `body` is what the request carries, a parameter
named in the path comes from there, every other one from the query. Its return type is the answer, its docstring the
summary.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast, get_args, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.access.principals import Principal, Scope
from holdfast.authorization import Authorization
from holdfast.core.errors import Forbidden, HoldfastError, InvalidInput, TooLarge, Unauthenticated
from holdfast.engine import Engine
from holdfast.gateway.gateways import Gateways
from holdfast.server.authentication import Standing
from holdfast.server.problems import SlowBody, WrongMediaType
from holdfast.server.traffic import VISIT, Visit

# Nobody: who calls is not asked. Anybody: it is asked, but need not be known. Somebody: it must be known.
Needs = Scope | Literal["nobody", "anybody", "somebody"]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
JSON_LINES = "application/x-ndjson"
BodyFormat = Literal["application/json", "application/x-www-form-urlencoded", "application/x-ndjson"]
Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)


@dataclass(slots=True)
class Call:
    """One request, as an operation sees it."""

    engine: Engine  # of the caller's tenant
    request: Request
    standing: Standing | None  # of the caller, where it was asked who calls
    status: int  # of the answer
    instance: str  # the public name of the server that answers
    gateways: Gateways

    @property
    def caller(self) -> Principal | None:
        """Who calls, if they are known."""
        return None if self.standing is None else self.standing.caller

    @property
    def principal(self) -> Principal:
        """Who calls, where the operation needs somebody."""
        assert self.standing is not None
        return self.standing.caller

    @property
    def authorization(self) -> Authorization:
        """What they may read and change."""
        return Authorization(self.engine, self.principal)

    @property
    def visit(self) -> Visit:
        """How long it may last."""
        return cast(Visit, self.request.scope[VISIT])


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value from the path or the query."""

    name: str
    place: Literal["path", "query"]
    type: Any
    default: Any  # msgspec.UNSET where there is none


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that can be asked for over HTTP."""

    method: Method
    path: str
    needs: Needs
    status: int
    or_status: int | None  # with the same kind of answer
    run: Handler
    body: Any  # None: it takes none
    body_format: BodyFormat
    max_body_bytes: int | None  # where it takes more than the settings say
    signs_in: bool  # whoever calls tries to prove who they are
    result: Any
    response_format: str  # of that, or of the one that may be in its place
    streams: bool  # a response may be in place of the result
    parameters: tuple[Parameter, ...]
    errors: frozenset[type[HoldfastError]]
    tag: str

    @property
    def name(self) -> str:
        """Its name in client programs."""
        return self.run.__name__

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return (self.run.__doc__ or "").strip().partition("\n")[0]


class Operations(list[Operation]):
    """The operations of one subject."""

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
        max_body_bytes: int | None = None,
        signs_in: bool = False,
        response_format: str = "text/html",
    ) -> Callable[[H], H]:
        """Make an operation of a coroutine function; `errors` are those that come on top of the usual ones."""

        def declared(run: H) -> H:
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
                Operation(
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
                )
            )
            return run

        return declared


def _parameter(given: inspect.Parameter, type: Any, path: str) -> Parameter:
    place = "path" if f"{{{given.name}}}" in path else "query"
    default = msgspec.UNSET if given.default is inspect.Parameter.empty else given.default
    return Parameter(given.name, place, type, default)
