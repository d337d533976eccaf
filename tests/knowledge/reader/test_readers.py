import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path

import psutil
import pytest

from holdfast.core.errors import Unavailable
from holdfast.embeddings.store import Store
from holdfast.execution.sandbox import SandboxProcesses
from holdfast.execution.sandbox.processes import landlock_version
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.reader.folder import file_name
from holdfast.knowledge.reader.protocol import ReadOptions, ReadPart
from holdfast.knowledge.reader.readers import Readers
from tests.embeddings.models import ENGLISH
from tests.knowledge.parsing.pdf_writer import page_of, write_pdf
from tests.knowledge.reader.conftest import good, hostile, read, read_text
from tests.knowledge.reader.hostile import PARSERS
from tests.rules.tree import ROOT

pytestmark = pytest.mark.req("KNOW-01")

TIME = 20


def handbook(path: Path, chapters: int = 60) -> Path:
    text = "\n\n".join(
        f"## Chapter {number}\n\n" + f"Rule {number}: Ann Miller decides about tea, and the board of Acme pays. " * 60
        for number in range(chapters)
    )
    path.write_text(f"# Handbook\n\n{text}\n")
    return path


async def test_the_chunks_of_a_file_come_with_all_that_is_stored(readers: Readers, tmp_path: Path) -> None:
    path = handbook(tmp_path / "handbook.md", chapters=2)

    (part,) = await read(readers, path)

    first = part.chunks[0]
    assert first.chunk.text.startswith("# Handbook")
    assert first.chunk.section[:1] == ("Handbook",)
    assert first.length == len(first.terms) > 5
    assert first.language == "en"
    assert first.entities is not None
    assert {each["name"] for each in first.entities["entities"]} >= {"Ann Miller", "Acme"}
    assert len({each.digest for each in part.chunks}) == len(part.chunks)
    assert (part.last, part.media_type, part.title, part.units) == (True, "text/markdown", "Handbook", 1)
    assert part.characters == len(path.read_text().rstrip())


