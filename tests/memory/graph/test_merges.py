from uuid import UUID

import pytest

from holdfast.core.errors import Conflict, InvalidInput, NotFound
from holdfast.engine import Engine
from holdfast.memory import organization, user
from tests.memory.graph.documents import add_document, counts, remove_document

pytestmark = [pytest.mark.req("GRAPH-01"), pytest.mark.usefixtures("no_models")]


async def id_of(engine: Engine, name: str) -> UUID:
    return (await engine.graph.search(name))[0].entity.id


async def links(engine: Engine) -> list[tuple[UUID, UUID]]:
    rows = await engine.database.all(
        "select memory_id, entity_id from memory_entities where tenant_id = $1 order by 1, 2"
    )
    return [(row["memory_id"], row["entity_id"]) for row in rows]


async def test_merged_entities_are_one_and_undoing_it_restores_the_links(engine: Engine) -> None:
    await engine.memory.remember(organization(), "Robert Miller met Hannah.")
    await engine.memory.remember(organization(), "Bob Miller met Peter Novak.")
    keep, other = await id_of(engine, "Robert Miller"), await id_of(engine, "Bob Miller")
    before = await links(engine)

    merge = await engine.graph.merge(keep, other)

    entity = await engine.graph.entity(other)
    assert (entity.id, entity.name, entity.aliases, entity.mentions) == (keep, "Robert Miller", ("Bob Miller",), 2)
    assert await id_of(engine, "Bob Miller") == keep
    assert len(await engine.graph.paths("Hannah", "Peter Novak", hops=2)) == 1
    assert await engine.graph.unmerge(merge) == (keep, other)
    assert await links(engine) == before
    assert (await engine.graph.entity(other)).name == "Bob Miller"
    assert list(await engine.graph.paths("Hannah", "Peter Novak", hops=4)) == []


async def test_a_merge_survives_that_documents_are_read_again(engine: Engine) -> None:
    document, _ = await add_document(engine, "Notes", ["Robert Miller wrote.", "Bob Miller called."])
    keep = await id_of(engine, "Robert Miller")
    await engine.graph.merge(keep, await id_of(engine, "Bob Miller"))

    await remove_document(engine, document)
    await add_document(engine, "Notes", ["Robert Miller wrote again.", "Bob Miller called."])

    assert await id_of(engine, "Bob Miller") == keep
    assert (await engine.graph.entity(keep)).mentions == 2


async def test_a_stated_alias_merges_until_the_statement_is_gone(engine: Engine) -> None:
    await add_document(engine, "Notes", ["IBM hires."])
    stated, _ = await add_document(engine, "About", ["International Business Machines (IBM) is old."])
    together = await engine.graph.entity(await id_of(engine, "IBM"))

    await remove_document(engine, stated)

    assert (together.name, together.mentions) == ("International Business Machines", 3)
    alone = await engine.graph.entity(await id_of(engine, "IBM"))
    assert (alone.name, alone.aliases, alone.mentions) == ("IBM", (), 1)


async def test_a_stated_alias_that_was_undone_is_not_merged_again(engine: Engine) -> None:
    await add_document(engine, "About", ["International Business Machines (IBM) is old."])
    [merge] = await engine.graph.merges(await id_of(engine, "IBM"))

    await engine.graph.unmerge(merge.id)
    await add_document(engine, "More", ["International Business Machines (IBM) grows."])

    assert (await engine.graph.search("IBM"))[0].entity.aliases == ()
    with pytest.raises(NotFound):
        await engine.graph.unmerge(merge.id)


async def test_merges_form_a_chain_and_come_apart_in_any_order(engine: Engine) -> None:
    await engine.memory.remember(organization(), "Alice Ames, Bob Ball and Carl Cox met.")
    a, b, c = [await id_of(engine, name) for name in ("Alice Ames", "Bob Ball", "Carl Cox")]

    first = await engine.graph.merge(b, c)
    second = await engine.graph.merge(a, b)

    assert (await engine.graph.entity(c)).name == "Alice Ames"
    with pytest.raises(Conflict):
        await engine.graph.merge(c, a)
    await engine.graph.unmerge(first)
    assert [(await engine.graph.entity(each)).name for each in (a, b, c)] == ["Alice Ames", "Alice Ames", "Carl Cox"]
    await engine.graph.unmerge(second)
    assert [(await engine.graph.entity(each)).name for each in (a, b, c)] == ["Alice Ames", "Bob Ball", "Carl Cox"]


async def test_entities_of_different_owners_are_not_merged(engine: Engine) -> None:
    await engine.memory.remember(organization(), "I saw Hannah Berg.")
    await engine.memory.remember(user("ann"), "I saw Hanna Berg.")
    [own] = await engine.graph.search("Hanna Berg", owners=[user("ann")])

    with pytest.raises(InvalidInput, match="different owners"):
        await engine.graph.merge(await id_of(engine, "Hannah Berg"), own.entity.id)


async def test_duplicates_are_listed_until_they_are_merged_or_parted(engine: Engine) -> None:
    for text in (
        "Post Gre SQL is here. PostGreSQL is there.",
        "Jonathan Kowalski met Jonathan Kowalsky.",
        "Nordic Investment Bank lends. NIB lends.",
        "Hannah likes Oslo.",
    ):
        await engine.memory.remember(organization(), text)
    await engine.memory.remember(organization(), "Acme Inc. and Acme are in court.")

    found = {(each.keep.name, each.other.name): each for each in await engine.graph.duplicates()}

    assert {pair: each.reason for pair, each in found.items()} == {
        ("Post Gre SQL", "PostGreSQL"): "spaces",
        ("Acme Inc.", "Acme"): "ending",
        ("Nordic Investment Bank", "NIB"): "initials",
        ("Jonathan Kowalsky", "Jonathan Kowalski"): "spelling",
    }
    one = found["Acme Inc.", "Acme"]
    await engine.graph.merge(one.keep.id, one.other.id)
    assert len(await engine.graph.duplicates()) == 3


async def test_forgetting_everything_leaves_only_what_was_merged_by_hand(engine: Engine) -> None:
    one = await engine.memory.remember(organization(), "Alice Ames met Bob Ball.")
    await engine.graph.merge(await id_of(engine, "Alice Ames"), await id_of(engine, "Bob Ball"))

    await engine.memory.forget(one.id)

    assert await engine.graph.search("Alice Ames") == []
    assert (await counts(engine))["entities"] == 2
    assert await engine.graph.erase(organization()) == 2
