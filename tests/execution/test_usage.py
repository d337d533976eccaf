import asyncio

import pytest

from holdfast.engine import Engine
from holdfast.execution.usage import ToolUsage
from tests.execution.house import House

pytestmark = pytest.mark.req("SKILL-07")


async def fine() -> str:
    """Is fine."""
    return "fine"


async def broken() -> None:
    """Is not."""
    raise ValueError("no")


async def test_calls_failures_and_time_are_counted_per_tool(engine: Engine) -> None:
    house = House(engine)
    good, bad = await house.put(fine), await house.put(broken)

    outcomes = [await house.run(tool) for tool in (good, good, bad)]
    await house.usage.flush()

    entries = [await house.tools.get(name) for name in ("fine", "broken")]
    spent = sum(outcome.latency_ms for outcome in outcomes[:2])
    assert [(entry.calls, entry.failures) for entry in entries] == [(2, 0), (1, 1)]
    assert entries[0].latency_ms == pytest.approx(spent / 2)


async def test_what_was_not_written_is_written_when_it_is_closed(engine: Engine) -> None:
    house = House(engine)
    tool = await house.put(fine)
    usage = ToolUsage()
    assert tool.id is not None
    for _ in range(3):
        usage.note(engine.database, tool.id, failed=False, latency_ms=1.0)

    await usage.close()
    usage.note(engine.database, tool.id, failed=True, latency_ms=1.0)
    await usage.close()

    entry = await house.tools.get("fine")
    assert (entry.calls, entry.failures, entry.latency_ms) == (4, 1, 1.0)


async def test_a_tool_that_was_removed_meanwhile_is_left_out(engine: Engine) -> None:
    house = House(engine)
    kept, gone = await house.put(fine), await house.put(broken)
    for tool in (kept, gone):
        await house.run(tool)

    await house.tools.remove("broken", version=gone.version)
    await house.usage.flush()

    assert (await house.tools.get("fine")).calls == 1


async def test_calls_of_two_processes_add_up(engine: Engine) -> None:
    house, other = House(engine), House(engine)
    tools = [await house.put(fine), await house.put(broken)]

    await asyncio.gather(*(each.run(tool) for each in (house, other) for tool in tools for _ in range(5)))
    await asyncio.gather(house.usage.flush(), other.usage.flush())

    assert [(await house.tools.get(tool.name)).calls for tool in tools] == [10, 10]
