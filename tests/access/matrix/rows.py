"""A row: an operation, the kind of object that it names, how it is called, and its rule."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from holdfast.server.app import OPERATIONS
from tests.access.matrix.objects import Fields, Kind
from tests.access.matrix.rules import Rule

Way = Literal["http", "tool", "rpc", "resource", "mcp", "session", "stream", "socket"]

BY_NAME = {operation.name: operation for operation in OPERATIONS}
NAME = re.compile(r"\{([\w.]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How one operation is called and by which rule it answers.

    In `path`, `query`, `body` and `headers` a name in braces is a field of the object, as `objects` makes it.
    `{own.NAME}` is a field of the caller's own object; `{unique}` is a new name.
    """

    name: str  # of the operation, tool, resource, method or frame
    rule: Rule
    kind: Kind | None = None  # of the object; None: it names none
    way: Way = "http"
    path: str = ""  # where it is not that of the operation
    query: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    case: str = ""  # what this row is about, where an operation has several
    lists: bool = False  # one call shows all objects, or not
    shows: bool = False  # the answer tells which object it is about
    uses_up: bool = False  # a call that is allowed needs an object of its own
    crosses: str = ""  # why callers of one tenant change rows of the other

    def __str__(self) -> str:
        return f"{self.way} {self.name}{f', {self.case}' if self.case else ''}"


def fill(template: Any, fields: Fields) -> Any:
    """A template with fields in the places of their names."""
    if isinstance(template, str):
        return NAME.sub(lambda match: fields.get(match[1], match[0]), template)
    if isinstance(template, Mapping):
        items = cast(Mapping[str, Any], template).items()
        return {fill(name, fields): fill(value, fields) for name, value in items}
    if isinstance(template, list):
        return [fill(value, fields) for value in cast(list[Any], template)]
    return template
