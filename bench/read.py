"""What it costs to read the end of short and long conversations, a whole one, a list, and to add to a large state.

In one process, on one server with fsync on, in turns: our service and our session service for ADK beside ADK's own,
whose tables are in a database of their own. Figures are medians over the rounds; a ratio is taken within a round.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import uvloop
from measure import Table, arguments
from measure.rounds import Operation, Server, Spent, in_rounds, medians, ratio
from peers import (
    APP,
    PACKAGES,
    TEXT,
    USER,
    adk_event,
    disk,
    enter_environment,
    make_database,
    our_adk,
    our_engine,
    sync_time,
    their_adk,
)

from holdfast.engine import Engine
from holdfast.postgres.folder import DataFolder

ROUNDS = 9
LENGTHS = (100, 1_000, 10_000)
WINDOW = 20
WHOLE = 5_000
STATES = (0, 512, 1024)  # kB
VALUE = 8  # kB of each value in the state
SESSIONS = 2_000
LISTED = f"{APP}-list"

SERVICE = "conversations"
ADAPTER = "our ADK service"
ADK = "ADK's DatabaseSessionService"

# Each fills a conversation with copies of its first event, so that thousands need not be appended one by one.
OUR_COPIES = """
insert into public.node (
  tenant_id, root, seq, id, parent, place, context_type, context_name, context_value, content, payload, form, native,
  state, key, revision)
select tenant_id, root, number, holdfast.uuid7(), parent, number, context_type, context_name, context_value, content,
  payload, form,
  (native::jsonb || jsonb_build_object(
    'id', key || '-' || number, 'timestamp', (native ->> 'timestamp')::float8 + number))::json,
  state, key || '-' || number, number
from public.node, generate_series(2, $2::bigint) number where root = $1 and seq = 1
"""
OUR_END = "update public.conversation set last_seq = $2::bigint, revision = $2 where id = $1"
THEIR_COPIES = """
insert into events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
select id || '-' || number, app_name, user_id, session_id, invocation_id, timestamp + number * interval '1 second',
  event_data || jsonb_build_object(
    'id', id || '-' || number, 'timestamp', (event_data ->> 'timestamp')::float8 + number)
from events, generate_series(2, $2::bigint) number where session_id = $1
"""
THEIR_SESSIONS = """
insert into sessions (app_name, user_id, id, state, create_time, update_time)
select app_name, user_id, id || '-' || number, state, create_time, update_time
from sessions, generate_series(2, $2::bigint) number where id = $1
"""


@dataclass(frozen=True, slots=True)
class Case:
    """What is done, to how much."""

    what: str
    size: str


@dataclass(frozen=True, slots=True)
class Stores:
    """Our store and ADK's, side by side."""

    engine: Engine
    ours: Any
    theirs: Any
    their_database: Any

    async def create(self, *, app: str = APP, state: Mapping[str, object] | None = None) -> list[Any]:
        """The same session in both."""
        return [await s.create_session(app_name=app, user_id=USER, state=state) for s in (self.ours, self.theirs)]

    async def filled(self, length: int) -> tuple[UUID, Any, Any]:
        """A session with so many events in both, and the conversation that ours keeps it in."""
        own, other = await self.create()
        await self.ours.append_event(own, adk_event(1))
        await self.theirs.append_event(other, adk_event(1))
        found = await self.engine.conversations.find(session_id=own.id)
        assert found is not None
        async with self.engine.postgres.owner() as owner:
            await owner.run(OUR_COPIES, found.id, length)
            await owner.run(OUR_END, found.id, length)
        await self.their_database.execute(THEIR_COPIES, other.id, length)
        return found.id, own, other

    async def listed(self) -> None:
        """Many sessions of one user in both, with state of their own and of those above them."""
        state = {"topic": "tea", "user:theme": "dark", "app:greeting": "hello"}
        own = {"app_name": LISTED, "user_id": USER, "state": {"topic": "tea"}}
        _, other = await self.create(app=LISTED, state=state)
        await asyncio.gather(*(self.ours.create_session(**own) for _ in range(1, SESSIONS)))
        await self.their_database.execute(THEIR_SESSIONS, other.id, SESSIONS)

    async def analyze(self) -> None:
        """Let both know how much there is in them."""
        async with self.engine.postgres.owner() as owner:
            await owner.script("vacuum analyze")
        await self.their_database.execute("vacuum analyze")


