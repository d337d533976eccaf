"""The text of access rules: one sentence each.

    # A comment. A line that begins with a space continues the rule above it.
    default allow

    large-refunds: deny agent "support" tool "refund" when amount > 100
      because "A person pays back more than 100."
    nights: dry-run deny source "shop" between 22:00 and 06:00 timezone "Europe/Berlin"

    rules      = { default | rule }
    default    = "default" [ "dry-run" ] ( "allow" | "deny" )
    rule       = NAME ":" [ "dry-run" ] ( "allow" | "deny" ) { names | time } [ when ] [ "because" TEXT ]
    names      = PART PATTERN { "," PATTERN } [ "except" PATTERN { "," PATTERN } ]
    PART       = "user" | "agent" | "key" | "scope" | "tool" | "source" | "tag" | "kind" | "access"
    time       = "on" DAYS { "," DAYS } | "between" HOUR "and" HOUR | "from" DATE | "until" DATE | "timezone" TEXT
    when       = "when" condition { "and" condition }
    condition  = PATH ( "=" | "!=" ) VALUE | PATH ( "<" | "<=" | ">" | ">=" ) NUMBER
               | PATH [ "not" ] "in" VALUE { "," VALUE }
               | PATH [ "not" ] ( "like" PATTERN | "matches" REGEX ) | PATH "is" ( "missing" | "given" )

Names, patterns and texts are in double quotes, as in JSON. Pure.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from math import isfinite
from typing import Any, cast

from holdfast.core.errors import InvalidInput
from holdfast.skills.rules.conditions import (
    GIVEN,
    MAX_STEPS,
    MISSING,
    OPERATORS,
    ArgumentCondition,
    Operator,
    Value,
    check_regex,
)
from holdfast.skills.rules.patterns import NamePattern
from holdfast.skills.rules.rule import (
    BUILT_IN,
    CALLER_PARTS,
    EFFECTS,
    TOOL_PARTS,
    AccessRule,
    CallerPart,
    Effect,
    NameClause,
    ToolPart,
)
from holdfast.skills.rules.times import DAYS, UTC_ZONE, Moment, RuleTimes
from holdfast.skills.tool import KINDS, LEVELS

MAX_TEXT_BYTES = 4 * 1024 * 1024
MAX_RULES = 20_000
MAX_NAMES = 1000  # in a clause
MAX_BECAUSE = 500  # characters
MAX_ERRORS = 10  # that are listed
DEFAULT = "default"
DRY_RUN = "dry-run"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TOKEN = re.compile(r'\s+|#[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<sign>!=|<=|>=|[=<>,])|(?P<word>[^\s",=<>!#]+)')
_HOUR = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_STEP = re.compile(r"[A-Za-z_$][\w$-]*|\d+|\*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")  # as in JSON
_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}
# The values of these parts are known, so that a typing error is found.
_CHOICES: dict[str, Sequence[str]] = {
    "kind": (*KINDS, BUILT_IN), "access": LEVELS, "scope": ("read", "write", "admin", "act-as", "operator"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DefaultEffect:
    """What happens to calls about which no rule says anything. `on_trial`: calls are allowed, and it is noted."""

    effect: Effect = "allow"
    on_trial: bool = False


@dataclass(frozen=True, slots=True)
class RulesText:
    """Access rules as they were written, and what they say."""

    text: str = ""
    default: DefaultEffect = field(default_factory=DefaultEffect)
    rules: tuple[AccessRule, ...] = ()

    def without(self, name: str) -> str:
        """Return the text without a rule. Comments stay."""
        rule = next((each for each in self.rules if each.name == name), None)
        if rule is None:
            return self.text
        lines = self.text.split("\n")
        del lines[rule.line - 1 : rule.line + rule.text.count("\n")]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # text, sign, word or end
    text: str
    value: str
    line: int
    column: int


class _RuleError(Exception):
    """What is wrong at a token."""

    def __init__(self, token: _Token, message: str) -> None:
        super().__init__(message)
        self.token = token


def parse_rules(text: str, known: Iterable[AccessRule] = ()) -> RulesText:
    """Read rules. Raise InvalidInput with the line, the column and the reason of each error.

    A sentence of a `known` rule is not read again: after a change of one of many rules, this is fast.
    """
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_TEXT_BYTES:
        raise InvalidInput(
            "the access rules are too long", why=f"they have {size:,} bytes; the limit is {MAX_TEXT_BYTES:,}"
        )
    rules: dict[str, AccessRule] = {}
    by_text = {each.text: each for each in known}
    default: DefaultEffect | None = None
    errors: list[str] = []
    for line, lines in _paragraphs(text):
        try:
            former = by_text.get("\n".join(lines))
            if former is not None and former.name not in rules:
                rules[former.name] = replace(former, line=line, place=len(rules))
                continue
            sentence = _Sentence(line, lines)
            if sentence.first.value == DEFAULT:
                if default is not None:
                    raise _RuleError(sentence.first, "`default` is given twice")
                default = sentence.default()
                continue
            rule = sentence.rule(len(rules))
            if rule.name in rules:
                raise _RuleError(
                    sentence.first, f"the rule {rule.name} exists already, in line {rules[rule.name].line}"
                )
            rules[rule.name] = rule
        except _RuleError as error:
            errors.append(f"line {error.token.line}, column {error.token.column}: {error}")
    if len(rules) > MAX_RULES:
        errors.append(f"there are {len(rules):,} rules; the limit is {MAX_RULES:,}")
    if errors:
        more = f"; and {len(errors) - MAX_ERRORS} more errors" if len(errors) > MAX_ERRORS else ""
        raise InvalidInput(
            "the access rules are invalid",
            why="; ".join(errors[:MAX_ERRORS]) + more,
            next='Write rules like `large-refunds: deny agent "support" tool "refund" when amount > 100`.',
            errors=errors[:MAX_ERRORS],
        )
    return RulesText(text, default or DefaultEffect(), tuple(rules.values()))


def _paragraphs(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each sentence: the number of its first line, and its lines, without comments and empty lines at its end."""
    begun: list[str] = []
    first = 0
    pending: list[str] = []  # comments and empty lines, which belong to a sentence only if it goes on behind them
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not content or content.startswith("#"):
            pending.append(line)
        elif line[0] in " \t" and begun:
            begun += [*pending, line]
            pending = []
        else:
            if begun:
                yield first, begun
            first, begun, pending = number, [line], []
    if begun:
        yield first, begun


