"""The OpenAPI document, built from the declared operations."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, get_args, get_origin

import jsonschema_rs
import msgspec
from starlette.responses import Response

from holdfast.access.principals import SCOPES
from holdfast.core.errors import Broken, Forbidden, HoldfastError, Overloaded, TimedOut, Unavailable
from holdfast.core.wires import HTTP_STATUS
from holdfast.server.authentication import COOKIE
from holdfast.server.operations import ApiOperation, BodyStream
from holdfast.server.problems import MEDIA_TYPE, STATUS_ON_HTTP_ALONE, Problem, status_of
from holdfast.server.server_file import holdfast_version

REFERENCE = "#/components/schemas/{name}"
DESCRIPTION = (
    "Errors are problem details (RFC 9457) with a stable `code`. `WS /ws/{agent}?session_id=&since=` opens a WebSocket "
    "to an agent. Its frames are plain text. With the sub-protocol `holdfast.v1+json` they are JSON, with events as in "
    "`GET /api/conversations/{id}/events`."
)
# Errors that every request can get: a foreign Host or Origin, and an engine that cannot respond.
EVERYWHERE: tuple[type[HoldfastError], ...] = (Forbidden, Overloaded, Broken, Unavailable, TimedOut)


def document(operations: Sequence[ApiOperation], *, root_path: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the API."""
    types = [type for operation in operations for type in _types(operation)]
    schemas, components = msgspec.json.schema_components([*types, Problem], ref_template=REFERENCE)
    schema_of = {id(type): schema for type, schema in zip(types, schemas, strict=False)}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast", "version": holdfast_version(), "description": DESCRIPTION},
        "servers": [{"url": root_path or "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {_problem_name(status): _problem(status) for status in _statuses()},
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key or a token. Local access needs none.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": COOKIE,
                    "description": "The session cookie of a signed-in browser.",
                },
            },
        },
    }


def _types(operation: ApiOperation) -> list[Any]:
    types = [parameter.type for parameter in operation.parameters]
    if operation.body not in (None, bytes, BodyStream):
        types.append(operation.body)
    if _has_json_result(operation):
        types.append(operation.result)
    return types


def _has_json_result(operation: ApiOperation) -> bool:
    return operation.result is not type(None) and operation.result is not Response


def _describe(operation: ApiOperation, schema_of: dict[int, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "responses": _responses(operation, schema_of),
    }
    if operation.parameters:
        entry["parameters"] = [
            {
                "name": parameter.name,
                "in": parameter.place,
                "required": parameter.default is msgspec.UNSET,
                "schema": schema_of[id(parameter.type)],
            }
            for parameter in operation.parameters
        ]
    if operation.body is not None:
        schema = {} if operation.body in (bytes, BodyStream) else {"schema": schema_of[id(operation.body)]}
        entry["requestBody"] = {
            "required": _is_required(operation.body),
            "content": {operation.body_format: schema},
        }
    if operation.needs not in ("nobody", "anybody"):
        entry["security"] = [{"key": []}, {"session": []}]
    if operation.needs in SCOPES:
        entry["description"] = f"Needs the scope `{operation.needs}`."
    return entry


def _responses(operation: ApiOperation, schema_of: dict[int, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    if _has_json_result(operation):
        answer["content"] = {"application/json": {"schema": schema_of[id(operation.result)]}}
        if operation.streams:
            answer["content"][operation.response_format] = {}
    elif operation.status == HTTPStatus.OK:
        answer["content"] = {operation.response_format: {}}
    statuses = {status_of(error) for error in (*operation.errors, *EVERYWHERE)}
    problems: dict[str, Any] = {
        str(status): {"$ref": f"#/components/responses/{_problem_name(status)}"} for status in sorted(statuses)
    }
    if operation.or_status is not None:
        problem: dict[str, Any] = {}
        if operation.or_status >= HTTPStatus.BAD_REQUEST:
            problem[MEDIA_TYPE] = {"schema": {"$ref": REFERENCE.format(name="Problem")}}
        content = {**answer.get("content", {operation.response_format: {}}), **problem}
        problems[str(operation.or_status)] = {"description": HTTPStatus(operation.or_status).phrase, "content": content}
    return {str(operation.status): answer, **problems}


def _is_required(body: Any) -> bool:
    """Return whether the body is required. A request without a body counts as an empty object."""
    if body in (bytes, BodyStream):
        return True
    struct, *metas = get_args(body) if get_origin(body) is Annotated else [body]
    rules = [meta.extra_json_schema for meta in metas if meta.extra_json_schema]
    return any(field.required for field in msgspec.structs.fields(struct)) or not all(
        jsonschema_rs.is_valid(rule, {}) for rule in rules
    )


def _statuses() -> list[int]:
    return sorted({*HTTP_STATUS.values(), *STATUS_ON_HTTP_ALONE.values()})


def _problem_name(status: int) -> str:
    return f"Problem{status}"


def _problem(status: int) -> dict[str, Any]:
    codes = {code for code, known in HTTP_STATUS.items() if known == status}
    codes |= {error.code for error, known in STATUS_ON_HTTP_ALONE.items() if known == status}
    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(sorted(codes))}",
        "content": {MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(name="Problem")}}},
    }
