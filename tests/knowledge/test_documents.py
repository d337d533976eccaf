"""Documents without their text: listed, found, changed, exported."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.core.errors import AlreadyExists, InvalidInput, NotFound
from holdfast.engine import Engine
from holdfast.knowledge.knowledge import Knowledge
from holdfast.memory import organization, user
from tests.knowledge.conftest import Watched, story


async def test_documents_are_listed_newest_first_by_owner_collection_and_status(engine: Engine) -> None:
    knowledge = engine.knowledge
    names = [f"{number}.txt" for number in range(5)]
    for name in names:
        await knowledge.add(text="a text", name=name, collection="notes", wait=False)
    ann = await knowledge.add(text="a text", name="ann.txt", owner=user("ann"), wait=False)

    first = await knowledge.list(collection="notes", limit=3)
    second = await knowledge.list(collection="notes", limit=3, cursor=first.cursor)

    assert [each.name for each in [*first, *second]] == names[::-1]
    assert second.cursor is None
    assert [each.id for each in await knowledge.list(owners=[user("ann"), user("bob")])] == [ann.id]
    assert [each.id for each in await knowledge.list(collections=["default"])] == [ann.id]
    assert await knowledge.list(collections=[]) == []
    assert await knowledge.list(owners=[]) == []
    assert await knowledge.list(status="failed") == []
    assert await knowledge.list(name="ann.txt", status="failed") == []
    assert [each.id for each in await knowledge.list(name="ann.txt", status=ann.status)] == [ann.id]
    assert [(each.name, each.documents) for each in await knowledge.collections()] == [("default", 1), ("notes", 5)]
    assert [each.name for each in await knowledge.collections([organization()])] == ["notes"]


async def test_a_document_is_found_by_its_name_in_its_collection(engine: Engine) -> None:
    document = await engine.knowledge.add(text="a text", name="手册\0.txt", collection="人事", wait=False)

    assert await engine.knowledge.find("手册\0.txt", collection="人事") == document
    assert await engine.knowledge.find("手册\0.txt") is None
    assert document.name == "手册\0.txt"
    assert document.collection == "人事"


async def test_names_and_titles_with_lone_surrogates_are_kept(knowledge: Knowledge, watched: Watched) -> None:
    added = await knowledge.add(
        text="whales \ud800 sing\0 in the sea", name="a\ud800b.md", collection="c\udfff", title="t\ud800"
    )
    [hit] = await knowledge.search("whales")

    assert (added.status, added.name, added.collection, added.title) == ("ready", "a\ud800b.md", "c\udfff", "t\ud800")
    assert (hit.name, hit.title) == (added.name, added.title)


async def test_what_is_known_about_a_document_can_be_changed(engine: Engine) -> None:
    knowledge = engine.knowledge
    document = await knowledge.add(text="a text", name="a.txt", metadata={"year": 2025}, source="wiki", wait=False)
    await knowledge.add(text="a text", name="a.txt", collection="other", wait=False)

    changed = await knowledge.update(document.id, metadata={"year": 2026}, title=" The \n title ")
    moved = await knowledge.update(document.id, collection="new")

    assert (document.metadata, document.title, document.source) == ({"year": 2025}, None, "wiki")
    assert (changed.metadata, changed.title, changed.collection) == ({"year": 2026}, "The title", "default")
    assert moved.collection == "new"
    with pytest.raises(AlreadyExists, match="already has a document of this name"):
        await knowledge.update(document.id, collection="other")
    with pytest.raises(NotFound, match="there is no document"):
        await knowledge.update(uuid4(), title="x")
    with pytest.raises(InvalidInput, match="the title is empty"):
        await knowledge.update(document.id, title=" ")
    with pytest.raises(InvalidInput, match="no change was given"):
        await knowledge.update(document.id)


async def test_a_title_of_the_caller_counts_and_else_that_of_the_file(knowledge: Knowledge) -> None:
    html = b"<html><head><title>Its own title</title></head><body><p>Some text about whales.</p></body></html>"

    own = await knowledge.add(html, name="own.html")
    given = await knowledge.add(html, name="given.html", title="Whales")

    assert (own.title, given.title) == ("Its own title", "Whales")


async def test_wrong_input_is_refused_with_what_to_do(engine: Engine, tmp_path: Path) -> None:
    knowledge = engine.knowledge

    for expected, call in (
        ("the document has no content", knowledge.add(name="x")),
        ("both content and text were given", knowledge.add(b"x", text="x", name="x")),
        ("the document has no name", knowledge.add(b"x")),
        ("the document has no name", knowledge.add(text="x", name="")),
        ("cannot be read: No such file", knowledge.add("nothing.pdf")),
        ("is not a file", knowledge.add(tmp_path, name="folder")),
        ("is not a string", knowledge.add(text=b"x", name="x")),  # pyright: ignore[reportArgumentType]
        ("embedded null byte", knowledge.add("a\0.pdf")),
        ("the content is of the type int", knowledge.add(5, name="x")),  # pyright: ignore[reportArgumentType]
        ("the name of the document is not a string", knowledge.add(text="x", name=5)),  # pyright: ignore[reportArgumentType]
        ("the media type 5 is not a string", knowledge.add(b"x", name="x", media_type=5)),  # pyright: ignore[reportArgumentType]
        ("the limit -1 is invalid", knowledge.chunks(uuid4(), limit=-1)),
        ("the section 5 is invalid", knowledge.read(uuid4(), section=5)),  # pyright: ignore[reportArgumentType]
        ("the metadata is not an object", knowledge.add(b"x", name="x", metadata=[1])),  # pyright: ignore[reportArgumentType]
        ("the status 'odd' is unknown", knowledge.list(status="odd")),  # pyright: ignore[reportArgumentType]
        ("the state 'odd' is unknown", knowledge.jobs(state="odd")),  # pyright: ignore[reportArgumentType]
        ("the limit 0 is invalid", knowledge.list(limit=0)),
        ("the cursor 'x' is invalid", knowledge.list(cursor="x")),
    ):
        with pytest.raises(InvalidInput, match=expected) as error:
            await call
        assert error.value.next
    with pytest.raises(NotFound, match="there is no job"):
        await knowledge.retry(uuid4())
    assert await knowledge.list() == []


@pytest.mark.req("KNOW-05")
async def test_a_failed_job_can_be_retried_and_no_other(knowledge: Knowledge, watched: Watched) -> None:
    await knowledge.add(text=story("whale", 2), name="good.md")
    with pytest.raises(InvalidInput):
        await knowledge.add(b"%PDF-1.7 broken", name="bad.pdf")
    bad, good = await knowledge.jobs()

    again = await knowledge.retry(bad.id)

    assert (bad.state, again.is_open, again.error) == ("failed", True, None)
    assert (good.state, good.chunks, good.embedded) == ("done", good.chunks, good.chunks)
    assert good.units == good.total_units
    with pytest.raises(InvalidInput, match="the job is done: only a failed job can be retried"):
        await knowledge.retry(good.id)


async def test_an_export_has_documents_with_their_chunks_and_vectors(knowledge: Knowledge, watched: Watched) -> None:
    document = await knowledge.add(text=story("whale"), name="whales.md", metadata={"n": 1})
    await knowledge.add(text="other", name="other.txt", owner=user("ann"))

    lines = [json.loads(line) async for line in knowledge.export(organization())]
    full = [json.loads(line) async for line in knowledge.export(organization(), vectors=True)]

    assert lines[0] == {"format": "holdfast-knowledge", "version": 1}
    assert lines[1]["document"]["id"] == str(document.id)
    assert lines[1]["document"]["metadata"] == {"n": 1}
    chunks = [line["chunk"] for line in lines[2:]]
    assert [chunk["index"] for chunk in chunks] == list(range(document.chunks))
    text = (await knowledge.read(document.id)).text
    assert [chunk["text"] for chunk in chunks] == [text[chunk["start"] : chunk["end"]] for chunk in chunks]
    assert [len(line["chunk"]["vectors"]) for line in full[2:]] == [len(chunk["passages"]) // 2 for chunk in chunks]
