"""The types of the API for the console, from its OpenAPI document: `make docs` writes them to `src/api/schema.ts`."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.server.app import OPERATIONS
from holdfast.server.openapi import document

HEADER = "// Written by `make docs` from the API's own description. Change that, never this.\n"
NAME = re.compile(r"[A-Za-z_$][\w$]*")
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
DONE = ("200", "201", "202", "204", "303")

Schema = Mapping[str, Any]


def module(described: Mapping[str, Any]) -> str:
    """The module of TypeScript: every schema, and for every operation what it takes and answers."""
    schemas: Mapping[str, Schema] = described["components"]["schemas"]
    types = [f"export type {_name(name)} = {_type(schema)};\n" for name, schema in sorted(schemas.items())]
    return "\n".join([HEADER, *types, _operations(described["paths"])])


def _operations(paths: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        f"  {json.dumps(f'{method.upper()} {path}')}: {{ {'; '.join(_parts(operation))} }};"
        for path, methods in sorted(paths.items())
        for method, operation in sorted(methods.items())
        if path.startswith(("/api/", "/healthz", "/readyz"))
    ]
    return "\n".join(["export interface Operations {", *lines, "}", ""])


def _parts(operation: Mapping[str, Any]) -> Iterator[str]:
    for place in ("path", "query"):
        given = [parameter for parameter in operation.get("parameters", ()) if parameter["in"] == place]
        members = [
            f"{parameter['name']}{'' if parameter['required'] else '?'}: {_type(parameter['schema'])}"
            for parameter in given
        ]
        yield f"{place}: {{ {'; '.join(members)} }}" if members else f"{place}: {{}}"
    yield f"body: {_content(operation.get('requestBody', {})) or 'undefined'}"
    answers = operation["responses"]
    yield f"answer: {_content(next(answers[status] for status in DONE if status in answers)) or 'undefined'}"


def _content(holder: Mapping[str, Any]) -> str | None:
    described = holder.get("content", {}).get("application/json", {})
    return _type(described["schema"]) if "schema" in described else None


def _type(schema: Schema) -> str:
    match schema:
        case {"$ref": str(reference)}:
            return _name(reference.rpartition("/")[2])
        case {"enum": values}:
            return " | ".join(map(json.dumps, values))
        case {"const": value}:
            return json.dumps(value)
        case {"anyOf": choices} | {"oneOf": choices}:
            return " | ".join(dict.fromkeys(map(_type, choices)))
        case {"type": "array", "prefixItems": items}:
            return f"[{', '.join(map(_type, items))}]"
        case {"type": "array"}:
            return f"ReadonlyArray<{_type(schema.get('items') or {})}>"
        case {"type": "object", "properties": properties}:
            return _object(properties, schema.get("required", ()))
        case {"type": "object", "additionalProperties": values} if not isinstance(values, bool):
            return f"Record<string, {_type(values)}>"
        case {"type": "object"}:
            return "Record<string, unknown>"
        case {"type": str(plain)}:
            return PLAIN[plain]
        case _:
            return "unknown"


def _object(properties: Mapping[str, Schema], required: list[str]) -> str:
    # What has a default may be left out by whoever writes it, and by answers that leave out what is not said.
    members = [
        f"  readonly {_key(name)}{'' if name in required else '?'}: {_type(schema)};"
        for name, schema in properties.items()
    ]
    return "\n".join(["{", *members, "}"])


def _key(name: str) -> str:
    return name if NAME.fullmatch(name) else json.dumps(name)


def _name(name: str) -> str:
    return re.sub(r"\W", "_", name)


if __name__ == "__main__":
    sys.stdout.write(module(document(OPERATIONS, root_path="")))
