from uuid import uuid4

import msgspec
import pytest

from holdfast.core.errors import InvalidInput, NotFound
from holdfast.engine import Engine
from holdfast.memory import Memories, organization, session, user
from tests.memory.graph.documents import add_document, counts

ANN = user("ann")
pytestmark = pytest.mark.req("GRAPH-01")


async def found(engine: Engine, query: str, **given: object) -> list[str]:
    return [hit.entity.name for hit in await engine.graph.search(query, **given)]  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("no_models")
async def test_an_entity_is_found_by_its_name_its_beginning_and_its_end(engine: Engine) -> None:
    await engine.memory.remember(organization(), "Abraham Lincoln met Frederick Douglass in Springfield.")
    await engine.memory.remember(organization(), "王小明在清华大学工作。")

    answers = [
        await found(engine, query)
        for query in ("abraham LINCOLN", "Abra", "lincoln", "清华", "大学", "where was Frederick Douglass?")
    ]

    assert [each[0] for each in answers] == ["Abraham Lincoln"] * 3 + ["清华大学"] * 2 + ["Frederick Douglass"]


async def test_an_entity_is_found_by_the_meaning_of_what_names_it(engine: Engine, memories: Memories) -> None:
    await memories.remember(organization(), "Sandra Kowalski approves all business trips and hotel bookings.")
    await memories.remember(organization(), "Peter Novak repairs the coffee machine.")

    hits = await engine.graph.search("who signs off travel expenses")

    assert (hits[0].entity.name, hits[0].by) == ("Sandra Kowalski", "meaning")


@pytest.mark.usefixtures("no_models")
async def test_neighbours_are_stated_relations_first_and_then_what_is_named_together(engine: Engine) -> None:
    await engine.memory.remember(ANN, "Hannah works at Siemens.")
    await engine.memory.remember(ANN, "Hannah saw Peter Novak in Munich.")
    [hit] = await engine.graph.search("Hannah", owners=[ANN])

    near = await engine.graph.neighbours(hit.entity.id)

    assert [(each.entity.name, each.relation, each.outgoing) for each in near[:1]] == [("Siemens", "WORKS_AT", True)]
    assert {each.entity.name for each in near if each.relation is None} == {"Siemens", "Peter Novak", "Munich"}
    [siemens] = await engine.graph.search("Siemens", owners=[ANN])
    first = (await engine.graph.neighbours(siemens.entity.id))[0]
    assert (first.relation, first.outgoing) == ("WORKS_AT", False)


@pytest.mark.usefixtures("no_models")
async def test_a_users_entities_show_to_nobody_else(engine: Engine) -> None:
    await engine.memory.remember(ANN, "Hannah works at Siemens.")
    [hit] = await engine.graph.search("Hannah", owners=[ANN])

    assert await found(engine, "Hannah") == []
    assert await found(engine, "Hannah", owners=[user("bob"), organization()]) == []
    for call in (engine.graph.entity, engine.graph.neighbours, engine.graph.mentions, engine.graph.merges):
        with pytest.raises(NotFound):
            await call(hit.entity.id, owners=[organization()])


@pytest.mark.usefixtures("no_models")
async def test_mentions_come_in_pages(engine: Engine) -> None:
    _, chunks = await add_document(engine, "Diary", [f"Hannah wrote letter {number}." for number in range(7)])
    [hit] = await engine.graph.search("Hannah")

    first = await engine.graph.mentions(hit.entity.id, limit=4)
    second = await engine.graph.mentions(hit.entity.id, limit=4, cursor=first.cursor)

    assert [each.id for each in [*first, *second]] == chunks[::-1]
    assert second.cursor is None


@pytest.mark.usefixtures("no_models")
async def test_the_graph_of_an_owner_is_exported_and_erased(engine: Engine) -> None:
    await engine.memory.remember(ANN, "Hannah works at International Business Machines (IBM).")
    await engine.memory.remember(user("bob"), "Hannah lives in Oslo.")

    lines = [msgspec.json.decode(line) async for line in engine.graph.export(ANN)]
    erased = await engine.graph.erase(ANN)

    by_name = {line["name"]: line for line in lines}
    assert set(by_name) == {"Hannah", "International Business Machines", "IBM"}
    assert [each["type"] for each in by_name["Hannah"]["relationships"]] == ["WORKS_AT"]
    assert by_name["IBM"]["merged_into"] == by_name["International Business Machines"]["id"]
    assert len(by_name["Hannah"]["memories"]) == 1
    assert erased == 3
    assert (await counts(engine))["entities"] == 2
    assert await found(engine, "Hannah", owners=[user("bob")]) == ["Hannah"]


@pytest.mark.usefixtures("no_models")
async def test_wrong_questions_get_an_error_that_says_what_to_do(engine: Engine) -> None:
    for wrong in (
        engine.graph.search("x", limit=0),
        engine.graph.search("x", owners=[]),
        engine.graph.search("x", owners=[session("s")]),
        engine.graph.paths("a", "b", hops=5),
    ):
        with pytest.raises(InvalidInput):
            await wrong
    with pytest.raises(NotFound, match="there is no entity"):
        await engine.graph.entity(uuid4())
    with pytest.raises(NotFound, match="no entity is named 'nobody'"):
        await engine.graph.paths("nobody", "b")


@pytest.mark.usefixtures("no_models")
async def test_a_name_can_have_any_character(engine: Engine) -> None:
    await engine.memory.remember(ANN, "Hannah works at Siemens.")

    assert await found(engine, "Hannah \ud800\0", owners=[ANN]) == ["Hannah"]
    with pytest.raises(NotFound, match="no entity is named"):
        await engine.graph.paths("\ud800\0", "Siemens", owners=[ANN])
    for call in (
        engine.graph.search(5),  # pyright: ignore[reportArgumentType]
        engine.graph.search("Hannah", limit="5"),  # pyright: ignore[reportArgumentType]
        engine.graph.paths("Hannah", "Siemens", hops="2"),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(InvalidInput):
            await call
