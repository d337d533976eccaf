"""Engine and parser are killed while documents are ingested: each document is whole at all times, old or new."""

import asyncio
import contextlib
import os
import random
from pathlib import Path

import psutil
import pytest

from holdfast.engine import Engine
from holdfast.knowledge import ingester
from tests.processes import Process, Processes

PROGRAM = str(Path(__file__).parent / "programs" / "ingester.py")
AT_ONCE = 4 * 72  # passages that a job may have embedded and not stored: four parts of a file are on their way at most
BROKEN = """
select count(*) from chunk c where c.tenant_id = $1 and (
  c.embedded is null
  or not exists (select from document d where d.tenant_id = $1 and d.id = c.document_id and d.version > 0)
  or cardinality(c.passages) / 2 <> (
    select count(*) from chunk_vector v
    where v.tenant_id = $1 and v.document_id = c.document_id and v.chunk_index = c.chunk_index))
"""
ORPHANS = """
select (select count(*) from chunk_vector v where v.tenant_id = $1 and not exists (
    select from chunk c where c.tenant_id = $1 and c.document_id = v.document_id and c.chunk_index = v.chunk_index))
  + (select count(*) from chunk_term t, unnest(t.chunks) as i where t.tenant_id = $1 and not exists (
    select from chunk c where c.tenant_id = $1 and c.document_id = t.document_id and c.chunk_index = i))
"""
LEFT = """
select (select count(*) from ingest_upload where tenant_id = $1)
  + (select count(*) from ingest_chunk where tenant_id = $1)
"""


def text_of(name: str, version: int) -> str:
    return "\n\n".join(
        f"## Part {part} of {name}, edition {version if part % 3 else 'all'}\n\n"
        + " ".join(f"Line {line} of part {part} says what {name} had to say about it." for line in range(20))
        for part in range(24 if name[0] != "1" else 120)
    )


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ingester of this process does nothing: the work is that of the processes that are killed."""
    monkeypatch.setattr(ingester, "FIRST", 1e6)


@pytest.mark.acceptance
@pytest.mark.req("KNOW-01", "KNOW-05", "ENG-02")
@pytest.mark.parametrize(
    ("files", "kills"), [(20, 4), pytest.param(200, 40, marks=pytest.mark.soak(minutes=8))], ids=["short", "long"]
)
async def test_a_killed_ingestion_leaves_each_document_whole_and_goes_on(
    files: int, kills: int, database_url: str, idle: None, words_only: Engine, processes: Processes, tmp_path: Path
) -> None:
    dice = random.Random(int(os.environ.get("HOLDFAST_TEST_SEED", "7")))
    knowledge = words_only.knowledge
    folder, embedded = tmp_path / "files", tmp_path / "embedded"
    folder.mkdir()
    environment = {
        "HOLDFAST_DATABASE__URL": database_url,
        "HOLDFAST_DATA": str(tmp_path / "other"),
        "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",
        "XDG_CACHE_HOME": str(tmp_path / "empty"),
    }

    async def check(version: int) -> None:
        assert await words_only.database.value(BROKEN) == 0
        assert await words_only.database.value(ORPHANS) == 0
        for document in await knowledge.list(limit=1000):
            reading = await knowledge.read(document.id, limit=200_000)
            allowed = [text_of(document.name, each) for each in (version - 1, version) if each]
            assert reading.text in (allowed if document.version else [""])

    def start() -> Process:
        return processes.start(PROGRAM, str(folder), str(embedded), environment=environment)

    for version in (1, 2):
        for number in range(files):
            (folder / f"{number}.md").write_text(text_of(f"{number}.md", version))
        for _ in range(kills):
            process = start()
            await asyncio.to_thread(process.wait_for, "added\n")
            await asyncio.sleep(dice.uniform(0, 1.5))  # any moment may be the last
            if dice.random() < 0.4:
                kill_parsers(process)
                await asyncio.sleep(dice.uniform(0, 0.5))
            process.kill()
            await check(version)
        process = start()
        await asyncio.to_thread(process.wait_for, "done\n", timeout=300)
        process.wait()
        await check(version)
        documents = await knowledge.list(limit=1000)
        assert [(each.status, each.version) for each in documents] == [("ready", version)] * files

    assert await words_only.database.value(LEFT) == 0
    texts = embedded.read_text().split()
    wasted = len(texts) - len(set(texts))
    assert wasted <= 2 * kills * AT_ONCE


def kill_parsers(process: Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            if "holdfast.knowledge.reader.program" in child.cmdline():
                child.kill()