@pytest.mark.parametrize("name", ["handbook.md", "handbook.pdf"])
async def test_a_read_that_continues_yields_the_chunks_of_an_uninterrupted_one(
    readers: Readers, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    if path.suffix == ".pdf":
        texts = [f"Rule {number} says that tea is free.\nIt is a rule.\n" * 12 for number in range(300)]
        write_pdf(path, [page_of(text) for text in texts], title="Rules")
    else:
        handbook(path)
    whole = await read(readers, path)
    chunks = [each for part in whole for each in part.chunks]

    assert len(whole) > 2
    for place in (0, len(whole) // 2, len(whole) - 1):
        rest = await read(readers, path, position=whole[place].position)
        before = [each for part in whole[: place + 1] for each in part.chunks]
        assert before + [each for part in rest for each in part.chunks] == chunks
        assert (rest[-1].units, rest[-1].characters) == (whole[-1].units, whole[-1].characters)
        assert (rest[-1].title, rest[-1].pages) == (whole[-1].title, whole[-1].pages)


async def test_tokens_are_counted_by_the_tokenizer_of_the_model(
    readers: Readers, tmp_path: Path, models: Store
) -> None:
    path = handbook(tmp_path / "handbook.md", chapters=3)
    files = models.find(ENGLISH)
    assert files is not None

    estimated = await read(readers, path)
    counted = await read(readers, path, options=ReadOptions(tokenizer=files.tokenizer))

    assert [each.chunk.tokens for each in counted[-1].chunks] != [each.chunk.tokens for each in estimated[-1].chunks]
    assert max(each.chunk.tokens for each in counted[-1].chunks) <= 512


async def test_a_process_reads_one_file_after_the_other(readers: Readers, tmp_path: Path) -> None:
    path, media_type = hostile(tmp_path, "process")

    first = await read_text(readers, path, media_type=media_type)
    await read_text(readers, good(tmp_path))
    second = await read_text(readers, path, media_type=media_type)

    assert first == second != str(os.getpid())


async def test_an_idle_process_ends(tmp_path: Path) -> None:
    path, media_type = hostile(tmp_path, "process")

    async with Readers(SandboxProcesses(), folder=tmp_path / "r", parsers=PARSERS, idle=0.1) as readers:
        process = psutil.Process(int(await read_text(readers, path, media_type=media_type)))
        _, alive = await asyncio.to_thread(psutil.wait_procs, [process], TIME)

    assert not alive


async def test_only_so_many_files_are_read_at_once_as_there_are_processes(readers: Readers, tmp_path: Path) -> None:
    path, media_type = hostile(tmp_path, "endless")
    async with aclosing(readers.read(path, name="endless", media_type=media_type)) as parts:
        await anext(parts)
        second = asyncio.create_task(read_text(readers, good(tmp_path)))
        await anext(parts)
        assert not second.done()

    async with asyncio.timeout(TIME):
        assert await second == "A good file after a bad one."


async def test_a_read_that_is_cancelled_ends_its_process(readers: Readers, tmp_path: Path) -> None:
    path, media_type = hostile(tmp_path, "wait")
    async with aclosing(readers.read(path, name="wait", media_type=media_type)) as parts:
        part = await anext(parts)
        pid = int(part.chunks[0].chunk.text.split()[1].strip("."))
        assert psutil.pid_exists(pid)

    assert not psutil.pid_exists(pid)


async def test_a_process_needs_little_of_the_engine(readers: Readers, tmp_path: Path) -> None:
    path, media_type = hostile(tmp_path, "modules")

    loaded = (await read_text(readers, path, media_type=media_type)).split("\n")

    heavy = {"asyncpg", "aiohttp", "pydantic", "starlette", "onnxruntime", "numpy", "holdfast.engine"}
    assert heavy.isdisjoint(loaded)


@pytest.mark.skipif(landlock_version() == 0, reason="this kernel has no Landlock")
@pytest.mark.req("SAFE-06")
async def test_a_process_reaches_nothing_but_its_input(readers: Readers, tmp_path: Path) -> None:
    path, media_type = hostile(tmp_path, "intrude")

    tried = (await read_text(readers, path, media_type=media_type)).split("\n")

    assert tried[0] == "read its input: done"
    assert [line for line in tried[1:] if line.endswith("done")] == []
    assert path.read_text() == "input"


async def test_what_a_library_prints_is_no_reply(readers: Readers, tmp_path: Path) -> None:
    path, media_type = hostile(tmp_path, "chatter")

    assert await read_text(readers, path, media_type=media_type) == "The text."


async def test_without_the_sandbox_files_are_read_with_fewer_limits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.sandbox.processes.landlock_version", lambda: 0)

    async with Readers(SandboxProcesses(), folder=tmp_path / "r") as readers:
        text = await read_text(readers, good(tmp_path))

    assert text == "A good file after a bad one."
    assert "without the sandbox" in caplog.text


async def test_a_file_of_another_file_system_is_copied(tmp_path: Path, fast_folder: Path) -> None:
    path = good(tmp_path)

    async with Readers(SandboxProcesses(), folder=fast_folder / "readers") as readers:
        assert await read_text(readers, path) == "A good file after a bad one."
        assert path.stat().st_nlink == 1


async def test_the_folder_of_a_killed_engine_is_removed_when_the_next_one_starts(tmp_path: Path) -> None:
    folder = tmp_path / "readers"
    engine = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _ENGINE, str(folder), str(hostile(tmp_path, "wait")[0])),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert engine.stdout is not None
    async with asyncio.timeout(TIME):
        pid = int(await engine.stdout.readline())
    reader = psutil.Process(pid)
    left = list(folder.iterdir())
    engine.send_signal(signal.SIGKILL)
    await engine.wait()

    gone, alive = await asyncio.to_thread(psutil.wait_procs, [reader], TIME)
    async with Readers(SandboxProcesses(), folder=folder):
        now = list(folder.iterdir())

    assert gone
    assert not alive
    assert len(left) == 1
    assert len(now) == 1
    assert now != left
    assert list(folder.iterdir()) == []


_ENGINE = """
import asyncio, sys
from pathlib import Path
from holdfast.execution.sandbox import SandboxProcesses
from holdfast.execution.sandbox.processes import landlock_version
from holdfast.knowledge.reader.readers import Readers
from tests.knowledge.reader.hostile import PARSERS
from tests.rules.tree import ROOT

async def main():
    folder, path = map(Path, sys.argv[1:])
    async with Readers(SandboxProcesses(), folder=folder, parsers=PARSERS) as readers:
        async for part in readers.read(path, name="wait", media_type="application/x-wait"):
            print(part.chunks[0].chunk.text.split()[1].strip("."), flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_a_missing_file_is_an_error_of_the_caller(readers: Readers, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await read(readers, tmp_path / "missing.txt")

    assert await read_text(readers, good(tmp_path)) == "A good file after a bad one."


async def test_a_process_that_was_killed_is_no_fault_of_the_file(readers: Readers, tmp_path: Path) -> None:
    path, media_type = hostile(tmp_path, "endless")
    async with aclosing(readers.read(path, name="endless.txt", media_type=media_type)) as parts:
        await anext(parts)
        kill_readers()
        with pytest.raises(Unavailable, match=r"endless\.txt cannot be read: its process was killed"):
            await rest(parts)

    assert await read_text(readers, good(tmp_path)) == "A good file after a bad one."


def kill_readers() -> None:
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "holdfast.knowledge.reader.program" in child.cmdline():
                child.kill()


async def rest(parts: AsyncIterator[ReadPart]) -> None:
    async for _ in parts:
        pass


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("handbook.pdf", "handbook.pdf"),
        ("../../etc/passwd", "passwd"),
        ("docs\\notes.txt", "notes.txt"),
        ("", "document"),
        ("..", "document"),
        ("a/", "a"),
        ("x" * 300 + ".pdf", "x" * 196 + ".pdf"),
        ("\u6587" * 100, "\u6587" * 66),
    ],
)
def test_the_name_of_a_document_is_a_name_for_its_file(name: str, file: str) -> None:
    assert file_name(name) == file


def test_an_error_of_parsing_tells_what_why_and_what_next() -> None:
    error = ParseError("a.pdf cannot be read", code="encrypted", why="it is encrypted", next="Save it without.")

    assert str(error) == "a.pdf cannot be read: it is encrypted. Save it without."
