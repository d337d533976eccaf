"""Redaction: secrets are struck out of whatever a back end gives back, in any form they are likely to come in."""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, cast
from urllib.parse import quote, quote_plus

from holdfast.core.text import render

STRUCK = "[secret]"
LEAST = 4  # characters of a password that is looked for without its user; what is a secret by itself is, however short
LEAST_BASE64 = 8  # characters of a secret within other base64: fewer could be anything

_PLAIN = re.compile(r"[a-zA-Z0-9_.~-]*")  # what no escaping changes
_URL_SAFE = str.maketrans("+/", "-_")
_TRIPLET = re.compile(r"%[0-9A-F]{2}")


class Redaction:
    """Strikes these secrets out."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = {form for secret in secrets if secret for form in _forms(secret)}

    def struck(self, value: Any) -> Any:
        """Text, or JSON with its keys and numbers, without the secrets; the same object where there are none."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self._text(value)
        data = render(value).decode()
        return self._walk(value) if any(form in data for form in self._written) else value

    def is_in(self, data: bytes) -> bool:
        """Whether bytes have a secret in them."""
        return any(form.encode(errors="replace") in data for form in self._forms)

    @cached_property
    def _written(self) -> list[str]:
        """The forms as they are within JSON."""
        return sorted({render(form)[1:-1].decode() for form in self._forms})

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, sorted(self._forms, key=lambda form: (-len(form), form)))))

    def _text(self, text: str) -> str:
        return self._pattern.sub(STRUCK, text) if any(form in text for form in self._forms) else text

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(name): self._walk(item) for name, item in cast(dict[str, Any], value).items()}
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in cast(list[Any], value)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            digits = render(value).decode()
            return value if self._text(digits) == digits else STRUCK
        return value


def struck(value: Any, secrets: Iterable[str]) -> Any:
    """Text or JSON in which every secret has become `[secret]`."""
    return Redaction(secrets).struck(value)


def _forms(secret: str) -> Iterator[str]:
    user, _, password = secret.partition(":")
    parts = (secret, password) if user and len(password) >= LEAST else (secret,)  # as basic authentication has them
    for part in {*parts, *map(str.strip, parts)} - {""}:  # a header has no space at its ends
        yield part
        if not _PLAIN.fullmatch(part):
            yield from _escaped_forms(part)
        yield from _base64_forms(part.encode(errors="replace"))


def _escaped_forms(part: str) -> Iterator[str]:
    """As addresses, JSON and HTML have it."""
    for encode, safe in ((quote, ""), (quote, "/"), (quote_plus, "")):
        encoded = encode(part, safe=safe, errors="replace")
        yield encoded
        yield _TRIPLET.sub(lambda found: found[0].lower(), encoded)
    escaped = json.dumps(part)[1:-1]
    yield from (escaped, escaped.replace("/", "\\/"), json.dumps(part, ensure_ascii=False)[1:-1])
    yield html.escape(part)


def _base64_forms(data: bytes) -> Iterator[str]:
    """By itself, and within something longer: at each of the three offsets, without what its neighbours change."""
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
