"""The feed: consumers get each record of ours once and in order, and those of others as they come."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.bus import Log, Record
from holdfast.core.config import Config, load_config
from holdfast.core.errors import DatabaseAway
from holdfast.core.setting_sources import environment_name
from holdfast.engine import Engine, open_engine
from tests.conformance.consumers import Join, done, positions, publish, take, until, values
from tests.conformance.test_log_load import MEGABYTE, fill
from tests.kafka.plain import Plain
from tests.processes import Processes

PAGES = pytest.mark.parametrize("bus", [{"batch": 7}], ids=["pages of seven"])
FOREVER = "99999999"
ROOT = Path(__file__).parents[2]
READER = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from tests.conformance.reader import main
asyncio.run(main(sys.argv[2], int(sys.argv[3])))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))  # kB
"""


@pytest.mark.req("BUS-01", "BUS-03")
async def test_duplicates_are_dropped(log: Log, line: str, plain: Plain) -> None:
    await publish(log, line, range(3))
    for seen in await plain.read(line, 3):
        await plain.copy(seen, line)
    await publish(log, line, [3])

    async with log.subscribe([line], group="billing") as records:
        arrived = await take(records, 4)  # uncommitted, so that nothing but the feed could drop them

    assert values(arrived) == [0, 1, 2, 3]
    assert (await plain.read(line, 7))[-1].log_offset == 3


@pytest.mark.req("BUS-01")
async def test_what_kafka_has_dropped_is_read_from_postgresql(log: Log, line: str, plain: Plain) -> None:
    published = await publish(log, line, range(5))
    await plain.read(line, 5)
    await plain.delete_records(line, 4)

    async with log.subscribe([line], group="billing") as records:
        arrived = await done(records, 5)

    assert [record.id for record in arrived] == [record.id for record in published]
    assert values(arrived) == [0, 1, 2, 3, 4]


@pytest.mark.req("BUS-01")
@PAGES
async def test_a_gap_of_many_records_is_read_in_pages(log: Log, line: str, plain: Plain) -> None:
    await publish(log, line, range(50))
    await plain.read(line, 50)
    await plain.delete_records(line, 49)
    sizes: list[int] = []
    arrived: list[Any] = []

    async with log.subscribe([line], group="billing") as records:
        while len(arrived) < 50:
            batch = await records.batch(1000)
            sizes.append(len(batch))
            arrived += values(batch)
            await records.commit(batch[-1])

    assert arrived == list(range(50))
    assert max(sizes) <= 14, "a page, and what Kafka had beside it"


@pytest.mark.req("BUS-01")
async def test_what_kafka_has_dropped_comes_though_nothing_new_does(log: Log, line: str, plain: Plain) -> None:
    await publish(log, line, range(5))
    await plain.read(line, 5)
    await plain.delete_records(line, 5)

    async with log.subscribe([line], group="billing") as records:
        assert values(await done(records, 5)) == [0, 1, 2, 3, 4]


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize("told", [FOREVER, "9" * 5000, "2", "-1", "x"])
async def test_a_forged_offset_makes_nobody_skip_what_comes_later(log: Log, line: str, plain: Plain, told: str) -> None:
    await publish(log, line, [0, 1])
    seen = (await plain.read(line, 2))[1]
    headers = [(name, told.encode() if name == "holdfast-offset" else value) for name, value in seen.headers]
    headers = [(name, b"not an id" if name == "holdfast-id" else value) for name, value in headers]
    await plain.copy(seen, line, value=b'"forged"', headers=headers)
    await publish(log, line, [2, 3])

    async with log.subscribe([line], group="billing") as records:
        arrived = await done(records, 5)

    assert values(record for record in arrived if not record.foreign) == [0, 1, 2, 3]
    assert values(record for record in arrived if record.foreign) == ["forged"]


@pytest.mark.req("BUS-01")
async def test_another_id_at_an_offset_of_ours_is_a_foreign_record(log: Log, line: str, plain: Plain) -> None:
    await publish(log, line, range(6))
    seen = await plain.read(line, 6)
    await plain.delete_records(line, 6)
    forged = [
        (name, b"00000000-0000-7000-8000-000000000000" if name == "holdfast-id" else value)
        for name, value in seen[4].headers
    ]
    await plain.copy(seen[4], line, value=b'"forged"', headers=forged)
    await plain.copy(seen[5], line)

    async with log.subscribe([line], group="billing") as records:
        arrived = await done(records, 7)

    assert values(record for record in arrived if not record.foreign) == [0, 1, 2, 3, 4, 5]
    assert values(record for record in arrived if record.foreign) == ["forged"]


