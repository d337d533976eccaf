"""Decisions about calls by access rules. Pure.

A `deny` rule that matches refuses the call, whatever other rules say. With `default deny`, a call needs an `allow` rule
that matches, too. The order of the rules does not matter, except that the first `deny` rule that matches is named.

Rules that name users, agents or keys are found by these, and others by the tools that they name. What is known about a
caller and a tool is kept, so that a call is only compared with rules that can match it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast
from uuid import UUID

from holdfast.skills.arguments import with_defaults
from holdfast.skills.rules.grammar import DEFAULT, DefaultEffect, RulesText
from holdfast.skills.rules.rule import CALLER_PARTS, AccessRule, CallerPart, NameClause, tool_names
from holdfast.skills.tool import Tool

REMEMBERED = 10_000  # callers whose rules are kept
REMEMBERED_TOOLS = 100_000  # tools of all callers whose rules are kept: 20 MB


@dataclass(frozen=True, slots=True)
class RuleCaller:
    """Who makes a call, as rules name it. `ids`: the user's other names, which are ids in canonical form."""

    user: str | None = None
    agent: str | None = None
    key: UUID | None = None
    scopes: frozenset[str] = frozenset()
    ids: tuple[str, ...] = ()

    def names(self, part: str) -> Sequence[str]:
        """Return the values of a part of a caller."""
        match part:
            case "user":
                return self.ids if self.user is None else (self.user, *self.ids)
            case "agent":
                return () if self.agent is None else (self.agent,)
            case "key":
                return () if self.key is None else (str(self.key),)
            case _:
                return tuple(self.scopes)


