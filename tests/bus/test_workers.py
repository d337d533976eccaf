import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.app import App
from holdfast.bus import Command, CurrentCommand, current_command
from holdfast.bus.completions import Completions
from holdfast.bus.workers import ONCE
from holdfast.core.config import Config, load_config
from holdfast.core.errors import CommandFailed, InvalidInput, TimedOut, Unavailable
from holdfast.engine import Engine, open_engine
from tests.clock import Clock

PATIENCE = 20
SECOND = timedelta(seconds=1)


class Strange(BaseException):
    """What no `except Exception` sees; its words cannot be read."""

    def __str__(self) -> str:
        raise ValueError("no words")


class Bench:
    """An app whose skill `work` says when it starts, and ends when it is let go."""

    def __init__(self) -> None:
        self.app = App()
        self.started: asyncio.Queue[CurrentCommand] = asyncio.Queue()
        self.go_on = asyncio.Event()
        self.stopped = asyncio.Event()
        self.failures = 0
        self.app.skill("work", attempts=3)(self._work)

    async def _work(self, value: Any = None) -> Any:
        self.started.put_nowait(current_command())
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        if self.failures:
            self.failures -= 1
            raise ValueError("not yet")
        return value

    async def next(self) -> CurrentCommand:
        """The next command that starts."""
        async with asyncio.timeout(PATIENCE):
            return await self.started.get()


@pytest.fixture
def bench() -> Bench:
    """A bench where nothing has started yet."""
    return Bench()


@pytest.fixture
async def second(engine: Engine, config: Config) -> AsyncIterator[Engine]:
    """An engine of its own on the same database, as another process has it."""
    async with open_engine(config=config) as second:
        yield second


@pytest.fixture
async def frozen(engine: Engine, clock: Clock) -> datetime:
    """The clock stands still; the time it stands at."""
    await clock.set(now := await engine.database.now())
    return now


