"""Wakes the readers of topics after a short delay, so that several changes of a turn cause one wake-up."""

import asyncio
from collections import defaultdict
from uuid import UUID

from holdfast.bus.log import Log

SOON = 0.02  # seconds until readers are woken


class TopicWakeups:
    """Wakes the readers of topics, once for all changes within a short time.

    Readers in this process that already know of a change may be woken later.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._due: defaultdict[str, set[str]] = defaultdict(set)  # by topic: the keys of records

    def soon(self, topic: str, conversation: UUID) -> None:
        """Wake the readers of a topic soon, for a change of a conversation."""
        if not self._due:
            asyncio.get_running_loop().call_later(SOON, self._announce)
        self._due[topic].add(str(conversation))

    def _announce(self) -> None:
        telling = asyncio.ensure_future(self._announce_all())
        telling.add_done_callback(lambda told: told.cancelled() or told.exception())  # errors of a hint do not matter

    async def _announce_all(self) -> None:
        due, self._due = self._due, defaultdict(set)
        for topic, keys in due.items():
            await self._log.announce(topic, keys=keys, told=True)
