"""Readers with real processes."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from holdfast.execution.sandbox import SandboxProcesses
from holdfast.knowledge.reader.protocol import ReadOptions, ReadPart
from holdfast.knowledge.reader.readers import Readers
from tests.knowledge.reader.hostile import PARSERS

MEMORY_MB = 256


@pytest.fixture
async def readers(tmp_path: Path) -> AsyncIterator[Readers]:
    """One reader process, which also knows the hostile parsers."""
    async with Readers(
        SandboxProcesses(), processes=1, memory_mb=MEMORY_MB, folder=tmp_path / "readers", parsers=PARSERS
    ) as readers:
        yield readers


async def read(
    readers: Readers,
    path: Path,
    *,
    media_type: str | None = None,
    position: bytes | None = None,
    options: ReadOptions | None = None,
) -> list[ReadPart]:
    """Read a file to its end."""
    async with aclosing(
        readers.read(path, name=path.name, media_type=media_type, position=position, options=options)
    ) as parts:
        return [part async for part in parts]


async def read_text(readers: Readers, path: Path, *, media_type: str | None = None) -> str:
    """The texts of a file's chunks."""
    return "\n".join(
        each.chunk.text for part in await read(readers, path, media_type=media_type) for each in part.chunks
    )


def hostile(folder: Path, name: str) -> tuple[Path, str]:
    """A file for a hostile parser, and its media type."""
    path = folder / f"{name}.bin"
    path.write_text("input")
    return path, f"application/x-{name}"


def good(folder: Path) -> Path:
    """A file that can be read."""
    path = folder / "good.txt"
    path.write_text("A good file after a bad one.")
    return path
