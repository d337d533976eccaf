"""Finds the tool and the arguments that fit a user's message, by words alone, without a language model.

A tool fits if the message contains every required argument and refers to the tool: by a word of its name, by three
words of its description, or by half of the words that remain without the arguments. A tool that takes a text, such as
`remember`, gets the text after its name at the beginning of the message. A tool that takes a query gets the whole
message. Without arguments, a read-only tool is called only for a question or request, and any other tool only if the
message begins with its name.

An argument is clear if the message assigns it to a parameter: as `name=value`, after the parameter's name, as a word of
an enumeration, or as the text after the tool's name. It is also clear if a single required parameter is left for it,
and it is a quotation, an identifier (AB-123, ann@example.com) or the only number. Otherwise it is a guess, such as a
capitalized word. A tool that may change something is never called with a guess: the model asks the user first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from holdfast.llm.language_rules import words
from holdfast.llm.model import ToolSpec

READ = 4_000  # characters of a message that are read
MOST_CALLS = 5
IN_NAME = 3  # the weight of a shared word in a tool's name; elsewhere it is 1
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
_CAPITAL = r"(?!I(?:['\u2019]\w+)?\b)[A-Z][\w'-]*"  # "I" is not a name
_NAME = re.compile(rf"(?<=[a-z,;:] ){_CAPITAL}(?: {_CAPITAL})*")
_PLAIN_ENDS = ("id", "number", "name", "code", "no")  # of parameter names: users say "order" for `order_id`
_ASKING = re.compile(
    r"[?？]|\A\s*(?:what|when|where|which|who|whose|why|how|is|are|do|does|did|can|could|will|would"  # noqa: RUF001
    r"|please|show|list|get|give|tell|find|check)\b",
    re.IGNORECASE,
)
_COURTESY = (
    r"\s*(?:please\s+|kindly\s+|(?:can|could|would|will)\s+you\s+|(?:may|can|could)\s+I\s+|I\s+(?:want|need)\s+to\s+"
    r"|I(?:['\u2019]d|\s+would)\s+like\s+to\s+|let\s+me\s+|let['\u2019]s\s+|请\s*|帮我\s*|我[想要]\s*)*"
)
_RUNS = re.compile(r"([A-Za-z])[A-Za-z]*|(\d)\d*", re.ASCII)
_YES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """A tool that fits, and the arguments of each call. `guessed` are the names of arguments that are guesses."""

    tool: ToolSpec
    arguments: tuple[dict[str, Any], ...]
    guessed: tuple[str, ...] = ()

    @property
    def may_be_called(self) -> bool:
        """Whether the call is safe: it changes nothing, or no argument is a guess."""
        return self.tool.read_only or not self.guessed


@dataclass(frozen=True, slots=True)
class MissingArguments:
    """A tool that a message refers to, and the required arguments that the message does not give."""

    tool: ToolSpec
    missing: tuple[str, ...]


def match_tool(message: str, tools: Sequence[ToolSpec]) -> ToolMatch | None:
    """Return the tool that best fits a message of at most `READ` characters; of equal ones, the first."""
    best: tuple[float, ToolMatch] | None = None
    for tool in tools:
        fit = _fit(message, tool)
        if fit is None:
            continue
        score = _score(message, fit)
        if score and (best is None or score > best[0]):
            best = (score, fit)
    return best[1] if best else None


def find_missing_arguments(message: str, tools: Sequence[ToolSpec], *, ordered: bool) -> MissingArguments | None:
    """Return a tool that the message refers to without giving all required arguments.

    `ordered`: only a tool whose name begins the message, like a command. Otherwise a tool that the message asks about,
    by its name or only in words of its description.
    """
    message_words = words(message)
    for tool in tools:
        is_meant = begins_with(message, tool) if ordered else _ASKING.search(message) and _is_about(message_words, tool)
        missing = _missing_arguments(message, tool) if is_meant else ()
        if missing:
            return MissingArguments(tool, missing)
    return None


def begins_with(message: str, tool: ToolSpec) -> bool:
    """Whether a message begins with the first word of a tool's name, like a command."""
    verb = _verb(tool)
    return bool(verb) and re.match(rf"{_COURTESY}{verb}(?!\w)", message, re.IGNORECASE) is not None