class _Sentence:
    """Reads one sentence."""

    def __init__(self, line: int, lines: Sequence[str]) -> None:
        self._line, self._lines = line, lines
        self._tokens = list(_tokens(line, lines))
        self._at = 0
        self.first = self._tokens[0]

    def default(self) -> DefaultEffect:
        """Read what happens without a matching rule."""
        self._next()
        on_trial = self._take(DRY_RUN)
        effect = self._effect()
        self._end()
        return DefaultEffect(effect, on_trial)

    def rule(self, place: int) -> AccessRule:
        """Read a rule."""
        named = self._next()
        if named.kind != "word" or not named.value.endswith(":") or not _NAME.fullmatch(named.value[:-1]):
            raise _RuleError(named, "a rule begins with its name and a colon, such as `large-refunds:`")
        if named.value[:-1] == DEFAULT:
            raise _RuleError(named, "no rule can be called `default`")
        on_trial, effect = self._take(DRY_RUN), self._effect()
        clauses: dict[str, NameClause] = {}
        times: dict[str, Any] = {}
        conditions: list[ArgumentCondition] = []
        because = ""
        while (token := self._next()).kind != "end":
            word = token.value if token.kind == "word" else ""
            if word in (*CALLER_PARTS, *TOOL_PARTS):
                if word in clauses:
                    raise _RuleError(token, f"`{word}` is given twice: separate its names by commas")
                clauses[word] = self._names(word)
            elif word in ("on", "between", "from", "until", "timezone"):
                if word in times:
                    raise _RuleError(token, f"`{word}` is given twice")
                times[word] = self._time(word)
            elif word == "when" and not conditions:
                conditions = self._conditions()
            elif word == "because":
                because = self._text("a reason")
                if len(because) > MAX_BECAUSE:
                    raise _RuleError(token, f"a reason has at most {MAX_BECAUSE} characters")
                self._end()
                break
            else:
                known = ", ".join((*CALLER_PARTS, *TOOL_PARTS, "on, between, from, until, timezone, when and because"))
                raise _RuleError(token, f"{_shown(token)} is not known here; a rule has {known}")
        return AccessRule(
            named.value[:-1],
            effect,
            on_trial,
            tuple(clauses[part] for part in CALLER_PARTS if part in clauses),
            tuple(clauses[part] for part in TOOL_PARTS if part in clauses),
            self._times(named, times),
            tuple(conditions),
            because,
            "\n".join(self._lines),
            self._line,
            place,
        )

    def _effect(self) -> Effect:
        token = self._next()
        if token.kind != "word" or token.value not in EFFECTS:
            raise _RuleError(token, f"expected `allow` or `deny`, not {_shown(token)}")
        return token.value

    def _names(self, part: CallerPart | ToolPart) -> NameClause:
        names = self._patterns(part)
        return NameClause(part, names, self._patterns(part) if self._take("except") else ())

    def _patterns(self, part: str) -> tuple[NamePattern, ...]:
        found: list[NamePattern] = []
        while True:
            token = self._peek()
            try:
                pattern = NamePattern.parse(self._text(f"a name of the {part}"))
            except InvalidInput as error:
                raise _RuleError(token, str(error)) from None
            choices = _CHOICES.get(part)
            if choices is not None and not any(map(pattern.matches, choices)):
                raise _RuleError(token, f"there is no {part} {token.value!r:.100}; use one of {', '.join(choices)}")
            found.append(pattern)
            if len(found) > MAX_NAMES:
                raise _RuleError(token, f"`{part}` can have at most {MAX_NAMES} names")
            if not self._take(","):
                return tuple(found)

    def _time(self, word: str) -> Any:
        match word:
            case "on":
                days = self._days()
                while self._take(","):
                    days |= self._days()
                return days
            case "between":
                start = self._hour()
                if not self._take("and"):
                    raise _RuleError(self._peek(), "expected `and` and an hour, such as `between 22:00 and 06:00`")
                token, stop = self._peek(), self._hour()
                if start == stop:
                    raise _RuleError(token, "these hours are empty: both are the same")
                return start, stop
            case "timezone":
                return self._text("a time zone")
            case _:
                return self._moment()

    def _times(self, named: _Token, found: dict[str, Any]) -> RuleTimes | None:
        if not found:
            return None
        if found.keys() == {"timezone"}:
            raise _RuleError(named, "`timezone` is for `on`, `between`, `from` and `until`, and there is none of them")
        try:
            return RuleTimes(
                found.get("on", frozenset()),
                found.get("between"),
                found.get("from"),
                found.get("until"),
                found.get("timezone", UTC_ZONE),
            )
        except InvalidInput as error:
            raise _RuleError(named, str(error)) from None

    def _days(self) -> frozenset[int]:
        token = self._next()
        first, dash, last = token.value.lower().partition("-")
        if token.kind != "word" or first not in DAYS or (dash and last not in DAYS):
            raise _RuleError(token, f"{_shown(token)} is not a day; write days like `mon-fri, sun`")
        start, stop = DAYS.index(first), DAYS.index(last or first)
        return frozenset((start + number) % 7 for number in range((stop - start) % 7 + 1))

    def _hour(self) -> time:
        token = self._next()
        found = _HOUR.fullmatch(token.value)
        if token.kind != "word" or found is None:
            raise _RuleError(token, f"{_shown(token)} is not an hour; write hours like `09:00` or `17:30`")
        return time(int(found[1]), int(found[2]))

    def _moment(self) -> Moment:
        token = self._next()
        try:
            if token.kind == "word":
                return _moment_of(token.value)
        except ValueError:
            pass
        raise _RuleError(token, f"{_shown(token)} is not a time; write it like `2026-01-31` or `2026-01-31T12:00`")

    def _conditions(self) -> list[ArgumentCondition]:
        found = [self._condition()]
        while self._take("and"):
            found.append(self._condition())
        return found

    def _condition(self) -> ArgumentCondition:
        began, path = self._at, self._path()
        negated = self._take("not")
        token = self._next()
        if (
            token.value not in OPERATORS
            or token.kind == "text"
            or (negated and token.value not in ("in", "like", "matches"))
        ):
            expected = "`in`, `like` or `matches`" if negated else "one of " + ", ".join(OPERATORS)
            raise _RuleError(token, f"expected {expected}, not {_shown(token)}")
        operator: Operator = token.value
        values = self._values(operator)
        text = " ".join(each.text for each in self._tokens[began : self._at]).replace(" ,", ",")
        return ArgumentCondition(path, operator, values, negated, text)

    def _path(self) -> tuple[str, ...]:
        token = self._next()
        if token.kind == "text":  # a JSON pointer, or a name to the letter
            if not token.value.startswith("/"):
                return (token.value,)
            steps = token.value[1:].split("/")
            path = tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)
        else:
            path = tuple(token.value.split("."))
            if token.kind != "word" or not all(map(_STEP.fullmatch, path)):
                raise _RuleError(
                    token, f'{_shown(token)} is not an argument; write `amount`, `customer.country` or "/items/0/price"'
                )
        if len(path) > MAX_STEPS:
            raise _RuleError(token, f"a path has at most {MAX_STEPS} steps")
        return path

    def _values(self, operator: Operator) -> tuple[Value, ...]:
        token = self._peek()
        match operator:
            case "like" | "matches":
                text = self._text("a pattern" if operator == "like" else "a regular expression")
                try:
                    NamePattern.parse(text) if operator == "like" else check_regex(text)
                except InvalidInput as error:
                    raise _RuleError(token, str(error)) from None
                return (text,)
            case "is":
                self._next()
                if token.kind != "word" or token.value not in (MISSING, GIVEN):
                    raise _RuleError(token, f"expected `{MISSING}` or `{GIVEN}`, not {_shown(token)}")
                return (token.value,)
            case "in":
                values = [self._value()]
                while self._take(","):
                    values.append(self._value())
                if len(values) > MAX_NAMES:
                    raise _RuleError(token, f"`in` can have at most {MAX_NAMES} values")
                return tuple(values)
            case _:
                value = self._value()
                if operator not in ("=", "!=") and (isinstance(value, bool) or not isinstance(value, int | float)):
                    raise _RuleError(token, f"`{operator}` compares numbers, and {_shown(token)} is none")
                return (value,)

    def _value(self) -> Value:
        token = self._next()
        if token.kind == "text":
            return token.value
        if token.kind == "word" and token.value in _CONSTANTS:
            return _CONSTANTS[token.value]
        if token.kind == "word" and len(token.value) <= 40 and _NUMBER.fullmatch(token.value):
            number = cast(int | float, json.loads(token.value))
            if isfinite(number):
                return number
        raise _RuleError(token, f'expected a value, such as 100, true or "text" in quotes, not {_shown(token)}')

    def _text(self, what: str) -> str:
        token = self._next()
        if token.kind != "text":
            raise _RuleError(token, f"expected {what} in double quotes, not {_shown(token)}")
        return token.value

    def _take(self, word: str) -> bool:
        token = self._peek()
        if token.kind == "text" or token.value != word:
            return False
        self._at += 1
        return True

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _end(self) -> None:
        token = self._peek()
        if token.kind != "end":
            raise _RuleError(token, f"{_shown(token)} follows the end of the rule")


