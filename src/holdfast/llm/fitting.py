"""Which tool fits what a user said, and with which arguments: by words alone, without any language model.

A tool fits when every argument that it needs is in the message, and when the message speaks of it: a word of its name,
or half of the words that are left when the arguments are taken out. Arguments are found as `name=value`, as values of
an enumeration, in quotation marks, as numbers, as identifiers (AB-123, ann@example.com), as names with a capital; a
tool that takes a text, such as `remember`, gets what follows its name at the beginning, and one that takes a query the
whole message. A tool that would get no argument is called only if something is asked.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from holdfast.llm.model import ToolSpec
from holdfast.llm.wording import words

READ = 4_000  # characters of a message that are worth a look
MOST_CALLS = 5
IN_NAME = 3  # what a shared word weighs in a tool's name, and else 1
ENOUGH = 3
SHARE = 0.5

TEXTS = frozenset({"content", "fact", "input", "message", "note", "prompt", "sentence", "statement", "text", "words"})
QUERIES = frozenset({"q", "query", "question", "search", "term"})

_QUOTED = re.compile(
    r"\"([^\"\n]{1,500})\"|“([^”\n]{1,500})”|「([^」\n]{1,500})」|『([^』\n]{1,500})』|`([^`\n]{1,500})`"
    r"|(?<!\w)'([^'\n]{1,500})'(?!\w)"
)
_IDENTIFIER = re.compile(
    r"(?<![\w@./+-])(?:https?://[^\s\"'<>]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|#\d+"
    r"|(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*|[A-Za-z]+(?:_[A-Za-z0-9]+)+)(?![\w@])",
    re.ASCII,
)
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-]|\.\d)", re.ASCII)
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][\w'-]*(?: [A-Z][\w'-]*)*")
_ASKING = re.compile(
    r"[?？]|\A\s*(?:what|when|where|which|who|whose|why|how|is|are|do|does|did|can|could|will|would"  # noqa: RUF001
    r"|please|show|list|get|give|tell|find|check)\b",
    re.IGNORECASE,
)
_COURTESY = r"\s*(?:please\s+|kindly\s+|can\s+you\s+|could\s+you\s+|would\s+you\s+|请\s*)*"
_RUNS = re.compile(r"([A-Za-z])[A-Za-z]*|(\d)\d*", re.ASCII)
_YES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Fit:
    """A tool that fits, and the arguments of each call."""

    tool: ToolSpec
    arguments: tuple[dict[str, Any], ...]


def fitting(message: str, tools: Sequence[ToolSpec]) -> Fit | None:
    """The tool that fits a message of at most `READ` characters best; of two that fit alike, the first."""
    best: tuple[float, Fit] | None = None
    for tool in tools:
        calls = _calls(message, tool)
        if not calls:
            continue
        score = _score(message, tool, calls)
        if score and (best is None or score > best[0]):
            best = (score, Fit(tool, calls))
    return best[1] if best else None


def _score(message: str, tool: ToolSpec, calls: Sequence[Mapping[str, Any]]) -> float:
    """How well a tool fits; 0 where it does not."""
    given = words(" ".join([*Values(message).identifiers, *(str(v) for call in calls for v in call.values())]))
    asked = words(message)
    left = (asked - given) or asked
    properties = _properties(tool.parameters)
    name = words(tool.name)
    known = words(" ".join([tool.description, *properties])) - name
    score = IN_NAME * len(asked & name) + len(left & known)
    covered = len(left & (name | known)) / (len(left) or 1)
    if not any(calls):
        fits = covered >= SHARE and _ASKING.search(message) is not None
    else:
        fits = score >= ENOUGH or covered >= SHARE
    return score + covered if fits else 0


def _calls(message: str, tool: ToolSpec) -> tuple[dict[str, Any], ...]:
    """The arguments of each call that the message asks for: none where one that is needed is missing."""
    properties = _properties(tool.parameters)
    required = [name for name in _list(tool.parameters.get("required")) if name in properties]
    values = Values(message)
    arguments: dict[str, Any] = {}
    for name in sorted(properties, key=lambda name: name not in required):
        schema = _schema(properties[name], tool.parameters)
        value = values.named(name, schema)
        if value is None:
            value = values.of_enumeration(schema)
        if value is None and name in required:
            value = values.text_for(name, tool.name) if _is_text(name, schema) else values.next(schema)
        if value is not None:
            arguments[name] = value
        elif name in required:
            return ()
    if len(required) == 1 and arguments.get(required[0]) in values.identifiers:
        first = arguments[required[0]]
        alike = dict.fromkeys([first, *(other for other in values.identifiers if _shape(other) == _shape(first))])
        return tuple(arguments | {required[0]: value} for value in list(alike)[:MOST_CALLS])
    return (arguments,)


class Values:
    """The values in a message; each is given away once."""

    def __init__(self, message: str) -> None:
        self._message = message
        quoted = [next(filter(None, match.groups())) for match in _QUOTED.finditer(message)]
        outside = _QUOTED.sub(" ", message)
        self.identifiers = [match[0].rstrip(".,;") for match in _IDENTIFIER.finditer(outside)]
        names = [match[0] for match in _NAME.finditer(outside)]
        self._strings = [*quoted, *self.identifiers, *names]
        self._numbers = [match[0] for match in _NUMBER.finditer(outside)]

    def named(self, name: str, schema: Mapping[str, Any]) -> Any:
        """The value of `name=value` or `name: value`."""
        found = re.search(
            rf"(?<!\w){re.escape(name)}\s*[=:：]\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s,;，；。]+))",  # noqa: RUF001
            self._message,
            re.IGNORECASE,
        )
        return None if found is None else _typed(next(filter(None, found.groups()), ""), schema)

    def of_enumeration(self, schema: Mapping[str, Any]) -> Any:
        """The value of an enumeration that the message has as a word."""
        for value in _list(schema.get("enum")):
            if isinstance(value, str) and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", self._message, re.IGNORECASE):
                return value
        return None

    def next(self, schema: Mapping[str, Any]) -> Any:
        """The next value of a kind that nobody has got yet."""
        if schema.get("enum"):
            return None
        if schema.get("type") in ("number", "integer"):
            for number in self._numbers:
                value = _typed(number, schema)
                if value is not None:
                    self._numbers.remove(number)
                    return value
        if schema.get("type", "string") == "string":
            pool = self._strings or self._numbers
            return pool.pop(0) if pool else None
        return None

    def text_for(self, name: str, tool: str) -> str | None:
        """What the message says after the tool's own name; for a query, else the whole of it."""
        verb = re.escape(re.split(r"[_\W]+", tool.strip("_"))[0])
        after = re.compile(rf"{_COURTESY}{verb}\w*[\s:,：，]+(?:that\s+|this\s*:?\s+)?(.+)", re.IGNORECASE | re.DOTALL)  # noqa: RUF001
        found = after.match(self._message) if verb else None
        if found:
            return found[1].strip().strip("\"'“”")
        return self._message.strip() if name.lower() in QUERIES and _ASKING.search(self._message) else None