async def cases(stores: Stores) -> dict[Case, dict[str, list[Operation]]]:
    """Everything that is measured."""
    from google.adk.sessions.base_session_service import GetSessionConfig

    steps = itertools.count()
    conversations = stores.engine.conversations

    def get(service: Any, session: Any, events: int | None = None) -> Awaitable[object]:
        config = None if events is None else GetSessionConfig(num_recent_events=events)
        return service.get_session(app_name=APP, user_id=USER, session_id=session.id, config=config)

    async def append(service: Any, session: Any) -> None:
        await service.append_event(session, adk_event(next(steps)))
        session.events.clear()  # what a long run piles up in memory is not what is measured

    def ways(service: Operation, adapter: Operation, adk: Operation) -> dict[str, list[Operation]]:
        return {SERVICE: [service], ADAPTER: [adapter], ADK: [adk]}

    found: dict[Case, dict[str, list[Operation]]] = {}
    for length in LENGTHS:
        id, own, other = await stores.filled(length)
        found[Case(f"read the last {WINDOW}", f"of {length:,}")] = ways(
            lambda id=id: conversations.last(id, WINDOW),
            lambda own=own: get(stores.ours, own, WINDOW),
            lambda other=other: get(stores.theirs, other, WINDOW),
        )
    id, own, other = await stores.filled(WHOLE)
    found[Case("read all", f"{WHOLE:,}")] = ways(
        lambda id=id: conversations.since(id, 0),
        lambda own=own: get(stores.ours, own),
        lambda other=other: get(stores.theirs, other),
    )
    for size in STATES:
        state = {f"value-{number}": "x" * 1024 * VALUE for number in range(size // VALUE)}
        alone = await conversations.create(app=APP, user=USER, state=state)
        own, other = await stores.create(state=state)
        found[Case("append", f"{size:,} kB of state")] = ways(
            lambda id=alone.id: conversations.append(
                id, TEXT, context=f"text:user:{USER}", state={"step": next(steps)}
            ),
            lambda own=own: append(stores.ours, own),
            lambda other=other: append(stores.theirs, other),
        )
    await stores.listed()
    found[Case("list sessions", f"{SESSIONS:,}")] = ways(
        lambda: conversations.list(app=LISTED, user=USER, limit=SESSIONS),
        lambda: stores.ours.list_sessions(app_name=LISTED, user_id=USER),
        lambda: stores.theirs.list_sessions(app_name=LISTED, user_id=USER),
    )
    await stores.analyze()
    return found


async def measure(data: Path, seconds: float) -> dict[Case, dict[str, list[Spent]]]:
    """The costs of every way in every round, by case."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(our_engine(data))
        url = await make_database(engine)
        ours = await stack.enter_async_context(our_adk(engine))
        theirs = await stack.enter_async_context(their_adk(url))
        connection = await cast(Callable[..., Awaitable[Any]], asyncpg.connect)(url)
        stack.push_async_callback(connection.close)
        todo = await cases(Stores(engine, ours, theirs, connection))
        return await in_rounds(todo, rounds=ROUNDS, seconds=seconds, server=Server(DataFolder(data).cluster))


def table(found: Mapping[Case, Mapping[str, list[Spent]]], *, sync: float) -> Table:
    """The medians, how they grow with the size, and how much faster they are than ADK's own service."""
    cells = [
        ["what", "size", "way", "ms", "best ms", "of the first", "faster than ADK", "client CPU ms", "server CPU ms"]
    ]
    figures: list[dict[str, object]] = []
    first: dict[str, Mapping[str, list[Spent]]] = {}
    for case, ways in found.items():
        smallest = first.setdefault(case.what, ways)
        for way, costs in ways.items():
            median = medians(costs)
            row = {
                "ms": 1e3 * median.wall,
                "best_ms": 1e3 * min(cost.wall for cost in costs),
                "of_the_first": ratio(costs, smallest[way]),
                "faster_than_adk": ratio(ways[ADK], costs),
                "client_ms": 1e3 * median.client,
                "server_ms": 1e3 * median.server,
            }
            figures.append({"what": case.what, "size": case.size, "way": way, **row})
            shown = [f"{row['ms']:.2f}", f"{row['best_ms']:.2f}", f"{row['of_the_first']:.2f}x"]
            shown += [f"{row['faster_than_adk']:.1f}x", f"{row['client_ms']:.2f}", f"{row['server_ms']:.2f}"]
            cells.append([case.what, case.size, way, *shown])
    return Table(
        name="read",
        title="What it costs to read conversations, and to add to a large state",
        cells=cells,
        figures=figures,
        notes=[
            "The aims: to read the end and to append cost the same whatever the size,",
            "and our ADK service reads a whole conversation at least 2x as fast as ADK's own.",
            f"Events are of half a kilobyte. The state is of values of {VALUE} kB; an append changes another one.",
            "`conversations` lists without state, the session services with it.",
            f"One fdatasync of a page took {1e6 * sync:.0f} µs on this disk.",
        ],
        packages=PACKAGES,
    )


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
