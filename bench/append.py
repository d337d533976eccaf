"""What it costs to add a message of half a kilobyte that changes the state, with one conversation and with 32 at once.

In one process, on one server with fsync on, in turns: our service and our session service for ADK, beside ADK's own,
LangChain's history and the session of the OpenAI Agents SDK, all as their users call them, and the floor: one bare
statement that writes the rows that our service writes. A conversation with an agent tells its topic of the message as
well, and has a floor of its own, which writes that record too. The peers have a database of their own. Figures are
medians over the rounds; a ratio is taken within a round.
"""

import asyncio
import importlib
import itertools
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import uvloop
from measure import Table, arguments
from measure.rounds import Operation, Server, Spent, in_rounds, medians, ratio
from peers import (
    APP,
    CONNECTIONS,
    PACKAGES,
    TEXT,
    USER,
    adk_event,
    disk,
    enter_environment,
    make_database,
    our_adk,
    our_engine,
    sqlalchemy_url,
    sync_time,
    their_adk,
)

from holdfast.bus.records import hash_of
from holdfast.core.ids import uuid7
from holdfast.core.text import dumps
from holdfast.engine import Engine
from holdfast.postgres.folder import DataFolder
from holdfast.postgres.tenancy import ensure_login

CONVERSATIONS = (1, 32)
MOST = max(CONVERSATIONS)
ROUNDS = 9

FLOOR = "the floor: one bare statement"
SERVICE = "conversations.append"
KEYED = "conversations.append, key and revision"
TOLD_FLOOR = "the floor with a record: one bare statement"
TOLD = "conversations.append, to an agent"
ADAPTER = "our ADK service"
ADK = "ADK's DatabaseSessionService"
LANGCHAIN = "LangChain's PostgresChatMessageHistory"
OPENAI = "OpenAI's SQLAlchemySession"
AGENT, TOPIC, PARTITIONS = "support", "llm-support", 16

Found = dict[int, dict[str, list[Spent]]]

WRITE = """
with {told} said as (
  update conversation set last_seq = last_seq + 1, revision = revision + 1, updated_at = now()
  where tenant_id = $1 and id = $2 returning last_seq, revision, updated_at
), written as (
  insert into node (
    tenant_id, root, seq, id, parent, place, context_type, context_name, context_value, content, state, revision,
    created_at, updated_at)
  select $1, $2, last_seq, $3, $2, revision, 'text', 'user', $4, $5, $6, revision, updated_at, updated_at from said
), kept as (
  insert into state as s (tenant_id, scope, owner, app_name, key, value, updated_at)
  select $1, 'session', $2, '', $7, $8, updated_at from said
  on conflict (tenant_id, scope, owner, app_name, key)
    do update set value = excluded.value, version = s.version + 1, updated_at = excluded.updated_at
)
select last_seq, revision, updated_at from said
"""
TELL = """
counted as (
  update topic_partition set next_offset = next_offset + 1, last_at = greatest(last_at, now())
  where tenant_id = $1 and topic = $9 and partition = $10 returning next_offset - 1 as number, last_at
), told as (
  insert into record (tenant_id, topic, partition, "offset", at, id, key, headers, value, bytes)
  select $1, $9, $10, number, last_at, $11, $2::uuid::text, $12, $13, 500 from counted
),
"""
DEFINE = "insert into agent_definition_t (host_id, agent_def_id, name) values ($1, $2, $3)"


