"""Parses documents that describe an API: OpenAPI 3.x and Swagger 2.0, in JSON or YAML."""

import codecs
import re
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.text import parse
from holdfast.skills.sources.openapi.yaml_reader import read_yaml

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
MAX_DOCUMENT_VALUES = 3_000_000  # a document of 14 MB has 900,000

Version = Literal["2.0", "3.0", "3.1"]  # 3.1 includes later versions

_JSON_STARTS = (b"{", b"[")
# Escapes of NUL and lone surrogates, which PostgreSQL cannot store.
_ESCAPED = re.compile(rb"\\(0|x00|u0000|U00000000|[uU](0000)?[dD][89a-fA-F][0-9a-fA-F]{2})")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class OpenApiDocument:
    """A description of an API. `location` is its address, to which its relative addresses refer."""

    root: dict[str, Any] = field(repr=False)
    version: Version
    title: str
    label: str
    location: str = ""


def read_document(data: bytes, *, location: str = "") -> OpenApiDocument:
    """Parse a document. An InvalidInput names the line or path of an error."""
    return document_of(parse_document(data), location=location)


def parse_document(data: bytes) -> dict[str, Any]:
    """Parse a document of any kind in JSON or YAML. An InvalidInput names the line of an error."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise InvalidInput(
            "the document is too large",
            why=f"it has {len(data)} bytes; the limit is {MAX_DOCUMENT_BYTES}",
            next="Make a smaller document with only the operations that you need.",
        )
    root = _value(data)
    if not isinstance(root, dict):
        raise document_error("", "it is not an object", "Pass an OpenAPI, Swagger, OpenRPC or GraphQL document.")
    if _ESCAPED.search(data):
        root = _storable(root)
    return cast(dict[str, Any], root)


def document_of(root: dict[str, Any], *, location: str = "") -> OpenApiDocument:
    """Return the OpenAPI or Swagger document of an object. An InvalidInput names the path of an error."""
    version = _version(root)
    if not isinstance(root.get("paths", {}), dict | None):
        raise document_error("paths", "it is not an object", "Write one entry per path.")
    info = root.get("info")
    info_fields = cast(dict[str, Any], info) if isinstance(info, dict) else {}
    return OpenApiDocument(root, version, _text(info_fields.get("title")), _text(info_fields.get("version")), location)


def document_error(path: str, why: str, next: str) -> InvalidInput:
    """Return the error for a document of the wrong structure."""
    where = f"at `{path}` " if path else ""
    return InvalidInput("the document is not a valid API description", why=f"{where}{why}", next=next, path=path)


def as_utf8(data: bytes) -> bytes:
    """Return the text of a document as UTF-8, without a byte order mark."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace").encode()
    return data


def _value(data: bytes) -> Any:
    data = as_utf8(data)
    if data.lstrip().startswith(_JSON_STARTS):
        return _json(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        place = _place(data, error.start)
        raise InvalidInput(
            "the document is neither JSON nor YAML",
            why=f"it is not UTF-8 (line {place['line']}, column {place['column']})",
            next="Pass the text of an OpenAPI, Swagger, OpenRPC or GraphQL document.",
            **place,
        ) from None
    return read_yaml(text)


def _json(data: bytes) -> Any:
    try:
        return parse(data, limit=MAX_DOCUMENT_BYTES, most_values=MAX_DOCUMENT_VALUES)
    except HoldfastError as error:
        offset = error.details.get("offset")
        if not isinstance(offset, int):
            raise
        place = _place(data, offset)
        why = re.sub(r"\s*\(byte \d+\)$", "", error.why)
        raise InvalidInput(
            error.what,
            why=f"{why} (line {place['line']}, column {place['column']})",
            next="Correct the document.",
            **place,
        ) from None


def _place(data: bytes, offset: int) -> dict[str, int]:
    before = data[:offset]
    start = before.rfind(b"\n") + 1
    return {"line": before.count(b"\n") + 1, "column": len(before[start:].decode(errors="replace")) + 1}


def _version(root: dict[str, Any]) -> Version:
    swagger, openapi = _text(root.get("swagger")), _text(root.get("openapi"))
    if swagger in ("2.0", "2"):
        return "2.0"
    if re.fullmatch(r"3(\.\d+)*(-.*)?", openapi):
        return "3.0" if re.match(r"3(\.0\b|$)", openapi) else "3.1"
    if not swagger and not openapi:
        raise document_error("", "it has neither `openapi` nor `swagger`", "Pass an OpenAPI 3 or Swagger 2.0 document.")
    path, value = ("openapi", openapi) if openapi else ("swagger", swagger)
    raise document_error(path, f"its version is {value[:40]!r}", "Pass an OpenAPI 3 or Swagger 2.0 document.")


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_storable(item) for item in cast(list[Any], value)]
    return value
