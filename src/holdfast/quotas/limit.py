"""Limits: what a subject may use, as a text like `each user: 60 requests per minute`. Pure.

A subject is the tenant, or any of a user, an agent, an API key and a tool: `user ann`, `each user of tool refund`.
`each` gives every user, agent, key or tool an amount of its own. A measure is one of:

- `requests`: a token bucket. It holds `burst` tokens and is filled at the rate of the limit.
- `tokens` and `cost`: a budget for model calls in a window of the calendar, in UTC.
- `concurrent calls`: how many calls run at the same time.
"""

import json
import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args
from uuid import UUID, uuid5

from holdfast.core.errors import InvalidInput
from holdfast.core.names import shortened_name

Scope = Literal["user", "agent", "key", "tool"]
Measure = Literal["requests", "tokens", "cost", "concurrency"]
Window = Literal["second", "minute", "hour", "day", "month"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
SECONDS: dict[Window, int] = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "month": 30 * 86_400}
BUDGETS: frozenset[Measure] = frozenset({"tokens", "cost"})
WHOLE: frozenset[Measure] = frozenset({"requests", "concurrency"})
TENANT = "tenant"

LARGEST = 10**15
MAX_TEXT = 1000  # characters of a limit
LEAST_CAPACITY = 0.25  # seconds that a bucket holds at least: processes lease its tokens a few times a second

