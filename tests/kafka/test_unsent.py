"""What the relay sends next: pages of records, fair to all partitions, neither too many nor too large."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from holdfast.bus.kafka.relay import GROUP
from holdfast.bus.records import Record
from holdfast.bus.retention import tend
from holdfast.core.settings import BusSettings
from holdfast.engine import Engine
from holdfast.postgres.database import Row
from holdfast.postgres.sql import statements
from tests.clock import Clock

pytestmark = pytest.mark.req("BUS-01")

ALL = [0, 1, 2, 3]  # shares
SETTINGS = BusSettings(retention_days=7, forget_groups_after_days=30)

sql = statements("holdfast.bus.kafka.relay")


@pytest.fixture
def driver() -> str:
    """No relay runs."""
    return "postgres"


async def unsent(
    engine: Engine,
    *,
    records: int = 100,
    size: int = 1_000_000,
    shares: Sequence[int] = ALL,
    sending: Sequence[tuple[UUID, str, int, int]] = (),
) -> list[Row]:
    """What comes next, with so many records and bytes at most, after what is being sent."""
    columns = [list(column) for column in zip(*sending, strict=True)] or [[], [], [], []]
    return await engine.postgres.system.all(sql("unsent"), GROUP, shares, records, size, *columns)


def offsets(pages: Sequence[Row]) -> dict[tuple[str, int], list[int]]:
    """The offsets of each partition."""
    return {(page["topic"], page["partition"]): page["offsets"] for page in pages}


async def fill(engine: Engine, topic: str, records: int, value: object = "x") -> None:
    """A topic of one partition with so many records."""
    await engine.log.create(topic, partitions=1)
    async with engine.transaction() as tx:
        for _ in range(records):
            await engine.log.publish(topic, value=value, tx=tx)


async def test_a_page_has_a_partitions_records_in_order_column_by_column(engine: Engine, clock: Clock) -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    await clock.set(noon)
    await engine.log.create("line", partitions=1)
    published: list[Record] = []
    for day in range(3):
        await clock.set(noon + timedelta(days=day))
        async with engine.postgres.owner() as owner:
            await tend(owner, SETTINGS)
        published += [await engine.log.publish("line", value=f"{day} {step}", key=f"{step}") for step in range(3)]

    (page,) = await unsent(engine)

    assert page["offsets"] == list(range(9))
    assert page["times"] == [record.at for record in published]
    assert page["ids"] == [str(record.id) for record in published]
    assert page["keys"] == [record.key for record in published]
    assert page["values"] == [f'"{record.value}"' for record in published]
    assert len(page["headers"]) == 9
    assert (page["tenant"], page["topic"], page["partition"], page["partitions"]) == ("default", "line", 0, 1)


async def test_every_partition_has_its_share_of_a_batch(engine: Engine) -> None:
    await fill(engine, "long", 40)
    await fill(engine, "short", 2)

    found = offsets(await unsent(engine, records=10))

    assert found == {("long", 0): list(range(5)), ("short", 0): [0, 1]}


async def test_more_partitions_than_a_batch_has_records_take_turns(engine: Engine) -> None:
    for number in range(6):
        await fill(engine, f"topic-{number}", 2)

    seen: set[tuple[str, int]] = set()
    for _ in range(100):
        found = offsets(await unsent(engine, records=2))
        assert [*found.values()] == [[0], [0]]
        seen |= {*found}

    assert len(seen) == 6


async def test_a_batch_ends_after_so_many_bytes_and_one_large_record_fits(engine: Engine) -> None:
    await fill(engine, "a", 5, "x" * 1000)
    await fill(engine, "b", 5, "x" * 1000)

    some = offsets(await unsent(engine, size=3500))
    one = offsets(await unsent(engine, size=10))

    assert some == {("a", 0): [0, 1], ("b", 0): [0, 1]}
    assert [*one.values()] == [[0]]


async def test_what_is_on_its_way_and_what_others_relay_is_passed_over(engine: Engine) -> None:
    await fill(engine, "a", 5)
    await fill(engine, "b", 5)
    first = await unsent(engine)
    tenant = first[0]["tenant_id"]
    share = {page["topic"]: page["share"] for page in first}

    rest = await unsent(engine, sending=[(tenant, "a", 0, 3), (tenant, "b", 0, 5)])
    others = await unsent(engine, shares=[one for one in ALL if one != share["a"]])

    assert offsets(rest) == {("a", 0): [3, 4]}
    assert "a" not in {page["topic"] for page in others}


async def test_where_the_first_records_were_dropped_it_goes_on_with_what_is_there(engine: Engine) -> None:
    await fill(engine, "a", 30)
    async with engine.postgres.owner() as owner:
        await owner.run('delete from public.record where "offset" < 25')

    assert offsets(await unsent(engine, records=3)) == {("a", 0): [25, 26, 27]}
