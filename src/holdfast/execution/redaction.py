"""Redaction: replaces secrets in everything that a back end returns, in any encoding.

A secret is searched for in the raw text, and in the text decoded once and twice; percent, JSON and HTML escapes may be
mixed. Base64 is found by the encoding of the secret at each of three offsets; long base64 is decoded as well. The time
grows with the length of the text, and does not depend on its content.
"""

import base64
import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, cast

from holdfast.core.text import render

REDACTED = "[secret]"
LEAST = 4  # characters of a password that is searched for without its user; a whole secret has no minimum
LEAST_DECODED = 6  # characters of a secret's own decoded form
LEAST_BASE64 = 8  # characters of a secret within longer base64: fewer would match by chance
DEPTH = 2  # nested encodings around a secret
WINDOW = 262_144  # characters that are decoded at a time
STRETCH = 40  # maximum number of characters that encodings make of one

# Each alternative is one encoded character (percent, backslash, HTML), or a line break within base64, which is dropped.
# All begin with a literal character, and look behind after it: `re` then skips other text quickly.
_ESCAPE = re.compile(
    r"(%[cCdD][0-9a-fA-F]%[89abAB][0-9a-fA-F]"
    r"|%[eE][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){2}"
    r"|%[fF][0-7](?:%[89abAB][0-9a-fA-F]){3}"
    r"|%[0-9a-fA-F]{2}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]{1,6}\}|\\U[0-9a-fA-F]{8}|\\x[0-9a-fA-F]{2}|\\[^ux\n]"
    r"|&(?:#[xX][0-9a-fA-F]{1,8}|#[0-9]{1,10}|[A-Za-z][A-Za-z0-9]{1,31});?"
    r"|\n(?<=[A-Za-z0-9+/_-]{60}\n)(?=[A-Za-z0-9+/_-])"
    r"|\r\n(?<=[A-Za-z0-9+/_-]{60}\r\n)(?=[A-Za-z0-9+/_-]))"
)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0"}
LEAST_RUN = 16  # characters of base64 that are decoded
_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{{LEAST_RUN},}}")
_BASE64_AS_ZEROS = bytes(48 if _BASE64.match(chr(byte) * LEAST_RUN) else 32 for byte in range(256))
_URL_SAFE = str.maketrans("+/", "-_")
_STANDARD = str.maketrans("-_", "+/")


class Span(NamedTuple):
    """The start and the end of a secret in a text."""

    start: int
    end: int


class DecodedView:
    """A decoded text. `span` maps positions back to the original text."""

    def __init__(self, text: str) -> None:
        self._parts = _ESCAPE.split(text)
        decoded = {escape: _decode(escape) for escape in set(self._parts[1::2])}
        self._plain = [*self._parts]
        self._plain[1::2] = map(decoded.__getitem__, self._parts[1::2])
        self.text = "".join(self._plain)

    def span(self, found: Span) -> Span:
        """Return where a span is in the original text. It contains each escape as a whole."""
        return Span(self._place(found.start), self._place(found.end - 1, end=True))

    @cached_property
    def _edges(self) -> tuple[list[int], list[int]]:
        return ([0, *accumulate(map(len, self._plain))], [0, *accumulate(map(len, self._parts))])

    def _place(self, position: int, *, end: bool = False) -> int:
        plain, given = self._edges
        part = bisect_right(plain, position) - 1
        if part % 2:
            return given[part + 1] if end else given[part]
        return given[part] + position - plain[part] + end


