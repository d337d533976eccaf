"""A cache of values that cost a request each: the request is made once for all that wait for its value."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from time import monotonic
from typing import Generic, TypeVar

from holdfast.core.errors import HoldfastError, ShuttingDown

MOST = 5_000  # values: each token is kept in the forms in which it is redacted, too
FAILURE_SECONDS = 5.0  # for which a failure is repeated without a request

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ExpiringCache(Generic[Key, Value]):
    """Values by key, each with a time until which it is used.

    Concurrent callers share one request. It goes on if the caller that began it gives up. A failure is repeated for
    `failure_seconds` to whoever asks again.
    """

    def __init__(
        self,
        *,
        most: int = MOST,
        failure_seconds: float = FAILURE_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._most = most
        self._failure_seconds = failure_seconds
        self._clock = clock
        self._values: OrderedDict[Key, tuple[float, Value]] = OrderedDict()
        self._failures: OrderedDict[Key, tuple[float, HoldfastError]] = OrderedDict()
        self._requests: dict[Key, asyncio.Task[Value]] = {}
        self._closed = False

    def current(self, key: Key) -> Value | None:
        """Return the value of a key, if it can still be used."""
        found = self._values.get(key)
        if found is None or self._clock() >= found[0]:
            return None
        return found[1]

    async def get(self, key: Key, request: Callable[[], Awaitable[tuple[Value, float]]]) -> Value:
        """Return the value of a key. `request` returns a new value, and for how many seconds it is used."""
        found = self.current(key)
        if found is not None:
            return found
        failure = self._failures.get(key)
        if failure is not None:
            if self._clock() < failure[0]:
                raise again(failure[1])
            del self._failures[key]
        if self._closed:
            raise ShuttingDown("no token can be requested", why="the engine is closed")
        task = self._requests.get(key)
        if task is None:
            task = self._requests[key] = asyncio.create_task(self._request(key, request))
            task.add_done_callback(_observe)
        try:
            return await asyncio.shield(task)
        except HoldfastError as error:
            raise again(error) from None
        except asyncio.CancelledError:
            if self._closed and task.cancelled():
                raise ShuttingDown("no token can be requested", why="the engine is closed") from None
            raise

    def put(self, key: Key, value: Value, seconds: float) -> None:
        """Use a value for some seconds."""
        self._values.pop(key, None)
        _keep(self._values, key, (self._clock() + seconds, value), self._most)

    def forget(self, key: Key, value: Value) -> None:
        """Use a value no longer, unless another one has replaced it."""
        found = self._values.get(key)
        if found is not None and found[1] == value:
            del self._values[key]

    def clear(self) -> None:
        """Forget all values and failures."""
        self._values.clear()
        self._failures.clear()

    async def close(self) -> None:
        """End the requests in progress, and start no others."""
        self._closed = True
        requests = list(self._requests.values())
        for each in requests:
            each.cancel()
        if requests:
            await asyncio.wait(requests)

    async def _request(self, key: Key, request: Callable[[], Awaitable[tuple[Value, float]]]) -> Value:
        try:
            value, seconds = await request()
            self.put(key, value, seconds)
            return value
        except HoldfastError as error:
            _keep(self._failures, key, (self._clock() + self._failure_seconds, error), self._most)
            raise
        finally:
            del self._requests[key]


def again(error: HoldfastError) -> HoldfastError:
    """Return a copy of an error for one more caller. Callers may redact and raise it, each for itself."""
    copied = type(error).__new__(type(error))
    copied.args = error.args
    copied.__dict__.update(error.__dict__)
    copied.details = dict(error.details)
    return copied


def _keep(entries: "OrderedDict[Key, Value]", key: Key, entry: Value, most: int) -> None:
    entries[key] = entry
    if len(entries) > most:
        entries.popitem(last=False)


def _observe(task: "asyncio.Task[Value]") -> None:
    """Take note of a failure for which nobody waited."""
    if not task.cancelled():
        task.exception()
