"""Consumers that die: what killed them is found out, and nothing else is blamed."""

import pytest

from holdfast.bus import Log
from holdfast.engine import Engine
from tests.conformance.consumers import Join, take


@pytest.mark.req("BUS-01", "BUS-04")
@pytest.mark.parametrize("bus", [{"max_attempts": 1}], ids=["one attempt"])
async def test_records_that_nobody_had_in_hand_are_not_blamed_for_a_death(
    engine: Engine, log: Log, orders: str, join: Join
) -> None:
    for n in range(40):
        await log.publish(orders, key=str(n), value=n)

    for _ in range(3):
        consumer = await join(orders, group="billing")
        await take(consumer.records, 1)
        await consumer.crash()

    survivor = await join(orders, group="billing")
    letters = await engine.dead_letters.list()
    seen: set[int] = set()
    while len(seen) < 40 - len(letters):
        (record,) = await take(survivor.records, 1)
        await survivor.records.commit(record)
        seen.add(record.value)
        letters = await engine.dead_letters.list()
    assert len(letters) <= 2, "only what was delivered alone, and killed its consumer once more"
    assert seen | {letter.value for letter in letters} == set(range(40))