@pytest.mark.req("BUS-01", "EDA-01")
async def test_a_record_copied_from_another_topic_or_installation_is_a_foreign_one(
    log: Log, line: str, plain: Plain
) -> None:
    await log.create("other", partitions=1)
    await publish(log, "other", ["copied"])
    (seen,) = await plain.read("other", 1)
    elsewhere = [(name, value[::-1] if name == "holdfast-log" else value) for name, value in seen.headers]

    await plain.copy(seen, line)
    await plain.copy(seen, line, headers=elsewhere)
    await publish(log, line, ["ours"])

    async with log.subscribe([line], group="billing") as records:
        arrived = await done(records, 3)
    assert [(record.value, record.foreign) for record in arrived] == [
        ("copied", True),
        ("copied", True),
        ("ours", False),
    ]


@pytest.mark.req("BUS-01", "EDA-01")
async def test_foreign_records_come_as_they_are_and_are_committed(
    log: Log, line: str, plain: Plain, join: Join
) -> None:
    await publish(log, line, ["ours"])
    await plain.read(line, 1)
    await plain.produce(
        line, b'{"n": 1}', key="schlüssel".encode(), headers=[("trace", "ö".encode()), ("raw", b"\xff")]
    )
    await plain.produce(line, None)
    await plain.produce(line, b"3")
    first = await join(line, group="billing")
    ours, one, none = await take(first.records, 3)
    await first.records.commit(one)
    await first.crash()

    second = await join(line, group="billing")
    again = await done(second.records, 2)

    assert (ours.foreign, one.foreign, one.offset, one.broker_offset) == (False, True, 1, 1)
    assert (one.key, one.value, one.headers) == ("schlüssel", {"n": 1}, {"trace": "ö", "raw": "�"})
    assert (none.key, none.value) == (None, None)
    assert values(again) == [None, 3]
    assert again[0].id == none.id, "it can be told by its id"


@pytest.mark.req("BUS-01", "EDA-01")
async def test_committing_a_foreign_record_commits_those_of_ours_before_it(
    log: Log, line: str, plain: Plain, join: Join
) -> None:
    await publish(log, line, ["ours"])
    await plain.read(line, 1)
    await plain.produce(line, b'"foreign"')
    first = await join(line, group="billing")
    _, foreign = await take(first.records, 2)
    await first.records.commit(foreign)
    await first.leave()

    await publish(log, line, ["new"])
    second = await join(line, group="billing")

    assert values(await done(second.records, 1)) == ["new"]
    assert await positions(log, "billing") == {(line, 0): 2}


@pytest.mark.req("BUS-01", "BUS-04")
@pytest.mark.parametrize("bus", [{"max_attempts": 2}], ids=["two attempts"])
async def test_a_foreign_record_that_fails_is_a_dead_letter_in_the_end(
    engine: Engine, log: Log, line: str, plain: Plain
) -> None:
    await plain.produce(line, b'"bad"', key=b"a")
    await plain.produce(line, b'"good"')
    async with log.subscribe([line], group="billing") as records:
        (bad,) = await take(records, 1)
        await records.fail(bad, "no")
        (again,) = await take(records, 1)
        await records.fail(again, "no")
        (good,) = await done(records, 1)

    (letter,) = await engine.dead_letters.list()
    assert (letter.value, letter.key, letter.offset, letter.attempts, letter.error) == ("bad", "a", 0, 2, "no")
    assert (letter.record_id, again.id, good.value) == (bad.id, bad.id, "good")


@pytest.mark.req("BUS-01", "BUS-04")
async def test_what_is_not_json_is_a_dead_letter_and_takes_nothing_with_it(
    engine: Engine, log: Log, line: str, plain: Plain, join: Join
) -> None:
    await plain.produce(line, b'"before"')
    await plain.produce(line, b"{not json")
    await plain.produce(line, b"")
    await plain.produce(line, b'"after"')
    first = await join(line, group="billing")
    assert values(await take(first.records, 2)) == ["before", "after"]
    await first.crash()

    second = await join(line, group="billing")
    again = await done(second.records, 2)

    empty, broken = await engine.dead_letters.list()
    assert values(again) == ["before", "after"], "what came before it was not committed with it"
    assert (broken.value, broken.attempts, empty.value) == ("{not json", 1, "")
    assert "not JSON" in broken.error


@pytest.mark.req("BUS-01")
async def test_partitions_that_only_kafka_has_are_read_too(log: Log, line: str, plain: Plain) -> None:
    await plain.widen(line, 3)
    await plain.produce(line, b'"elsewhere"', partition=2)
    await publish(log, line, ["ours"])

    async with log.subscribe([line], group="billing") as records:
        arrived = await done(records, 2)

    assert {(record.partition, record.value) for record in arrived} == {(0, "ours"), (2, "elsewhere")}


@pytest.mark.req("BUS-03")
async def test_positions_in_postgresql_win_over_kafkas_which_follow(
    log: Log, line: str, plain: Plain, config: Config
) -> None:
    await publish(log, line, range(6))
    async with open_engine(config=config) as one, one.log.subscribe([line], group="billing") as records:
        await done(records, 4)

        async def followed() -> bool:
            return await plain.committed("billing", line) == 4

        await until(followed)
    await plain.commit("billing", line, 1)
    await plain.commit("behind", line, 6)

    async with log.subscribe([line], group="billing") as records:
        assert values(await done(records, 2)) == [4, 5]
    async with log.subscribe([line], group="behind") as records:
        assert values(await done(records, 6)) == list(range(6))