def parameter(tool: ToolSpec, name: str) -> str:
    """Return the description of a parameter; empty if it has none."""
    schema = _properties(tool.parameters).get(name, {})
    about = schema.get("description")
    return about if isinstance(about, str) else ""


def _is_named(message_words: frozenset[str], tool: ToolSpec) -> bool:
    name = words(tool.name)
    return bool(name) and name <= message_words


def _is_about(message_words: frozenset[str], tool: ToolSpec) -> bool:
    known = words(" ".join([tool.name, tool.description, *_properties(tool.parameters)]))
    return _is_named(message_words, tool) or (bool(message_words) and message_words <= known)


def _score(message: str, fit: ToolMatch) -> float:
    """Return how well a tool fits; 0 if it does not."""
    tool, calls = fit.tool, fit.arguments
    given = words(" ".join([*Values(message).identifiers, *(str(v) for call in calls for v in call.values())]))
    message_words = words(message)
    left = (message_words - given) or message_words
    properties = _properties(tool.parameters)
    name = words(tool.name)
    known = words(" ".join([tool.description, *properties])) - name
    score = IN_NAME * len(message_words & name) + len(left & known)
    covered = len(left & (name | known)) / (len(left) or 1)
    if not any(calls):
        meant = covered >= SHARE and _ASKING.search(message) is not None
        fits = meant if tool.read_only else begins_with(message, tool) and _is_named(message_words, tool)
    else:
        fits = score >= ENOUGH or covered >= SHARE
    return score + covered if fits else 0


def _fit(message: str, tool: ToolSpec) -> ToolMatch | None:
    """Return the arguments of each call that the message asks for; None if a required one is missing."""
    properties = _properties(tool.parameters)
    required = _required(tool)
    values = Values(message)
    arguments: dict[str, Any] = {}
    open: list[str] = []  # required, and not assigned by the message
    for name in sorted(properties, key=lambda name: name not in required):
        schema = _schema(properties[name], tool.parameters)
        value = values.assigned_value(name, schema)
        if value is None and name in required:
            value = values.value_after_name(name, schema)
        if value is None:
            value = values.of_enumeration(schema)
        if value is not None:
            arguments[name] = value
        elif name in required:
            open.append(name)
    guessed: list[str] = []
    for name in open:
        schema = _schema(properties[name], tool.parameters)
        is_text = _is_text(name, schema)
        found = values.text_for(name, tool.name) if is_text else values.next(schema, alone=len(open) == 1)
        if found is None:
            return None
        value, is_clear = found
        arguments[name] = value
        if not is_clear:
            guessed.append(name)
    if len(required) == 1 and arguments.get(required[0]) in values.identifiers:
        first = arguments[required[0]]
        alike = dict.fromkeys([first, *(other for other in values.identifiers if _shape(other) == _shape(first))])
        return ToolMatch(tool, tuple(arguments | {required[0]: value} for value in list(alike)[:MOST_CALLS]))
    return ToolMatch(tool, (arguments,), tuple(guessed))


def _missing_arguments(message: str, tool: ToolSpec) -> tuple[str, ...]:
    """Return the required arguments of a tool that a message does not give."""
    values = Values(message)
    properties = _properties(tool.parameters)
    missing: list[str] = []
    for name in _required(tool):
        schema = _schema(properties[name], tool.parameters)
        given = (
            values.assigned_value(name, schema),
            values.value_after_name(name, schema),
            values.of_enumeration(schema),
        )
        if all(value is None for value in given) and not (
            values.text_for(name, tool.name) if _is_text(name, schema) else values.next(schema, alone=False)
        ):
            missing.append(name)
    return tuple(missing)


