"""Access rules: one sentence each, on who may or may not call what, when."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from holdfast.skills.rules.conditions import ArgumentCondition, Check
from holdfast.skills.rules.patterns import NamePattern
from holdfast.skills.rules.times import RuleTimes
from holdfast.skills.tool import Tool, dotted_name

Effect = Literal["allow", "deny"]
CallerPart = Literal["user", "agent", "key", "scope"]
ToolPart = Literal["tool", "source", "tag", "kind", "access"]

EFFECTS: tuple[Effect, ...] = get_args(Effect)
CALLER_PARTS: tuple[CallerPart, ...] = get_args(CallerPart)
TOOL_PARTS: tuple[ToolPart, ...] = get_args(ToolPart)
BUILT_IN = "builtin"  # the kind of the engine's own tools


@dataclass(frozen=True, slots=True)
class NameClause:
    """The names that a part of a call may have: some patterns, except others."""

    part: CallerPart | ToolPart
    names: tuple[NamePattern, ...]
    excepted: tuple[NamePattern, ...] = ()

    def matches(self, values: Collection[str]) -> bool:
        """Whether one of the values of the part is meant. A call without the part is never meant."""
        return any(each.matches(value) for each in self.names for value in values) and not any(
            each.matches(value) for each in self.excepted for value in values
        )

    @property
    def exact(self) -> tuple[str, ...] | None:
        """The only values that are meant; None if there is a pattern with an asterisk."""
        exact = [each.exact for each in self.names]
        return None if None in exact else tuple(each for each in exact if each is not None)


@dataclass(frozen=True)
class AccessRule:
    """A rule. `text` is how it was written, from line `line` on, and `place` its number in the order of the text."""

    name: str
    effect: Effect
    on_trial: bool = False
    who: tuple[NameClause, ...] = ()
    what: tuple[NameClause, ...] = ()
    times: RuleTimes | None = None
    conditions: tuple[ArgumentCondition, ...] = ()
    because: str = ""
    text: str = ""
    line: int = 0
    place: int = 0

    @cached_property
    def is_static(self) -> bool:
        """Whether the caller and the tool alone decide if it matches."""
        return self.times is None and not self.conditions

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The checks of its conditions, compiled once."""
        return tuple(each.check(strict=self.effect == "allow") for each in self.conditions)

    def is_met(self, arguments: Mapping[str, Any], now: float) -> bool:
        """Whether a call of a tool and a caller that it is about meets its conditions."""
        if self.times is not None and not self.times.covers(now):
            return False
        for check in self.checks:  # noqa: SIM110 - a generator takes longer than most checks
            if not check(arguments):
                return False
        return True

    def unmet(self, arguments: Mapping[str, Any], now: float) -> str:
        """Return the first condition that a call does not meet, as a text; an empty one if it meets all."""
        if self.times is not None and not self.times.covers(now):
            return "it does not apply at this time"
        met = [check(arguments) for check in self.checks]
        return "" if all(met) else f"`{self.conditions[met.index(False)].text}` is not met"


def tool_names(part: str, tool: Tool) -> tuple[str, ...]:
    """Return the values of a part of a tool. The part `tool` is its name, and those of its JSON-RPC method."""
    match part:
        case "tool":
            return (tool.name,) if tool.service is None else (tool.name, tool.service, dotted_name(tool.service))
        case "source":
            return () if tool.backend is None or not tool.backend.source else (tool.backend.source,)
        case "tag":
            return tool.tags
        case "kind":
            return (BUILT_IN,) if tool.id is None else (tool.kind,)
        case _:
            return (tool.access,)
