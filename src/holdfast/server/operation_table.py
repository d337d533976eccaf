"""The table of operations for the command line: what each operation takes. `make docs` writes it to `cli/`.

A command is a new process, and importing the routes takes longer than most commands run. So commands read the table.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import inspect

from holdfast.server.operations import ApiOperation, BodyStream

NAMES: dict[type[inspect.Type], str] = {
    inspect.StrType: "text",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "flag",
    inspect.UUIDType: "id",
    inspect.DateTimeType: "time",
    inspect.LiteralType: "choice",
}


def table(operations: Iterable[ApiOperation]) -> dict[str, dict[str, Any]]:
    """Return the method, the path, the scope, the summary and the inputs of each operation."""
    return {
        operation.name: {
            "method": operation.method,
            "path": operation.path,
            "needs": operation.needs,
            "summary": operation.summary,
            "body_format": None if operation.body is None else operation.body_format,
            "inputs": _inputs(operation),
        }
        for operation in operations
    }


def input_of(info: inspect.Type, place: str, *, required: bool = False, default: Any = None) -> dict[str, Any]:
    """Describe an input: its place in the request, its type, its constraints, its default and its description."""
    described: dict[str, Any] = {"place": place, "type": "json", **_constraints(info)}
    if required:
        described["required"] = True
    elif isinstance(default, bool | int | float | str):
        described["default"] = default
    return described


def _inputs(operation: ApiOperation) -> dict[str, dict[str, Any]]:
    inputs = {
        each.name: input_of(
            inspect.type_info(each.type), each.place, required=each.default is msgspec.UNSET, default=each.default
        )
        for each in operation.parameters
    }
    if operation.body in (None, bytes, BodyStream):
        return inputs
    body = inspect.type_info(operation.body)
    body = body.type if isinstance(body, inspect.Metadata) else body
    assert isinstance(body, inspect.StructType | inspect.DataclassType), f"{operation.name} takes no object"
    assert not inputs.keys() & {field.name for field in body.fields}, f"{operation.name} has two inputs with one name"
    return inputs | {
        field.name: input_of(field.type, "body", required=field.required, default=field.default)
        for field in body.fields
    }


def _constraints(info: inspect.Type) -> dict[str, Any]:
    match info:
        case inspect.Metadata():
            schema, extra = cast(dict[str, Any], info.extra_json_schema or {}), cast(dict[str, Any], info.extra or {})
            about = {"help": schema["description"]} if "description" in schema else {}
            return {**_constraints(info.type), **about, **extra}
        case inspect.UnionType():
            kinds = [each for each in info.types if not isinstance(each, inspect.NoneType)]
            return _constraints(kinds[0]) if len(kinds) == 1 else {}
        case inspect.LiteralType():
            return {"type": "choice", "choices": [*info.values]}
        case inspect.IntType() | inspect.FloatType():
            limits = {"min": info.ge, "max": info.le}
            return {"type": NAMES[type(info)], **{name: end for name, end in limits.items() if end is not None}}
        case _:
            return {"type": NAMES[type(info)]} if type(info) in NAMES else {}


def main() -> None:
    """Print the table, with one operation per line."""
    from holdfast.server.app import OPERATIONS

    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in table(OPERATIONS).items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