@asynccontextmanager
async def floor(engine: Engine, *, told: bool = False) -> AsyncGenerator[list[Operation]]:
    """A connection for each conversation, as the role and under the security that our own statements have."""
    connect = cast(Callable[..., Awaitable[Any]], asyncpg.connect)
    tenant = await engine.database.tenant()
    async with engine.postgres.owner() as owner:
        login = await ensure_login(owner, engine.place.owner_url, by_account=True)
    settings = {"role": "holdfast_app", "holdfast.tenant": str(tenant)}
    connections = [await connect(login, server_settings=settings) for _ in range(MOST)]
    steps = itertools.count()
    write = WRITE.format(told=TELL if told else "")

    async def append(connection: Any, id: UUID) -> None:
        step, node = next(steps), uuid7()
        changes, value = json.dumps({"step": [step]}), json.dumps(step)
        record = record_of(id, node, step) if told else ()
        await connection.fetchrow(write, tenant, id, node, USER, TEXT, changes, "step", value, *record)

    made = [await engine.conversations.create(app=APP, user=USER) for _ in connections]
    yield [lambda c=c, m=m: append(c, m.id) for c, m in zip(connections, made, strict=True)]
    for connection in connections:
        await connection.close()


def record_of(id: UUID, node: UUID, step: int) -> tuple[object, ...]:
    """What the floor writes of a message to an agent."""
    message = {"version": "1.0.0", "conversation_id": id, "agent_id": "ui", "timestamp": datetime.now(UTC)}
    message |= {"docmem_node_id": id, "node_id": node, "action": "append"}
    headers = {"content-type": "application/json", "holdfast-schema": "conversation-message/1.0.0"}
    headers |= {"holdfast-sequence": str(step)}
    return TOPIC, hash_of(str(id)) % PARTITIONS, uuid7(), dumps(headers), dumps(message)


async def service(engine: Engine, *, agent: str | None = None) -> list[Operation]:
    """Our service, on the engine's pool."""
    steps = itertools.count()
    made = [await engine.conversations.create(app=APP, user=USER, agent=agent) for _ in range(MOST)]

    def append(id: Any) -> Awaitable[object]:
        return engine.conversations.append(id, TEXT, context=f"text:user:{USER}", state={"step": next(steps)})

    return [lambda m=m: append(m.id) for m in made]


async def keyed(engine: Engine) -> list[Operation]:
    """The same with an idempotency key and an expected revision."""
    steps = itertools.count()
    made = [await engine.conversations.create(app=APP, user=USER) for _ in range(MOST)]
    revisions = {conversation.id: conversation.revision for conversation in made}

    async def append(id: Any) -> None:
        node = await engine.conversations.append(
            id, TEXT, context=f"text:user:{USER}", state={"step": next(steps)}, key=str(uuid4()), expect=revisions[id]
        )
        revisions[id] = node.revision

    return [lambda m=m: append(m.id) for m in made]


async def adk(sessions: Any) -> list[Operation]:
    """A session service of ADK, each conversation held by one Session object."""
    steps = itertools.count()
    made = [await sessions.create_session(app_name=APP, user_id=USER) for _ in range(MOST)]

    async def append(session: Any) -> None:
        await sessions.append_event(session, adk_event(next(steps)))
        session.events.clear()  # what a long run piles up in memory is not what is measured

    return [lambda m=m: append(m) for m in made]


@asynccontextmanager
async def langchain(url: str) -> AsyncGenerator[list[Operation]]:
    """LangChain's history; it knows no pool, so each conversation has a connection."""
    from langchain_core.messages import HumanMessage
    from langchain_postgres import PostgresChatMessageHistory
    from psycopg import AsyncConnection

    connections = [await AsyncConnection.connect(url) for _ in range(MOST)]
    await PostgresChatMessageHistory.acreate_tables(connections[0], "chat_history")
    histories = [PostgresChatMessageHistory("chat_history", str(uuid4()), async_connection=c) for c in connections]
    yield [lambda h=h: h.aadd_messages([HumanMessage(TEXT)]) for h in histories]
    for connection in connections:
        await connection.close()


@asynccontextmanager
async def openai(url: str) -> AsyncGenerator[list[Operation]]:
    """The OpenAI Agents SDK's session, all on one engine."""
    from sqlalchemy.ext.asyncio import create_async_engine

    module: Any = importlib.import_module("agents.extensions.memory.sqlalchemy_session")
    engine = create_async_engine(sqlalchemy_url(url), pool_size=CONNECTIONS, max_overflow=0)
    sessions = [module.SQLAlchemySession(str(uuid4()), engine=engine, create_tables=True) for _ in range(MOST)]
    await sessions[0].get_items()  # makes the tables
    yield [lambda s=s: s.add_items([{"role": "user", "content": TEXT}]) for s in sessions]
    await engine.dispose()


