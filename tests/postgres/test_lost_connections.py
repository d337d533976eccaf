import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from time import monotonic
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from holdfast.core.errors import DatabaseAway
from holdfast.engine import Engine
from holdfast.postgres.database import Database, Postgres
from tests.postgres.backends import Backends
from tests.remote import free_port

pytestmark = pytest.mark.parametrize("tenancy", ["connection", "transaction"])

INSERT = "insert into item (tenant_id, id) values ($1, $2)"
COUNT = "select count(*) from item where tenant_id = $1"
SLEEP = "select pg_sleep(60) where $1::uuid is not null"


async def use_at_once(database: Database, count: int) -> None:
    """Have this many connections open, idle afterwards."""
    async with AsyncExitStack() as stack:
        for _ in range(count):
            await stack.enter_async_context(database.transaction())


@pytest.mark.req("SAFE-01")
async def test_many_lost_connections_whose_end_is_not_known_yet_fail_nothing(
    database: Database, backends: Backends, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.run(INSERT, 0)
    await use_at_once(database, 7)
    lost = await backends.pids()
    real: Any = asyncpg.Connection.execute  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    async def execute(self: Any, *args: Any, **options: Any) -> str:
        if self.get_server_pid() in lost:  # the driver has read the server's last words, but not the end
            raise asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress")
        return await real(self, *args, **options)

    monkeypatch.setattr(asyncpg.Connection, "execute", execute)
    await database.run(INSERT, 1)
    await use_at_once(database, 7)

    assert len(lost) >= 7
    assert await database.value(COUNT) == 2


@pytest.mark.req("SAFE-01")
async def test_what_comes_after_idle_connections_were_lost_just_works(database: Database, backends: Backends) -> None:
    await database.run(INSERT, 0)
    for number in range(1, 9, 2):
        await use_at_once(database, 5)
        ended = await backends.end()
        assert ended >= 5

        await database.run(INSERT, number)
        await backends.end()
        async with database.transaction() as tx:
            await tx.run(INSERT, number + 1)

    assert await database.value(COUNT) == 9


async def test_a_statement_whose_connection_was_lost_under_way_says_that_its_effect_is_unknown(
    database: Database, backends: Backends
) -> None:
    task = asyncio.create_task(database.value(SLEEP))
    await backends.until("wait_event = 'PgSleep'")

    await backends.end("wait_event = 'PgSleep'")

    with pytest.raises(DatabaseAway, match="may or may not have taken effect"):
        await task
    assert await database.value(COUNT) == 0


async def test_a_transaction_whose_connection_was_lost_leaves_no_trace(database: Database, backends: Backends) -> None:
    with pytest.raises(DatabaseAway):  # noqa: PT012 - a transaction is several statements
        async with database.transaction() as tx:
            await tx.run(INSERT, 1)
            await backends.end("state = 'idle in transaction'")
            await tx.run(INSERT, 2)

    assert await database.value(COUNT) == 0
    assert await backends.count("state like 'idle in transaction%'") == 0


async def test_the_exception_of_a_transaction_is_not_hidden_by_its_lost_connection(
    database: Database, backends: Backends
) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - a transaction is several statements
        async with database.transaction():
            await backends.end("state = 'idle in transaction'")
            raise ZeroDivisionError

    assert await database.value(COUNT) == 0


async def test_a_transaction_that_is_left_while_a_statement_runs_in_it_is_given_up(
    database: Database, backends: Backends
) -> None:
    tasks: list[asyncio.Task[object]] = []

    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - a transaction is several statements
        async with database.transaction() as tx:
            await tx.run(INSERT, 1)
            tasks.append(asyncio.create_task(tx.value(SLEEP)))
            await backends.until("wait_event = 'PgSleep'")
            raise ZeroDivisionError

    await backends.end("wait_event = 'PgSleep'")
    with pytest.raises(DatabaseAway):
        await tasks[0]
    assert await database.value(COUNT) == 0


async def test_the_exception_of_the_owner_is_not_hidden_by_its_lost_connection(engine: Engine) -> None:
    async with engine.postgres.owner() as owner:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - a transaction is several statements
            async with owner.transaction():
                with pytest.raises(DatabaseAway):
                    await owner.script("select pg_terminate_backend(pg_backend_pid())")
                raise ZeroDivisionError


@pytest.mark.parametrize("place", ["no socket", "closed port", "silent port"])
@pytest.mark.req("ENG-07")
async def test_a_server_that_is_away_is_a_clear_error_within_the_time_allowed(
    database: Database, open_postgres: Callable[..., Postgres], place: str
) -> None:
    tenant = await database.tenant()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = {
            "no socket": "postgresql://holdfast@/holdfast?host=/nowhere/at/all",
            "closed port": f"postgresql://holdfast@127.0.0.1:{free_port()}/holdfast",
            "silent port": f"postgresql://holdfast@127.0.0.1:{silent.getsockname()[1]}/holdfast",
        }[place]
        away = open_postgres(url, connect_timeout=0.5).tenant(tenant)
        started = monotonic()

        with pytest.raises(DatabaseAway, match="cannot be reached") as refused:
            await away.value(COUNT)

    assert monotonic() - started < 5
    assert "HOLDFAST_DATABASE_URL" in refused.value.next
    assert refused.value.why
