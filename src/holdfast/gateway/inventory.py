"""The inventory: the tools of a tenant, kept in memory and never older than a second."""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import monotonic
from typing import cast

from holdfast.access.principals import Principal
from holdfast.core.errors import HoldfastError, NotFound
from holdfast.core.text import store
from holdfast.engine import Engine
from holdfast.gateway.views import Listed, View, Who, sees, sees_own, shown_name
from holdfast.postgres.sql import statements
from holdfast.skills.offers import Offer, offer_of
from holdfast.skills.runnable import can_run
from holdfast.skills.tool import Entry, Tool
from holdfast.skills.tools import MAX_LISTED

FRESH = 0.5  # seconds for which it is not asked whether anything has changed
READ_ANEW = 60.0  # seconds after which what plain SQL has changed is seen, too
MOST_CHANGED = 200  # tools that are read one by one
REMEMBERED = 500  # views

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Known:
    """A tool that is registered, and how it is listed for whom nothing is said of it beside."""

    entry: Entry
    listed: Listed


@dataclass(frozen=True, slots=True)
class Grant:
    """What an agent has anyway; of the tools in `approve`, whoever granted them, a person has to allow each call."""

    offers: Mapping[str, Offer] = field(default_factory=dict[str, Offer])
    approve: frozenset[str] = frozenset()

    def held(self, offer: Offer) -> Offer:
        """A tool as this agent may call it."""
        return replace(offer, tool=replace(offer.tool, approve=True)) if offer.tool.name in self.approve else offer


NOTHING = Grant()


@dataclass(frozen=True)
class Stock:
    """The active tools as of a revision of the registry."""

    revision: int
    tools: Mapping[str, Known]
    views: "OrderedDict[Who, View]" = field(default_factory=OrderedDict[Who, View])

    @cached_property
    def shared(self) -> frozenset[str]:
        """What more than one of them would be called by: then each goes by its name in the registry."""
        names = Counter(known.listed.name for known in self.tools.values())
        return frozenset(name for name, count in names.items() if count > 1) | self.tools.keys()


class Inventory:
    """What callers of one tenant see; `own` are the engine's own tools, in the order in which they are listed."""

    def __init__(self, engine: Engine, own: Iterable[Tool] = ()) -> None:
        self._engine = engine
        self._database = engine.database
        self._own = tuple(own)
        self._stock: Stock | None = None
        self._checked = 0.0
        self._read_anew = 0.0
        self._reading: asyncio.Task[Stock] | None = None

    async def view(self, caller: Principal) -> View:
        """What a caller sees now."""
        stock = self._stock
        if stock is None or monotonic() - self._checked > FRESH:
            stock = await self.current()
        who = Who.of(caller)
        found = stock.views.get(who)
        if found is None:
            found = await self._view(stock, who)
            stock.views[who] = found
            if len(stock.views) > REMEMBERED:
                stock.views.popitem(last=False)
        return found

    async def current(self) -> Stock:
        """The tools as they are now; whoever asks meanwhile waits for the same answer."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._renew(), name="gateway inventory")
            self._reading.add_done_callback(self._read)
        return await asyncio.shield(self._reading)

    def _read(self, reading: "asyncio.Task[Stock]") -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # whoever waits has it

    async def _renew(self) -> Stock:
        began, before = monotonic(), self._stock
        revision = cast(int, await self._database.value(sql("registry_revision")))
        stock = before
        if stock is None:
            stock = Stock(revision, await self._all())
            self._read_anew = began + READ_ANEW
        elif stock.revision != revision:
            stock = await self._changed(stock, revision)
        if self._stock is before:  # else all was read anew meanwhile
            self._stock, self._checked = stock, began
        if began > self._read_anew:
            self._read_anew = began + READ_ANEW
            # There, and not as a task of its own: it ends before the database is closed.
            self._engine.background.start(f"gateway inventory {id(self)}", self._reread)
        return stock

    async def _reread(self) -> None:
        """Read everything anew, behind those who call meanwhile; what has changed since it began is in it, too."""
        try:
            stock = Stock(cast(int, await self._database.value(sql("registry_revision"))), await self._all())
            while self._stock is not None and stock.revision < self._stock.revision:
                stock = await self._changed(stock, self._stock.revision)
            self._stock = stock
        except HoldfastError as error:
            log.warning("the tools could not be read anew, and are in a minute: %s", error)
        except Exception:
            log.exception("a defect: the tools could not be read anew, and are in a minute")

    async def _all(self) -> dict[str, Known]:
        found: dict[str, Known] = {}
        after: str | None = None
        while True:
            page = await self._engine.tools.list(limit=MAX_LISTED, after=after, active=True)
            found |= {entry.tool.name: _known(entry) for entry in page if self._can_run(entry)}
            if len(page) < MAX_LISTED:
                return found
            after = page[-1].tool.name

    async def _changed(self, stock: Stock, revision: int) -> Stock:
        """The tools with those that have changed since; all of them anew where more than tools have."""
        rows = await self._database.all(sql("changed_tools"), stock.revision)
        names: list[str | None] = [row["name"] for row in rows if row["name"] != ""]
        if None in names or len(names) > MOST_CHANGED:
            return Stock(revision, await self._all())
        changed = {*names}
        tools = {name: known for name, known in stock.tools.items() if store(name) not in changed}
        rows = await self._database.all(sql("entries_by_name"), names)
        entries = map(self._engine.tools.entry_of, rows)
        tools |= {entry.tool.name: _known(entry) for entry in entries if self._can_run(entry)}
        return Stock(revision, tools)

    def _can_run(self, entry: Entry) -> bool:
        return can_run(entry.tool.kind, entry.tool.mode, self._engine.tools.runs)

    async def _view(self, stock: Stock, who: Who) -> View:
        grant = NOTHING if who.agent is None else await self._grant(who.agent, stock)
        if grant is None:
            return View(who, (), absent=True)
        offers = [grant.held(Offer(tool, tool)) for tool in self._own if sees_own(tool, who)]
        own = [Listed(offer.tool.name, "", offer, own=True) for offer in offers]
        taken = {tool.name for tool in self._own}
        listed: list[Listed] = []
        for name, known in stock.tools.items():
            if name not in taken and sees(known.entry, who, grant.offers):
                each = known.listed
                offer = grant.held(grant.offers.get(name, each.offer))
                if offer is not each.offer:
                    each = replace(each, offer=offer)
                if each.name != name and each.name in stock.shared:
                    each = replace(each, name=name)
                listed.append(each)
        return View(who, (*own, *sorted(listed, key=lambda each: each.name)))

    async def _grant(self, agent: str, stock: Stock) -> Grant | None:
        """What an agent has: what it is declared with, and, as they restrict it, what its skills bring.

        None: there is no such agent, or it is switched off, and whoever speaks for it reaches nothing.
        """
        try:
            definition = await self._engine.definitions.get(agent)
        except NotFound:
            return None
        if not definition.active:
            return None
        catalog = await self._engine.catalogs.of(agent)
        opened = await self._engine.catalogs.open(agent, [*catalog.by_name]) if catalog.by_name else None
        offers = {name: stock.tools[name].listed.offer for name in definition.tools if name in stock.tools}
        offers |= opened.disclosed if opened is not None else {}
        return Grant(offers, frozenset(definition.approve))


def _known(entry: Entry) -> Known:
    return Known(entry, Listed(shown_name(entry.tool), entry.display_name, offer_of(entry.tool)))
