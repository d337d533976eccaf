"""Styles: encodes values for URLs, headers and cookies, in the serialization styles of OpenAPI."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from holdfast.core.text import render
from holdfast.skills.request import RequestParameter, Style

# Reserved characters that `allowReserved` leaves in a value. Those that would end the value are still encoded.
RESERVED_IN_QUERY = ":/?@!$'()*,;="
RESERVED_IN_PATH = "/:@!$'()*,;="
_DELIMITERS: Mapping[str, str] = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}
_JSON = re.compile(r"\s*(application|text)/([\w.-]+\+)?json\s*(;|$)", re.IGNORECASE)


def is_json(content_type: str) -> bool:
    """Whether a content type is JSON, or based on it (`+json`)."""
    return _JSON.match(content_type) is not None


def scalar(value: Any) -> str:
    """Return a value as text: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else render(value).decode()


def in_path(parameter: RequestParameter, value: Any) -> str:
    """Encode a value for its `{name}` in a path."""
    safe = RESERVED_IN_PATH if parameter.allow_reserved else ""
    if parameter.content_type is not None:
        return _encoded(render(value).decode() if is_json(parameter.content_type) else scalar(value), safe)
    name = _encoded(parameter.name)
    match parameter.style:
        case "label":
            return "." + _joined(value, "." if parameter.explode else ",", explode=parameter.explode, safe=safe)
        case "matrix" if isinstance(value, dict) and parameter.explode:
            return ";" + _joined(value, ";", explode=True, safe=safe)
        case "matrix" if isinstance(value, list | tuple) and parameter.explode:
            return "".join(f";{name}={_encoded(scalar(item), safe)}" for item in _present(value))
        case "matrix":
            text = _joined(value, ",", explode=False, safe=safe)
            return f";{name}={text}" if text else f";{name}"
        case _:
            return _joined(value, ",", explode=parameter.explode, safe=safe)


def in_query(parameter: RequestParameter, value: Any) -> list[str]:
    """Return the encoded `name=value` pairs of a value. An empty list or object has none."""
    safe = RESERVED_IN_QUERY if parameter.allow_reserved else ""
    if parameter.content_type is not None:
        text = render(value).decode() if is_json(parameter.content_type) else scalar(value)
        return [f"{_encoded(parameter.name)}={_encoded(text, safe)}"]
    return pairs(parameter.name, value, style=parameter.style, explode=parameter.explode, safe=safe)


def in_header(parameter: RequestParameter, value: Any) -> str:
    """Return a value as the text of a header, which is not percent-encoded."""
    if parameter.content_type is not None:
        return render(value).decode() if is_json(parameter.content_type) else scalar(value)
    if isinstance(value, dict):
        equals = "=" if parameter.explode else ","
        items = _members(cast(dict[str, Any], value))
        return ",".join(f"{name}{equals}{scalar(item)}" for name, item in items)
    if isinstance(value, list | tuple):
        return ",".join(map(scalar, _present(value)))
    return scalar(value)


def pairs(name: str, value: Any, *, style: Style = "form", explode: bool = True, safe: str = "") -> list[str]:
    """Return the encoded pairs of a value in a query, a cookie or a form."""
    if style == "deepObject" and isinstance(value, dict | list | tuple):
        return [f"{_encoded(path)}={_encoded(scalar(leaf), safe)}" for path, leaf in _leaves(name, value)]
    if not isinstance(value, dict | list | tuple):
        return [f"{_encoded(name)}={_encoded(scalar(value), safe)}"]
    if explode and isinstance(value, dict):
        items = _members(cast(dict[str, Any], value))
        return [f"{_encoded(key)}={_encoded(scalar(item), safe)}" for key, item in items]
    if explode:
        return [f"{_encoded(name)}={_encoded(scalar(item), safe)}" for item in _present(value)]
    text = _joined(value, _DELIMITERS.get(style, ","), explode=False, safe=safe)
    return [f"{_encoded(name)}={text}"] if value else []


def _joined(value: Any, between: str, *, explode: bool, safe: str) -> str:
    if isinstance(value, dict):
        equals = "=" if explode else between
        items = _members(cast(dict[str, Any], value))
        return between.join(f"{_encoded(name)}{equals}{_encoded(scalar(item), safe)}" for name, item in items)
    if isinstance(value, list | tuple):
        return between.join(_encoded(scalar(item), safe) for item in _present(value))
    return _encoded(scalar(value), safe)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a value with paths like `a[b][c]`. Scalars of a list have `[]`, other items a number."""
    if isinstance(value, dict):
        for name, item in _members(cast(dict[str, Any], value)):
            yield from _leaves(f"{path}[{name}]", item)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(_present(value)):
            numbered = isinstance(item, dict | list | tuple)
            yield from _leaves(f"{path}[{number}]" if numbered else f"{path}[]", item)
    else:
        yield path, value


def _members(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, item) for name, item in value.items() if item is not None)


def _present(value: Any) -> Iterator[Any]:
    return (item for item in cast(Sequence[Any], value) if item is not None)


def _encoded(text: str, safe: str = "") -> str:
    return text if text.isascii() and text.isalnum() else quote(text, safe=safe, errors="replace")
