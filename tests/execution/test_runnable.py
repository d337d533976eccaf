"""Tools that nothing can run are neither registered nor offered."""

from typing import Any

import pytest

from holdfast.access.principals import OWNER_SCOPES, Principal
from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine
from holdfast.gateway.inventory import Inventory
from holdfast.skills.folders import FolderSkill, FolderTool
from holdfast.skills.tool import KINDS, Kind

pytestmark = [pytest.mark.req("EXEC-01"), pytest.mark.usefixtures("no_models")]

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
WITHOUT_A_RUNNER: dict[Kind, dict[str, Any]] = {
    "java": {"reference": "com.shop.Track"},
}
TURN_INTO = "update tool_t set implementation_type = $3, api_endpoint = null where host_id = $1 and name = $2"


async def put(engine: Engine, name: str, kind: Kind, **given: Any) -> None:
    await engine.tools.put(name, description="Looks after a parcel.", parameters=NOTHING, kind=kind, **given)


def test_every_kind_without_a_runner_is_known_here(engine: Engine) -> None:
    assert {kind for kind in KINDS if not engine.executor.runs(kind)} == WITHOUT_A_RUNNER.keys()


@pytest.mark.parametrize("kind", WITHOUT_A_RUNNER)
async def test_a_tool_that_cannot_run_is_refused_at_registration(engine: Engine, kind: Kind) -> None:
    with pytest.raises(InvalidInput) as refused:
        await put(engine, "track", kind, **WITHOUT_A_RUNNER[kind])

    assert refused.value.why == f"this installation has no runner for the kind {kind}"
    assert "function, rest" in refused.value.next
    assert await engine.tools.list() == []


async def test_a_tool_of_an_mcp_server_is_only_registered_with_its_source(engine: Engine) -> None:
    with pytest.raises(InvalidInput) as refused:
        await put(engine, "track", "mcp_server", server="shop")
    await put(engine, "track", "rest", endpoint="https://shop.example/track", method="GET")
    with pytest.raises(InvalidInput):
        await engine.database.run(TURN_INTO, "track", "mcp_server")

    assert "sources add" in refused.value.next


async def test_a_java_tool_whose_calls_wait_for_a_worker_is_registered(engine: Engine) -> None:
    await put(engine, "track", "java", mode="event", **WITHOUT_A_RUNNER["java"])

    assert [entry.tool.kind for entry in await engine.tools.list()] == ["java"]


@pytest.mark.parametrize("kind", WITHOUT_A_RUNNER)
async def test_rows_that_are_there_already_are_offered_to_nobody(engine: Engine, kind: Kind) -> None:
    await put(engine, "track", "rest", endpoint="https://shop.example/track", method="GET")
    await put(engine, "trace", "rest", endpoint="https://shop.example/trace", method="GET")
    await engine.definitions.put("support", instructions="Help.", tools=["track", "trace"])
    await engine.skills.put("parcels", instructions="Look.", description="Looks after parcels.")
    for tool in ("track", "trace"):
        await engine.skills.link("parcels", tool)
    await engine.skills.assign("support", "parcels")
    await engine.database.run(TURN_INTO, "track", kind)
    tenant = await engine.database.tenant()

    allowed = await engine.tools.allowed(["track", "trace"], agent="support")
    opened = await engine.catalogs.open("support", ["parcels"])
    found = await engine.finding.search("parcel", kinds=["tool"], agent="support")
    view = await Inventory(engine).view(Principal(tenant, "ann", OWNER_SCOPES))

    assert [*allowed] == [*opened.disclosed] == [each.name for each in found] == ["trace"]
    assert [each.name for each in view.tools] == ["trace"]


async def test_a_skill_cannot_be_given_a_tool_that_cannot_run(engine: Engine) -> None:
    await put(engine, "track", "rest", endpoint="https://shop.example/track", method="GET")
    await engine.database.run(TURN_INTO, "track", "java")
    folder = FolderSkill("parcels", "Looks after parcels.", "Look.", tools=(FolderTool("track"),))

    with pytest.raises(InvalidInput, match="'track' cannot run: this installation has no runner for the kind java"):
        await engine.skill_transfer.load(folder)

    assert await engine.skills.list() == []
