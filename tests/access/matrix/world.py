"""The world of the matrix: one server, two tenants, those who call, and the objects that they name."""

import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast import App
from holdfast.access.principals import SCOPES
from holdfast.agents.definitions import Agent
from holdfast.core.config import Config, load_config
from holdfast.engine import Engine, open_engine
from holdfast.llm import Caller as ModelCaller
from holdfast.llm import ModelRequest
from holdfast.llm.scripted import Given, ScriptedModel
from holdfast.postgres.database import OwnerConnection, open_owner
from holdfast.postgres.options import Options
from holdfast.server.app import OPERATIONS
from tests.access.matrix import objects
from tests.access.matrix.objects import AGENT, SUBJECT, Fields, Kind, Place
from tests.access.matrix.rules import CALLERS, Caller, Target
from tests.agents.stage import calls, reached
from tests.server.conftest import running
from tests.server.wire import Site

OURS, ACME, THIRD = "default", "acme", "operations"
HOMES: Mapping[Caller, Target] = {"bob": "bob's", "stranger": "acme's"}  # whose objects are the callers' own
BATCH = 4  # approvals that are made at once

# What background parts write by themselves, whoever calls: leases, presence, counters, indexes, events on their way.
# The audit has what was denied, too, and a sealer moves its rows.
BACKGROUND_TABLES = {
    "consumer_member", "relay_lease", "worker_presence", "tool_usage", "model_usage", "memory_indexing", "memory_index",
    "memory_model", "memory_vector", "memory_term", "registry_indexing", "registry_vector", "registry_term",
    "mcp_event", "audit", "audit_chain", "audit_open", "audit_person", "resource_update",
}  # fmt: skip
BACKGROUND_COLUMNS = {
    "memory": "access_count, last_accessed", "mcp_session": "ends_at", "consumer_group": "seen_at",
}  # fmt: skip
LASTING_ROWS = {"mcp_session": "where transport = 'http'"}  # one that is a stream ends when its client has gone
TABLES = """
select c.relname as name, min(a.attname) filter (where a.attname in ('tenant_id', 'host_id')) as tenant
from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
group by c.relname order by c.relname
"""

MARK = re.compile(r"mark-of-([a-z]+)")

