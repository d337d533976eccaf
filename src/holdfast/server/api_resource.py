"""A resource of the HTTP API: one path and the operations on it."""

import re
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.request_context import set_caller
from holdfast.core.text import parse_large, render
from holdfast.engine import Engine
from holdfast.gateway.gateways import Gateways
from holdfast.server.audited_requests import audited, audited_call, details_of
from holdfast.server.authentication import Authentication, CallerSession
from holdfast.server.operations import ApiCall, ApiOperation, ApiParameter, BodyStream
from holdfast.server.problems import WrongMediaType, WrongMethod
from holdfast.server.request_limits import ALWAYS_ANSWERED, SLOT, RequestSlot

MAX_FIELDS = 100  # fields of a form
EXACT = 2**53  # beyond it, a float does not represent every integer

_WHOLE_FLOAT = re.compile(r"Expected `int\b.*, got `float`")


class ApiResource:
    """Handles the requests to one path: authenticates, checks scopes, decodes arguments, runs the operation, audits."""

    def __init__(
        self,
        engine: Engine,
        authentication: Authentication,
        operations: Sequence[ApiOperation],
        *,
        instance: str,
        gateways: Gateways,
    ) -> None:
        self._engine = engine
        self._instance = instance
        self._gateways = gateways
        self._authentication = authentication
        self._operations: dict[str, ApiOperation] = {operation.method: operation for operation in operations}
        if "GET" in self._operations:
            self._operations["HEAD"] = self._operations["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        operation = self._operations.get(scope["method"])
        if operation is None:
            raise WrongMethod(scope["method"], sorted(self._operations))
        response = await self._answer(operation, Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, operation: ApiOperation, request: Request) -> Response:
        session = await self._enter(operation, request)
        engine = self._engine if session is None else self._engine.tenant(session.caller.tenant)
        call = ApiCall(engine, request, session, operation.status, self._instance, self._gateways)
        if operation.audited and session is not None and engine.audit.enabled:
            return await audited(call, operation, lambda: self._run(operation, call))
        if operation.calls_tool and session is not None and engine.audit.enabled:
            return await audited_call(call, lambda: self._run(operation, call))
        return await self._run(operation, call)

    async def _run(self, operation: ApiOperation, call: ApiCall) -> Response:
        if call.caller is not None and operation.needs not in ("nobody", "anybody", "somebody"):
            call.caller.require(operation.needs)
        request = call.request
        arguments = {parameter.name: _argument(parameter, request) for parameter in operation.parameters}
        if operation.body is not None:
            limit = max(self._engine.config.server.max_body_bytes, operation.larger_limit)
            arguments["body"] = await _body(operation, request, limit)
            call.details |= details_of(operation, arguments["body"])
        result = await operation.run(call, **arguments)
        if isinstance(result, Response):
            return result
        content = b"" if operation.result is type(None) else render(result)
        return Response(content, call.status, media_type="application/json" if content else None)

    async def _enter(self, operation: ApiOperation, request: Request) -> CallerSession | None:
        slot: RequestSlot = request.scope[SLOT]
        if operation.needs == "nobody":
            if operation.path != ALWAYS_ANSWERED:
                slot.enter_unknown(sign_in=operation.signs_in)
            return None
        needs = () if operation.needs in ("anybody", "somebody") else (operation.needs,)
        try:
            caller = await self._authentication.authenticate(request, *needs)
        except HoldfastError:
            if operation.needs == "anybody":
                slot.enter_unknown()
                return None
            raise
        slot.enter(caller)
        set_caller(caller.key, caller.actor, caller.scopes)
        return CallerSession(self._authentication, request, caller)


def _argument(parameter: ApiParameter, request: Request) -> Any:
    given: list[str]
    if parameter.place == "path":
        text = request.path_params[parameter.name]
        given = [unquote(text) if parameter.encoded_twice else text]
    else:
        given = request.query_params.getlist(parameter.name)
    if not given and parameter.default is not msgspec.UNSET:
        return parameter.default
    if len(given) != 1:
        raise InvalidInput(
            f"the parameter {parameter.name!r} must be given exactly once",
            why=f"it was given {len(given)} times",
            next="Give it once.",
        )
    try:
        return msgspec.convert(given[0], parameter.type, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the parameter {parameter.name!r} is invalid", why=str(error), next="Correct it.") from None


async def _body(operation: ApiOperation, request: Request, limit: int) -> Any:
    if operation.takes_stream:
        return BodyStream(request)
    data = await request.body()
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if data and media_type != operation.body_format:
        raise WrongMediaType(media_type, operation.body_format)
    if operation.body is bytes:
        return data
    is_form = operation.body_format != "application/json"
    value = _fields(data) if is_form else await parse_large(data, limit=limit) if data else cast(dict[str, Any], {})
    try:
        return _convert(value, operation.body, strict=not is_form)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        half = isinstance(error, UnicodeEncodeError)  # msgspec cannot look up a name that contains a lone surrogate
        why = "a name in it contains a lone surrogate" if half else str(error)
        raise InvalidInput(
            "the body does not match the schema", why=why, next="See /api/openapi.json for the schema."
        ) from None


def _convert(value: Any, type: Any, *, strict: bool) -> Any:
    """Convert a value to a type. As in JSON Schema, 1.0 is an integer."""
    try:
        return msgspec.convert(value, type, strict=strict)
    except msgspec.ValidationError as error:
        if not _WHOLE_FLOAT.match(str(error)):
            raise
    return msgspec.convert(_with_integers(value), type, strict=strict)


def _with_integers(value: Any) -> Any:
    """Return the value with whole floats replaced by integers, in the range where floats are exact."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= EXACT else value
    if isinstance(value, list):
        return [_with_integers(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {name: _with_integers(item) for name, item in cast(dict[str, Any], value).items()}
    return value


def _fields(data: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
    except ValueError:
        raise InvalidInput(
            "the form cannot be read", why="it is not URL-encoded UTF-8", next="Send it again from the page."
        ) from None
