"""Many callers, one statement."""

import asyncio
from collections.abc import Sequence

import pytest

from holdfast.core.batching import Batcher

pytestmark = pytest.mark.req("BUS-02")


class Work:
    """Doubles numbers when it is let; -1 is refused, and a batch with -2 fails as a whole."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, items: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(items))
        self.started.set()
        await self.go_on.wait()
        if -2 in items:
            raise OSError("all")
        return [ValueError("not this") if item == -1 else 2 * item for item in items]


async def asked(gathering: Batcher[int, int], *items: int) -> list[asyncio.Task[int]]:
    """Ask for each, and let them come to wait."""
    tasks = [asyncio.create_task(gathering(item)) for item in items]
    await asyncio.sleep(0)
    return tasks


async def test_one_caller_alone_does_not_wait_for_others() -> None:
    work = Work()
    work.go_on.set()
    gathering = Batcher(work)

    assert await gathering(1) == 2
    assert await gathering(2) == 4
    assert work.batches == [[1], [2]]


async def test_what_comes_while_a_batch_is_under_way_makes_up_the_next_in_its_order() -> None:
    work = Work()
    gathering = Batcher(work)
    first = await asked(gathering, 1)
    await work.started.wait()

    others = await asked(gathering, *range(2, 50))
    work.go_on.set()

    assert await asyncio.gather(*first, *others) == [2 * number for number in range(1, 50)]
    assert work.batches == [[1], list(range(2, 50))]


async def test_an_exception_among_the_answers_is_that_callers_alone() -> None:
    work = Work()
    work.go_on.set()
    gathering = Batcher(work)

    one, bad, two = await asyncio.gather(*await asked(gathering, 1, -1, 2), return_exceptions=True)

    assert (one, two, str(bad)) == (2, 4, "not this")
    assert isinstance(bad, ValueError)


async def test_an_exception_of_the_work_is_everyones_and_the_next_batch_is_done() -> None:
    work = Work()
    gathering = Batcher(work)
    failing = await asked(gathering, 1, -2)
    await work.started.wait()
    later = await asked(gathering, 3)
    work.go_on.set()

    outcomes = await asyncio.gather(*failing, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [OSError, OSError]
    assert await later[0] == 6


async def test_a_caller_who_is_cancelled_leaves_the_batch_that_has_not_begun() -> None:
    work = Work()
    gathering = Batcher(work)
    first = await asked(gathering, 1)
    await work.started.wait()
    impatient, patient = await asked(gathering, 2, 3)

    impatient.cancel()
    await asyncio.wait([impatient])
    work.go_on.set()

    assert (await first[0], await patient) == (2, 6)
    assert work.batches == [[1], [3]]


async def test_work_that_is_due_in_any_case_is_done_for_a_cancelled_caller_too() -> None:
    work = Work()
    gathering = Batcher(work, skip_cancelled=False)
    first = await asked(gathering, 1)
    await work.started.wait()
    (cancelled,) = await asked(gathering, 2)

    cancelled.cancel()
    (last,) = await asked(gathering, 3)
    work.go_on.set()

    assert await asyncio.gather(*first, last) == [2, 6]
    assert work.batches == [[1], [2, 3]]
    assert cancelled.cancelled()


async def test_a_caller_who_is_cancelled_while_the_work_is_under_way_harms_nobody() -> None:
    work = Work()
    gathering = Batcher(work)
    impatient, patient = await asked(gathering, 1, 2)
    await work.started.wait()

    impatient.cancel()
    await asyncio.wait([impatient])
    work.go_on.set()

    assert await patient == 4
    assert await gathering(3) == 6


async def test_a_batch_has_no_more_items_and_hardly_more_bytes_than_it_may() -> None:
    work = Work()
    gathering = Batcher(work, size=lambda item: item, most=4, most_size=100)
    first = await asked(gathering, 1)
    await work.started.wait()

    others = await asked(gathering, 10, 10, 10, 10, 10, 60, 70, 5, 500, 500)
    work.go_on.set()
    await asyncio.gather(*first, *others)

    assert work.batches == [[1], [10, 10, 10, 10], [10, 60, 70], [5, 500], [500]]
