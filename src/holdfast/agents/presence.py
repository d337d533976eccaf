"""Presence: which agents are served now. Every process that serves agents reports this every few seconds.

A process that stops reports that too. A process that dies counts as gone after fifteen seconds, or as soon as another
one starts on the same machine.
"""

import os
import platform
import re
import time
from collections.abc import Sequence

from holdfast.core.ids import uuid7
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

EVERY = 5.0  # seconds between two reports of a process
FRESH = 1.0  # seconds for which `served` is cached; a missing agent is always looked up

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
        """Return the agents that are served now."""
        rows = await self._database.all(sql("served_agents"))
        self._known, self._until = frozenset(row["name"] for row in rows), time.monotonic() + FRESH
        return self._known

    async def serves(self, agent: str) -> bool:
        """Return whether an agent is served, or was served a second ago."""
        if time.monotonic() < self._until and agent in self._known:
            return True
        return agent in await self.served()

    def reporter(self) -> "PresenceReporter":
        """Return an object that reports which agents a part of this process serves."""
        return PresenceReporter(self._database)


class PresenceReporter:
    """Reports which agents this process serves."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._id = uuid7()
        self._reported: list[str] | None = None
        self._due = 0.0

    async def report(self, agents: Sequence[str]) -> None:
        """Report the agents, if they have changed or the last report is too old."""
        names = sorted(agents)
        if self._reported is None:
            await self._remove_dead()
        if names != self._reported or time.monotonic() >= self._due:
            await self._database.run(sql("tell_served"), self._id, f"process {os.getpid()} on {HERE}", names)
            self._reported, self._due = names, time.monotonic() + EVERY

    async def end(self) -> None:
        """Report that this process serves no agents any more."""
        await self._database.run(sql("end_served"), [self._id])

    async def _remove_dead(self) -> None:
        """Remove dead processes of this machine. A live one that is removed by mistake reports itself again."""
        rows = await self._database.all(sql("processes_on"), HERE)
        dead = [row["worker"] for row in rows if not _is_alive(row["name"])]
        if dead:
            await self._database.run(sql("end_served"), dead)


def _is_alive(name: str) -> bool:
    found = _PROCESS.match(name)
    try:
        if found is not None:
            os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process
        return True
    return True