class Values:
    """The values in a message. Each is used once."""

    def __init__(self, message: str) -> None:
        self._message = message
        quoted = [next(filter(None, match.groups())) for match in _QUOTED.finditer(message)]
        outside = _QUOTED.sub(" ", message)
        self.identifiers = [match[0].rstrip(".,;") for match in _IDENTIFIER.finditer(outside)]
        names = [match[0] for match in _NAME.finditer(outside)]
        self._strings = [*quoted, *self.identifiers, *names]
        self._sure = len(quoted) + len(self.identifiers)  # the first strings, which are not guesses
        self._numbers = [match[0] for match in _NUMBER.finditer(outside)]

    def assigned_value(self, name: str, schema: Mapping[str, Any]) -> Any:
        """Return the value of `name=value` or `name: value`."""
        found = re.search(
            rf"(?<!\w){re.escape(name)}\s*[=:：]\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s,;，；。]+))",  # noqa: RUF001
            self._message,
            re.IGNORECASE,
        )
        return None if found is None else _convert(next(filter(None, found.groups()), ""), schema)

    def value_after_name(self, name: str, schema: Mapping[str, Any]) -> Any:
        """Return the value after the parameter's name: "order AB-9", "the title is Dune"."""
        if schema.get("enum"):
            return None
        parts = [part for part in re.split(r"[_\W]+", name) if part]
        if not parts or len(name) < 2:
            return None
        called = [r"[\s_-]*".join(map(re.escape, parts))]
        if len(parts) > 1 and parts[-1].lower() in _PLAIN_ENDS:
            called.append(r"[\s_-]*".join(map(re.escape, parts[:-1])))
        link = r"s?(?:\s{1,3}(?:is|was|called|named|number|no\.?|id|of))*\s{0,3}#?\s{0,3}"
        found = re.search(
            rf"(?<!\w)(?i:(?:{'|'.join(called)}){link})(?<=[\s#])"
            rf"(?:{_QUOTED.pattern}|({_IDENTIFIER.pattern})|({_NUMBER.pattern})|({_CAPITAL}(?: {_CAPITAL})*))",
            self._message,
        )
        if found is None:
            return None
        text = next(filter(None, found.groups())).rstrip(".,;")
        value = _convert(text, schema)
        if value is not None:
            self._take(text)
        return value

    def _take(self, text: str) -> None:
        if text in self._strings:
            self._sure -= self._strings.index(text) < self._sure
            self._strings.remove(text)
        elif text in self._numbers:
            self._numbers.remove(text)

    def of_enumeration(self, schema: Mapping[str, Any]) -> Any:
        """Return the value of an enumeration that occurs in the message as a word."""
        for value in _list(schema.get("enum")):
            if isinstance(value, str) and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", self._message, re.IGNORECASE):
                return value
        return None

    def next(self, schema: Mapping[str, Any], *, alone: bool) -> tuple[Any, bool] | None:
        """Return the next unused value of the schema's type, and whether it is clear.

        `alone`: no other parameter needs a value.
        """
        if schema.get("enum"):
            return None
        if schema.get("type") in ("number", "integer"):
            for number in self._numbers:
                value = _convert(number, schema)
                if value is not None:
                    is_clear = alone and len(self._numbers) == 1
                    self._numbers.remove(number)
                    return value, is_clear
        if schema.get("type", "string") == "string":
            if self._strings:
                is_clear = alone and self._sure > 0
                self._sure -= 1
                return self._strings.pop(0), is_clear
            return (self._numbers.pop(0), False) if self._numbers else None
        return None

    def text_for(self, name: str, tool: str) -> tuple[str, bool] | None:
        """Return the text after the tool's name, and that it is clear; or for a query the whole message, as a guess."""
        verb = re.escape(re.split(r"[_\W]+", tool.strip("_"))[0])
        after = re.compile(rf"{_COURTESY}{verb}\w*[\s:,：，]+(?:that\s+|this\s*:?\s+)?(.+)", re.IGNORECASE | re.DOTALL)  # noqa: RUF001
        found = after.match(self._message) if verb else None
        if found:
            return found[1].strip().strip("\"'“”"), True
        asks = name.lower() in QUERIES and _ASKING.search(self._message)
        return (self._message.strip(), False) if asks else None


def _convert(text: str, schema: Mapping[str, Any]) -> Any:
    """Convert a text to the schema's type; return None if that is impossible."""
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


def _verb(tool: ToolSpec) -> str:
    return re.escape(next(iter(filter(None, re.split(r"[_\W]+|(?<=[a-z0-9])(?=[A-Z])", tool.name))), ""))


def _required(tool: ToolSpec) -> list[str]:
    properties = _properties(tool.parameters)
    return [name for name in _list(tool.parameters.get("required")) if name in properties]


def _is_text(name: str, schema: Mapping[str, Any]) -> bool:
    return name.lower() in TEXTS | QUERIES and schema.get("type", "string") == "string" and not schema.get("enum")


def _shape(identifier: str) -> str:
    return _RUNS.sub(lambda run: "a" if run[1] else "0", identifier)


def _schema(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a value, with references resolved and without the alternative null."""
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
