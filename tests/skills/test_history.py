"""The history of the registry: every change, who made it, and what was there before."""

import pytest

from holdfast.agents import Agent
from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine
from holdfast.skills.history import ChangeHistory
from holdfast.skills.skills import Skills
from holdfast.skills.tools import Tools

pytestmark = pytest.mark.req("SKILL-01")


async def test_every_change_is_kept_with_what_was_there_before(
    skills: Skills, tools: Tools, history: ChangeHistory, words_only: Engine
) -> None:
    await words_only.definitions.put("support", instructions="")
    await skills.put("returns", instructions="Old.", files={"a": b"1"}, by="ann")
    await skills.put("returns", instructions="New.", version=1, by="bob")
    await tools.put(
        "track", description="", parameters={"properties": {"a": {}}}, kind="function", reference="shop:track", by="ann"
    )
    await skills.link("returns", "track", by="ann")
    await skills.assign("support", "returns", by="ann")
    await skills.remove("returns", by="bob")

    changes = await history.of()

    assert [(change.kind, change.name, change.operation, change.by) for change in reversed(changes)] == [
        ("agent", "support", "created", ""),
        ("skill", "returns", "created", "ann"),
        ("skill", "returns", "changed", "bob"),
        ("tool", "track", "created", "ann"),
        ("skill_tool", "returns", "created", "ann"),
        ("agent_skill", "support", "created", "ann"),
        ("skill", "returns", "removed", "bob"),
        ("skill_tool", "returns", "removed", "bob"),
        ("agent_skill", "support", "removed", "bob"),
    ]
    before, after = changes[-3].before or {}, changes[-3].after or {}
    assert (before["content_markdown"], after["content_markdown"]) == ("Old.", "New.")
    assert (before["aggregate_version"], after["aggregate_version"]) == (1, 2)
    assert before["files"] == after["files"] != {}
    assert [each["name"] for each in (changes[-4].after or {})["parameters"]] == ["a"]
    assert (changes[-5].after or {})["tool"] == "track"
    assert not {"terms", "embedded", "description_embedding"} & before.keys()


async def test_the_history_is_read_page_by_page(skills: Skills, history: ChangeHistory) -> None:
    for n in range(5):
        await skills.put(f"skill {n}", instructions="")
    await skills.depend("skill 1", "skill 2")
    await skills.depend("skill 1", "skill 3")
    await skills.remove("skill 1")  # three changes at once

    pages = [await history.of(limit=2)]
    while pages[-1]:
        pages.append(await history.of(limit=2, before=pages[-1][-1].cursor))

    whole = await history.of()
    assert [change for page in pages for change in page] == whole
    assert [(change.revision, change.number) for change in whole[:4]] == [(8, 3), (8, 2), (8, 1), (7, 1)]


async def test_the_history_is_of_a_kind_or_a_name_where_that_is_asked_for(
    skills: Skills, history: ChangeHistory
) -> None:
    for name in ("a", "b"):
        await skills.put(name, instructions="")
    await skills.depend("a", "b")
    await skills.activate("a", False)

    async def told(*which: str) -> list[tuple[str, str]]:
        return [(change.kind, change.operation) for change in await history.of(*which)]  # pyright: ignore[reportArgumentType]

    assert await told("skill") == [("skill", "changed"), ("skill", "created"), ("skill", "created")]
    assert await told("skill", "b") == [("skill", "created")]
    assert [change.kind for change in await history.of(name="a")] == ["skill", "skill_dependency", "skill"]
    assert await history.of(name="a", limit=1, before="4.1") == (await history.of(name="a"))[1:2]
    assert await told("tool") == await told("skill", "no\0ne") == []


@pytest.mark.parametrize(
    "wrong", [{"kind": "other"}, {"before": "7"}, {"before": "a.b"}, {"limit": 0}, {"before": f"{10**30}.1"}]
)
async def test_what_is_no_place_in_the_history_is_refused(history: ChangeHistory, wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        await history.of(**wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.req("ENG-04")
async def test_tenants_have_histories_of_their_own(skills: Skills, acme: Engine) -> None:
    await skills.put("returns", instructions="")

    assert await ChangeHistory(acme.database).of() == []


@pytest.mark.req("AGENT-01")
async def test_what_becomes_of_agents_is_kept_and_moves_the_registry(
    skills: Skills, history: ChangeHistory, words_only: Engine
) -> None:
    agents = words_only.definitions
    await skills.put("returns", instructions="")
    await agents.put("support", instructions="Old.", by="ann")
    await skills.assign("support", "returns", by="ann")
    await agents.put("support", instructions="New.", version=1, by="bob")
    await agents.put("support", instructions="New.", version=2, by="eve")
    await agents.remove("support", by="eve")
    for instructions in ("Mine.", "Mine.", "Ours."):
        await agents.declare([Agent("clerk", instructions=instructions)])

    changes = [*reversed(await history.of())]

    assert [(change.kind, change.name, change.operation, change.by) for change in changes[1:]] == [
        ("agent", "support", "created", "ann"),
        ("agent_skill", "support", "created", "ann"),
        ("agent", "support", "changed", "bob"),
        ("agent", "support", "removed", "eve"),
        ("agent_skill", "support", "removed", "eve"),
        ("agent", "clerk", "created", "code"),
        ("agent", "clerk", "changed", "code"),
    ]
    before, after = changes[3].before or {}, changes[3].after or {}
    assert (before["instructions"], after["instructions"]) == ("Old.", "New.")
    assert (changes[5].before or {})["skill"] == "returns"
    assert len({change.revision for change in changes}) == 7
