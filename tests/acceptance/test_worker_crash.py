"""Workers are killed, stopped and blocked in the middle of a command: it is done once, by one who lives."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.app import App
from holdfast.bus import Command, current_command
from holdfast.core.config import Config, load_config
from holdfast.engine import Engine, open_engine
from tests.clock import Clock
from tests.processes import Process, Processes

pytestmark = [pytest.mark.acceptance, pytest.mark.req("EDA-03", "EDA-04")]

PROGRAMS = Path(__file__).parent / "programs"
PATIENCE = 60

StartWorker = Callable[..., Process]


class Other:
    """An app with the same skill in this process; it ends when it is let go, and keeps count."""

    def __init__(self, skill: str) -> None:
        self.app = App()
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.attempts: list[int] = []
        self.app.skill(skill)(self._work)

    async def _work(self, **_: object) -> int:
        self.attempts.append(current_command().attempt)
        self.started.set()
        await self.go_on.wait()
        return os.getpid()


@pytest.fixture
def start_worker(processes: Processes, config: Config, database_url: str, tmp_path: Path) -> StartWorker:
    """Starts `holdfast worker shop:app` on the test's database, and waits until it works."""

    def start(**settings: str) -> Process:
        environment = {
            "HOLDFAST_DATABASE_URL": database_url,
            "HOLDFAST_DATA": str(config.data),
            "PYTHONPATH": str(PROGRAMS),
            **settings,
        }
        process = processes.holdfast("worker", "shop:app", environment=environment)
        process.wait_for("Ctrl-C stops it.")
        return process

    return start


def impatient(config: Config) -> AbstractAsyncContextManager[Engine]:
    """An engine whose workers take a command for lost after half a second."""
    flags = {"database.url": config.database.url, "data": config.data, "bus.command_lease": 0.5}
    return open_engine(config=load_config(flags, environ={}))


async def pass_time(engine: Engine, clock: Clock, id: str, other: Other) -> None:
    """Ten minutes go by; a worker finds that the command's own is gone, and, after the pause, does it."""
    await clock.advance(timedelta(minutes=10))

    async def has(state: str) -> bool:
        engine.postgres.clear()  # a connection that was busy when the clock was moved
        return (await engine.commands.get(id)).state == state

    async with asyncio.timeout(PATIENCE):
        while not await has("queued"):
            pass
        await clock.advance(timedelta(seconds=1))
        while not await has("running"):
            pass
        await other.started.wait()


async def finished(engine: Engine, id: str) -> Command:
    """The command, when it is answered."""
    await engine.commands.result(id, timeout=PATIENCE)
    return await engine.commands.get(id)


async def test_a_command_whose_worker_is_killed_runs_again_once_by_another(
    engine: Engine, clock: Clock, start_worker: StartWorker, tmp_path: Path
) -> None:
    killed, other = start_worker(), Other("report")
    id = await engine.commands.submit("report", {"ready": str(tmp_path / "never")})
    killed.wait_for("report attempt 1")

    killed.kill()
    await clock.set(await engine.database.now())
    async with engine.worker(other.app):
        first = await engine.commands.get(id)
        await pass_time(engine, clock, id, other)
        other.go_on.set()
        command = await finished(engine, id)

    (completion,) = await engine.commands.completions(id)
    assert (first.state, first.attempts) == ("running", 1), "it is not taken from a worker that may live"
    assert (command.state, command.attempts, other.attempts) == ("done", 2, [2])
    assert (completion.applied, completion.result) == (True, os.getpid())


async def test_a_worker_that_was_stopped_for_too_long_cannot_complete(
    engine: Engine, clock: Clock, start_worker: StartWorker, tmp_path: Path
) -> None:
    stopped, other, ready = start_worker(), Other("print"), tmp_path / "ready"
    id = await engine.commands.submit("print", {"ready": str(ready)})
    stopped.wait_for("print attempt 1")

    stopped.send(signal.SIGSTOP)
    async with engine.worker(other.app):
        await pass_time(engine, clock, id, other)
        ready.touch()
        stopped.send(signal.SIGCONT)
        async with asyncio.timeout(PATIENCE):
            while not (late := await engine.commands.completions(id)):
                pass
        between = await engine.commands.get(id)
        other.go_on.set()
        command = await finished(engine, id)

    assert [(c.applied, c.result) for c in late] == [(False, stopped.pid)]
    assert (between.state, command.state, command.attempts, other.attempts) == ("running", "done", 2, [2])
    assert [(c.applied, c.result) for c in await engine.commands.completions(id)] == [
        (False, stopped.pid),
        (True, os.getpid()),
    ]


async def test_a_skill_that_blocks_the_event_loop_keeps_its_lease(config: Config, start_worker: StartWorker) -> None:
    blocked, other = start_worker(HOLDFAST_BUS__COMMAND_LEASE="0.5"), Other("blocking")
    async with impatient(config) as engine:
        id = await engine.commands.submit("blocking", {"seconds": 3})
        blocked.wait_for("blocking attempt 1")

        async with engine.worker(other.app):
            command = await finished(engine, id)
        (completion,) = await engine.commands.completions(id)

    assert (command.state, command.attempts, other.attempts) == ("done", 1, [])
    assert (completion.applied, completion.result) == (True, blocked.pid)
