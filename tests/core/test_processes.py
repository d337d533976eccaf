import asyncio
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from holdfast.core.errors import InvalidInput, Unavailable
from holdfast.core.processes import ProcessCalls


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