async def until(engine: Engine, check: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    """Wait until it holds; a connection that was busy when the clock was moved goes, too."""
    async with asyncio.timeout(PATIENCE):
        while not await check():
            engine.postgres.clear()
            await asyncio.sleep(0)


async def in_state(engine: Engine, id: str, state: str) -> Command:
    """Wait until a command is in a state."""

    async def is_so() -> bool:
        return (await engine.commands.get(id)).state == state

    await until(engine, is_so)
    return await engine.commands.get(id)


async def lapse(engine: Engine, id: str) -> None:
    """Let the lease of a command's first attempt run out, as if its worker had stopped responding."""
    past = "update command set leased_until = holdfast.now() where tenant_id = $1 and correlation_id = $2"
    await engine.database.run(f"{past} and attempts = 1", id)


@pytest.mark.req("EDA-04")
async def test_a_failed_attempt_is_made_again_after_a_while(
    engine: Engine, bench: Bench, clock: Clock, frozen: datetime
) -> None:
    bench.failures = 1
    bench.go_on.set()
    id = await engine.commands.submit("work", {"value": 1})

    async with engine.worker(bench.app):
        first = await bench.next()
        waiting = await in_state(engine, id, "queued")
        await clock.advance(SECOND)
        done = await in_state(engine, id, "done")
        again = await bench.next()

    assert frozen < waiting.run_at < frozen + SECOND
    assert (waiting.attempts, waiting.error, waiting.worker) == (1, "ValueError: not yet", None)
    assert (done.attempts, done.error) == (2, None)
    assert (first.attempt, again.attempt) == (1, 2)
    assert first.correlation_id == again.correlation_id == id
    assert len(await engine.commands.completions(id)) == 1


@pytest.mark.req("EDA-04", "BUS-04")
async def test_after_the_last_attempt_a_command_is_a_dead_letter_that_can_be_driven_again(
    engine: Engine, bench: Bench
) -> None:
    bench.failures = 3
    bench.go_on.set()
    async with engine.worker(bench.app):
        with pytest.raises(CommandFailed, match="ValueError: not yet"):
            await engine.commands.invoke("work", {"value": 1}, correlation_id="c-1", timeout=PATIENCE)
        dead = await engine.commands.get("c-1")
        (letter,) = await engine.dead_letters.list()

        await engine.dead_letters.redrive(letter.id)
        result = await engine.commands.result("c-1", timeout=PATIENCE)

    published = [record.value async for record in engine.log.read("agent-commands")]
    assert (dead.state, dead.attempts) == ("dead", 3)
    assert (letter.group, letter.topic, letter.correlation_id) == ("workers", "agent-commands", "c-1")
    assert (letter.error, letter.attempts) == ("ValueError: not yet", 3)
    assert published == [letter.value, letter.value], "those who work by the log alone see it again"
    assert result == 1
    assert [(c.applied, c.result) for c in await engine.commands.completions("c-1")] == [(False, None), (True, 1)]
    assert await engine.dead_letters.list() == []


@pytest.mark.req("EDA-04")
async def test_the_invoker_may_say_how_often_it_is_tried(engine: Engine, bench: Bench) -> None:
    bench.failures = 9
    bench.go_on.set()

    async with engine.worker(bench.app):
        with pytest.raises(CommandFailed):
            await engine.commands.invoke("work", correlation_id="c-1", max_attempts=1, timeout=PATIENCE)

    assert (await engine.commands.get("c-1")).attempts == 1


@pytest.mark.req("EDA-04")
async def test_the_highest_priority_is_done_first_then_what_waits_longest(engine: Engine, bench: Bench) -> None:
    @bench.app.skill("other")
    async def other() -> None:  # pyright: ignore[reportUnusedFunction]
        bench.started.put_nowait(current_command())

    bench.go_on.set()
    for id, skill, priority in [
        ("a", "work", 0),
        ("b", "other", 5),
        ("c", "work", 5),
        ("d", "other", -1),
        ("e", "work", 9),
    ]:
        await engine.commands.submit(skill, correlation_id=id, priority=priority)

    async with engine.worker(bench.app, concurrency=1):
        order = [(await bench.next()).correlation_id for _ in range(5)]

    assert order == ["e", "b", "c", "a", "d"]


@pytest.mark.req("EDA-04")
async def test_a_command_for_later_waits_for_its_time(
    engine: Engine, bench: Bench, clock: Clock, frozen: datetime
) -> None:
    bench.go_on.set()
    later = await engine.commands.submit("work", delay=timedelta(hours=1), priority=9)
    at = await engine.commands.submit("work", run_at=frozen + timedelta(hours=2))
    now = await engine.commands.submit("work")

    async with engine.worker(bench.app):
        for id in (now, later, at):
            await in_state(engine, id, "done")
            await clock.advance(timedelta(hours=1))

    order = [(await bench.next()).correlation_id for _ in range(3)]
    assert order == [now, later, at]


@pytest.mark.req("EDA-04")
@pytest.mark.usefixtures("frozen")
async def test_a_rate_holds_over_all_workers(engine: Engine, clock: Clock) -> None:
    app, ran = App(), Counter[str]()

    @app.skill("slow", rate=2)
    async def slow() -> None:  # pyright: ignore[reportUnusedFunction]
        ran["slow"] += 1

    @app.skill("free")
    async def free() -> None:  # pyright: ignore[reportUnusedFunction]
        ran["free"] += 1

    async def done(skill: str, count: int) -> None:
        async def enough() -> bool:
            return ran[skill] >= count

        await until(engine, enough)

    for n in range(6):
        await engine.commands.submit("slow", correlation_id=f"slow {n}")
        await engine.commands.submit("free", correlation_id=f"free {n}")

    async with engine.worker(app), engine.worker(app):
        await done("free", 6)
        for seconds in range(3):
            await done("slow", 2 * (seconds + 1))
            await clock.advance(SECOND)

    commands = await engine.commands.list(skill="slow")
    assert sorted(Counter(command.started_at for command in commands).values()) == [2, 2, 2]


@pytest.mark.req("EDA-04")
async def test_each_command_is_done_once_however_many_workers_there_are(engine: Engine, second: Engine) -> None:
    app, ran = App(), Counter[str]()

    @app.skill("count")
    async def count() -> None:  # pyright: ignore[reportUnusedFunction]
        ran[current_command().correlation_id] += 1

    async with engine.worker(app), second.worker(app), second.worker(app, concurrency=3):
        await asyncio.gather(*(engine.commands.invoke("count", timeout=60) for _ in range(300)))

    assert len(ran) == 300
    assert set(ran.values()) == {1}


@pytest.mark.req("EDA-05")
async def test_a_plain_function_runs_in_a_thread_and_knows_its_command(engine: Engine) -> None:
    app, together = App(), threading.Barrier(3)

    @app.skill("plain")
    def plain(value: int, *, factor: int = 2) -> list[Any]:  # pyright: ignore[reportUnusedFunction]
        together.wait(PATIENCE)
        return [value * factor, current_command().headers["x"], threading.current_thread() is threading.main_thread()]

    async with engine.worker(app):
        results = await asyncio.gather(
            *(engine.commands.invoke("plain", {"value": n}, headers={"x": "y"}, timeout=PATIENCE) for n in range(3))
        )

    assert results == [[0, "y", False], [2, "y", False], [4, "y", False]]


@pytest.mark.req("EDA-05", "ENG-07")
async def test_outside_of_a_skill_there_is_no_current_command() -> None:
    with pytest.raises(InvalidInput, match="no command is running here"):
        current_command()


@pytest.mark.req("EDA-04")
@pytest.mark.parametrize(
    "error",
    [
        SystemExit(1),
        KeyboardInterrupt(),
        Strange(),
        asyncio.CancelledError(),
        StopIteration(),
        TimeoutError(),
        OSError(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("plain", [False, True])
async def test_whatever_a_skill_raises_is_a_failed_attempt_and_the_worker_goes_on(
    engine: Engine, error: BaseException, plain: bool
) -> None:
    app = App()
    app.skill("next")(lambda: "done")

    async def on_the_loop() -> None:
        raise error

    def in_a_thread() -> None:
        raise error

    app.skill("odd", attempts=1)(in_a_thread if plain else on_the_loop)

    async with engine.worker(app):
        with pytest.raises(CommandFailed):
            await engine.commands.invoke("odd", correlation_id="c-1", timeout=PATIENCE)
        result = await engine.commands.invoke("next", timeout=PATIENCE)

    assert (await engine.commands.get("c-1")).state == "dead"
    assert result == "done"


@pytest.mark.req("EDA-04")
async def test_each_failed_attempt_is_in_the_log_with_its_traceback(
    engine: Engine, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.failures = 2
    bench.go_on.set()

    async with engine.worker(bench.app):
        with pytest.raises(CommandFailed):
            await engine.commands.invoke("work", correlation_id="c-1", max_attempts=2, timeout=PATIENCE)

    told = [record for record in caplog.records if record.name == "holdfast.bus.workers"]
    assert [record.getMessage() for record in told] == [
        "attempt 1 at the command 'c-1' of work failed; it will be retried",
        "attempt 2 at the command 'c-1' of work failed; it was the last attempt, and the command is a dead letter",
    ]
    assert {record.levelname for record in told} == {"WARNING"}
    assert [str(record.exc_info[1]) for record in told if record.exc_info] == ["not yet", "not yet"]


@pytest.mark.req("EDA-05")
async def test_a_worker_needs_no_thread_that_skills_can_take(engine: Engine, bench: Bench) -> None:
    loop, go_on = asyncio.get_running_loop(), threading.Event()
    taken = [loop.run_in_executor(None, go_on.wait) for _ in range(100)]

    try:
        async with asyncio.timeout(PATIENCE), engine.worker(bench.app):
            pass
    finally:
        go_on.set()
        await asyncio.gather(*taken)


@pytest.mark.req("EDA-04")
async def test_an_attempt_that_takes_too_long_is_stopped(engine: Engine) -> None:
    app, stopped = App(), asyncio.Event()

    @app.skill("long", timeout=0.05, attempts=1)
    async def long() -> None:  # pyright: ignore[reportUnusedFunction]
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with engine.worker(app):
        with pytest.raises(CommandFailed, match=r"the skill long timed out: its timeout is 0\.05 seconds") as failure:
            await engine.commands.invoke("long", timeout=PATIENCE)

    assert failure.value.details["error"]["code"] == TimedOut.code  # pyright: ignore[reportIndexIssue, reportUnknownVariableType]
    assert stopped.is_set()


@pytest.mark.req("EDA-04")
async def test_a_cancellation_reaches_the_worker_at_once(engine: Engine, second: Engine, bench: Bench) -> None:
    id = await engine.commands.submit("work")
    async with second.worker(bench.app, concurrency=1):
        await bench.next()

        cancelled = await engine.commands.cancel(id)
        async with asyncio.timeout(PATIENCE / 4):  # long before the lease is renewed
            await bench.stopped.wait()
        bench.go_on.set()
        result = await engine.commands.invoke("work", {"value": "next"}, timeout=PATIENCE)

    assert cancelled.state == "cancelled"
    assert result == "next", "its place is free again"
    (completion,) = await engine.commands.completions(id)
    assert (completion.applied, completion.error) == (
        True,
        {"code": "cancelled", "message": "the command was cancelled"},
    )


@pytest.mark.req("EDA-03", "EDA-04")
async def test_what_a_thread_gives_after_it_was_cancelled_comes_late(engine: Engine) -> None:
    app, started, go_on = App(), threading.Event(), threading.Event()

    @app.skill("plain")
    def plain() -> str:  # pyright: ignore[reportUnusedFunction]
        started.set()
        go_on.wait(PATIENCE)
        return "too late"

    id = await engine.commands.submit("plain")
    async with engine.worker(app) as worker:
        await asyncio.to_thread(started.wait, PATIENCE)
        await engine.commands.cancel(id)
        go_on.set()
        await worker.stop(PATIENCE)

    completions = await engine.commands.completions(id)
    assert [(c.applied, c.result) for c in completions] == [(True, None), (False, "too late")]
    assert (await engine.commands.get(id)).state == "cancelled"


@pytest.mark.req("EDA-03", "EDA-04")
async def test_a_worker_whose_lease_was_lost_cannot_complete(engine: Engine, second: Engine, bench: Bench) -> None:
    id = await engine.commands.submit("work", {"value": 1})
    app, started, go_on = App(), threading.Event(), threading.Event()

    @app.skill("work")
    def work(value: int) -> int:  # pyright: ignore[reportUnusedFunction]
        started.set()
        go_on.wait(PATIENCE)
        return -value

    async with engine.worker(app) as first:
        await asyncio.to_thread(started.wait, PATIENCE)
        async with second.worker(bench.app) as other:
            async with asyncio.timeout(PATIENCE):
                while bench.started.empty():  # the first worker may renew its lease in between
                    await lapse(engine, id)
                    await other.sweep()
                    await asyncio.sleep(0.01)
            again = await bench.next()
            go_on.set()
            await first.stop(PATIENCE)
            bench.go_on.set()
            result = await engine.commands.result(id, timeout=PATIENCE)

    completions = await engine.commands.completions(id)
    assert (again.attempt, result) == (2, 1)
    assert [(c.applied, c.result) for c in completions] == [(False, -1), (True, 1)]


@pytest.mark.req("EDA-04")
async def test_a_command_that_kills_its_workers_is_given_up(engine: Engine, bench: Bench) -> None:
    id = await engine.commands.submit("work", max_attempts=1)
    async with engine.worker(bench.app) as worker:
        await bench.next()
        await lapse(engine, id)

        await worker.sweep()

        async with asyncio.timeout(PATIENCE):
            await bench.stopped.wait()
    command, (letter,) = await engine.commands.get(id), await engine.dead_letters.list()
    assert command.state == "dead"
    assert "stopped responding" in letter.error
    with pytest.raises(CommandFailed, match="stopped responding"):
        await engine.commands.result(id, timeout=PATIENCE)


@pytest.mark.req("EDA-04")
async def test_a_lease_is_renewed_as_long_as_the_work_lasts(config: Config, engine: Engine, bench: Bench) -> None:
    flags = {"database.url": config.database.url, "data": config.data, "bus.command_lease": 0.6}
    async with open_engine(config=load_config(flags, environ={})) as short, short.worker(bench.app):
        id = await engine.commands.submit("work", {"value": 1})
        await bench.next()
        first = (await engine.commands.get(id)).leased_until
        assert first is not None

        async def renewed() -> bool:
            until = (await engine.commands.get(id)).leased_until
            return until is not None and until > first + 2 * SECOND

        await until(engine, renewed)
        bench.go_on.set()
        await engine.commands.result(id, timeout=PATIENCE)

    assert (await engine.commands.get(id)).attempts == 1


@pytest.mark.req("EDA-04", "EDA-05")
async def test_a_worker_that_stops_tells_of_each_command_although_of_one_it_cannot(
    engine: Engine, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail = Completions.fail

    async def refuse(self: Completions, correlation_id: str, *args: Any, **options: Any) -> Any:
        if correlation_id == "first":
            raise Unavailable("the database is away")
        return await fail(self, correlation_id, *args, **options)

    monkeypatch.setattr(Completions, "fail", refuse)
    async with engine.worker(bench.app):
        for id in ("first", "second"):
            await engine.commands.submit("work", correlation_id=id, headers={ONCE: "true"})
        await engine.commands.submit("work", correlation_id="third")
        for _ in range(3):
            await bench.next()

    states = [(await engine.commands.get(id)).state for id in ("first", "second", "third")]
    assert states == ["running", "failed", "queued"]


@pytest.mark.req("EDA-04", "EDA-05")
async def test_a_worker_that_stops_lets_work_end_and_gives_the_rest_back(engine: Engine, bench: Bench) -> None:
    enough = asyncio.Event()

    @bench.app.skill("short")
    async def short() -> str:  # pyright: ignore[reportUnusedFunction]
        bench.started.put_nowait(current_command())
        await enough.wait()
        return "done in time"

    ends = await engine.commands.submit("short")
    stays = await engine.commands.submit("work")
    async with engine.worker(bench.app) as worker:
        await bench.next()
        await bench.next()
        stopping = asyncio.create_task(worker.stop(0.5))
        enough.set()
        await stopping
        after = await engine.commands.submit("short")

    assert await engine.commands.result(ends, timeout=PATIENCE) == "done in time"
    assert bench.stopped.is_set()
    given_back = await engine.commands.get(stays)
    assert (given_back.state, given_back.attempts, given_back.worker) == ("queued", 0, None)
    assert (await engine.commands.get(after)).state == "queued"


@pytest.mark.req("EDA-03")
async def test_finished_commands_are_forgotten_when_they_are_old_and_dead_ones_when_their_letter_is_dropped(
    engine: Engine, bench: Bench, clock: Clock
) -> None:
    bench.go_on.set()
    bench.failures = 1
    async with engine.worker(bench.app):
        with pytest.raises(CommandFailed):
            await engine.commands.invoke("work", correlation_id="dead", max_attempts=1, timeout=PATIENCE)
        await engine.commands.invoke("work", correlation_id="done", timeout=PATIENCE)
    await engine.commands.submit("nobody", correlation_id="waiting")
    await clock.advance(timedelta(days=31))

    async def known(*ids: str) -> None:
        async with engine.worker(bench.app) as worker:

            async def so() -> bool:
                await worker.tidy()
                return {command.correlation_id for command in await engine.commands.list()} == set(ids)

            await until(engine, so)

    await known("waiting", "dead")
    (letter,) = await engine.dead_letters.list()
    await engine.dead_letters.drop(letter.id)
    await known("waiting")
    assert await engine.commands.completions("done") == []
    assert await engine.commands.completions("dead") == []
