"""Serving: this process does the work of agents: those of a program, and those that are stored as rows."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Self

from holdfast.agents.definitions import Agent, Definitions, agent_of
from holdfast.agents.mailbox import Mailbox
from holdfast.agents.runner import Runner
from holdfast.agents.tools import Tool
from holdfast.agents.turn import Turns
from holdfast.bus.log import Log
from holdfast.core.errors import HoldfastError

LOOK = 2.0  # seconds between two looks at the stored agents

log = logging.getLogger(__name__)


class Serving:
    """Serves the agents of one tenant, as long as `async with` lasts."""

    def __init__(
        self,
        definitions: Definitions,
        log: Log,
        runner: Runner,
        turns: Turns,
        agents: Iterable[Agent],
        tools: Mapping[str, Tool],
    ) -> None:
        self._definitions = definitions
        self._log = log
        self._runner = runner
        self._turns = turns
        self._declared = {agent.name: agent for agent in agents}
        self._tools = tools
        self._mailboxes: dict[str, tuple[Agent, Mailbox, AsyncExitStack]] = {}
        self._following: asyncio.Task[None] | None = None

    @property
    def runner(self) -> Runner:
        """What does the runs."""
        return self._runner

    @property
    def agents(self) -> list[str]:
        """The agents that are served."""
        return sorted(self._mailboxes)

    async def __aenter__(self) -> Self:
        await self._definitions.declare(self._declared.values())
        await self._runner.__aenter__()
        for agent in self._declared.values():
            await self._serve(agent)
        await self._follow_rows()
        self._following = asyncio.create_task(self._follow(), name="stored agents")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        for name in list(self._mailboxes):
            await self._leave(name)
        await self._runner.__aexit__()
        self._turns.close()

    async def _serve(self, agent: Agent) -> None:
        self._runner.serve(agent)
        stack = AsyncExitStack()
        mailbox = Mailbox(agent, self._log, self._turns.views(agent.name), self._runner.take)
        await stack.enter_async_context(mailbox)
        self._mailboxes[agent.name] = agent, mailbox, stack

    async def _leave(self, name: str) -> None:
        _, _, stack = self._mailboxes.pop(name)
        await stack.aclose()

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self._follow_rows()
            except HoldfastError as error:
                log.warning("stored agents cannot be read, trying again: %s", error)

    async def _follow_rows(self) -> None:
        """Serve the agents that are stored as rows, as they are now."""
        stored = {
            each.name: agent_of(each, self._tools)
            for each in await self._definitions.list()
            if each.origin == "db" and each.active and each.kind == "llm" and each.name not in self._declared
        }
        for name, (served, _, _) in list(self._mailboxes.items()):
            if name not in stored and name not in self._declared:
                self._runner.leave(name)
                await self._leave(name)
            elif name in stored and stored[name] != served:
                self._mailboxes[name] = (stored[name], *self._mailboxes[name][1:])
                self._runner.serve(stored[name])
        for name, agent in stored.items():
            if name not in self._mailboxes:
                await self._serve(agent)
