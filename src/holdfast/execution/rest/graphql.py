"""Calls of GraphQL services over HTTP: the text of an operation is fixed, the arguments of a call are its variables."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import msgspec

from holdfast.core.errors import HoldfastError, InvalidInput, TooLarge, Unavailable
from holdfast.core.text import parse
from holdfast.execution.rest.requests import WireRequest, wire_request
from holdfast.execution.rest.responses import IN_DOUBT, MAX_ANSWER_VALUES, to_result
from holdfast.execution.rest.runner import Dialect, HttpRunner
from holdfast.execution.runner import Result
from holdfast.skills.request import GraphqlOperation, RequestBody
from holdfast.skills.run import Run
from holdfast.skills.sources.graphql.chosen_selection import check_selection
from holdfast.skills.sources.selectable_types import SelectableTypes
from holdfast.skills.tool import Tool

BODY = RequestBody("application/json", argument="call")
ACCEPT = "application/graphql-response+json, application/json;q=0.9"
PAGE = ("first", "last")  # arguments that say how much of a connection is read
MAX_ERRORS = 20
MAX_MESSAGE = 2000  # characters


class GraphqlRunner:
    """Calls GraphQL services. What a caller chooses of the result is checked before anything is sent."""

    def __init__(self, http: HttpRunner, types: SelectableTypes) -> None:
        self._http = http
        self._types = types

    async def run(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Call the service, and return the field of the operation. Errors without data are a failed result."""
        operation = _operation(tool)
        given = dict(arguments)
        chosen = given.pop(operation.fields, None) if operation.fields else None
        if chosen is not None:
            tool = await self._with_selection(tool, operation, str(chosen))
        return await self._http.run(tool, given, run, timeout=timeout)

    async def _with_selection(self, tool: Tool, operation: GraphqlOperation, text: str) -> Tool:
        source = tool.backend.source if tool.backend is not None else ""
        types = await self._types.of(source)
        if operation.type not in types or tool.request is None:
            raise Unavailable(
                f"{tool.name} cannot return chosen fields",
                why=f"the types of the source `{source}` are not stored",
                next=f"Leave out `{operation.fields}`, or ask an operator to reload the source.",
            )
        selection = check_selection(text, operation.type, types, deepest=operation.deepest, argument=operation.fields)
        document = f"{operation.document.removesuffix('}').rstrip().removesuffix(operation.selection)}{selection} }}"
        changed = msgspec.structs.replace(operation, document=document)
        return replace(tool, request=msgspec.structs.replace(tool.request, graphql=changed))


def graphql_request(tool: Tool, arguments: Mapping[str, Any], secrets: Mapping[str, str]) -> WireRequest:
    """Build the request of a call."""
    operation = _operation(tool)
    variables = dict(arguments)
    if operation.items and all(variables.get(name) is None for name in PAGE):
        variables = {**{name: value for name, value in variables.items() if name not in PAGE}, "first": operation.items}
    call: dict[str, Any] = {"query": operation.document, "variables": variables}
    if operation.name:
        call["operationName"] = operation.name
    assert tool.request is not None
    with_body = replace(tool, request=msgspec.structs.replace(tool.request, body=BODY, accept=ACCEPT))
    return wire_request(with_body, {"call": call}, secrets)


def graphql_result(
    status: int, headers: Mapping[str, str], body: bytes, *, method: str = "POST", idempotent: bool = False
) -> Result:
    """Convert an answer to a result: the field of the operation. Errors beside data are returned with the data."""
    if status >= 300:
        return to_result(status, headers, body, method=method, idempotent=idempotent)
    try:
        message = _message(body)
    except TooLarge:  # too many values: as text, like other answers of this kind
        return to_result(status, headers, body, method=method, idempotent=idempotent)
    if message is None:
        raise Unavailable(
            "the service did not answer with GraphQL",
            why="its answer is not an object with `data` or `errors`",
            next="" if idempotent else IN_DOUBT,
        )
    data: Any = message.get("data")
    fields = cast(dict[str, Any], data) if isinstance(data, dict) else {}
    value: Any = next(iter(fields.values())) if len(fields) == 1 else cast(Any, data)
    errors = _errors(message.get("errors"))
    if not errors:
        return Result(value)
    if all(each is None for each in fields.values()):
        return Result({"errors": errors}, failed=True)
    return Result({"data": value, "errors": errors})


def _operation(tool: Tool) -> GraphqlOperation:
    if tool.request is None or tool.request.graphql is None:
        raise InvalidInput(f"{tool.name} cannot be called", why="it has no GraphQL operation")
    return tool.request.graphql


def _errors(errors: object) -> list[dict[str, Any]]:
    """Return the message, the path and the code of each error. Other extensions are meant for the service's people."""
    found: list[dict[str, Any]] = []
    entries = cast(list[Any], errors) if isinstance(errors, list) else []
    for each in entries[:MAX_ERRORS]:
        error = cast(dict[str, Any], each) if isinstance(each, dict) else {"message": str(each)}
        extensions: object = error.get("extensions")
        more = cast(dict[str, Any], extensions) if isinstance(extensions, dict) else {}
        code = more.get("code") or error.get("type")  # GitHub has the code as `type`
        shown = {"message": str(error.get("message", ""))[:MAX_MESSAGE], "path": error.get("path"), "code": code}
        found.append({name: value for name, value in shown.items() if value is not None})
    if len(entries) > MAX_ERRORS:
        found.append({"message": f"and {len(entries) - MAX_ERRORS} more errors"})
    return found


def _message(body: bytes) -> dict[str, Any] | None:
    """Return the answer; None if this is none. Raise TooLarge if it has too many values."""
    try:
        found: object = parse(body.removeprefix(b"\xef\xbb\xbf"), limit=len(body), most_values=MAX_ANSWER_VALUES)
    except TooLarge:
        raise
    except HoldfastError:
        return None
    message = cast(dict[str, Any], found) if isinstance(found, dict) else {}
    return message if "data" in message or isinstance(message.get("errors"), list) else None


def schema_text(
    status: int, headers: Mapping[str, str], body: bytes, *, method: str = "POST", idempotent: bool = True
) -> Result:
    """Convert an answer to its text: a schema is parsed where it is imported."""
    if status >= 300:
        return to_result(status, headers, body, method=method, idempotent=idempotent)
    return Result(body.decode(errors="replace"))


GRAPHQL = Dialect(graphql_request, graphql_result)
INTROSPECTION = Dialect(graphql_request, schema_text)