Fingerprints = dict[tuple[str, str | None], tuple[int, str]]  # rows and their checksum


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who calls."""

    name: Caller
    key: str | None
    headers: Mapping[str, str]


class World:
    """One server for all rows; objects are made when they are first asked for."""

    def __init__(self, site: Site, owner: OwnerConnection, stack: AsyncExitStack) -> None:
        self.site = site
        self.stack = stack
        self.people: dict[Caller, Person] = {}
        self._owner = owner
        self._statement = ""
        self._tenants: dict[str, str] = {}
        self._places: dict[Target, Place] = {}
        self._things: dict[tuple[str, Target], Fields] = {}
        self._repeat_tools: dict[str, str] = {}
        self._approvals: defaultdict[str, list[Fields]] = defaultdict(list)

    async def build(self) -> None:
        """Make the tenants, the callers and the agents."""
        engine, keys = self.site.engine, self.site.engine.keys
        for name in (ACME, THIRD):
            await engine.tenants.create(name)
        ids = {name: await engine.tenants.id_of(name) for name in (OURS, ACME, THIRD)}
        self._tenants = {str(id): name for name, id in ids.items()}
        users = frozenset({"read", "write"})

        async def person(name: Caller, tenant: str, user: str, scopes: frozenset[str], **more: Any) -> None:
            made = await keys.create(ids[tenant], user, scopes=scopes, agent=more.get("agent"))
            self.people[name] = Person(name, made.text, more.get("headers", {}))

        await person("ann", OURS, "ann", users)
        await person("bob", OURS, "bob", users)
        await person("reader", OURS, "ann", frozenset({"read"}))
        await person("admin", OURS, "admin", users | {"admin"})
        await person("agent", OURS, "ann", users, agent=AGENT)
        await person("backend", OURS, "backend", users | {"act-as"}, headers={"Holdfast-User": "ann"})
        await person("operator", THIRD, "operator", SCOPES, headers={"Holdfast-Tenant": OURS})
        await person("stranger", ACME, "ann", users)
        self.people["nobody"] = Person("nobody", None, {})
        assert tuple(self.people) == CALLERS
        ours, acme = engine.tenant(ids[OURS]), engine.tenant(ids[ACME])
        for each, mark in ((ours, "mark-of-admin"), (acme, "mark-of-acme")):
            # As a program's: nobody serves it, whatever else is served.
            await each.definitions.declare([Agent(AGENT, instructions=mark, knowledge=("default",))])

        def place(engine: Engine, user: str, named: str, owner: str, caller: Caller, tenant: str) -> Place:
            return Place(self, engine, user, named, owner, self.people[caller].key or "", tenant, SUBJECT)

        self._places = {
            "ann's": place(ours, "ann", "ann", "ann", "ann", OURS),
            "bob's": place(ours, "bob", "bob", "bob", "bob", OURS),
            "acme's": place(acme, "ann", "eve", "acme", "stranger", ACME),
            "ours": place(ours, "ann", "ann", "default", "ann", OURS),
        }
        self._statement = await self._fingerprint_statement()
        for caller in ("admin", "operator"):  # where they speak who have no objects of their own
            for agent in (AGENT, "desk"):
                await ours.conversations.create(user=caller, agent=agent, session_id=f"home-{agent}")

    # Objects

    async def thing(self, kind: Kind | None, target: Target) -> Fields:
        """The object of a kind that stays; of none, what every object has."""
        if kind is None:
            return {"sign": "", "named": ""}
        found = self._things.get((kind.name, target))
        if found is None:
            found = self._things[kind.name, target] = await self.fresh(kind, target)
        return found

    async def fresh(self, kind: Kind | None, target: Target, subject: str = SUBJECT) -> Fields:
        """An object of a kind that a call may use up; `subject` is what a search finds it by."""
        if kind is None:
            return await self.thing(None, target)
        if target == "missing":
            return {"subject": subject, **kind.absent()}
        place = replace(self._places[target], subject=subject)
        made = await kind.make(place)
        return {"named": place.named, "sign": made.get("id", ""), "subject": subject, **made}

    def home(self, caller: Caller) -> Target:
        """Whose objects are the caller's own."""
        return HOMES.get(caller, "ann's")

    async def repeat_tool(self, at: Place) -> str:
        """The name of a tool of a tenant that repeats what it is given."""
        if at.tenant not in self._repeat_tools:
            place = self._places["ours" if at.tenant == OURS else "acme's"]
            made = await objects.register_tool(place, objects.unique("repeat"))
            self._repeat_tools[at.tenant] = made["name"]
        return self._repeat_tools[at.tenant]

    async def take_approval(self, at: Place) -> Fields:
        """A run of the agent `desk` that called a tool, and waits for a person to allow another call."""
        if not self._approvals[at.owner]:
            # Served for a while only: what is decided later starts nothing.
            async with at.engine.serving(desk(at.secret)):
                self._approvals[at.owner] = [await self._make_approval(at) for _ in range(BATCH)]
        return self._approvals[at.owner].pop()

    async def _make_approval(self, at: Place) -> Fields:
        session = objects.unique("session")
        async for event in at.engine.agents.run("desk", message=at.mark, user=at.user, session_id=session):
            if event.kind == "approval":
                assert event.run_id is not None
                run = await reached(at.engine, event.run_id, "waiting")
                [called] = await at.engine.executions.list(run=run.id)
                return {
                    "id": str(event.approval_id), "run": str(run.id), "session": session, "agent": "desk",
                    "conversation": str(run.conversation), "execution": str(called.id),
                }  # fmt: skip
        raise AssertionError("the agent asked nobody")

    # Rows

    async def fingerprints(self) -> Fingerprints:
        """How many rows there are, and their checksum, by table and tenant."""
        await self.site.engine.call_records.flush()  # records of calls are written behind the answers
        rows = await self._owner.all(self._statement)
        return {
            (row["name"], self._tenants.get(row["tenant"], row["tenant"])): (row["rows"], row["sum"]) for row in rows
        }

    async def _fingerprint_statement(self) -> str:
        found = [(row["name"], row["tenant"]) for row in await self._owner.all(TABLES)]
        assert {name for name, _ in found} >= BACKGROUND_TABLES, "a table in BACKGROUND_TABLES is not there"
        return " union all ".join(
            f"select '{name}' as name, {tenant or 'null'}::text as tenant, count(*) as rows, {_checksum(name)} as sum "
            f"from {name} r {LASTING_ROWS.get(name, '')} group by 2"
            for name, tenant in found
            if name not in BACKGROUND_TABLES
        )


