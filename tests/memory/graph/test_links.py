import asyncio
from uuid import UUID

import pytest

from holdfast.engine import Engine
from holdfast.memory import agent, organization, session, user
from holdfast.memory.graph.entity_sweeper import EntitySweeper
from holdfast.memory.memory_indexer import Indexer
from tests.memory.graph.documents import add_document, counts, remove_document

ANN = user("ann")
NOTHING = dict.fromkeys(("entities", "memory_entities", "relationships", "relationship_sources", "entity_merges"), 0)
pytestmark = [pytest.mark.req("GRAPH-01"), pytest.mark.usefixtures("no_models")]


async def names(engine: Engine) -> set[str]:
    return {row["name"] for row in await engine.database.all("select name from entities where tenant_id = $1")}


async def test_a_memory_is_linked_to_what_it_names(engine: Engine) -> None:
    memory = await engine.memory.remember(ANN, "My sister Hannah works at Lockheed Martin.")

    [hit] = await engine.graph.search("Hannah", owners=[ANN])

    [support] = await engine.graph.mentions(hit.entity.id)
    assert (hit.entity.name, hit.entity.type, hit.entity.mentions, hit.entity.owner) == ("Hannah", "Person", 1, ANN)
    assert (support.id, support.text, support.citation) == (memory.id, memory.content, None)


async def test_memories_of_users_agents_and_the_organization_have_entities_of_their_own(engine: Engine) -> None:
    for owner in (ANN, user("bob"), agent("support"), organization()):
        await engine.memory.remember(owner, "Acme Corporation is in Oslo.")

    found = {owner: await engine.graph.search("Acme Corporation", owners=[owner]) for owner in (ANN, organization())}

    assert [hit.entity.owner for hit in found[ANN]] == [ANN]
    assert [hit.entity.mentions for hit in found[organization()]] == [1]
    assert (await counts(engine))["entities"] == 8


async def test_the_memory_of_a_session_has_no_graph(engine: Engine) -> None:
    await engine.memory.remember(session("web-1", user="ann"), "Hannah works at Acme Corporation.")

    assert await counts(engine) == NOTHING


async def test_a_forgotten_memory_takes_its_names_with_it(engine: Engine) -> None:
    memory = await engine.memory.remember(ANN, "Hannah works at Acme Corporation (AC).")
    other = await engine.memory.remember(ANN, "Hannah lives in Oslo.")

    await engine.memory.forget(memory.id)

    assert await names(engine) == {"Hannah", "Oslo"}
    await engine.memory.forget(other.id)
    assert await counts(engine) == NOTHING


async def test_an_edited_memory_is_linked_to_what_it_names_now(engine: Engine) -> None:
    memory = await engine.memory.remember(ANN, "Hannah works at Acme Corporation.")

    await engine.memory.edit(memory.id, content="Hannah works at Siemens.")

    assert await names(engine) == {"Hannah", "Siemens"}
    assert (await counts(engine))["relationships"] == 1


async def test_a_superseded_or_buried_memory_is_no_mention(engine: Engine) -> None:
    old = await engine.memory.remember(ANN, "Hannah lives in Oslo.")
    await engine.memory.supersede(old.id, "Hannah lives in Rome.")
    hidden = await engine.memory.remember(ANN, "Hannah likes Berlin.")
    await engine.memory.bury(hidden.id)

    async def find(place: str) -> bool:
        return any(hit.entity.name == place for hit in await engine.graph.search(place, owners=[ANN]))

    assert [await find(place) for place in ("Oslo", "Rome", "Berlin")] == [False, True, False]
    await engine.memory.bury(hidden.id, buried=False)
    assert await find("Berlin")


async def test_a_repeated_memory_is_linked_once(engine: Engine) -> None:
    for _ in range(2):
        await engine.memory.remember(ANN, "Hannah lives in Oslo.")

    assert (await counts(engine))["memory_entities"] == 2


async def test_a_row_inserted_by_plain_sql_is_linked_when_it_is_indexed(engine: Engine) -> None:
    await engine.memory.remember(ANN, "hello")
    await engine.database.run(
        "insert into memory (tenant_id, scope, owner, digest, content)"
        " select tenant_id, scope, owner, holdfast.uuid7(), 'Hannah lives in Oslo.' from memory where tenant_id = $1"
        " on conflict do nothing"
    )

    await Indexer(engine.postgres, engine.embeddings, engine.config.memory).catch_up()

    assert await names(engine) == {"Hannah", "Oslo"}


async def test_an_import_links_what_the_memories_name(engine: Engine) -> None:
    await engine.memory.remember(ANN, "Hannah lives in Oslo.")
    lines = [line.encode() async for line in engine.memory_transfer.export(ANN)]

    await engine.memory_transfer.load(lines, into=user("eve"))

    assert [hit.entity.owner for hit in await engine.graph.search("Oslo", owners=[user("eve")])] == [user("eve")]


async def test_the_chunks_of_a_document_are_linked_and_leave_no_trace(engine: Engine) -> None:
    text = "International Business Machines (IBM) is based in Armonk."
    document, [first, _] = await add_document(engine, "Computing in America", [text, "IBM made the PC."])

    [hit] = (await engine.graph.search("IBM"))[:1]

    supports = await engine.graph.mentions(hit.entity.id)
    assert (hit.entity.name, hit.entity.aliases) == ("International Business Machines", ("IBM",))
    assert {(each.chunk, each.citation) for each in supports} == {
        (0, "Computing in America, page 1"),
        (1, "Computing in America, page 2"),
    }
    assert first in {each.id for each in supports}
    await remove_document(engine, document)
    assert await counts(engine) == NOTHING


async def test_links_of_many_writers_do_not_deadlock(engine: Engine) -> None:
    texts = [
        f"{one} met {other} in Oslo."
        for one in ("Alice Ames", "Bob Ball", "Carl Cox")
        for other in ("Dora Day", "Eve Eads")
    ]

    async def write(number: int) -> UUID:
        order = texts if number % 2 else texts[::-1]
        documents = [await add_document(engine, f"Notes {number}", order)]
        await remove_document(engine, documents[0][0])
        return (await add_document(engine, f"Notes {number} again", order))[0]

    async with asyncio.timeout(60):
        documents = await asyncio.gather(*(write(number) for number in range(8)))

    [hit] = await engine.graph.search("Oslo", limit=1)
    assert hit.entity.mentions == 8 * len(texts)
    for document in documents:
        await remove_document(engine, document)
    assert (await counts(engine))["memory_entities"] == 0


async def test_names_that_a_deleted_document_left_are_hidden_and_then_deleted(engine: Engine) -> None:
    document, _ = await add_document(engine, "Notes", ["Hannah lives in Oslo."])
    await engine.memory.remember(organization(), "Oslo is cold.")
    await engine.database.run("delete from document where tenant_id = $1 and id = $2", document)

    hidden = [hit for hit in await engine.graph.search("Hannah") if hit.by == "name"]
    deleted = await EntitySweeper(engine.postgres).delete()

    assert (hidden, deleted) == ([], 2)
    assert await names(engine) == {"Oslo"}
