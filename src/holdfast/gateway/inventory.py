"""The inventory: the tools of a tenant, cached in memory.

Every half second, the next caller checks the revision of the registry, and reads the tools that have changed. Changes
by plain SQL have no revision, so that all tools are read again once a minute.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import monotonic
from typing import cast

from holdfast.access.principals import Principal
from holdfast.core.errors import HoldfastError, NotFound
from holdfast.core.text import store
from holdfast.engine import Engine
from holdfast.gateway.views import CallerView, Listed, ViewKey, sees, sees_own, shown_name
from holdfast.postgres.sql import statements
from holdfast.skills.offers import Offer, offer_of
from holdfast.skills.rules.rule_set import CallerRules, RuleCaller, RuleSet
from holdfast.skills.runnable_kinds import can_run
from holdfast.skills.tool import Tool, ToolEntry
from holdfast.skills.tools import MAX_LISTED

FRESH = 0.5  # seconds between two checks of the revision
READ_ANEW = 60.0  # seconds between two reads of all tools, which find changes by plain SQL
MOST_BEHIND = 1800.0  # seconds since the last check after which changes may be deleted; then all tools are read
MOST_CHANGED = 200  # changed tools that are read by name; after more changes, all tools are read
REMEMBERED = 500  # cached views

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A registered tool, and how it is listed by default."""

    entry: ToolEntry
    listed: Listed


@dataclass(frozen=True, slots=True)
class AgentGrant:
    """The tools that an agent has by its definition and its skills.

    A person has to allow each call of a tool in `approve`, regardless of how the agent got the tool.
    """

    offers: Mapping[str, Offer] = field(default_factory=dict[str, Offer])
    approve: frozenset[str] = frozenset()

    def restrict(self, offer: Offer) -> Offer:
        """Return a tool as this agent may call it."""
        return replace(offer, tool=replace(offer.tool, approve=True)) if offer.tool.name in self.approve else offer


NOTHING = AgentGrant()


@dataclass(frozen=True)
class ToolSnapshot:
    """The active tools at a revision of the registry, the access rules, and the views of the tools."""

    revision: int
    tools: Mapping[str, RegisteredTool]
    rules: RuleSet = field(default_factory=RuleSet)
    views: "OrderedDict[ViewKey, CallerView]" = field(default_factory=OrderedDict[ViewKey, CallerView])

    @cached_property
    def ambiguous_names(self) -> frozenset[str]:
        """Ambiguous names: several tools would be listed by them, or a tool has them in the registry.

        Tools that would be listed by such a name are listed by their name in the registry.
        """
        names = Counter(known.listed.name for known in self.tools.values())
        return frozenset(name for name, count in names.items() if count > 1) | self.tools.keys()


