"""Rejects requests whose headers differ from the parts of the body that they repeat, or are missing. Pure."""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.gateway.views import CallerView, Listed
from holdfast.mcp.headers import (
    METHOD,
    NAME,
    NAMED,
    PARAMETER,
    VERSION,
    MirroredArgument,
    header_text,
    mirrored_of,
    value_at,
)
from holdfast.mcp.protocol import HEADER_MISMATCH, McpError

RawHeaders = Sequence[tuple[bytes, bytes]]  # names in lower case, as in ASGI

_WRAPPED = re.compile(rb"=\?base64\?(.*)\?=", re.DOTALL)
_PLAIN = re.compile(rb"[\t\x20-\x7e]*")
_DECIMAL = re.compile(r"(-?[0-9]{1,40})(?:\.0+)?")


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
            value = value_at(arguments, each.path)
            text = self._value(each.header, wrapped=True)
            expected = header_text(value)
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