def _typed(text: str, schema: Mapping[str, Any]) -> Any:
    """A value of the schema's type, or None."""
    try:
        match schema.get("type", "string"):
            case "string":
                options = _list(schema.get("enum"))
                return text if text and (not options or text in options) else None
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "boolean":
                return _YES.get(text.lower())
            case _:
                return None
    except ValueError:
        return None


def _is_text(name: str, schema: Mapping[str, Any]) -> bool:
    return name.lower() in TEXTS | QUERIES and schema.get("type", "string") == "string" and not schema.get("enum")


def _shape(identifier: str) -> str:
    return _RUNS.sub(lambda run: "a" if run[1] else "0", identifier)


def _schema(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a value, without what refers elsewhere or allows null beside it."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        return _object(_object(whole.get("$defs")).get(name))
    for option in _objects(schema.get("anyOf")):
        if option.get("type") != "null":
            return _schema(option, {"$defs": whole.get("$defs")}) if "$ref" in option else option
    kinds = [kind for kind in _list(schema.get("type")) if kind != "null"]
    return {**schema, "type": kinds[0]} if kinds else schema


def _properties(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: _object(value) for name, value in _object(schema.get("properties")).items()}


def _object(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (cast(dict[str, Any], item) for item in _list(value) if isinstance(item, dict))


def _list(value: object) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []
