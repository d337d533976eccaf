"""Values that are collected, and written together later."""

import asyncio

from holdfast.core.background import DelayedWriter


class Numbers(DelayedWriter):
    """Writes numbers to a list."""

    def __init__(self, delay: float = 0.01) -> None:
        super().__init__("numbers", delay=delay)
        self.values: list[int] = []
        self.written: list[list[int]] = []
        self.wrote = asyncio.Event()

    def add(self, value: int) -> None:
        self.values.append(value)
        self.write_later()

    @property
    def has_values(self) -> bool:
        return bool(self.values)

    async def flush(self) -> None:
        self.written.append(self.values)
        self.values = []
        self.wrote.set()


async def test_values_that_come_together_are_written_together() -> None:
    numbers = Numbers()
    for value in range(3):
        numbers.add(value)

    async with asyncio.timeout(10):
        await numbers.wrote.wait()

    assert numbers.written == [[0, 1, 2]]


async def test_values_that_come_later_are_written_later() -> None:
    numbers = Numbers()
    for value in range(2):
        numbers.add(value)
        async with asyncio.timeout(10):
            await numbers.wrote.wait()
        numbers.wrote.clear()

    assert numbers.written == [[0], [1]]


async def test_closing_writes_what_is_left() -> None:
    numbers = Numbers(delay=3600)
    numbers.add(1)
    await asyncio.sleep(0)

    await numbers.close()

    assert numbers.written == [[1]]
