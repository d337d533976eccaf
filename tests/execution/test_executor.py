"""What is asked before a tool is called, and where the call goes."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.execution.outcomes import Outcome
from holdfast.skills.tool import Tool
from tests.execution.house import House, alone

called: list[str] = []


async def ship(parcel: str = "AB-1") -> str:
    """Ship a parcel."""
    called.append(parcel)
    return f"{parcel} is shipped"


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    """Nothing was called yet."""
    called.clear()


@pytest.fixture
def house(engine: Engine) -> House:
    """What runs tools."""
    return House(engine)


@pytest.fixture
async def tool(house: House) -> Tool:
    """A tool that ships."""
    return await house.put(ship)


def refused(outcome: Outcome, why: str) -> bool:
    """Whether nothing was called, and the model reads why."""
    assert not called
    assert outcome.text.startswith("ship was not called: ")
    assert outcome.text == outcome.error
    return outcome.status == "failed" and why in outcome.text


@pytest.mark.req("EXEC-02")
async def test_a_tool_is_called_as_its_row_allows(house: House, tool: Tool) -> None:
    outcome = await house.run(tool, {"parcel": "CD-2"}, run=alone("support"))

    assert (outcome.status, outcome.text, called) == ("done", "CD-2 is shipped", ["CD-2"])


@pytest.mark.req("SKILL-07")
async def test_a_tool_that_was_switched_off_is_not_called(house: House, tool: Tool) -> None:
    await house.tools.activate("ship", False)

    assert refused(await house.run(tool), "it is disabled")


@pytest.mark.req("SKILL-07")
async def test_a_tool_that_was_removed_is_not_called(house: House, tool: Tool) -> None:
    await house.tools.remove("ship", version=tool.version)

    assert refused(await house.run(tool), "it was removed")


@pytest.mark.req("SKILL-07")
async def test_an_agent_calls_what_it_may(house: House, tool: Tool) -> None:
    await house.engine.definitions.put("guest", instructions="Help.")
    await house.tools.permit("ship", {"default": "execute", "agents": {"guest": "read"}})

    assert refused(await house.run(tool, run=alone("guest")), "guest has only read")
    assert (await house.run(tool, run=alone("support"))).status == "done"
    assert (await house.run(tool, run=alone())).status == "done", "people are not held by what agents may"


Change = Callable[[Engine], Awaitable[object]]
CHANGES: dict[str, Change] = {
    "unlinked": lambda engine: engine.skills.unlink("shipping", "ship"),
    "link off": lambda engine: engine.skills.link("shipping", "ship", active=False, version=1),
    "skill off": lambda engine: engine.skills.activate("shipping", False),
    "unassigned": lambda engine: engine.skills.unassign("support", "shipping"),
    "assignment off": lambda engine: engine.skills.assign("support", "shipping", active=False, version=1),
}


@pytest.mark.req("SKILL-07", "SKILL-01")
@pytest.mark.parametrize("change", CHANGES)
async def test_a_tool_that_a_skill_disclosed_is_called_as_long_as_the_skill_is_open(
    engine: Engine, house: House, tool: Tool, change: str
) -> None:
    skill = await opened(engine)
    before = await house.run(tool, run=alone("support"), skill=skill)
    called.clear()

    await CHANGES[change](engine)

    assert before.status == "done"
    assert refused(await house.run(tool, run=alone("support"), skill=skill), "the skill that it belongs to")


@pytest.mark.req("SKILL-07")
async def test_a_skill_grants_no_more_than_its_link_says(engine: Engine, house: House, tool: Tool) -> None:
    skill = await opened(engine)
    await engine.skills.link("shipping", "ship", access="read", version=1)

    assert refused(await house.run(tool, run=alone("support"), skill=skill), "the skill grants only read")


@pytest.mark.req("SKILL-01")
async def test_a_skill_that_another_leads_to_is_open_as_long_as_the_other_is(
    engine: Engine, house: House, tool: Tool
) -> None:
    skill = await opened(engine, assigned=False)
    await engine.skills.put("selling", instructions="Sell.")
    await engine.skills.depend("selling", "shipping")
    await engine.skills.assign("support", "selling")

    led = await house.run(tool, run=alone("support"), skill=skill)
    called.clear()
    await engine.skills.activate("selling", False)

    assert led.status == "done"
    assert refused(await house.run(tool, run=alone("support"), skill=skill), "the skill that it belongs to")


@pytest.mark.req("SKILL-03")
async def test_a_tool_that_was_changed_is_called_as_it_is_now(house: House, tool: Tool) -> None:
    schema = {"type": "object", "properties": {"parcel": {"type": "string", "default": "EF-3"}, "to": {}}}
    same: dict[str, Any] = {"description": "Ship.", "kind": "function", "reference": tool.reference, "mode": "inline"}
    changed = await house.tools.put("ship", parameters=schema, version=tool.version, **same)

    defaults = await house.run(tool)
    called.clear()
    await house.tools.put("ship", parameters={**schema, "required": ["to"]}, version=changed.version, **same)

    assert defaults.text == "EF-3 is shipped"
    assert refused(await house.run(tool), "`to` is missing")


@pytest.mark.req("EXEC-02", "ENG-08", "MCP-10")
async def test_no_connection_is_held_while_a_tool_runs(config: Config) -> None:
    small = config.model_copy(update={"database": config.database.model_copy(update={"pool_size": 1})})
    async with open_engine(config=small) as engine:
        house = House(engine)

        async def look() -> str:
            """Look at the database."""
            return str((await house.run(inner)).result)

        inner = await house.put(ship)
        outer = await house.put(look)
        outcome = await house.run(outer)

    assert outcome.text == "AB-1 is shipped"


@pytest.mark.req("EDA-06")
async def test_what_calls_others_goes_to_a_worker_where_one_serves_it(
    house: House, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.presence.FRESH", 0.0)
    await house.put(ship, name="send", mode="event")
    rest = replace(tool, name="send", kind="rest", mode=None)
    before = await house.executor.mode(rest)

    async with house.worker():
        await house.present("send")
        served = [
            await house.executor.mode(each)
            for each in (rest, replace(rest, name="other"), replace(rest, mode="inline"), replace(tool, mode=None))
        ]
    afterwards = await house.executor.mode(rest)

    assert (before, served, afterwards) == ("inline", ["event", "inline", "inline", "inline"], "inline")


@pytest.mark.req("EXEC-01")
async def test_java_is_refused_clearly_where_no_worker_serves_it(house: House, tool: Tool) -> None:
    outcome = await house.run(replace(tool, kind="java", mode=None, id=None))

    assert (await house.executor.mode(replace(tool, kind="java", mode=None))) == "event"
    assert outcome.status == "failed"
    assert "no worker serves the tool ship: it is written in Java" in outcome.text


@pytest.mark.req("EXEC-02")
async def test_a_large_result_is_shortened_and_the_whole_is_kept_beside(house: House) -> None:
    async def much() -> list[str]:
        """Give much."""
        return ["x" * 1000] * 2000

    outcome = await house.run(await house.put(much), max_output_bytes=3000)

    told = outcome.with_output_note(UUID(int=7))
    assert outcome.whole is not None
    assert (len(outcome.whole), outcome.content_type) == (2000 * 1003 + 1, "application/json")
    assert len(told.text.encode()) <= 3000
    assert told.text.endswith(f"are stored as the output of the execution {UUID(int=7)}]")


async def opened(engine: Engine, *, assigned: bool = True) -> UUID:
    """A skill that works with the tool, and an agent that may have it."""
    skill = await engine.skills.put("shipping", instructions="Ship.")
    await engine.skills.link("shipping", "ship")
    await engine.definitions.put("support", instructions="Help.")
    if assigned:
        await engine.skills.assign("support", "shipping")
    return skill.id
