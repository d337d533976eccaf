"""Operations of the HTTP API, and the requests for them.

`operations.json` has every operation that the server declares. `make docs` writes it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode

from holdfast.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Input:
    """A value that an operation takes."""

    place: Literal["path", "query", "body"]
    type: Literal["text", "integer", "number", "flag", "id", "time", "choice", "json"]
    required: bool = False
    default: Any = None
    min: float | None = None
    max: float | None = None
    choices: Sequence[str] = ()
    help: str = ""
    encoded_twice: bool = False  # the server decodes a path before it splits it, and then the value


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the server. `body` is None if the operation takes none."""

    method: str
    path: str
    body: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the HTTP API."""

    name: str
    method: str
    path: str
    needs: str
    summary: str
    body_format: str | None
    inputs: Mapping[str, Input]

    def request(self, arguments: Mapping[str, Any]) -> Request:
        """Return the request with these arguments. None means that an argument is omitted."""
        given = {name: value for name, value in arguments.items() if value is not None}
        parts: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "body": {}}
        for name, value in given.items():
            parts[self.inputs[name].place][name] = value
        try:
            path = self.path.format(**{name: self._segment(name, value) for name, value in parts["path"].items()})
            query = urlencode({name: _word(value) for name, value in parts["query"].items()})
        except UnicodeEncodeError:
            raise InvalidInput("an argument is not UTF-8", next="Correct it.") from None
        body = parts["body"] if self.body_format == "application/json" else None
        return Request(self.method, f"{path}?{query}" if query else path, body)

    def _segment(self, name: str, value: object) -> str:
        text = str(value)
        if self.inputs[name].encoded_twice:
            text = text.replace("%", "%25").replace("/", "%2F")
        return quote(text, safe="")


def _word(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


@cache
def _table() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("operations.json").read_bytes())


@cache
def operation(name: str) -> Operation:
    """Return an operation by its name."""
    row: dict[str, Any] = dict(_table()[name])
    inputs = {each: Input(**about) for each, about in row.pop("inputs").items()}
    return Operation(name=name, inputs=inputs, **row)
