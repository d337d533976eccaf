from datetime import UTC, datetime, timedelta
from importlib.resources import files
from uuid import RFC_4122, UUID

import pytest

from holdfast.engine import Engine
from holdfast.postgres.database import OwnerConnection
from tests.clock import Clock

FUTURE = datetime(2040, 2, 29, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("tenancy", ["connection", "transaction"])
async def test_the_clock_moves_for_everyone_and_for_what_is_written(engine: Engine, clock: Clock) -> None:
    real = await engine.database.now()

    await clock.set(FUTURE)
    later = await clock.advance(timedelta(days=1))

    assert abs(real - datetime.now(UTC)) < timedelta(minutes=1)
    assert later == FUTURE + timedelta(days=1)
    assert await engine.database.now() == later
    assert await engine.postgres.system.now() == later
    assert (await engine.tenants.create("acme")).created_at == later


def packaged_fallback() -> str:
    """The function that stands in for `uuidv7()` on older servers, under another name."""
    text = (files("holdfast.postgres") / "migrations" / "0001_foundation.sql").read_text()
    branch = text.partition("  else\n")[2].partition("  end if;")[0]
    return branch.replace("holdfast.uuid7", "public.uuid7_below_18")


@pytest.mark.parametrize("function", ["holdfast.uuid7", "public.uuid7_below_18"])
async def test_identifiers_are_unique_of_version_7_and_grow_with_time(owner: OwnerConnection, function: str) -> None:
    await owner.script(packaged_fallback())
    before = await owner.value("select clock_timestamp()")

    rows = await owner.all(f"select {function}() as id, pg_sleep(0.002) from generate_series(1, 50)")
    many = await owner.all(f"select {function}() as id from generate_series(1, 5000)")

    slow: list[UUID] = [row["id"] for row in rows]
    ids: list[UUID] = [*slow, *(row["id"] for row in many)]
    assert len(set(ids)) == len(ids)
    assert {(id.version, id.variant) for id in ids} == {(7, RFC_4122)}
    assert slow == sorted(slow)
    made = datetime.fromtimestamp((slow[0].int >> 80) / 1000, UTC)
    assert before - timedelta(milliseconds=2) <= made <= before + timedelta(seconds=5)
