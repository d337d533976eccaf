"""Hints: which partitions may have new records, according to the hints of wake-ups.

A hint may name partitions, so that readers skip the others, and a process whose readers know the records already. Any
other text means all partitions. Readers check all partitions once a second anyway.
"""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from holdfast.bus.assignment import TopicPartition
from holdfast.bus.notifications import POLL
from holdfast.postgres.listener import Wake

LATER = 0.2  # seconds until a reader checks partitions whose records it knows already
MAX_NAMED = 100  # maximum partitions in a hint: with more, it names none

_HINT = re.compile(r"([0-9a-f]{0,32}):([0-9]{1,9}(?:,[0-9]{1,9})*)?", re.ASCII)


class Hint(NamedTuple):
    """The hint of a topic's wake-up: partitions (none means all), and the process whose readers know the records."""

    partitions: Sequence[int] = ()
    sender: str = ""

    def __str__(self) -> str:
        named = ",".join(map(str, self.partitions)) if len(self.partitions) <= MAX_NAMED else ""
        text = f"{self.sender}:{named}"
        return "" if text == ":" else text


def hint_of(text: str) -> Hint:
    """Parse a hint. Any other text means all partitions."""
    found = _HINT.fullmatch(text)
    return Hint() if found is None else Hint(tuple(int(each) for each in (found[2] or "").split(",") if each), found[1])


class ChangedPartitions:
    """The partitions that a reader has to check.

    `channels` maps channels to topics. `sender` is the process from which the reader learns of records by other means.
    """

    def __init__(self, wake: Wake, channels: Mapping[str, str], *, sender: str = "") -> None:
        self._wake = wake
        self._channels = channels
        self._sender = sender
        self._all = True
        self._all_checked_at = 0.0  # when all partitions were checked, by the loop's clock
        self._slots: set[TopicPartition] = set()
        self._later: set[TopicPartition] = set()
        self._due = 0.0  # when to check those

    def check_all(self) -> None:
        """Make the reader check all partitions."""
        self._all = True
        self._wake.set()

    def note_all_checked(self) -> None:
        """Note that the reader checks all partitions now."""
        self._all, self._all_checked_at = False, asyncio.get_running_loop().time()
        self._slots, self._later = set(), set()
        self._wake.clear()

    async def wait_for_changes(self, seconds: float) -> Collection[TopicPartition] | None:
        """Wait for partitions that may have new records; None means all. Return an empty set after `seconds`."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            now = loop.time()
            self._read_hints(now)
            if self._all or now >= self._all_checked_at + POLL:
                self.note_all_checked()
                return None
            if self._later and now >= self._due:
                self._slots |= self._later
            if self._slots or now >= end:
                found, self._slots = self._slots, set()
                self._later -= found
                return found
            due = min(end, self._all_checked_at + POLL, *([self._due] if self._later else ()))
            await _wait_until_set(self._wake, due - now)

    def _read_hints(self, now: float) -> None:
        if not self._wake.is_set():
            return
        for channel, text in self._wake.payloads:
            hint, topic = hint_of(text), self._channels.get(channel)
            slots = {TopicPartition(topic, number) for number in hint.partitions} if topic is not None else ()
            if not slots:
                self._all = True
            elif hint.sender and hint.sender == self._sender:
                if not self._later:
                    self._due = now + LATER
                self._later.update(slots)
            else:
                self._slots.update(slots)
        self._all = self._all or not self._wake.payloads
        self._wake.clear()


async def _wait_until_set(wake: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        pass