IDS = UUID("8a3f3c1e-4c35-4f6f-9d5b-1f2a6f0b7c11")  # the namespace of the ids of limits
FORMS = "`each user: 60 requests per minute`, `tool refund: 10 requests per hour` or `tenant: 50 cost per month`"

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|:(?=\s|$)|,|(?:(?!:(?:\s|$))[^\s",])+)')
_BARE = re.compile(r'(?:(?!:(?:\s|$))[^\s",])+')
_NUMBER = re.compile(r"\d+(_\d+)*(\.\d+)?", re.ASCII)
_MEASURES: dict[str, Measure] = {
    "request": "requests",
    "requests": "requests",
    "token": "tokens",
    "tokens": "tokens",
    "cost": "cost",
    "concurrent": "concurrency",
}
_SHOWN: dict[Measure, str] = {
    "requests": "requests",
    "tokens": "tokens",
    "cost": "cost",
    "concurrency": "concurrent calls",
}


@dataclass(frozen=True)
class UsageLimit:
    """A limit. `subject` has the scopes in their order, each with a name, or None for each one.

    `warn`: the share of a budget from which a warning is due; None: the default of the settings.
    """

    subject: tuple[tuple[Scope, str | None], ...]
    measure: Measure
    amount: float
    window: Window | None = None
    burst: float | None = None
    warn: float | None = None
    by_operator: bool = False

    @cached_property
    def name(self) -> str:
        """What is limited, without the amount, such as `each user: requests per minute`. A limit replaces its like."""
        return f"{self._who}: {self._what}"

    @cached_property
    def rule(self) -> str:
        """The whole limit as a text, which `parse_limit` reads."""
        more = "" if self.burst is None else f", burst {_number(self.burst)}"
        more += "" if self.warn is None else f", warn at {_number(100 * self.warn)}%"
        return f"{self._who}: {_number(self.amount)} {self._what}{more}"

    @cached_property
    def id(self) -> UUID:
        """The id of the limits with this name, of the operator or of the tenant. Counts are kept under it."""
        return uuid5(
            IDS, f"{'operator' if self.by_operator else 'tenant'} {self.name}".encode(errors="surrogatepass").hex()
        )

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes of the subject."""
        return tuple(scope for scope, _ in self.subject)

    @cached_property
    def rate(self) -> float:
        """The number of requests per second."""
        return 0.0 if self.window is None else self.amount / SECONDS[self.window]

    @cached_property
    def capacity(self) -> float:
        """The number of requests that can come at once, or of calls that can run at the same time."""
        if self.measure == "concurrency":
            return self.amount
        burst = self.amount if self.burst is None else self.burst
        return max(burst, math.ceil(LEAST_CAPACITY * self.rate), 1.0)

    @cached_property
    def is_shared(self) -> bool:
        """Whether many callers use the same bucket: the subject has neither a user nor a key."""
        return not {"user", "key"}.intersection(self.scopes)

    @property
    def _who(self) -> str:
        return describe_subject(self.subject)

    @property
    def _what(self) -> str:
        shown = _SHOWN[self.measure]
        return shown if self.window is None else f"{shown} per {self.window}"


def describe_subject(subject: tuple[tuple[Scope, str | None], ...]) -> str:
    """Return a subject as a text, such as `each user of tool refund`."""
    if not subject:
        return TENANT
    return " of ".join(f"each {scope}" if name is None else f"{scope} {_quoted(name)}" for scope, name in subject)


def subject_key(subject: tuple[tuple[Scope, str | None], ...]) -> str:
    """Return the text of a subject in rows, messages and lists. It is short enough for the key of an index."""
    return shortened_name(describe_subject(subject))


def parse_limit(text: str, *, by_operator: bool = False) -> UsageLimit:
    """Parse a limit, or raise InvalidInput."""
    if len(text) > MAX_TEXT:
        raise InvalidInput(
            "the limit is too long", why=f"it has {len(text)} characters, at most {MAX_TEXT} are allowed"
        )
    parser = _Parser(text)
    subject = parser.subject()
    amount = parser.number("an amount")
    measure = parser.measure()
    window = parser.window() if measure != "concurrency" else None
    burst, warn = parser.options()
    if measure in WHOLE and amount != int(amount):
        raise parser.error(f"the amount {_number(amount)} is not whole")
    if measure in BUDGETS:
        others = [scope for scope, _ in subject if scope in ("key", "tool")]
        if others:
            raise parser.error(f"{measure} is about calls of models, which have no {others[0]}")
        if window == "second":
            raise parser.error(f"a budget of {measure} is per minute, hour, day or month")
    if burst is not None and measure != "requests":
        raise parser.error("only limits on requests have a burst")
    if warn is not None and measure not in BUDGETS:
        raise parser.error("only limits on tokens and on cost have a warning")
    return UsageLimit(subject, measure, amount, window, burst, warn, by_operator)


def name_of(text: str) -> str:
    """Return the name of the limit that a text names: a whole limit, or its name."""
    who, colon, what = text.rpartition(": ")
    first = what.strip().partition(" ")[0]
    whole = text if _NUMBER.fullmatch(first) else f"{who}{colon}1 {what}"
    return parse_limit(whole).name


class _Parser:
    """Reads the tokens of a limit one after another."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        place = 0
        end = len(text.rstrip())
        while place < end:
            found = _TOKEN.match(text, place)
            if found is None:
                raise self.error(f"{text[place : place + 50]!r} cannot be read")
            self._tokens.append(found[1])
            place = found.end()
        self._tokens.reverse()

    def error(self, why: str) -> InvalidInput:
        """Return the error for this text."""
        return InvalidInput(f"{self._text[:200]!r} is not a limit", why=why, next=f"Write it like {FORMS}.")

    def subject(self) -> tuple[tuple[Scope, str | None], ...]:
        """Read whom the limit is for, up to the colon."""
        found: dict[Scope, str | None] = {}
        word = self._next("whom it is for")
        if word == TENANT:
            self._expect(":")
            return ()
        while True:
            each = word == "each"
            scope = self._next("`user`, `agent`, `key` or `tool`") if each else word
            if scope not in SCOPES:
                raise self.error(f"{scope[:50]!r} is not `tenant`, `user`, `agent`, `key` or `tool`")
            if scope in found:
                raise self.error(f"it names the {scope} twice")
            found[scope] = None if each else self._name(scope)
            word = self._next("a colon")
            if word == ":":
                return tuple((scope, found[scope]) for scope in SCOPES if scope in found)
            if word != "of":
                raise self.error(f"there is {word[:50]!r} in place of a colon")
            word = self._next("`user`, `agent`, `key` or `tool`")

    def number(self, what: str) -> float:
        """Read a number above zero."""
        word = self._next(what)
        if not _NUMBER.fullmatch(word):
            raise self.error(f"{word[:50]!r} is not {what}")
        value = float(word)
        if not 0 < value <= LARGEST:
            raise self.error(f"{what} is above 0 and at most {LARGEST:,}")
        return value

    def measure(self) -> Measure:
        """Read what is limited."""
        word = self._next("what is limited")
        if word not in _MEASURES:
            raise self.error(f"{word[:50]!r} is not `requests`, `tokens`, `cost` or `concurrent calls`")
        if word == "concurrent" and self._tokens and self._tokens[-1] in ("call", "calls"):
            self._tokens.pop()
        return _MEASURES[word]

    def window(self) -> Window:
        """Read the window."""
        word = self._next("`per` and a time")
        if word not in ("per", "a", "an"):
            raise self.error(f"there is {word[:50]!r} in place of `per`")
        unit = self._next("a time")
        if unit not in SECONDS:
            raise self.error(f"{unit[:50]!r} is not {', '.join(SECONDS)}")
        return unit

    def options(self) -> tuple[float | None, float | None]:
        """Read the burst and the warning."""
        burst: float | None = None
        warn: float | None = None
        while self._tokens:
            word = self._tokens.pop()
            if word == ",":
                continue
            if word == "burst" and burst is None:
                burst = self.number("a burst")
                if burst != int(burst):
                    raise self.error("the burst is not whole")
            elif word == "warn" and warn is None:
                self._expect("at")
                warn = self._percent() / 100
            else:
                raise self.error(f"{word[:50]!r} is not `burst` or `warn at`")
        return burst, warn

    def _percent(self) -> float:
        word = self._next("a share in percent").removesuffix("%")
        percent = float(word) if _NUMBER.fullmatch(word) else 0.0
        if not 0 < percent <= 100:
            raise self.error("the warning is not at a share of 1% to 100%")
        return percent

    def _name(self, scope: str) -> str:
        word = self._next(f"the name of the {scope}")
        if not word.startswith('"'):
            return word
        try:
            name = json.loads(word, strict=False)
        except ValueError:
            raise self.error(f"{word[:50]} cannot be read") from None
        if not name:
            raise self.error(f"the name of the {scope} is empty")
        return name

    def _next(self, wanted: str) -> str:
        if not self._tokens:
            raise self.error(f"{wanted} is missing")
        return self._tokens.pop()

    def _expect(self, word: str) -> None:
        found = self._next(f"`{word}`")
        if found != word:
            raise self.error(f"there is {found[:50]!r} in place of `{word}`")


def _quoted(name: str) -> str:
    return name if _BARE.fullmatch(name) and not name.startswith('"') else json.dumps(name, ensure_ascii=False)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.10g}"
