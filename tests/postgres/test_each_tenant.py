"""Work for several tenants."""

import pytest

from holdfast.core.errors import DatabaseAway, InvalidInput
from holdfast.engine import Engine
from holdfast.postgres.database import Database
from holdfast.postgres.each_tenant import for_each_tenant, in_batches


@pytest.mark.parametrize("error", [InvalidInput("planted"), RuntimeError("planted")])
async def test_a_tenant_that_fails_does_not_stop_the_others(
    engine: Engine, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.tenants.create("acme")
    tenants = await engine.postgres.system.all("select id from tenant order by id")
    seen: list[Database] = []

    async def work(database: Database) -> int:
        seen.append(database)
        if len(seen) == 1:
            raise error
        return 7

    assert await for_each_tenant(engine.postgres, tenants, work, name="sweep") == 7
    assert len(seen) == 2
    assert f"the sweep failed for {tenants[0]['id']}" in caplog.text


async def test_it_stops_when_the_database_is_away(engine: Engine) -> None:
    tenants = await engine.postgres.system.all("select id from tenant")

    async def work(_: Database) -> int:
        raise DatabaseAway("planted")

    with pytest.raises(DatabaseAway):
        await for_each_tenant(engine.postgres, tenants, work, name="sweep")


async def test_batches_go_on_until_one_is_not_full() -> None:
    sizes = iter([5, 5, 2, 9])

    async def work() -> int:
        return next(sizes)

    assert await in_batches(work, 5) == 12
