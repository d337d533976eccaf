"""Fair order: who sends many requests at once does not keep the next caller waiting for all of them."""

import asyncio

import pytest
from starlette.datastructures import Headers

from holdfast.server.request_limits import PER_ROUND, FairStart

pytestmark = pytest.mark.req("SAFE-06")

ANN, EVE = (Headers({"authorization": f"Bearer {name}"}) for name in ("ann", "eve"))


class Started:
    """Requests that wait for their turn, and in which order they got it."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self._fair = FairStart()
        self._tasks: list[asyncio.Task[None]] = []

    def send(self, name: str, address: str, headers: Headers, count: int = 1) -> list[asyncio.Task[None]]:
        """Have requests arrive."""
        tasks = [asyncio.create_task(self._start(name, address, headers)) for _ in range(count)]
        self._tasks += tasks
        return tasks

    async def all(self) -> list[str]:
        """The order, when all have started."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return self.order

    async def _start(self, name: str, address: str, headers: Headers) -> None:
        await self._fair.wait(address, headers)
        self.order.append(name)


@pytest.mark.parametrize(("address", "headers"), [("10.0.0.2", EVE), ("10.0.0.1", ANN)])
async def test_the_next_caller_starts_before_the_rest_of_a_burst(address: str, headers: Headers) -> None:
    started = Started()
    started.send("eve", "10.0.0.1", EVE, count=1000)
    await asyncio.sleep(0)

    started.send("ann", address, headers)

    order = await started.all()
    assert order.index("ann") <= 3 * PER_ROUND
    assert len(order) == 1001


async def test_a_few_requests_start_at_once() -> None:
    started = Started()
    started.send("ann", "10.0.0.1", ANN, count=PER_ROUND)

    await asyncio.sleep(0)

    assert len(started.order) == PER_ROUND


async def test_requests_that_are_given_up_keep_no_turn() -> None:
    started = Started()
    waiting = started.send("eve", "10.0.0.1", EVE, count=10 * PER_ROUND)
    await asyncio.sleep(0)
    for task in waiting[PER_ROUND:]:
        task.cancel()
    started.send("ann", "10.0.0.1", ANN, count=2 * PER_ROUND)

    order = await started.all()

    assert (order.count("eve"), order.count("ann")) == (PER_ROUND, 2 * PER_ROUND)
