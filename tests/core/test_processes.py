import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from holdfast.core import processes
from holdfast.core.errors import InvalidInput, Overloaded, TimedOut, TooLarge, Unavailable
from holdfast.core.processes import ProcessCalls
from holdfast.core.shares import set_holder


def ids(count: int) -> Iterable[int]:
    print("not a result")  # noqa: T201
    return [os.getpid()] * count


def refuse() -> Iterable[int]:
    raise InvalidInput("the document is wrong", why="it is empty", path="info")


def die() -> Iterable[int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def wait(started: str) -> Iterable[int]:
    with Path(started).open("w") as pipe:
        pipe.write(str(os.getpid()))
    time.sleep(60)
    return []


def grow(size: int) -> Iterable[int]:
    return [len(bytearray(size))]


def spin() -> Iterable[int]:
    while True:
        pass


def fill(size: int) -> Iterable[bytes]:
    return (bytes(1_000_000) for _ in range(size // 1_000_000))


def environment() -> Iterable[str]:
    return sorted(os.environ)


async def test_a_function_runs_in_a_process_of_its_own() -> None:
    found = await ProcessCalls().call(ids, 3)

    assert len(found) == 3
    assert os.getpid() not in found


async def test_the_caller_gets_the_error_of_the_function() -> None:
    with pytest.raises(InvalidInput, match="it is empty") as refused:
        await ProcessCalls().call(refuse)

    assert refused.value.details == {"path": "info"}


async def test_a_process_that_is_killed_is_an_error_with_its_exit_code() -> None:
    with pytest.raises(Unavailable, match="its exit code is -9"):
        await ProcessCalls().call(die)


async def test_a_cancelled_call_kills_its_process_and_frees_its_place(tmp_path: Path) -> None:
    calls, started = ProcessCalls(1), tmp_path / "started"
    os.mkfifo(started)
    task = asyncio.create_task(calls.call(wait, str(started)))
    async with asyncio.timeout(10):
        pid = await asyncio.to_thread(started.read_text)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        after = await calls.call(ids, 1)

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    assert len(after) == 1


async def test_the_process_sees_no_secret_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_LLM__API_KEY", "secret")

    assert "HOLDFAST_LLM__API_KEY" not in await ProcessCalls().call(environment)


async def test_a_process_that_takes_too_long_is_killed_and_frees_its_place(tmp_path: Path) -> None:
    calls, started = ProcessCalls(1, seconds=3), tmp_path / "started"
    os.mkfifo(started)
    task = asyncio.create_task(calls.call(wait, str(started)))
    async with asyncio.timeout(30):
        pid = await asyncio.to_thread(started.read_text)
        with pytest.raises(TimedOut, match="more than 3 seconds"):
            await task
        after = await calls.call(ids, 1)

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    assert len(after) == 1


async def test_a_process_that_computes_for_too_long_ends_also_without_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = property(lambda _: (1, processes.MEMORY))
    monkeypatch.setattr(ProcessCalls, "_limits", limits)

    async with asyncio.timeout(30):
        with pytest.raises(TimedOut):
            await ProcessCalls().call(spin)


@pytest.mark.skipif(sys.platform != "linux", reason="others do not limit address space")
async def test_a_process_gets_no_more_memory_than_its_limit() -> None:
    calls = ProcessCalls(memory=500_000_000)

    assert await calls.call(grow, 100_000_000) == [100_000_000]
    with pytest.raises(TooLarge, match="more than 500,000,000 bytes of memory"):
        await calls.call(grow, 500_000_000)


async def test_a_result_that_is_too_large_is_refused_in_the_process() -> None:
    with pytest.raises(TooLarge, match="the result is too large"):
        await ProcessCalls().call(fill, 300_000_000)


async def test_one_tenant_does_not_hold_all_places(tmp_path: Path) -> None:
    calls, pipe = ProcessCalls(wait=0.1), tmp_path / "pipe"
    os.mkfifo(pipe)
    set_holder("first", None)
    holding = asyncio.create_task(calls.call(wait, str(pipe)))
    async with asyncio.timeout(30):
        await asyncio.to_thread(pipe.read_text)
        with pytest.raises(Overloaded, match="share of the processes") as refused:
            await calls.call(ids, 1)
        set_holder("second", None)
        other = await calls.call(ids, 1)
    holding.cancel()
    await asyncio.wait([holding])

    assert len(other) == 1
    assert "raise" not in refused.value.next, "there is no setting"
