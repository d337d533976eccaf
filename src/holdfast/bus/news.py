"""News: which partitions have something new, by what is said with wake-ups.

A wake-up may name partitions, so that nobody looks at the others, and the process whose own readers have been told
already. It is a hint: whatever else is said means all of them, and all are looked at once a second anyway.
"""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from holdfast.bus.sharing import Slot
from holdfast.bus.wakes import POLL
from holdfast.postgres.listener import Wake

LATER = 0.2  # seconds that may pass until a reader looks at what it has been told
NAMED = 100  # partitions of a topic, at most: of more, none is named

_SAID = re.compile(r"([0-9a-f]{0,32}):([0-9]{1,9}(?:,[0-9]{1,9})*)?", re.ASCII)


class Hint(NamedTuple):
    """What is said with a wake-up of a topic: partitions, none for all, and the process whose readers know already."""

    partitions: Sequence[int] = ()
    teller: str = ""

    def __str__(self) -> str:
        named = ",".join(map(str, self.partitions)) if len(self.partitions) <= NAMED else ""
        said = f"{self.teller}:{named}"
        return "" if said == ":" else said


def hint_of(said: str) -> Hint:
    """What was said; whatever it is."""
    found = _SAID.fullmatch(said)
    return Hint() if found is None else Hint(tuple(int(each) for each in (found[2] or "").split(",") if each), found[1])


class News:
    """What a reader has to look at: `channels` leads to the topics, `teller` is the process that tells it anyway."""

    def __init__(self, wake: Wake, channels: Mapping[str, str], *, teller: str = "") -> None:
        self._wake = wake
        self._channels = channels
        self._teller = teller
        self._all = True
        self._looked = 0.0  # at all, by the loop's clock
        self._slots: set[Slot] = set()
        self._later: set[Slot] = set()
        self._due = 0.0  # when those are to be looked at

    def look(self) -> None:
        """Have all partitions be looked at."""
        self._all = True
        self._wake.set()

    def looked(self) -> None:
        """All partitions are being looked at."""
        self._all, self._looked = False, asyncio.get_running_loop().time()
        self._slots, self._later = set(), set()
        self._wake.clear()

    async def come(self, seconds: float) -> Collection[Slot] | None:
        """Partitions that may have news, none after so many seconds without; None: all of them."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            now = loop.time()
            self._hear(now)
            if self._all or now >= self._looked + POLL:
                self.looked()
                return None
            if self._later and now >= self._due:
                self._slots |= self._later
            if self._slots or now >= end:
                found, self._slots = self._slots, set()
                self._later -= found
                return found
            due = min(end, self._looked + POLL, *([self._due] if self._later else ()))
            await _set(self._wake, due - now)

    def _hear(self, now: float) -> None:
        if not self._wake.is_set():
            return
        for channel, said in self._wake.said:
            hint, topic = hint_of(said), self._channels.get(channel)
            slots = {Slot(topic, number) for number in hint.partitions} if topic is not None else ()
            if not slots:
                self._all = True
            elif hint.teller and hint.teller == self._teller:
                if not self._later:
                    self._due = now + LATER
                self._later.update(slots)
            else:
                self._slots.update(slots)
        self._all = self._all or not self._wake.said
        self._wake.clear()


async def _set(wake: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        pass
