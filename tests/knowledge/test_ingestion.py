"""Documents come in: they are stored, read, embedded, and replaced in one step."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from holdfast.bus.notifications import until
from holdfast.core.config import Config
from holdfast.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from holdfast.embeddings.store import Store
from holdfast.engine import Engine, open_engine
from holdfast.knowledge import ingester
from holdfast.knowledge.chunk_vectors import ChunkVectors
from holdfast.knowledge.ingester import sweep_uploads
from holdfast.knowledge.job import IngestJob
from holdfast.knowledge.knowledge import Knowledge
from holdfast.memory import agent, organization, session, user
from holdfast.memory.memory_indexer import Indexer
from tests.clock import Clock
from tests.knowledge.conftest import Watched, story, stream

TABLES = (
    "document",
    "chunk",
    "chunk_vector",
    "chunk_term",
    "ingest_job",
    "ingest_upload",
    "ingest_chunk",
    "memory_entities",
)
STORE_PIECE = "select holdfast.store_piece($1, $2, 0, 'a piece')"
DUPLICATES = """
select count(*) from chunk c where c.tenant_id = $1 and (
  (select count(*) from chunk_vector v
   where v.tenant_id = $1 and v.document_id = c.document_id and v.chunk_index = c.chunk_index
  ) <> cardinality(c.passages) / 2)
