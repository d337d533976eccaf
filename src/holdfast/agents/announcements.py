"""Announcements: those who read a topic are woken, soon: a turn has several things to say, and here they are known."""

import asyncio
from collections import defaultdict
from uuid import UUID

from holdfast.bus.log import Log

SOON = 0.02  # seconds after which others hear of what was said


class Announcements:
    """Wakes those who read topics, once for all that is said in a moment; who knows of it already may take longer."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._due: defaultdict[str, set[str]] = defaultdict(set)  # by topic: the keys of records

    def soon(self, topic: str, conversation: UUID) -> None:
        """Wake those who read a topic, for what was said in a conversation."""
        if not self._due:
            asyncio.get_running_loop().call_later(SOON, self._announce)
        self._due[topic].add(str(conversation))

    def _announce(self) -> None:
        telling = asyncio.ensure_future(self._announce_all())
        telling.add_done_callback(lambda told: told.cancelled() or told.exception())  # a hint, that nobody waits for

    async def _announce_all(self) -> None:
        due, self._due = self._due, defaultdict(set)
        for topic, keys in due.items():
            await self._log.announce(topic, keys=keys, told=True)
