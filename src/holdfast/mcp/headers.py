"""Headers: the HTTP headers in which a modern client repeats parts of its request. Pure.

They have to match the body, because a proxy that routes by them never reads it.
"""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
PARAMETER: Final = b"mcp-param-"
NAMED: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

ANNOTATION: Final = "x-mcp-header"  # keyword of a property that a header repeats

_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")  # they map names to schemas
_NO_SCHEMAS = ("default", "examples", "const", "enum")


@dataclass(frozen=True, slots=True)
class MirroredArgument:
    """An argument that a header repeats: its path in the arguments, and whether it is an integer."""

    header: bytes
    path: tuple[str, ...]
    is_integer: bool


def mirrored_of(schema: Mapping[str, Any]) -> Sequence[MirroredArgument]:
    """Return the arguments of a schema that headers repeat; none if the schema breaks the rules for them.

    The rules: header names are tokens and unique; only strings, integers and booleans are repeated; and they are
    properties of the arguments, or of objects in them. Clients that follow the rules do not call a tool that breaks
    them.
    """
    found: dict[bytes, MirroredArgument] = {}
    for path, part in _parts(schema):
        if ANNOTATION not in part:
            continue
        name, kind = part[ANNOTATION], part.get("type")
        if not path or not isinstance(name, str) or not _TOKEN.fullmatch(name):
            return ()
        header = PARAMETER + name.lower().encode()
        if kind not in ("string", "integer", "boolean") or header in found:
            return ()
        found[header] = MirroredArgument(header, path, kind == "integer")
    return tuple(found.values())


def _parts(schema: object) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Yield the schemas in a schema, each with its path of properties; None if the path has other keywords."""
    waiting: list[tuple[tuple[str, ...] | None, object]] = [((), schema)]
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, list):
            waiting += [(None, each) for each in cast(list[object], part)]
        if not isinstance(part, dict):
            continue
        subschema = cast(dict[str, Any], part)
        yield path, subschema
        for key, value in subschema.items():
            if key in _MAPS and isinstance(value, dict):
                reached = path if key == "properties" else None
                waiting += [
                    (None if reached is None else (*reached, name), each)
                    for name, each in cast(dict[str, Any], value).items()
                ]
            elif key not in _NO_SCHEMAS:
                waiting.append((None, value))


def value_at(arguments: object, path: Sequence[str]) -> Any:
    """Return the argument at a path of properties; None if there is none."""
    found = arguments
    for name in path:
        found = cast(Mapping[str, Any], found).get(name) if isinstance(found, Mapping) else None
    return found


def header_text(value: object) -> str | None:
    """Return a value as a header repeats it; None if no header can."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def encode_value(text: str) -> str:
    """Return a text as a header can have it: as it is, or in Base64."""
    if _PLAIN.fullmatch(text) and not text.startswith("=?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='surrogatepass')).decode()}?="


def headers_of(
    version: str, method: str, params: Mapping[str, Any], mirrored: Sequence[MirroredArgument] = ()
) -> dict[str, str]:
    """Return the headers of a request; `mirrored` are the arguments of the called tool that headers repeat."""
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    name = params.get(NAMED.get(method, ""))
    if isinstance(name, str):
        headers["Mcp-Name"] = encode_value(name)
    for each in mirrored:
        text = header_text(value_at(params.get("arguments"), each.path))
        if text is not None:
            headers[each.header.decode()] = encode_value(text)
    return headers
