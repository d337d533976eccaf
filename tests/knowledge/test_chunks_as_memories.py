"""Chunks are memories: by their ids, and in the views for plain SQL."""

import pytest

from holdfast.core.errors import Broken, InvalidInput
from holdfast.engine import Engine
from holdfast.knowledge.knowledge import Knowledge
from holdfast.memory import agent, organization, user
from tests.knowledge.conftest import Watched, story

VIEWS = {
    "organizational_memories": organization(),
    "agent_memories": agent("support"),
    "user_memories": user("ann"),
}


@pytest.mark.req("KNOW-01")
async def test_the_views_show_chunks_with_source_document_index_and_embedding(
    engine: Engine, knowledge: Knowledge, watched: Watched
) -> None:
    documents = {
        view: await knowledge.add(text=story("whale"), name="whales.md", owner=owner, metadata={"n": 1})
        for view, owner in VIEWS.items()
    }

    for view, document in documents.items():
        rows = await engine.database.all(f"select * from {view} where $1::uuid is not null")

        assert len(rows) == document.chunks
        assert all(row["metadata"] == {"n": 1} and len(row["embedding"]) == 384 for row in rows)
    rows = await engine.database.all(
        "select * from organizational_memories where $1::uuid is not null order by chunk_index"
    )
    assert [row["chunk_index"] for row in rows] == list(range(len(rows)))
    assert {row["document_id"] for row in rows} == {documents["organizational_memories"].id}
    assert {row["source"] for row in rows} == {"whales.md"}


@pytest.mark.req("KNOW-01")
async def test_a_chunk_is_read_as_a_memory_and_changed_only_with_its_document(
    engine: Engine, knowledge: Knowledge, watched: Watched
) -> None:
    document = await knowledge.add(text=story("whale"), name="whales.md")
    id = await engine.database.value("select id from chunk where tenant_id = $1 and chunk_index = 0")
    content = (await knowledge.read(document.id, chunk=0)).text

    memory = await engine.memory.get(id)

    assert (memory.content, memory.type, memory.source, memory.owner) == (
        content,
        "knowledge",
        "whales.md",
        organization(),
    )
    assert (memory.document, memory.embedded) == (document.id, True)
    for change in (
        engine.memory.forget(id),
        engine.memory.edit(id, content="x"),
        engine.memory.edit(id, importance=0.1),
        engine.memory.pin(id),
        engine.memory.bury(id),
        engine.memory.supersede(id, "x"),
        engine.memory.history(id),
        engine.database.run("delete from organizational_memories where $1::uuid is not null and id = $2", id),
        engine.database.run(
            "update organizational_memories set content = 'x' where $1::uuid is not null and id = $2", id
        ),
    ):
        with pytest.raises((InvalidInput, Broken), match=r"part of the document .whales\.md."):
            await change