"""


async def rows(engine: Engine) -> dict[str, int]:
    """How many rows of the tenant each table has."""
    return {
        table: await engine.database.value(f"select count(*) from {table} where tenant_id = $1") for table in TABLES
    }


@pytest.mark.req("KNOW-01")
async def test_a_document_is_the_same_as_path_bytes_stream_and_text(knowledge: Knowledge, tmp_path: Path) -> None:
    text = story("whale")
    path = tmp_path / "whale.md"
    path.write_text(text)
    data = text.encode()

    ways = [
        await knowledge.add(path),
        await knowledge.add(str(path), name="by its path.md"),
        await knowledge.add(data, name="bytes.md"),
        await knowledge.add(stream(data[:100], b"", data[100:]), name="stream.md"),
        await knowledge.add(text=text, name="text"),
    ]

    assert [each.name for each in ways] == ["whale.md", "by its path.md", "bytes.md", "stream.md", "text"]
    assert {(each.status, each.version, each.chunks, each.characters, each.media_type, each.size) for each in ways} == {
        ("ready", 1, ways[0].chunks, len(text), "text/markdown", len(data))
    }
    assert {each.hash for each in ways} == {ways[0].hash}
    assert ways[0].chunks > 3
    for each in ways:
        assert (await knowledge.read(each.id)).text == text


@pytest.mark.req("KNOW-01")
async def test_an_unchanged_document_is_left_alone_and_a_changed_one_is_replaced(
    engine: Engine, knowledge: Knowledge, watched: Watched
) -> None:
    text = story("crane")
    first = await knowledge.add(text=text, name="birds.md", metadata={"year": 1})
    chunks = await engine.database.all("select chunk_index, content from chunk where tenant_id = $1 order by 1")
    embedded = len(watched.texts)

    same = await knowledge.add(text=text, name="birds.md")
    described = await knowledge.add(text=text, name="birds.md", metadata={"year": 2})
    jobs = await knowledge.jobs()
    longer = await knowledge.add(text=text + "\n\n## One more\n\nThe last crane has gone.", name="birds.md")

    assert same == first
    assert (described.metadata, described.version) == ({"year": 2}, 1)
    assert [job.state for job in jobs] == ["done"]
    assert (longer.id, longer.version, longer.status) == (first.id, 2, "ready")
    after = await engine.database.all("select chunk_index, content from chunk where tenant_id = $1 order by 1")
    assert after[:-1] == chunks[: len(after) - 1], "the beginning is the same"
    assert len(watched.texts) - embedded <= 2, "only what is new was embedded"
    assert await engine.database.value(DUPLICATES) == 0
    assert {table: n for table, n in (await rows(engine)).items() if table.startswith("ingest")} == {
        "ingest_job": 1,
        "ingest_upload": 0,
        "ingest_chunk": 0,
    }


@pytest.mark.req("KNOW-01")
async def test_who_reads_while_a_document_is_replaced_sees_the_old_one_or_the_new_one(
    knowledge: Knowledge, watched: Watched
) -> None:
    old, new = story("otter", 60), story("badger", 60)
    document = await knowledge.add(text=old, name="animals.md")
    seen: set[str] = set()
    adding = asyncio.create_task(knowledge.add(text=new, name="animals.md"))

    while not adding.done():
        seen.add((await knowledge.read(document.id, limit=200_000)).text)
        await asyncio.sleep(0)
    await adding
    seen.add((await knowledge.read(document.id, limit=200_000)).text)

    assert seen == {old, new}


@pytest.mark.req("KNOW-05")
async def test_a_newer_version_supersedes_one_that_is_being_ingested(
    engine: Engine, knowledge: Knowledge, watched: Watched
) -> None:
    watched.stop()
    former = asyncio.create_task(knowledge.add(text=story("old"), name="plan.md"))
    await watched.stopped.wait()
    again = await knowledge.add(text=story("old"), name="plan.md", wait=False)

    newer = asyncio.create_task(knowledge.add(text=story("new"), name="plan.md"))
    with pytest.raises(Conflict, match="was added again"):
        await former
    watched.go_on()
    document = await newer

    assert again.status == "running", "the open job for the same content went on"
    assert document.version == 1
    assert "new number 1.1" in (await knowledge.read(document.id)).text
    assert await engine.database.value("select count(*) from ingest_chunk where tenant_id = $1") == 0


@pytest.mark.req("KNOW-05")
async def test_a_file_that_fails_says_why_and_the_others_go_on(engine: Engine, knowledge: Knowledge) -> None:
    good = await knowledge.add(text=story("seal"), name="seals.pdf", media_type="text/markdown")
    waiting = [
        asyncio.create_task(knowledge.add(b"%PDF-1.7 not really", name="seals.pdf")),
        asyncio.create_task(knowledge.add(b"PK\x03\x04 broken", name="broken.docx")),
        asyncio.create_task(knowledge.add(text=story("walrus"), name="walrus.md")),
        asyncio.create_task(knowledge.add(b"", name="empty.txt")),
    ]

    bad, broken, walrus, empty = await asyncio.gather(*waiting, return_exceptions=True)

    for error, name in ((bad, "seals.pdf"), (broken, "broken.docx"), (empty, "empty.txt")):
        assert isinstance(error, InvalidInput)
        assert error.what == f"the document '{name}' was not ingested"
        assert error.why
    assert not isinstance(walrus, BaseException)
    assert walrus.status == "ready"
    former = await knowledge.get(good.id)
    assert isinstance(bad, InvalidInput)
    assert (former.status, former.version, former.error) == ("failed", 1, bad.why)
    assert "seal number 1.1" in (await knowledge.read(good.id)).text
    assert {job.state for job in await knowledge.jobs(document=good.id)} == {"failed"}
    back = await knowledge.add(text=story("seal"), name="seals.pdf", media_type="text/markdown")
    assert (back.status, back.version, back.error) == ("ready", 1, None)


async def test_what_is_too_large_or_broken_off_leaves_nothing(config: Config) -> None:
    small = config.memory.knowledge.model_copy(update={"max_file_mb": 7})
    memory = config.memory.model_copy(update={"knowledge": small})
    megabyte = b"x" * 1024 * 1024

    async def broken() -> AsyncGenerator[bytes]:
        for _ in range(6):
            yield megabyte
        raise ConnectionResetError("gone")

    async with open_engine(config=config.model_copy(update={"memory": memory})) as engine:
        with pytest.raises(TooLarge, match="the limit is 7 MB"):
            await engine.knowledge.add(stream(*[megabyte] * 8), name="large.txt")
        with pytest.raises(TooLarge):
            await engine.knowledge.add(megabyte * 8, name="large.txt")
        with pytest.raises(ConnectionResetError):
            await engine.knowledge.add(broken(), name="broken.txt")

        assert set((await rows(engine)).values()) == {0}


@pytest.mark.req("KNOW-05")
async def test_a_closed_engine_continues_where_it_was_when_it_opens_again(config: Config) -> None:
    text = story("tern", 300)
    async with open_engine(config=config) as engine:
        watched = Watched(engine, most=2)
        document = await engine.knowledge.add(text=text, name="terns.md", wait=False)
        await watched.stopped.wait()
        before = await staged(engine)

    async with open_engine(config=config) as engine:
        later = Watched(engine)
        document = await engine.knowledge.add(text=text, name="terns.md")
        passages = await engine.database.value("select count(*) from chunk_vector where tenant_id = $1")
        read = await engine.knowledge.read(document.id, limit=200_000)
        rest = await engine.knowledge.read(document.id, start=read.next, limit=200_000)

    assert 0 < before.chunks < document.chunks
    assert read.text + rest.text == text
    assert document.version == 1
    assert len(later.texts) < passages
    assert len(set(watched.texts) & set(later.texts)) <= len(watched.texts) // 2, "the last part was not stored yet"


@pytest.mark.req("KNOW-05")
async def test_two_engines_share_the_work_and_no_chunk_is_embedded_twice(config: Config) -> None:
    async with open_engine(config=config) as one, open_engine(config=config) as other:
        watched = [Watched(one), Watched(other)]
        async with asyncio.timeout(60):
            await asyncio.gather(*(one.knowledge.add(text=story(f"bird{n}", 8), name=f"{n}.md") for n in range(12)))
        passages = await one.database.value("select count(*) from chunk_vector where tenant_id = $1")
        states = {job.state for job in await one.knowledge.jobs()}

    texts = [text for each in watched for text in each.texts]
    assert states == {"done"}
    assert len(texts) == len(set(texts)) == passages


@pytest.mark.req("KNOW-05", "SAFE-06")
async def test_a_tenant_with_many_files_does_not_keep_another_waiting(engine: Engine, watched: Watched) -> None:
    await engine.tenants.create("crowd")
    await engine.tenants.create("single")
    crowd, single = engine.tenant("crowd").knowledge, engine.tenant("single").knowledge
    watched.stop()
    for n in range(16):
        await crowd.add(text=story(f"crowd{n}", 2), name=f"{n}.md", wait=False)
    await watched.stopped.wait()

    one = await single.add(text=story("single", 2), name="one.md", wait=False)
    watched.go_on()
    async with asyncio.timeout(60):
        await single.add(text=story("single", 2), name="one.md")
    [own] = await single.jobs(document=one.id)
    later = [job for job in await crowd.jobs() if job.state != "done" or job.updated_at > own.updated_at]

    assert len(later) > 8


@pytest.mark.req("KNOW-05")
async def test_a_killed_parser_is_started_again_and_the_document_becomes_ready(
    knowledge: Knowledge, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingester, "FIRST_PAUSE", 0.01)
    watched.stop()
    adding = asyncio.create_task(knowledge.add(text=story("gull", 200), name="gulls.md"))
    await watched.stopped.wait()

    children = psutil.Process().children(recursive=True)
    parsers = [each for each in children if "holdfast.knowledge.reader.program" in " ".join(each.cmdline())]
    for each in parsers:
        each.kill()
    watched.go_on()
    async with asyncio.timeout(30):
        document = await adding

    assert parsers
    assert document.status == "ready"
    assert (await knowledge.read(document.id, limit=200_000)).text == story("gull", 200)[:200_000]


@pytest.mark.req("KNOW-01")
async def test_without_a_model_chunks_have_words_and_get_vectors_when_there_is_one(
    words_only: Engine, config: Config, models: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = await words_only.knowledge.add(text=story("heron"), name="herons.md")
    embedded = await words_only.database.value("select count(embedded) from chunk where tenant_id = $1")
    [job] = await words_only.knowledge.jobs()

    monkeypatch.undo()
    async with open_engine(config=config) as engine:
        indexer = Indexer(engine.postgres, engine.embeddings, config.memory)
        indexer.add(ChunkVectors(engine.postgres.system, engine.embeddings))
        await indexer.catch_up()

        assert (document.status, embedded, job.embedded, job.chunks) == ("ready", 0, 0, document.chunks)
        assert await engine.database.value("select count(embedded) from chunk where tenant_id = $1") == document.chunks
        assert await engine.database.value(DUPLICATES) == 0


@pytest.mark.req("KNOW-01")
async def test_a_removed_or_erased_document_leaves_no_trace(engine: Engine, knowledge: Knowledge) -> None:
    document = await knowledge.add(
        text=story("Atlantic Puffin of Iceland"), name="puffins.md", title="Puffins of Iceland"
    )
    await knowledge.add(text=story("ann"), name="mine.md", owner=user("ann"))
    before = await rows(engine)

    await knowledge.remove(document.id)
    between = await rows(engine)
    report = await knowledge.erase(user("ann"))

    assert min(before[table] for table in ("chunk", "chunk_vector", "chunk_term", "memory_entities")) > 0
    assert between["document"] == 1
    assert (report.documents, report.chunks) == (1, between["chunk"])
    assert set((await rows(engine)).values()) == {0}
    with pytest.raises(NotFound, match="there is no document"):
        await knowledge.remove(document.id)
    with pytest.raises(NotFound):
        await knowledge.read(document.id)


@pytest.mark.req("ENG-04")
async def test_documents_of_tenants_and_owners_are_apart(engine: Engine, knowledge: Knowledge) -> None:
    await engine.tenants.create("acme")
    acme = engine.tenant("acme").knowledge
    owners = [organization(), agent("support"), user("ann"), user("bob")]

    documents = [await knowledge.add(text=f"of {owner}", name="same.txt", owner=owner, wait=False) for owner in owners]
    other = await acme.add(text="of acme", name="same.txt", wait=False)

    assert len({each.id for each in [*documents, other]}) == 5
    assert [each.owner for each in documents] == owners
    for owner, document in zip(owners, documents, strict=True):
        found = await knowledge.find("same.txt", owner=owner)
        assert found is not None
        assert found.id == document.id
        assert [each.id for each in await knowledge.list(owners=[owner])] == [document.id]
    assert [each.id for each in await acme.list()] == [other.id]
    with pytest.raises(NotFound):
        await acme.get(documents[0].id)
    with pytest.raises(InvalidInput, match="a session cannot have documents"):
        await knowledge.add(text="x", name="x", owner=session("web"))


async def test_an_upload_that_is_cancelled_or_given_up_leaves_nothing(engine: Engine, clock: Clock) -> None:
    waits = asyncio.Event()

    async def stuck() -> AsyncGenerator[bytes]:
        for _ in range(6):
            yield b"x" * 1024 * 1024
        waits.set()
        await asyncio.Event().wait()

    async with aclosing(stuck()) as parts:
        adding = asyncio.create_task(engine.knowledge.add(parts, name="stuck.txt"))
        await waits.wait()
        stored = (await rows(engine))["ingest_upload"]
        adding.cancel()
        await asyncio.wait([adding])
    left = (await rows(engine))["ingest_upload"]
    await engine.database.run(STORE_PIECE, uuid4())
    await clock.advance(timedelta(hours=2))
    await sweep_uploads(engine.postgres)

    assert (stored, left) == (2, 0)
    assert set((await rows(engine)).values()) == {0}


async def staged(engine: Engine) -> IngestJob:
    """The job, when some of its chunks are staged."""
    async with asyncio.timeout(20):
        async with engine.postgres.listen("nothing") as woken:
            while not (job := (await engine.knowledge.jobs())[0]).embedded:
                await until(woken, 0.01)
    return job