def _checksum(table: str) -> str:
    """What is another number when a row of a table was written: the newest transaction, or the sum of all contents."""
    if table in BACKGROUND_COLUMNS:
        return f"sum(hashtextextended((to_jsonb(r) - '{{{BACKGROUND_COLUMNS[table]}}}'::text[])::text, 0))::text"
    return "(age('3'::xid) - min(age(r.xmin)))::text"


def desk(instructions: str) -> App:
    """A program with an agent that tracks parcels, and refunds when a person allows it."""
    app = App("desk")

    @app.tool(idempotent=True)
    async def track(parcel: str) -> str:
        """Where a parcel is."""
        return parcel

    @app.tool
    async def refund(order: str) -> str:
        """Give the money back."""
        return order

    app.agent("desk", instructions=instructions, tools=[track, refund], approve=["refund"], memory=False)
    return app


def desk_reply(request: ModelRequest) -> Given:
    """What the agent `desk` says: it calls one tool, then the other, then it is done."""
    match [message.role for message in request.messages].count("assistant"):
        case 0:
            return calls(("track", {"parcel": str(request.messages[-1].content)}))
        case 1:
            return calls(("refund", {"order": "7"}))
        case _:
            return "Done."


def program() -> App:
    """The program of the server, which is served to the tenant `default`."""
    app = App("program")

    @app.prompt
    async def greet() -> str:
        """Say hello."""
        return "Hello."

    return app


@asynccontextmanager
async def open_world(database_url: str, folder: Path) -> AsyncGenerator[World]:
    """The world, as long as this lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))  # without a model
        patch.setattr("holdfast.engine.Caller", partial(ModelCaller, models=[ScriptedModel(desk_reply)]))
        # Nobody serves the agents: that is known, and need not be waited for.
        patch.setattr("holdfast.server.routes.chat.UNSERVED_AFTER", 0.0)
        patch.setattr("holdfast.gateway.builtin.agents.UNSERVED_AFTER", 0.0)
        patch.setattr("holdfast.gateway.inventory.FRESH", 0.0)  # tools are seen as soon as they are made
        patch.setattr("holdfast.knowledge.ingester.Ingester.step", rest)  # what is added stays as it is
        async with AsyncExitStack() as stack:
            config = _config(database_url, folder)
            engine = await stack.enter_async_context(open_engine(config=config))
            owner = await stack.enter_async_context(open_owner(database_url, Options()))
            site = await stack.enter_async_context(running(engine, config, OPERATIONS, app=program()))
            world = World(site, owner, await stack.enter_async_context(AsyncExitStack()))
            await world.build()
            yield world


async def rest(_: object) -> float:
    """A step that does nothing."""
    return 3600.0


def _config(database_url: str, folder: Path) -> Config:
    flags = {
        "database.url": database_url,
        "data": folder / "data",
        "memory.embedding.fetch": False,
        "server.port": 0,
        "bus.max_attempts": 1,
        "execution.functions": (objects.__name__,),
        "limits.sign_ins_per_minute": 1000,
    }
    return load_config(flags, environ={}, cwd=folder)


def visible_marks(caller: Caller) -> frozenset[str]:
    """Whose marks a caller may see."""
    match caller:
        case "nobody":
            return frozenset()
        case "stranger":
            return frozenset({"acme"})
        case "bob":
            return frozenset({"bob", "default"})
        case "admin" | "operator":
            return frozenset({"ann", "bob", "default", "admin"})
        case _:
            return frozenset({"ann", "default"})


def marks(text: str) -> set[str]:
    """Whose marks are in a text."""
    return {*MARK.findall(text)}
