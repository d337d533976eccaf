"""Headers: the HTTP headers in which a modern client repeats parts of its request. Pure.

They have to match the body, because a proxy that routes by them never reads it. A request with a header that differs or
is missing is rejected.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from holdfast.gateway.views import CallerView, Listed
from holdfast.mcp.protocol import HEADER_MISMATCH, McpError

RawHeaders = Sequence[tuple[bytes, bytes]]  # names in lower case, as in ASGI

VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
PARAMETER: Final = b"mcp-param-"
NAMED: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

ANNOTATION: Final = "x-mcp-header"  # keyword of a property that a header repeats

_WRAPPED = re.compile(rb"=\?base64\?(.*)\?=", re.DOTALL)
_PLAIN = re.compile(rb"[\t\x20-\x7e]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL = re.compile(r"(-?[0-9]{1,40})(?:\.0+)?")
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")  # they map names to schemas
_NO_SCHEMAS = ("default", "examples", "const", "enum")


@dataclass(frozen=True, slots=True)
class MirroredArgument:
    """An argument that a header repeats: its path in the arguments, and whether it is an integer."""

    header: bytes
    path: tuple[str, ...]
    is_integer: bool


class MirroredArguments(dict[str, Sequence[MirroredArgument]]):
    """The arguments that headers repeat, by the name of the tool."""


class MirroredHeaders:
    """The headers of one request."""

    def __init__(self, headers: RawHeaders) -> None:
        self._found = dict(headers)
        if len(self._found) != len(headers):
            _refuse_twice(name for name, _ in headers)

    def text(self, header: bytes) -> str | None:
        """Return the text of a header, without decoding Base64."""
        raw = self._found.get(header)
        return None if raw is None else raw.strip(b" \t").decode("latin-1")

    def check(self, version: object, method: str, params: Mapping[str, Any]) -> None:
        """Reject headers that differ from the version, method or name of the body."""
        self._expect(VERSION, version)
        self._expect(METHOD, method)
        named = NAMED.get(method)
        if named is not None and params.get(named) is not None:
            self._expect(NAME, params[named], wrapped=True)

    def check_arguments(self, mirrored: Iterable[MirroredArgument], arguments: Mapping[str, Any]) -> None:
        """Reject headers that differ from the arguments that they repeat."""
        for each in mirrored:
            value = _at(arguments, each.path)
            text = self._value(each.header, wrapped=True)
            expected = _header_text(value)
            if expected is None and text is None:
                continue
            if (
                expected is None
                or text is None
                or not (text == expected or (each.is_integer and _same_number(text, value)))
            ):
                raise _mismatch(each.header, f"the argument {'.'.join(each.path)!r:.100}")

    def _expect(self, header: bytes, value: object, *, wrapped: bool = False) -> None:
        if not isinstance(value, str) or (
            self._found.get(header) != value.encode(errors="surrogatepass")
            and self._value(header, wrapped=wrapped) != value
        ):
            raise _mismatch(header, "the body")

    def _value(self, header: bytes, *, wrapped: bool) -> str | None:
        raw = self._found.get(header)
        if raw is None:
            return None
        raw = raw.strip(b" \t")
        found = _WRAPPED.fullmatch(raw) if wrapped else None
        if found is not None:
            return _decode_wrapped(header, found[1])
        if not _PLAIN.fullmatch(raw):
            raise McpError(
                HEADER_MISMATCH, f"the header {header.decode()} contains characters that are not allowed in a header"
            )
        return raw.decode()


def mirrored_in(view: CallerView, listed: Listed) -> Sequence[MirroredArgument]:
    """Return the arguments of a tool that headers repeat; determined once for each view."""
    known = view.cache.get(MirroredArguments, MirroredArguments)
    found = known.get(listed.name)
    if found is None:
        found = known[listed.name] = mirrored_of(listed.offer.shown.parameters)
    return found


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


def _at(arguments: object, path: Sequence[str]) -> Any:
    found = arguments
    for name in path:
        found = cast(Mapping[str, Any], found).get(name) if isinstance(found, Mapping) else None
    return found


def _header_text(value: object) -> str | None:
    """Return a value as a header repeats it; None if no header can."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _same_number(text: str, value: object) -> bool:
    found = _DECIMAL.fullmatch(text)
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return found is not None and whole and not isinstance(value, bool) and int(found[1]) == value


def _decode_wrapped(header: bytes, data: bytes) -> str:
    try:
        text = base64.b64decode(data, validate=True)
        if base64.b64encode(text) == data:  # reject a second encoding of the same text
            return text.decode()
    except (binascii.Error, UnicodeDecodeError):
        pass
    raise McpError(HEADER_MISMATCH, f"the header {header.decode()} is not UTF-8 text in Base64")


def _refuse_twice(names: Iterable[bytes]) -> None:
    seen = set[bytes]()
    for name in names:
        if name in seen and (name in (VERSION, METHOD, NAME) or name.startswith(PARAMETER)):
            raise McpError(HEADER_MISMATCH, f"the header {name.decode('latin-1')} is given more than once")
        seen.add(name)


def _mismatch(header: bytes, other: str) -> McpError:
    return McpError(HEADER_MISMATCH, f"the header {header.decode()} is missing, or does not say what {other} says")