async def measure(data: Path, seconds: float) -> Found:
    """The costs of every way in every round, by number of conversations."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(our_engine(data))
        peers = await make_database(engine)
        await engine.log.create(TOPIC, partitions=PARTITIONS)
        await engine.database.run(DEFINE, uuid7(), AGENT)
        ways = {
            FLOOR: await stack.enter_async_context(floor(engine)),
            SERVICE: await service(engine),
            KEYED: await keyed(engine),
            TOLD_FLOOR: await stack.enter_async_context(floor(engine, told=True)),
            TOLD: await service(engine, agent=AGENT),
            ADAPTER: await adk(await stack.enter_async_context(our_adk(engine))),
            ADK: await adk(await stack.enter_async_context(their_adk(peers))),
            LANGCHAIN: await stack.enter_async_context(langchain(peers)),
        }
        if find_spec("agents") is not None:
            ways[OPENAI] = await stack.enter_async_context(openai(peers))
        cases = {count: {way: every[:count] for way, every in ways.items()} for count in CONVERSATIONS}
        return await in_rounds(cases, rounds=ROUNDS, seconds=seconds, server=Server(DataFolder(data).cluster))


def table(found: Found, *, sync: float) -> Table:
    """The medians, how they stand to the floor, and how much faster than ADK's own service."""
    head = [
        "conversations",
        "way",
        "per s",
        "best",
        "of the floor",
        "faster than ADK",
        "client CPU µs",
        "server CPU µs",
    ]
    cells = [head]
    figures: list[dict[str, object]] = []
    for conversations, ways in found.items():
        for way, costs in ways.items():
            row = figures_of(costs, ways, floor=TOLD_FLOOR if way in (TOLD, TOLD_FLOOR) else FLOOR)
            figures.append({"conversations": conversations, "way": way, **row})
            shown = [f"{row['per_s']:.0f}", f"{row['best_per_s']:.0f}", f"{row['of_floor']:.2f}x"]
            shown += [f"{row['faster_than_adk']:.1f}x", f"{row['client_us']:.0f}", f"{row['server_us']:.0f}"]
            cells.append([str(conversations), way, *shown])
    notes = [
        "The aims: `conversations.append` at most 1.30x its floor's time, with a record as without one,",
        f"and our ADK service at least 6x as fast as ADK's own at {MOST} conversations.",
        f"Every pool has {CONNECTIONS} connections; the floor and LangChain, without one, one for each conversation.",
        "LangChain and OpenAI keep no state: theirs is the message alone.",
        f"One fdatasync of a page took {1e6 * sync:.0f} µs on this disk.",
    ]
    if OPENAI not in found[MOST]:
        notes.append("OpenAI's was left out: it is not installed here; `make bench` installs it.")
    return Table(
        name="append",
        title="What it costs to add a message",
        cells=cells,
        figures=figures,
        notes=notes,
        packages=PACKAGES,
    )


def figures_of(costs: Sequence[Spent], ways: Mapping[str, Sequence[Spent]], *, floor: str) -> dict[str, float]:
    """What is told of one way."""
    median = medians(costs)
    return {
        "per_s": 1 / median.wall,
        "best_per_s": 1 / min(cost.wall for cost in costs),
        "of_floor": ratio(costs, ways[floor]),
        "faster_than_adk": ratio(ways[ADK], costs),
        "client_us": 1e6 * median.client,
        "server_us": 1e6 * median.server,
    }


def main() -> None:
    """Measure, print, keep."""
    enter_environment()
    options = arguments(str(__doc__), seconds=120)
    with disk() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sync = sync_time(folder)
        found = runner.run(measure(folder / "data", options.seconds))
    table(found, sync=sync).publish(options.results)


if __name__ == "__main__":
    main()
