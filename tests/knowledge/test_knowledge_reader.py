"""A reader finds documents of its owners and collections by id and by name."""

from uuid import uuid4

import pytest

from holdfast.core.errors import NotFound
from holdfast.engine import Engine
from holdfast.knowledge.knowledge_reader import KnowledgeReader
from holdfast.memory import organization, user

HASH = "d41d8cd98f00b204e9800998ecf8427e"


async def test_a_document_whose_name_looks_like_an_id_is_found_by_its_name(engine: Engine) -> None:
    knowledge = engine.knowledge
    reader = KnowledgeReader(knowledge, (organization(),))
    document = await knowledge.add(text="a text", name=HASH, wait=False)

    assert (await reader.document(HASH)).id == document.id
    assert (await reader.document(HASH, collection="default")).id == document.id
    assert (await reader.document(str(document.id))).id == document.id


async def test_what_a_reader_may_not_read_is_unknown_by_id_too(engine: Engine) -> None:
    knowledge = engine.knowledge
    reader = KnowledgeReader(knowledge, (organization(),), ("open",))
    anns = await knowledge.add(text="a text", name="ann.txt", collection="open", owner=user("ann"), wait=False)
    closed = await knowledge.add(text="a text", name="closed.txt", wait=False)
    one = await knowledge.add(text="a text", name="one.txt", collection="open", wait=False)

    for unknown in (anns.id, str(closed.id), uuid4(), "ann.txt"):
        with pytest.raises(NotFound, match="there is no document"):
            await reader.document(unknown)
    assert (await reader.document(one.id)).id == one.id
    with pytest.raises(NotFound, match="there is no document"):
        await KnowledgeReader(knowledge, (organization(),)).document(str(one.id), collection="default")
