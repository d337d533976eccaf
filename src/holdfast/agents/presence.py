"""Presence: which agents some process serves now, as processes say every few seconds.

A process that stops says so. One that dies is not heard of again, and counts as gone after fifteen seconds, or as soon
as another begins on the same machine.
"""

import os
import platform
import re
import time
from collections.abc import Sequence

from holdfast.core.ids import uuid7
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

EVERY = 5.0  # seconds after which a process says again that it is there
FRESH = 1.0  # seconds for which an answer is good; it never hides a process that has just begun

HERE = platform.node() or "this machine"

_PROCESS = re.compile(r"process (\d+) on ")

sql = statements(__name__)


class AgentPresence:
    """Knows which agents of one tenant are served, by this process or another."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: frozenset[str] = frozenset()
        self._until = 0.0

    async def served(self) -> frozenset[str]:
        """The agents that are served now."""
        rows = await self._database.all(sql("served_agents"))
        self._known, self._until = frozenset(row["name"] for row in rows), time.monotonic() + FRESH
        return self._known

    async def serves(self, agent: str) -> bool:
        """Whether an agent is served, or was a second ago."""
        if time.monotonic() < self._until and agent in self._known:
            return True
        return agent in await self.served()

    def announced(self) -> "Announced":
        """What says which agents a part of this process serves."""
        return Announced(self._database)


class Announced:
    """Says which agents this process serves."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._id = uuid7()
        self._told: list[str] | None = None
        self._due = 0.0

    async def tell(self, agents: Sequence[str]) -> None:
        """Say it, where it has changed or was not said for a while."""
        names = sorted(agents)
        if self._told is None:
            await self._bury()
        if names != self._told or time.monotonic() >= self._due:
            await self._database.run(sql("tell_served"), self._id, f"process {os.getpid()} on {HERE}", names)
            self._told, self._due = names, time.monotonic() + EVERY

    async def end(self) -> None:
        """Say that this process serves none any more."""
        await self._database.run(sql("end_served"), [self._id])

    async def _bury(self) -> None:
        """Forget processes of this machine that died. One that lives nevertheless says again that it is there."""
        rows = await self._database.all(sql("processes_on"), HERE)
        dead = [row["worker"] for row in rows if not _lives(row["name"])]
        if dead:
            await self._database.run(sql("end_served"), dead)


def _lives(name: str) -> bool:
    found = _PROCESS.match(name)
    try:
        if found is not None:
            os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True
