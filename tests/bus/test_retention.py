"""Retention: days are made ahead and dropped as a whole, but never what a group still needs."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast.bus import retention
from holdfast.bus.retention import Retention, RetentionReport, tend
from holdfast.core.config import load_config
from holdfast.core.settings import BusSettings
from holdfast.engine import Engine, open_engine
from tests.clock import Clock

pytestmark = pytest.mark.req("BUS-01")

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SETTINGS = BusSettings(retention_days=7, forget_groups_after_days=30)
DAYS = """
select relname from pg_inherits join pg_class on pg_class.oid = inhrelid
where inhparent = 'public.record'::regclass and relname <> 'record_other' order by relname
"""
OTHER = "select count(*) from record_other"


async def tended(engine: Engine) -> RetentionReport:
    """Tend the log, as the owner."""
    async with engine.postgres.owner() as owner:
        return await tend(owner, SETTINGS)


async def days(engine: Engine) -> list[str]:
    """The days that there are."""
    async with engine.postgres.owner() as owner:
        return [row["relname"].removeprefix("record_") for row in await owner.all(DAYS)]


async def in_other(engine: Engine) -> int:
    """How many records lie outside of all days."""
    async with engine.postgres.owner() as owner:
        return await owner.value(OTHER)


async def read(engine: Engine) -> list[object]:
    """What the topic holds."""
    return [record.value async for record in engine.log.read("orders")]


async def consume(engine: Engine, count: int) -> None:
    """Read so many with the group `billing`."""
    async with engine.log.subscribe(["orders"], group="billing") as records, asyncio.timeout(30):
        for _ in range(count):
            await records.commit(await anext(records))


@pytest.fixture
async def started(engine: Engine, clock: Clock) -> datetime:
    """A log that is tended on the first of March, with one record of that day."""
    await clock.set(NOON)
    await engine.log.create("orders", partitions=1)
    await tended(engine)
    await engine.log.publish("orders", value="first of march")
    return NOON


async def test_days_are_made_ahead_and_once(engine: Engine, clock: Clock) -> None:
    await clock.set(NOON)

    assert await tended(engine) == RetentionReport(made=4, dropped=0)
    assert await tended(engine) == RetentionReport(made=0, dropped=0)
    assert await days(engine) == ["20260301", "20260302", "20260303", "20260304"]
    await clock.set(NOON + DAY)
    assert await tended(engine) == RetentionReport(made=1, dropped=0)


async def test_records_lie_in_the_day_they_were_published_on(engine: Engine, clock: Clock, started: datetime) -> None:
    await clock.set(started + DAY)
    await engine.log.publish("orders", value="second")

    assert await in_other(engine) == 0
    assert await read(engine) == ["first of march", "second"]


async def test_a_day_is_dropped_when_it_is_old_and_nobody_needs_it(
    engine: Engine, clock: Clock, started: datetime
) -> None:
    await consume(engine, 1)
    await clock.set(started + 3 * DAY)
    await engine.log.publish("orders", value="fourth of march")

    await clock.set(datetime(2026, 3, 8, 23, 59, tzinfo=UTC))
    assert (await tended(engine)).dropped == 0, "the last record of the day is not seven days old"
    await clock.set(datetime(2026, 3, 9, 0, 1, tzinfo=UTC))
    assert (await tended(engine)).dropped == 1
    assert await read(engine) == ["fourth of march"]
    assert "20260301" not in await days(engine)
    await consume(engine, 1)
    assert [lag.position for lag in await engine.log.lag("billing")] == [2]


async def test_a_day_is_kept_while_a_group_has_not_read_it(engine: Engine, clock: Clock, started: datetime) -> None:
    await engine.log.publish("orders", value="unread")
    await consume(engine, 1)

    await clock.set(started + 20 * DAY)
    assert (await tended(engine)).dropped == 3, "the days after it are empty"
    assert await read(engine) == ["first of march", "unread"]

    await consume(engine, 1)
    assert (await tended(engine)).dropped == 1
    assert await read(engine) == []


async def test_a_group_that_nobody_reads_with_is_forgotten_in_the_end(
    engine: Engine, clock: Clock, started: datetime
) -> None:
    await engine.log.publish("orders", value="unread")
    await consume(engine, 1)

    await clock.set(started + 29 * DAY)
    await tended(engine)
    assert "20260301" in await days(engine)
    await clock.set(started + 31 * DAY)
    await tended(engine)

    assert "20260301" not in await days(engine)
    await engine.log.publish("orders", value="new")
    await consume(engine, 1)
    assert [lag.lag for lag in await engine.log.lag("billing")] == [0], "and it goes on with what is there"


async def test_a_group_that_has_read_nothing_yet_keeps_what_it_would_read(
    engine: Engine, clock: Clock, started: datetime
) -> None:
    async with engine.log.subscribe(["orders"], group="billing"):
        pass

    await clock.set(started + 20 * DAY)
    await tended(engine)

    assert await read(engine) == ["first of march"]


async def test_another_tenants_group_keeps_its_own_records_only(
    engine: Engine, clock: Clock, started: datetime
) -> None:
    await engine.tenants.create("acme")
    acme = engine.tenant("acme")
    await acme.log.create("orders", partitions=1)
    await acme.log.publish("orders", value="theirs")
    async with acme.log.subscribe(["orders"], group="billing"):
        pass
    await consume(engine, 1)

    await clock.set(started + 20 * DAY)
    await tended(engine)

    assert await read(acme) == ["theirs"]


async def test_records_of_days_that_were_not_made_are_kept_aside_and_go_one_by_one(
    engine: Engine, clock: Clock
) -> None:
    await clock.set(NOON)
    await engine.log.create("orders", partitions=1)
    await engine.log.publish("orders", value="before any day was made")

    assert await tended(engine) == RetentionReport(made=3, dropped=0), "today cannot be made: it has records already"
    assert await in_other(engine) == 1
    await clock.set(NOON + DAY)
    await engine.log.publish("orders", value="the day after")
    assert await in_other(engine) == 1
    assert await read(engine) == ["before any day was made", "the day after"]

    await consume(engine, 1)
    await clock.set(NOON + 8 * DAY)
    await tended(engine)
    assert await in_other(engine) == 0
    assert await read(engine) == ["the day after"]


async def test_records_kept_aside_stay_while_a_group_needs_them(engine: Engine, clock: Clock) -> None:
    await clock.set(NOON)
    await engine.log.create("orders", partitions=1)
    await engine.log.publish("orders", value="unread")
    async with engine.log.subscribe(["orders"], group="billing"):
        pass

    await clock.set(NOON + 20 * DAY)
    await tended(engine)

    assert await read(engine) == ["unread"]


async def test_a_log_is_tended_while_the_engine_is_open(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await clock.set(NOON)
    monkeypatch.setattr(retention, "FIRST", 0.01)

    async with Retention(engine.postgres.owner, SETTINGS), asyncio.timeout(30):
        while len(await days(engine)) < 4:
            pass


async def test_an_owner_without_privileges_can_tend_and_keeps_what_is_needed(remote_url: str, tmp_path: Path) -> None:
    config = load_config({"database.url": remote_url, "data": tmp_path / "data"}, environ={}, cwd=tmp_path)

    async def tended_later() -> RetentionReport:
        async with engine.postgres.owner() as owner:
            later = await owner.now() + 20 * DAY
            await owner.value("select set_config('holdfast.now', $1, false)", later.isoformat())
            return await tend(owner, SETTINGS)

    async with open_engine(config=config) as engine:
        assert len(await days(engine)) == 4, "made with the schema"
        await engine.log.create("orders", partitions=1)
        await engine.log.publish("orders", value="unread")
        async with engine.log.subscribe(["orders"], group="billing"):
            pass

        assert (await tended_later()).dropped == 3
        assert await read(engine) == ["unread"]
        await consume(engine, 1)
        assert (await tended_later()).dropped == 1
        assert await read(engine) == []