@pytest.mark.req("BUS-01", "BUS-03")
async def test_a_log_switched_from_postgresql_keeps_its_records_and_positions(
    config: Config, database_url: str, tmp_path: Path
) -> None:
    before = load_config({"database.url": database_url, "data": tmp_path / "data"}, environ={}, cwd=tmp_path)
    async with open_engine(config=before) as engine:
        await engine.log.create("line", partitions=1)
        await publish(engine.log, "line", range(5))
        async with engine.log.subscribe(["line"], group="billing") as records:
            await done(records, 3)

    async with open_engine(config=config) as engine:
        await publish(engine.log, "line", [5])
        async with engine.log.subscribe(["line"], group="billing") as records:
            rest = await done(records, 3)
        async with engine.log.subscribe(["line"], group="audit") as records:
            everything = await done(records, 6)

    assert values(rest) == [3, 4, 5]
    assert values(everything) == [0, 1, 2, 3, 4, 5]


@pytest.mark.req("BUS-01")
async def test_a_reset_group_reads_kafka_from_the_right_place(log: Log, line: str, plain: Plain) -> None:
    published = await publish(log, line, range(10))
    await plain.read(line, 10)
    async with log.subscribe([line], group="billing") as records:
        await done(records, 10)

    await log.reset("billing", line, offset=7)
    async with log.subscribe([line], group="billing") as records:
        by_offset = await done(records, 3)
    await log.reset("billing", line, at=published[4].at)
    async with log.subscribe([line], group="billing") as records:
        by_time = await done(records, 6)

    assert values(by_offset) == [7, 8, 9]
    assert values(by_time) == [4, 5, 6, 7, 8, 9]
    assert all(record.broker_offset is not None for record in by_offset + by_time), "from Kafka, not from PostgreSQL"


@pytest.mark.req("BUS-01")
async def test_a_group_that_begins_at_the_end_gets_what_comes_from_then_on(log: Log, line: str, plain: Plain) -> None:
    await publish(log, line, ["old"])
    await plain.read(line, 1)
    await plain.produce(line, b'"old and foreign"')

    async with log.subscribe([line], group="billing", start="end") as records:
        await publish(log, line, ["new"])
        await plain.read(line, 3)
        await plain.produce(line, b'"new and foreign"')

        assert values(await done(records, 2)) == ["new", "new and foreign"]


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize("how", ["cancelled", "away"])
async def test_nothing_is_lost_when_reading_is_cancelled_or_the_database_is_away(
    engine: Engine, log: Log, line: str, plain: Plain, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    await publish(log, line, range(4))
    seen = await plain.read(line, 4)
    await plain.delete_records(line, 4)
    for number in (0, 1, 3):  # the third is read from PostgreSQL, when the first two are unpacked
        await plain.copy(seen[number], line)
    ask, asked, never = engine.database.value, asyncio.Event(), asyncio.Event()

    async def value(statement: str, *arguments: object) -> Any:
        if "next_offset > $4" in statement and not asked.is_set():
            asked.set()
            if how == "away":
                raise DatabaseAway("gone")
            await never.wait()
        return await ask(statement, *arguments)

    monkeypatch.setattr(engine.database, "value", value)
    async with log.subscribe([line], group="billing") as records:
        reading, asking = asyncio.create_task(anext(records)), asyncio.create_task(asked.wait())
        await asyncio.wait([reading, asking], timeout=60, return_when=asyncio.FIRST_COMPLETED)
        reading.cancel()
        asking.cancel()
        first = [one for one in await asyncio.gather(reading, return_exceptions=True) if isinstance(one, Record)]
        rest = await done(records, 4 - len(first))

    assert values(first + rest) == [0, 1, 2, 3]


@pytest.mark.req("BUS-01")
@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.soak)])
async def test_a_consumer_far_behind_needs_little_memory(
    log: Log, config: Config, processes: Processes, plain: Plain, count: int
) -> None:
    assert config.database.url is not None
    settings = {"database.url": config.database.url.get_secret_value(), "bus.url": config.bus.url}
    settings |= {"bus.prefix": config.bus.prefix, "data": str(config.data), "bus.batch": "100"}
    environment = {environment_name(key): value for key, value in settings.items()}

    async def peak(topic: str, behind: int) -> int:
        await log.create(topic, partitions=1)
        await fill(log, topic, behind, bytes=1000)
        await plain.read(topic, behind)
        reader = processes.start("-c", READER, str(ROOT), topic, str(behind), environment=environment)
        assert await asyncio.to_thread(reader.wait, timeout=600) == 0, reader.stderr
        return 1000 * int(reader.stdout.split()[-1])

    few, many = await peak("few", 200), await peak("many", count)

    # Beside the bounded batches, the client keeps 16 MB of what it has fetched (queued.max.messages.kbytes).
    assert many < few + 30 * MEGABYTE
