from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine
from holdfast.memory import organization, user
from holdfast.memory.graph.records import Path
from tests.clock import Clock
from tests.memory.graph.documents import add_document

ANN = user("ann")
pytestmark = [pytest.mark.req("GRAPH-02"), pytest.mark.usefixtures("no_models")]


def route(path: Path) -> list[str]:
    return [each.name for each in path.entities]


async def test_a_path_names_the_relation_and_the_memory_of_each_hop(engine: Engine) -> None:
    works = await engine.memory.remember(organization(), "Hannah works at Siemens.")
    _, [chunk] = await add_document(engine, "Companies", ["Siemens is headquartered in Munich."])

    [path] = await engine.graph.paths("Hannah", "Munich")

    assert route(path) == ["Hannah", "Siemens", "Munich"]
    assert [hop.label for hop in path.hops] == ["WORKS_AT", "LOCATED_IN"]
    assert [[each.id for each in hop.supports] for hop in path.hops] == [[works.id], [chunk]]
    assert path.hops[1].supports[0].citation == "Companies, page 1"


async def test_a_path_goes_over_memories_that_name_both(engine: Engine) -> None:
    await engine.memory.remember(organization(), "Alice Ames had lunch with Bob Ball.")
    await engine.memory.remember(organization(), "Bob Ball and Carl Cox played chess.")

    [path] = await engine.graph.paths("Alice Ames", "Carl Cox")

    assert route(path) == ["Alice Ames", "Bob Ball", "Carl Cox"]
    assert [hop.label for hop in path.hops] == ["mentioned together"] * 2


async def test_a_relation_is_followed_against_its_direction(engine: Engine) -> None:
    await engine.memory.remember(organization(), "Hannah works at Siemens.")
    await engine.memory.remember(organization(), "Peter works at Siemens.")

    [path] = await engine.graph.paths("Hannah", "Peter")

    assert [(each.type, each.forward) for hop in path.hops for each in hop.relations] == [
        ("WORKS_AT", True),
        ("WORKS_AT", False),
    ]


async def test_shorter_paths_come_first_and_only_as_long_as_asked_for(engine: Engine) -> None:
    for text in (
        "Alice Ames met Dora Day.",
        "Alice Ames met Bob Ball.",
        "Bob Ball met Carl Cox.",
        "Carl Cox met Dora Day.",
    ):
        await engine.memory.remember(organization(), text)

    lengths = {
        hops: [len(path.hops) for path in await engine.graph.paths("Alice Ames", "Dora Day", hops=hops)]
        for hops in (1, 2, 3)
    }

    assert lengths == {1: [1], 2: [1], 3: [1, 3]}


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
async def test_every_length_of_a_chain_is_found_and_circles_end(engine: Engine, hops: int) -> None:
    people = ["Alice Ames", "Bob Ball", "Carl Cox", "Dora Day", "Eve Eads", "Alice Ames"]
    for one, other in pairwise(people):
        await engine.memory.remember(organization(), f"{one} met {other}.")

    paths = await engine.graph.paths("Alice Ames", people[hops] if hops < 3 else people[5 - hops], hops=hops)

    assert min(len(path.hops) for path in paths) == (hops if hops < 3 else 5 - hops if hops == 4 else 2)
    assert all(len(set(route(path))) == len(route(path)) for path in paths)


async def test_a_path_joins_a_users_memories_and_the_organizations(engine: Engine) -> None:
    await engine.memory.remember(ANN, "Hannah works at Siemens.")
    await engine.memory.remember(organization(), "Siemens is headquartered in Munich.")

    [path] = await engine.graph.paths("Hannah", "Munich", owners=[ANN, organization()])

    assert route(path) == ["Hannah", "Siemens", "Munich"]
    assert [hop.supports[0].text for hop in path.hops] == [
        "Hannah works at Siemens.",
        "Siemens is headquartered in Munich.",
    ]


async def test_what_is_no_longer_true_or_not_visible_is_no_step(engine: Engine, clock: Clock) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    await clock.set(start)
    await engine.memory.remember(organization(), "Munich and Berlin are far apart.")
    old = await engine.memory.remember(organization(), "Hannah works at Siemens.")
    await engine.memory.remember(organization(), "Siemens is headquartered in Munich.")
    await engine.memory.remember(organization(), "Hannah was seen in Munich.", ttl=60)
    await engine.memory.remember(ANN, "Hannah lives in Munich.")

    before = [route(path) for path in await engine.graph.paths("Hannah", "Munich")]
    await clock.set(start + timedelta(hours=1))
    await engine.memory.supersede(old.id, "Hannah works at Bosch.")
    after = [route(path) for path in await engine.graph.paths("Hannah", "Munich")]

    assert before == [["Hannah", "Munich"], ["Hannah", "Siemens", "Munich"]]
    assert after == []


async def test_a_path_does_not_pass_through_what_everything_names(engine: Engine) -> None:
    chunks = [f"Person{letter} Smith{letter} likes Paris." for letter in "abcdefghij"] * 31
    await add_document(engine, "Everybody", chunks)
    await engine.memory.remember(organization(), "Hannah likes Paris.")
    await engine.memory.remember(organization(), "Peter Novak likes Paris.")

    through = await engine.graph.paths("Hannah", "Peter Novak", hops=2)
    to = await engine.graph.paths("Hannah", "Paris", hops=1)

    assert list(through) == []
    assert through.cut
    assert [route(path) for path in to] == [["Hannah", "Paris"]]


async def test_the_ends_of_a_path_are_different_entities(engine: Engine) -> None:
    await engine.memory.remember(organization(), "Hannah works at International Business Machines (IBM).")

    with pytest.raises(InvalidInput, match="same entity"):
        await engine.graph.paths("IBM", "international business machines")
