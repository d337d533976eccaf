"""Pipes: lines in and out, however they come and whoever reads them."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from holdfast.cli.pipes import WAITING, Pipes

LINE = b"x" * 100_000  # more than a pipe holds
PATIENCE = 60


class Ends:
    """The ends of two pipes: ours to read and to write, and those of whoever talks to us."""

    def __init__(self) -> None:
        self.incoming, self.theirs = os.pipe()
        self.reading, self.outgoing = os.pipe()

    def close(self) -> None:
        """Close what is open."""
        for end in (self.incoming, self.theirs, self.reading, self.outgoing):
            with suppress(OSError):
                os.close(end)


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Two pipes."""
    ends = Ends()
    yield ends
    ends.close()


@pytest.mark.req("MCP-01")
async def test_lines_come_whole_however_they_were_written(ends: Ends) -> None:
    pipes = Pipes(ends.incoming, ends.outgoing, longest=10)
    for piece in (b"one\ntw", b"o\n\nfar too long", b" for us\nlast"):
        os.write(ends.theirs, piece)
    os.close(ends.theirs)

    async with asyncio.timeout(PATIENCE):
        lines = [line async for line in pipes.lines()]

    assert lines == [b"one", b"two", b"", b"far too lon", b"last"]


@pytest.mark.req("MCP-01")
async def test_who_writes_waits_for_one_who_does_not_read(ends: Ends) -> None:
    pipes = Pipes(ends.incoming, ends.outgoing, longest=10)
    written, full = list[int](), asyncio.Event()

    async def write() -> None:
        for number in range(1, 2 * WAITING):
            await pipes.write(LINE)
            written.append(number)
            if number == WAITING:
                full.set()

    writing = asyncio.create_task(write())
    async with asyncio.timeout(PATIENCE):
        await full.wait()
    done, _ = await asyncio.wait([writing], timeout=0.1)
    held = len(written)
    pipes.end()
    async with asyncio.timeout(PATIENCE):
        await writing
        lines = [line async for line in pipes.lines()]

    assert not done
    assert held == WAITING
    assert lines == []


@pytest.mark.req("MCP-01")
async def test_it_ends_when_nobody_is_left_to_read(ends: Ends) -> None:
    pipes = Pipes(ends.incoming, ends.outgoing, longest=10)
    os.close(ends.reading)

    await pipes.write(LINE)

    async with asyncio.timeout(PATIENCE):
        assert [line async for line in pipes.lines()] == []


@pytest.mark.req("MCP-01")
async def test_what_was_written_is_out_when_it_is_closed(ends: Ends) -> None:
    pipes = Pipes(ends.incoming, ends.outgoing, longest=10)
    await pipes.write(b"one")
    await pipes.write(b"two")

    await pipes.close(grace=PATIENCE)

    assert os.read(ends.reading, 100) == b"one\ntwo\n"