@dataclass(frozen=True, slots=True)
class RuleDecision:
    """What rules say about a call. `rule` is the one that refuses it, or `default`; None: it is allowed.

    `trials` are the names of the rules on trial that would have decided otherwise.
    """

    rule: str | None = None
    because: str = ""
    trials: tuple[str, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """Whether the call is allowed."""
        return self.rule is None


ALLOWED = RuleDecision()


@dataclass(frozen=True, slots=True)
class RuleTrace:
    """A rule that is about a caller and a tool, and whether a call meets its conditions; None: the arguments decide."""

    rule: AccessRule
    is_met: bool | None
    unmet: str = ""


@dataclass(frozen=True, slots=True)
class ToolRules:
    """The rules that are about one tool and one caller, in their order."""

    rules: tuple[AccessRule, ...]
    default: DefaultEffect
    denies: tuple[AccessRule, ...] = field(init=False)
    allows: tuple[AccessRule, ...] = field(init=False)
    trial_denies: tuple[AccessRule, ...] = field(init=False)
    trial_allows: tuple[AccessRule, ...] = field(init=False)
    is_free: bool = field(init=False)  # no rule says anything

    def __post_init__(self) -> None:
        for name, effect, on_trial in (
            ("denies", "deny", False),
            ("allows", "allow", False),
            ("trial_denies", "deny", True),
            ("trial_allows", "allow", True),
        ):
            found = tuple(each for each in self.rules if (each.effect, each.on_trial) == (effect, on_trial))
            object.__setattr__(self, name, found)
        free = not self.denies and not self.trial_denies and self.default.effect == "allow"
        object.__setattr__(self, "is_free", free)

    @property
    def hidden_by(self) -> str | None:
        """The rule, or `default`, that refuses every call, whatever its arguments are and when; None: there is none."""
        for each in self.denies:
            if each.is_static:
                return each.name
        refuses = self.default.effect == "deny" and not self.default.on_trial and not self.allows
        return DEFAULT if refuses else None

    def decide(self, arguments: Mapping[str, Any], now: float) -> RuleDecision:
        """Decide about a call."""
        if self.is_free:
            return ALLOWED
        found = ALLOWED
        for each in self.denies:
            if each.is_met(arguments, now):
                found = RuleDecision(each.name, each.because)
                break
        trials: list[str] = []
        if self.default.effect == "deny" and not any(each.is_met(arguments, now) for each in self.allows):
            if self.default.on_trial:
                trials.append(DEFAULT)
            elif found.is_allowed:
                found = RuleDecision(DEFAULT, "")
                trials += [each.name for each in self.trial_allows if each.is_met(arguments, now)]
        if found.is_allowed and self.trial_denies:
            trials += [each.name for each in self.trial_denies if each.is_met(arguments, now)]
        return RuleDecision(found.rule, found.because, tuple(trials)) if trials else found

    def trace(self, arguments: Mapping[str, Any] | None, now: float) -> list[RuleTrace]:
        """Return what each rule says about a call, in their order; without arguments, as far as that is known."""
        found: list[RuleTrace] = []
        for each in self.rules:
            if arguments is not None or not each.conditions:
                found.append(RuleTrace(each, each.is_met(arguments or {}, now), each.unmet(arguments or {}, now)))
            elif each.times is not None and not each.times.covers(now):
                found.append(RuleTrace(each, False, each.unmet({}, now)))
            else:
                found.append(RuleTrace(each, None))
        return found


class CallerRules:
    """The rules that can be about the calls of a caller. Callers who are named by the same rules share it."""

    def __init__(self, rules: "RuleSet", named_by: tuple[AccessRule, ...]) -> None:
        self._rules = rules
        self._named_by = named_by
        self._tools: dict[tuple[object, ...], ToolRules] = {}

    @cached_property
    def view_key(self) -> tuple[int, ...]:
        """What lists of tools depend on: the rules that name the caller and decide without arguments and times."""
        return tuple(each.place for each in self._named_by if self._rules.shapes_lists(each))

    def of(self, tool: Tool) -> ToolRules:
        """Return the rules that are about a tool."""
        key = (tool.name, tool.id, tool.version, tool.kind, tool.access, tool.service)
        found = self._tools.get(key)
        if found is None:
            self._rules.make_room()
            found = self._tools[key] = self._rules.about(tool, self._named_by)
        return found

    def decide(self, tool: Tool, arguments: Mapping[str, Any], now: float) -> RuleDecision:
        """Decide about a call with arguments as they are sent."""
        rules = self.of(tool)
        return ALLOWED if rules.is_free else rules.decide(with_defaults(tool, arguments), now)

    def forget(self) -> None:
        """Forget the rules of all tools."""
        self._tools.clear()


class NameIndex:
    """Finds rules by a name: those that name it, and those with a pattern that begins like it."""

    def __init__(self) -> None:
        self._exact: dict[str, list[AccessRule]] = defaultdict(list)
        self._beginnings: dict[str, list[AccessRule]] = defaultdict(list)
        self._lengths: set[int] = set()  # of beginnings

    def add(self, clause: NameClause, rule: AccessRule) -> bool:
        """Add a rule by the names of a clause. Return False, and add nothing, if one begins with an asterisk."""
        if not all(each.parts[0] for each in clause.names):
            return False
        for pattern in dict.fromkeys(clause.names):
            if pattern.exact is not None:
                self._exact[pattern.exact].append(rule)
            else:
                self._beginnings[pattern.parts[0]].append(rule)
                self._lengths.add(len(pattern.parts[0]))
        return True

    def find(self, name: str) -> Iterator[AccessRule]:
        """Yield the rules that can mean a name. The patterns of some may not match it."""
        yield from self._exact.get(name, ())
        for length in self._lengths:
            yield from self._beginnings.get(name[:length], ())


class RuleSet:
    """The rules of a tenant, indexed by whom and what they name. `version` is that of their text."""

    def __init__(self, text: RulesText | None = None, version: int = 0) -> None:
        self.written = RulesText() if text is None else text
        self.version = version
        self.default = self.written.default
        self.rules = self.written.rules
        self._callers: dict[tuple[str | None, str | None, UUID | None, frozenset[str]], CallerRules] = {}
        self._shared: dict[tuple[int, ...], CallerRules] = {}
        self._by_caller = {part: NameIndex() for part in CALLER_PARTS}
        self._by_tool = {part: NameIndex() for part in ("tool", "source")}  # of rules that name no caller
        self._kept = 0  # rules of tools, by callers
        self._of_callers: list[AccessRule] = []  # that name callers only by patterns such as `*-ann`
        self._of_tools: list[AccessRule] = []  # that name no caller, and tools and sources only by such patterns
        for rule in self.rules:
            self._index(rule)

    @property
    def is_empty(self) -> bool:
        """Whether every call is allowed."""
        return not self.rules and self.default.effect == "allow"

    @cached_property
    def hides(self) -> bool:
        """Whether some tools may be hidden from somebody."""
        return self._denies or any(map(self.shapes_lists, self.rules))

    def shapes_lists(self, rule: AccessRule) -> bool:
        """Whether a rule has a part in which tools are listed. An `allow` rule has even if it has conditions."""
        if rule.on_trial or rule.effect == "allow":
            return not rule.on_trial and self._denies
        return rule.is_static

    def known_caller(
        self, user: str | None, agent: str | None, key: UUID | None, scopes: frozenset[str]
    ) -> CallerRules | None:
        """Return the rules of a caller that were found before."""
        return self._callers.get((user, agent, key, scopes))

    def caller(self, caller: RuleCaller) -> CallerRules:
        """Return the rules that can be about the calls of a caller, and keep them."""
        key = (caller.user, caller.agent, caller.key, caller.scopes)
        found = self._callers.get(key)
        if found is None:
            if len(self._callers) >= REMEMBERED:
                self._callers.clear()
                self._shared.clear()
                self._kept = 0
            found = self._callers[key] = self._share(self._naming(caller))
        return found

    def make_room(self) -> None:
        """Count a tool of a caller whose rules are to be kept, and forget all others if they are too many."""
        if self._kept >= REMEMBERED_TOOLS:
            self._kept = 0
            for each in self._shared.values():
                each.forget()
        self._kept += 1

    def about(self, tool: Tool, named_by: Iterable[AccessRule]) -> ToolRules:
        """Return the rules that are about a tool: some of those that name the caller, and of those that name none."""
        candidates = [*named_by, *self._of_tools]
        for part, index in self._by_tool.items():
            for name in tool_names(part, tool):
                candidates += index.find(name)
        values: dict[str, Sequence[str]] = {}
        found = {
            each.place: each for each in candidates if _matches(each.what, lambda part: tool_names(part, tool), values)
        }
        return ToolRules(tuple(found[place] for place in sorted(found)), self.default)

    @property
    def _denies(self) -> bool:
        return self.default.effect == "deny" and not self.default.on_trial

    def _index(self, rule: AccessRule) -> None:
        if rule.who:
            if not any(self._by_caller[cast(CallerPart, each.part)].add(each, rule) for each in rule.who):
                self._of_callers.append(rule)
        elif not any(self._by_tool[each.part].add(each, rule) for each in rule.what if each.part in self._by_tool):
            self._of_tools.append(rule)

    def _naming(self, caller: RuleCaller) -> tuple[AccessRule, ...]:
        candidates = list(self._of_callers)
        for part in CALLER_PARTS:
            for name in caller.names(part):
                candidates += self._by_caller[part].find(name)
        values: dict[str, Sequence[str]] = {}
        found = {each.place: each for each in candidates if _matches(each.who, caller.names, values)}
        return tuple(found[place] for place in sorted(found))

    def _share(self, named_by: tuple[AccessRule, ...]) -> CallerRules:
        places = tuple(each.place for each in named_by)
        found = self._shared.get(places)
        if found is None:
            found = self._shared[places] = CallerRules(self, named_by)
        return found


def _matches(clauses: Iterable[Any], names: Callable[[str], Sequence[str]], values: dict[str, Sequence[str]]) -> bool:
    """Whether all clauses mean these names; `values` keeps the names of each part."""
    for clause in clauses:
        part = cast(str, clause.part)
        if part not in values:
            values[part] = names(part)
        if not clause.matches(values[part]):
            return False
    return True