class Inventory:
    """Returns what callers of one tenant see; `own` are the engine's own tools, in the order of their listing."""

    def __init__(self, engine: Engine, own: Iterable[Tool] = ()) -> None:
        self._engine = engine
        self._database = engine.database
        self._own = tuple(own)
        self._snapshot: ToolSnapshot | None = None
        self._checked = 0.0
        self._read_anew = 0.0
        self._reading: asyncio.Task[ToolSnapshot] | None = None

    @property
    def own(self) -> Sequence[Tool]:
        """The engine's own tools."""
        return self._own

    @property
    def revision(self) -> int:
        """The revision of the registry at the last check."""
        return -1 if self._snapshot is None else self._snapshot.revision

    async def view(self, caller: Principal) -> CallerView:
        """Return what a caller sees now."""
        snapshot = self._snapshot
        if snapshot is None or monotonic() - self._checked > FRESH:
            snapshot = await self.current()
        theirs = await self._rules(snapshot.rules, caller) if snapshot.rules.hides else None
        who = ViewKey.of(caller, () if theirs is None else theirs.view_key)
        found = snapshot.views.get(who)
        if found is None:
            found = await self._view(snapshot, who, theirs)
            snapshot.views[who] = found
            if len(snapshot.views) > REMEMBERED:
                snapshot.views.popitem(last=False)
        return found

    async def _rules(self, rules: RuleSet, caller: Principal) -> CallerRules:
        """Return the access rules for a caller."""
        known = rules.known_caller(caller.user, caller.agent, caller.key, caller.scopes)
        if known is not None:
            return known
        return await self._engine.rules.of(rules, RuleCaller(caller.user, caller.agent, caller.key, caller.scopes))

    async def current(self) -> ToolSnapshot:
        """Return the current tools; concurrent callers share one read."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._renew(), name="gateway inventory")
            self._reading.add_done_callback(self._read)
        return await asyncio.shield(self._reading)

    def _read(self, reading: "asyncio.Task[ToolSnapshot]") -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # retrieved, so that asyncio does not warn: the callers that wait raise it

    async def _renew(self) -> ToolSnapshot:
        began, before = monotonic(), self._snapshot
        revision = cast(int, await self._database.value(sql("registry_revision")))
        snapshot = before
        if snapshot is None:
            snapshot = await self._read_all(revision)
            self._read_anew = began + READ_ANEW
        elif snapshot.revision != revision:
            is_old = began - self._checked > MOST_BEHIND
            snapshot = await (self._read_all(revision) if is_old else self._apply_changes(snapshot, revision))
        if self._snapshot is before:  # otherwise a read of all tools has replaced it meanwhile
            self._snapshot, self._checked = snapshot, began
        if began > self._read_anew:
            self._read_anew = began + READ_ANEW
            # A background task of the engine, and not a plain task: it ends before the database is closed.
            self._engine.background.start(f"gateway inventory {id(self)}", self._reread)
        return snapshot

    async def _reread(self) -> None:
        """Read all tools while callers use the cached ones, then apply what has changed since the read began."""
        try:
            revision = cast(int, await self._database.value(sql("registry_revision")))
            snapshot = await self._read_all(revision)
            while self._snapshot is not None and snapshot.revision < self._snapshot.revision:
                snapshot = await self._apply_changes(snapshot, self._snapshot.revision)
            self._snapshot = snapshot
        except HoldfastError as error:
            log.warning("could not reload the tools; retrying in a minute: %s", error)
        except Exception:
            log.exception("internal error: could not reload the tools; retrying in a minute")

    async def _read_all(self, revision: int) -> ToolSnapshot:
        """Return all tools, and the access rules. A change of the rules is a revision, too."""
        return ToolSnapshot(revision, await self._all(), await self._engine.rules.read())

    async def _all(self) -> dict[str, RegisteredTool]:
        found: dict[str, RegisteredTool] = {}
        after: str | None = None
        while True:
            page = await self._engine.tools.list(limit=MAX_LISTED, after=after, active=True)
            found |= {entry.tool.name: _registered_tool(entry) for entry in page if self._can_run(entry)}
            if len(page) < MAX_LISTED:
                return found
            after = page[-1].tool.name

    async def _apply_changes(self, snapshot: ToolSnapshot, revision: int) -> ToolSnapshot:
        """Return the tools with all changes since `snapshot`. Read all tools if a source or many tools have changed."""
        rows = await self._database.all(sql("changed_tools"), snapshot.revision)
        names: list[str | None] = [row["name"] for row in rows if row["name"] != ""]
        if None in names or len(names) > MOST_CHANGED:
            return await self._read_all(revision)
        changed = {*names}
        tools = {name: known for name, known in snapshot.tools.items() if store(name) not in changed}
        rows = await self._database.all(sql("entries_by_name"), names)
        entries = map(self._engine.tools.entry_of, rows)
        tools |= {entry.tool.name: _registered_tool(entry) for entry in entries if self._can_run(entry)}
        return ToolSnapshot(revision, tools, await self._engine.rules.read())

    def _can_run(self, entry: ToolEntry) -> bool:
        return can_run(entry.tool.kind, entry.tool.mode, self._engine.tools.runs)

    async def _view(self, snapshot: ToolSnapshot, who: ViewKey, rules: CallerRules | None) -> CallerView:
        grant = NOTHING if who.agent is None else await self.grant(who.agent, snapshot)
        if grant is None:
            return CallerView(who, (), absent=True)
        seen = [tool for tool in self._own if sees_own(tool, who)]
        shown = [tool for tool in seen if rules is None or rules.of(tool).hidden_by is None]
        offers = [grant.restrict(Offer(tool, tool)) for tool in shown]
        own = [Listed(offer.tool.name, "", offer, own=True) for offer in offers]
        taken = {tool.name for tool in self._own}
        listed: list[Listed] = []
        hides = len(shown) < len(seen)
        for name, known in snapshot.tools.items():
            if name not in taken and sees(known.entry, who, grant.offers):
                if rules is not None and rules.of(known.entry.tool).hidden_by is not None:
                    hides = True
                    continue
                each = known.listed
                offer = grant.restrict(grant.offers.get(name, each.offer))
                if offer is not each.offer:
                    each = replace(each, offer=offer)
                if each.name != name and each.name in snapshot.ambiguous_names:
                    each = replace(each, name=name)
                listed.append(each)
        return CallerView(who, (*own, *sorted(listed, key=lambda each: each.name)), hides=hides)

    async def grant(self, agent: str, snapshot: ToolSnapshot) -> AgentGrant | None:
        """Return what an agent has: the tools of its definition, and those of its skills with their overlays.

        Return None if the agent does not exist or is disabled. A caller who acts for it then reaches nothing.
        """
        try:
            definition = await self._engine.definitions.get(agent)
        except NotFound:
            return None
        if not definition.active:
            return None
        catalog = await self._engine.catalogs.of(agent)
        opened = await self._engine.catalogs.open(agent, [*catalog.by_name]) if catalog.by_name else None
        offers = {name: snapshot.tools[name].listed.offer for name in definition.tools if name in snapshot.tools}
        offers |= opened.disclosed if opened is not None else {}
        return AgentGrant(offers, frozenset(definition.approve))


def _registered_tool(entry: ToolEntry) -> RegisteredTool:
    return RegisteredTool(entry, Listed(shown_name(entry.tool), entry.display_name, offer_of(entry.tool)))