def _tokens(number: int, lines: Sequence[str]) -> Iterator[_Token]:
    column = 1
    for line_number, line in enumerate(lines, number):
        at = 0
        while at < len(line):
            found = _TOKEN.match(line, at)
            if found is None:
                token = _Token("sign", line[at], line[at], line_number, at + 1)
                what = "a text without its closing quote" if line[at] == '"' else f"unexpected {line[at]!r}"
                raise _RuleError(token, what)
            if found.lastgroup is not None:
                text = found[0]
                token = _Token(found.lastgroup, text, text, line_number, at + 1)
                yield (
                    token if found.lastgroup != "text" else _Token("text", text, _unquoted(token), line_number, at + 1)
                )
            at = found.end()
        number, column = line_number, len(line) + 1
    yield _Token("end", "", "", number, column)


def _unquoted(token: _Token) -> str:
    try:
        return cast(str, json.loads(token.text))
    except ValueError:
        raise _RuleError(token, f"{token.text:.100} is not a text as in JSON; write `\\\\` for a backslash") from None


def _moment_of(text: str) -> Moment:
    if "T" not in text:
        return date.fromisoformat(text)
    found = datetime.fromisoformat(text)
    if found.second or found.microsecond:
        raise ValueError
    return found


def _shown(token: _Token) -> str:
    return "the end of the rule" if token.kind == "end" else f"`{token.text:.100}`"