class Redaction:
    """Replaces the given secrets by `[secret]`."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = {form for secret in secrets if secret for form in _forms(secret)}
        self._measure()

    def and_also(self, other: "Redaction | None") -> "Redaction":
        """Return the redaction of the secrets of both."""
        if other is None or not other._forms:
            return self
        if not self._forms:
            return other
        both = Redaction(())
        both._forms = self._forms | other._forms
        both._measure()
        return both

    def redact(self, value: Any) -> Any:
        """Return text, or JSON with its keys and numbers, without the secrets; the same object if it has none."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self._text(value)
        data = render(value).decode()  # JSON is one more encoding
        return self._walk(value) if self._is_in(data, DEPTH + 1) else value

    def is_in(self, data: bytes) -> bool:
        """Whether bytes contain a secret."""
        return bool(self._forms) and self._is_in(data.decode(errors="replace"), DEPTH)

    def _measure(self) -> None:
        lengths = [len(form) for form in self._forms]
        self._longest, self._shortest = max(lengths, default=0), min(lengths, default=0)
        self._least_run = max(LEAST_RUN, -(-4 * self._shortest // 3))  # of base64 that can contain a secret

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, sorted(self._forms, key=lambda form: (-len(form), form)))))

    def _text(self, text: str) -> str:
        left, pieces = 0, list[str]()
        for span in _merge(self._spans(text, DEPTH)):
            pieces += [text[left : span.start], REDACTED]
            left = span.end
        return "".join([*pieces, text[left:]]) if pieces else text

    def _is_in(self, text: str, depth: int) -> bool:
        return next(self._spans(text, depth), None) is not None

    def _spans(self, text: str, depth: int) -> Iterator[Span]:
        """Find the secrets, in windows that overlap by the maximum length of an encoded secret."""
        overlap = STRETCH * self._longest
        step = max(WINDOW, 3 * overlap)
        for start in range(0, max(len(text), 1), step):
            for span in self._within(text[start : start + step + overlap], depth):
                yield Span(start + span.start, start + span.end)

    def _within(self, text: str, depth: int) -> Iterator[Span]:
        if len(text) < self._shortest:  # no encoding is shorter than what it encodes
            return
        yield from self._find(text)
        yield from self._in_base64(text, depth)
        if not depth or not _has_escapes(text):
            return
        view = DecodedView(text)
        if view.text != text:
            yield from map(view.span, self._within(view.text, depth - 1))

    def _find(self, text: str) -> Iterator[Span]:
        if any(form in text for form in self._forms):
            yield from (Span(*match.span()) for match in self._pattern.finditer(text))

    def _in_base64(self, text: str, depth: int) -> Iterator[Span]:
        """Find runs of base64 that contain an encoded secret. A span is the whole run."""
        if not depth or not self._has_long_run(text):
            return
        for run in _BASE64.finditer(text):
            if len(run[0]) < self._least_run:
                continue
            data = run[0].translate(_STANDARD)
            for offset in range(4):
                plain = _text_of(data[offset:])
                if _has_escapes(plain) and any(self._within(plain, depth - 1)):
                    yield Span(*run.span())
                    break

    def _has_long_run(self, text: str) -> bool:
        """Whether there is a run that can contain a secret. Far faster than to find the runs: few texts have one."""
        return b"0" * self._least_run in text.encode(errors="replace").translate(_BASE64_AS_ZEROS)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(name): self._walk(item) for name, item in cast(dict[str, Any], value).items()}
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in cast(list[Any], value)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            digits = render(value).decode()
            return value if self._text(digits) == digits else REDACTED
        return value


NO_SECRETS = Redaction(())


def redact(value: Any, secrets: Iterable[str]) -> Any:
    """Return text or JSON with every secret replaced by `[secret]`."""
    return Redaction(secrets).redact(value)


def _forms(secret: str) -> Iterator[str]:
    """Yield the forms to search for: the secret and its password, each raw, decoded, and in base64."""
    user, _, password = secret.partition(":")
    parts = (secret, password) if user and len(password) >= LEAST else (secret,)  # as in basic authentication
    for part in {*parts, *map(str.strip, parts)} - {""}:  # a header has no spaces at its ends
        yield part
        if " " in part.strip():
            yield part.strip().replace(" ", "+")  # as in forms
        seen = part
        for _ in range(DEPTH + 1 if _has_escapes(part) else 0):  # they are decoded with those of the text
            seen = DecodedView(seen).text
            if len(seen) >= LEAST_DECODED:
                yield seen
        yield from _base64_forms(part.encode(errors="replace"))


def _base64_forms(data: bytes) -> Iterator[str]:
    """Yield the base64 of data by itself, and within longer data: at three offsets, without what neighbours change."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data).decode()
        forms = [encoded, encoded.rstrip("=")] if not offset else []
        within = encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
        if len(within) >= LEAST_BASE64:
            forms.append(within)
        for form in forms:
            yield form
            if "+" in form or "/" in form:
                yield form.translate(_URL_SAFE)


def _text_of(encoded: str) -> str:
    """Decode base64 to text; return an empty string if it is not text."""
    whole = encoded[:-1] if len(encoded) % 4 == 1 else encoded
    try:
        return base64.b64decode(whole + "=" * (-len(whole) % 4)).decode()
    except UnicodeDecodeError:
        return ""


def _has_escapes(text: str) -> bool:
    return "%" in text or "\\" in text or "&" in text or "\n" in text


@lru_cache(maxsize=4096)
def _decode(escape: str) -> str:
    """Return the character that an escape stands for."""
    return _DECODERS.get(escape[0], lambda _: "")(escape)


def _percent(escape: str) -> str:
    data = bytes.fromhex(escape.replace("%", ""))
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _backslash(escape: str) -> str:
    kind, digits = escape[1], escape[2:].strip("{}")
    if kind not in "uUx" or not digits:
        return _CONTROL.get(kind, kind)
    if len(digits) > 8:  # a surrogate pair
        high, low = (int(half, 16) for half in (digits[:4], digits[-4:]))
        return chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))
    number = int(digits, 16)
    return chr(number) if number < 0x110000 else escape


_DECODERS: dict[str, Callable[[str], str]] = {"%": _percent, "\\": _backslash, "&": html.unescape}


def _merge(spans: Iterable[Span]) -> list[Span]:
    """Sort spans, and merge those that overlap."""
    result: list[Span] = []
    for span in sorted(spans):
        if result and span.start < result[-1].end:
            result[-1] = Span(result[-1].start, max(span.end, result[-1].end))
        else:
            result.append(span)
    return result
