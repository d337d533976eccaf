"""The cache of values that cost a request each."""

import asyncio

import pytest

from holdfast.core.errors import Unavailable
from holdfast.execution.identity.expiring_cache import ExpiringCache


class Source:
    """What is asked for values, and how often it was."""

    def __init__(self) -> None:
        self.now = 0.0
        self.requests = 0
        self.error: Unavailable | None = None
        self.waits = asyncio.Event()
        self.waits.set()

    async def request(self) -> tuple[str, float]:
        self.requests += 1
        number = self.requests
        await self.waits.wait()
        if self.error is not None:
            raise self.error
        return f"value {number}", 60.0


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def cache(source: Source) -> ExpiringCache[str, str]:
    return ExpiringCache(clock=lambda: source.now, most=3)


async def test_a_thousand_concurrent_callers_share_one_request(cache: ExpiringCache[str, str], source: Source) -> None:
    source.waits.clear()
    callers = [asyncio.create_task(cache.get("a", source.request)) for _ in range(1000)]
    await asyncio.sleep(0)

    source.waits.set()
    values = await asyncio.gather(*callers)

    assert set(values) == {"value 1"}
    assert source.requests == 1


async def test_a_value_is_used_until_its_time(cache: ExpiringCache[str, str], source: Source) -> None:
    first = await cache.get("a", source.request)
    source.now = 59.0
    second = await cache.get("a", source.request)
    source.now = 60.0
    third = await cache.get("a", source.request)

    assert (first, second, third) == ("value 1", "value 1", "value 2")


async def test_a_caller_that_gives_up_takes_the_value_from_nobody(
    cache: ExpiringCache[str, str], source: Source
) -> None:
    source.waits.clear()
    first, second = (asyncio.create_task(cache.get("a", source.request)) for _ in range(2))
    await asyncio.sleep(0)

    first.cancel()
    await asyncio.wait([first])
    source.waits.set()

    assert await second == "value 1"
    assert first.cancelled()


async def test_a_failure_is_repeated_for_a_while_with_an_error_of_each_callers_own(
    cache: ExpiringCache[str, str], source: Source
) -> None:
    source.error = Unavailable("no token", details_of="it")
    with pytest.raises(Unavailable, match="no token") as first:
        await cache.get("a", source.request)
    with pytest.raises(Unavailable, match="no token") as second:
        await cache.get("a", source.request)
    source.error, source.now = None, 5.0

    value = await cache.get("a", source.request)

    assert first.value is not second.value
    assert (value, source.requests) == ("value 2", 2)


async def test_the_oldest_value_makes_room_for_a_new_one(cache: ExpiringCache[str, str], source: Source) -> None:
    for key in "abcd":
        await cache.get(key, source.request)

    assert [cache.current(key) for key in "abcd"] == [None, "value 2", "value 3", "value 4"]


async def test_a_closed_cache_ends_its_requests(cache: ExpiringCache[str, str], source: Source) -> None:
    source.waits.clear()
    caller = asyncio.create_task(cache.get("a", source.request))
    await asyncio.sleep(0)

    await cache.close()

    with pytest.raises(Unavailable, match="engine is closed"):
        await caller
    with pytest.raises(Unavailable, match="engine is closed"):
        await cache.get("b", source.request)
