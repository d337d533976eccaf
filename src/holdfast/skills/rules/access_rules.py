"""The access rules of a tenant: stored as text, and cached for decisions.

The cache is checked at most every half second, so that a change takes effect on every node within a second. If the
rules cannot be read, calls fail.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from typing import Any, cast
from uuid import UUID

from holdfast.access.identities import Identities
from holdfast.core.errors import Broken, Conflict, HoldfastError, InvalidInput, NotFound
from holdfast.core.ids import identity_id
from holdfast.core.text import restore, store
from holdfast.core.threads import run_in_thread
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.catalog import OpenedSkills
from holdfast.skills.rules.grammar import RulesText, parse_rules
from holdfast.skills.rules.rule import AccessRule
from holdfast.skills.rules.rule_set import CallerRules, RuleCaller, RuleSet
from holdfast.skills.rules.trials import RuleTrial, RuleTrials
from holdfast.skills.tool import RESERVED, Tool
from holdfast.skills.tools import Tools, author_of

FRESH = 0.5  # seconds between two checks of the version
MAX_CALLS = 10_000  # that a test of rules goes over
PAGE = 100  # of these in memory at a time

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class StoredRules:
    """The rules of a tenant as they were written. Version 0: there are none."""

    text: str = ""
    version: int = 0
    updated_at: datetime | None = None
    updated_by: str = ""


@dataclass(frozen=True, slots=True)
class ChangedDecision:
    """A call that was made, and that other rules would decide otherwise; `rule` is the one that refuses it."""

    tool: str
    user: str | None
    agent: str | None
    at: datetime
    allowed: bool
    rule: str


class AccessRules:
    """Reads, changes and caches the access rules of one tenant."""

    def __init__(self, database: Database, identities: Identities, tools: Tools, trials: RuleTrials) -> None:
        self._database = database
        self._identities = identities
        self._tools = tools
        self._trials = trials
        self._set: RuleSet | None = None
        self._checked = 0.0
        self._reading = asyncio.Lock()

    # Decisions

    @property
    def fresh(self) -> RuleSet | None:
        """The cached rules, if they are current."""
        return self._set if self._set is not None and monotonic() - self._checked <= FRESH else None

    async def current(self) -> RuleSet:
        """Return the rules that apply now; concurrent callers share one read."""
        if (found := self.fresh) is not None:
            return found
        async with self._reading:
            return self.fresh or await self._read()

    async def read(self) -> RuleSet:
        """Return the rules that are stored at the time of this call."""
        async with self._reading:
            return await self._read()

    async def of(self, rules: RuleSet, caller: RuleCaller) -> CallerRules:
        """Return the rules for the calls of a caller. A user who goes by an id, or by a name, is the same user."""
        found = rules.known_caller(caller.user, caller.agent, caller.key, caller.scopes)
        return rules.caller(await self._identified(rules, caller)) if found is None else found

    async def hidden(self, caller: RuleCaller, tools: Mapping[str, Tool]) -> set[str]:
        """Return the names of the tools that rules hide from a caller."""
        rules = await self.current()
        if not rules.hides:
            return set()
        theirs = await self.of(rules, caller)
        return {name for name, tool in tools.items() if theirs.of(tool).hidden_by is not None}

    async def hidden_names(self, caller: RuleCaller, names: Sequence[str]) -> set[str]:
        """Return those of these registered tools that rules hide from a caller."""
        if not names or not (await self.current()).hides:
            return set()
        return await self.hidden(caller, await self._tools.by_names(names))

    async def visible(self, caller: RuleCaller, opened: OpenedSkills) -> OpenedSkills:
        """Return opened skills without the tools that rules hide from a caller."""
        hidden = await self.hidden(caller, {name: offer.tool for name, offer in opened.disclosed.items()})
        if not hidden:
            return opened
        return replace(opened, disclosed={name: each for name, each in opened.disclosed.items() if name not in hidden})

    def note_trials(
        self, rules: Sequence[str], *, tool: str, user: str | None, agent: str | None, arguments: Mapping[str, Any]
    ) -> None:
        """Count a call that rules on trial would have decided otherwise."""
        self._trials.note(self._database, rules, tool=tool, user=user, agent=agent, arguments=arguments)

    # Text

    async def parse(self, text: str) -> RulesText:
        """Read rules, in a thread: many take long. Raise InvalidInput with the errors."""
        known = () if self._set is None else self._set.rules
        return await run_in_thread(lambda: parse_rules(text, known), name="holdfast access rules")

    async def get(self) -> StoredRules:
        """Return the stored rules."""
        row = await self._database.one(sql("access_rules"), -1)
        if row is None:
            return StoredRules()
        return StoredRules(restore(row["text"]), row["version"], row["updated_at"], restore(row["updated_by"]))

    async def put(self, text: str, *, version: int | None = None, by: str = "") -> StoredRules:
        """Replace the rules. `version` is the expected one; None: any. Raise InvalidInput if the text is invalid."""
        written = await self.parse(text)
        on_trial = [each.name for each in written.rules if each.on_trial] + ["default"] * written.default.on_trial
        row = await self._database.one(sql("put_access_rules"), store(text), version, on_trial, author_of(by))
        assert row is not None
        if row["outcome"] == "conflict":
            raise Conflict("the access rules have changed", expected=version or 0, current=row["version"])
        await self.read()
        return await self.get()

    async def add(self, rules: str, *, by: str = "") -> StoredRules:
        """Add rules at the end."""
        await self.parse(rules)  # so that an error names the line of the given text
        stored = await self.get()
        between = "" if not stored.text or stored.text.endswith("\n") else "\n"
        return await self.put(f"{stored.text}{between}{rules.rstrip()}\n", version=stored.version, by=by)

    async def remove(self, name: str, *, by: str = "") -> StoredRules:
        """Remove a rule. Comments stay."""
        stored = await self.get()
        written = await self.parse(stored.text)
        if not any(each.name == name for each in written.rules):
            raise unknown_rule(name)
        return await self.put(written.without(name), version=stored.version, by=by)

    async def rule(self, name: str) -> AccessRule:
        """Return a rule."""
        found = next((each for each in (await self.read()).rules if each.name == name), None)
        if found is None:
            raise unknown_rule(name)
        return found

    async def trials(self) -> dict[str, RuleTrial]:
        """Return what rules on trial would have decided otherwise, by their names."""
        await self._trials.flush()
        return await self._trials.of(self._database)

    async def warnings(self, written: RulesText) -> list[str]:
        """Return a warning for each tool, source and agent that is named and does not exist."""
        named = {
            (clause.part, pattern.exact): rule.name
            for rule in written.rules
            for clause in (*rule.who, *rule.what)
            if clause.part in ("tool", "source", "agent")
            for pattern in clause.names
            if pattern.exact is not None and not (clause.part == "tool" and pattern.exact in RESERVED)
        }
        if not named:
            return []
        parts, names = zip(*named, strict=True)
        rows = await self._database.all(sql("unknown_names"), [*parts], [store(str(name)) for name in names])
        found = [(row["part"], restore(row["name"])) for row in rows]
        return [
            f"the rule {named[part, name]} names the {part} {name!r:.200}, which does not exist" for part, name in found
        ]

    async def test(self, written: RulesText, *, calls: int) -> tuple[int, list[ChangedDecision]]:
        """Compare rules with the current ones over the latest calls, and return how many there were, and which differ.

        The scopes and the keys of these calls are not known.
        """
        if not 0 < calls <= MAX_CALLS:
            raise InvalidInput(f"the number of calls cannot be {calls}", next=f"Use 1 to {MAX_CALLS:,}.")
        before, after = await self.read(), RuleSet(written)
        found: list[ChangedDecision] = []
        tools: dict[UUID, Tool | None] = {}
        seen, oldest = 0, None
        while seen < calls:  # in pages: arguments can be large
            rows = await self._database.all(sql("former_calls"), min(PAGE, calls - seen), oldest)
            if not rows:
                break
            seen, oldest = seen + len(rows), rows[-1]["id"]
            found += await self._changed(rows, before, after, tools)
        return seen, found

    async def _changed(
        self, rows: Sequence[Row], before: RuleSet, after: RuleSet, tools: dict[UUID, Tool | None]
    ) -> list[ChangedDecision]:
        """Return which calls two sets of rules decide differently."""
        found: list[ChangedDecision] = []
        for row in rows:
            id: UUID = row["tool_id"]
            if id not in tools:
                tools[id] = await self._tools.current(id)
            tool, arguments = tools[id], row["input_params"]
            if tool is None:
                continue
            user, agent = _restore(row["user_name"]), _restore(row["agent"])
            given = cast(dict[str, Any], arguments) if isinstance(arguments, dict) else {}
            was, now = [
                (await self.of(rules, RuleCaller(user, agent))).decide(tool, given, row["created_at"].timestamp())
                for rules in (before, after)
            ]
            if was.is_allowed != now.is_allowed:
                rule = now.rule or was.rule or ""
                found.append(ChangedDecision(tool.name, user, agent, row["created_at"], now.is_allowed, rule))
        return found

    async def _read(self) -> RuleSet:
        began, known = monotonic(), self._set
        row = await self._database.one(sql("access_rules"), -1 if known is None else known.version)
        if row is None:
            found = RuleSet() if known is None or known.version else known
        elif row["text"] is None and known is not None:
            found = known
        else:
            found = RuleSet(await self._parse_stored(restore(row["text"])), row["version"])
        self._set, self._checked = found, began
        return found

    async def _parse_stored(self, text: str) -> RulesText:
        try:
            return await self.parse(text)
        except HoldfastError as error:
            raise Broken(
                "the access rules of the tenant cannot be read, so that no tool can be called",
                why=error.why,
                next="Correct them with `holdfast gateway rules set`.",
            ) from error

    async def _identified(self, rules: RuleSet, caller: RuleCaller) -> RuleCaller:
        """Return a caller with the other names of its user."""
        if caller.user is None or not caller.user:
            return caller
        tenant = await self._database.tenant()
        id = identity_id(tenant, "user", caller.user)
        if str(id) != caller.user:
            return replace(caller, ids=(str(id),))
        names = {(await self._identities.names("user", [id]))[id]}
        exact = {
            each for rule in rules.rules for clause in rule.who if clause.part == "user" for each in clause.exact or ()
        }
        names |= {name for name in exact if name and identity_id(tenant, "user", name) == id}  # not stored yet
        return replace(caller, ids=tuple(sorted(names - {caller.user})))


def unknown_rule(name: str) -> NotFound:
    """Return the error for a rule that does not exist."""
    return NotFound(f"there is no rule {name!r:.100}", next="List them with `holdfast gateway rules ls`.")


def _restore(name: str | None) -> str | None:
    return None if name is None else restore(name)
