"""Bodies: encodes the arguments of a call as the body of a request."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from holdfast.core.errors import InvalidInput
from holdfast.core.text import render
from holdfast.execution.rest.styles import is_json, pairs, scalar
from holdfast.skills.request import BodyField, RequestBody

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/"
BINARY = "application/octet-stream"

_TEXT = re.compile(
    r"text/|[^;]*[/+](xml|yaml|x-yaml|javascript|graphql|x-ndjson|ndjson|jsonl|sql|toml|csv)\s*(;|$)", re.IGNORECASE
)
_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class BodyPart:
    """One part of a multipart body."""

    name: str
    content: bytes
    content_type: str | None = None
    is_file: bool = False


def encode_body(body: RequestBody, arguments: Mapping[str, Any], *, method: str) -> tuple[bytes, str] | None:
    """Return the body of a call and its content type; None if there is nothing to send."""
    kind = body.content_type.strip()
    if body.argument is not None:
        value = arguments.get(body.argument)
        if value is None:
            return None
        fields = {name: (BodyField(name, name), item) for name, item in _members(value)}
    else:
        fields = {
            field.name: (field, arguments[field.argument]) for field in body.fields if field.argument in arguments
        }
        value = {name: item for name, (_, item) in fields.items()}
        if not fields and method in _WITHOUT_BODY:
            return None
    if is_json(kind):
        return render(value), kind
    if kind.lower().startswith(FORM):
        return "&".join(pair for field, item in fields.values() for pair in _pairs(field, item)).encode(), kind
    if kind.lower().startswith(MULTIPART):
        return _multipart([part for field, item in fields.values() for part in _parts(field, item)], kind)
    if is_text(kind):
        return scalar(value).encode(errors="replace"), kind
    return _decode_base64(value, body.argument or "body"), BINARY if "*" in kind else kind


def is_text(content_type: str) -> bool:
    """Whether a content type is text."""
    return _TEXT.match(content_type.strip()) is not None


def _pairs(field: BodyField, value: Any) -> list[str]:
    if value is None:
        return []
    if field.style is not None:
        explode = field.explode if field.explode is not None else field.style == "form"
        return pairs(field.name, value, style=field.style, explode=explode)
    if isinstance(value, dict) or (field.content_type is not None and is_json(field.content_type)):
        return pairs(field.name, render(cast(Any, value)).decode())
    return pairs(field.name, value)


def _parts(field: BodyField, value: Any) -> Iterator[BodyPart]:
    kind = _first(field.content_type)
    if value is None:
        return
    if kind is not None and is_json(kind):
        yield BodyPart(field.name, render(value), kind)
    elif isinstance(value, list | tuple):
        for item in cast(list[Any], value):
            yield from _parts(field, item)
    elif isinstance(value, dict):
        yield BodyPart(field.name, render(cast(Any, value)), "application/json")
    elif kind is None or is_text(kind):
        yield BodyPart(field.name, scalar(value).encode(errors="replace"), kind)
    else:
        yield BodyPart(field.name, _decode_base64(value, field.argument), kind, is_file=True)


def _multipart(parts: list[BodyPart], kind: str) -> tuple[bytes, str]:
    """Join the parts of a multipart body. The boundary is their hash, so that equal calls send equal bytes."""
    digest = sha256()
    for part in parts:
        digest.update(part.content)
    boundary = digest.hexdigest()[:40].encode()
    body = bytearray()
    for part in parts:
        name = _quoted(part.name)
        file = f'; filename="{name}"' if part.is_file else ""
        head = f'--{boundary.decode()}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n'
        if part.content_type is not None:
            head += f"Content-Type: {part.content_type}\r\n"
        body += head.encode() + b"\r\n" + part.content + b"\r\n"
    body += b"--" + boundary + b"--\r\n"
    return bytes(body), f"{kind.partition(';')[0]}; boundary={boundary.decode()}"


def _quoted(name: str) -> str:
    """Escape a name in a part's header as browsers do."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A").replace("\0", "")


def _first(content_type: str | None) -> str | None:
    """Return the first of the content types that an API document offers."""
    if content_type is None:
        return None
    kind = content_type.partition(",")[0].strip()
    return BINARY if "*" in kind else kind


def _decode_base64(value: Any, argument: str) -> bytes:
    try:
        if not isinstance(value, str):
            raise TypeError
        text = re.sub(r"\s+", "", value).translate(str.maketrans("-_", "+/"))
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (TypeError, ValueError, binascii.Error):
        why = "binary data has to be base64 text"
        raise InvalidInput(
            f"the argument `{argument[:60]}` is not base64", why=why, next="Encode it as base64."
        ) from None


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    return iter(cast(dict[str, Any], value).items()) if isinstance(value, dict) else iter(())
