"""Jobs that repeat in the background."""

import asyncio

import pytest

from holdfast.core.background import PeriodicJob
from holdfast.core.errors import Unavailable


class CountingJob(PeriodicJob):
    """Counts its steps; the first ones fail with the given errors."""

    def __init__(self, *errors: Exception, pauses: float = 0.0, first: float | None = 0.0) -> None:
        super().__init__("count", pause=pauses, first=first)
        self.errors = list(errors)
        self.steps = 0
        self.done = asyncio.Event()

    async def step(self) -> float | None:
        self.steps += 1
        if self.errors:
            raise self.errors.pop(0)
        self.done.set()
        return 3600.0


async def test_a_job_runs_until_its_block_ends() -> None:
    async with asyncio.timeout(10), CountingJob() as job:
        await job.done.wait()

    assert job.steps == 1, "it said itself when it wants to run again"


@pytest.mark.parametrize("error", [Unavailable("planted"), RuntimeError("planted")])
async def test_a_step_that_fails_is_logged_and_runs_again(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(10), CountingJob(error) as job:
        await job.done.wait()

    assert job.steps == 2
    assert "the count failed; retrying later" in caplog.text
    assert ("internal error" in caplog.text) == isinstance(error, RuntimeError)


async def test_without_a_time_for_it_the_first_step_comes_after_a_pause() -> None:
    async with CountingJob(pauses=3600, first=None) as job:
        await asyncio.sleep(0.05)

    assert job.steps == 0
