"""Serves agents in this process: those that an app declares, and those that are stored as rows."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Self

from holdfast.agents.agents import Agents
from holdfast.agents.definitions import Agent, Definitions, Stamp, agent_of
from holdfast.agents.mailbox import Mailbox
from holdfast.agents.runner import AgentRunner
from holdfast.agents.turn_loop import TurnLoop
from holdfast.bus.log import Log
from holdfast.core.background import PeriodicCall
from holdfast.core.errors import HoldfastError, InvalidInput, NotFound
from holdfast.skills.tool import Tool

LOOK = 2.0  # seconds between two polls of the stored agents
FIRST_PAUSE = 1.0  # seconds before a failed channel is restarted; doubled each time
LONGEST_PAUSE = 60.0  # the longest pause; a channel that has worked this long starts again with the first one
TIDYING = 5.0  # seconds that channels have to end

log = logging.getLogger(__name__)


class Serving:
    """Serves the agents of one tenant within an `async with` block."""

    def __init__(
        self,
        agents: Agents,
        log: Log,
        runner: AgentRunner,
        *,
        turns: TurnLoop,
        declared: Iterable[Agent],
        tools: Mapping[str, Tool],
        declare: Callable[[], Awaitable[None]],
    ) -> None:
        self._definitions: Definitions = agents.definitions
        self._presence_reporter = agents.presence.reporter()
        self._inbox = agents.inbox
        self._broadcast = agents.broadcast
        self._log = log
        self._runner = runner
        self._turns = turns
        self._declared = {agent.name: agent for agent in declared}
        self._channels = Channels(agents, (agent for agent in self._declared.values() if agent.kind == "ui"))
        self._tools = tools
        self._declare = declare  # stores what the app declares besides its agents
        self._mailboxes: dict[str, AsyncExitStack] = {}
        self._stored: dict[str, Stamp] = {}  # stored agents at the last poll
        self._stack = AsyncExitStack()

    @property
    def runner(self) -> AgentRunner:
        """The runner that executes the runs."""
        return self._runner

    @property
    def agents(self) -> list[str]:
        """The names of the agents that are served."""
        return sorted(self._mailboxes)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.callback(self._turns.close)
            await self._definitions.declare(self._declared.values())
            await self._declare()
            await stack.enter_async_context(self._runner)
            stack.enter_context(self._inbox.taken_by(self._runner))
            stack.push_async_callback(self._leave_all)
            for agent in self._declared.values():
                if agent.kind != "ui":
                    await self._serve(agent)
            await self._follow_rows()
            await stack.enter_async_context(self._channels)
            stack.push_async_callback(self._report_end)
            await stack.enter_async_context(
                PeriodicCall("poll of stored agents", self._follow, pause=LOOK, first=LOOK / 2)
            )
            await self._report_presence()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _serve(self, agent: Agent) -> None:
        for name in await self._definitions.unknown_tools(agent.named):  # an import may still add it
            log.warning("the agent %s names the tool %s, which does not exist: it runs without it", agent.name, name)
        self._runner.serve(agent)
        if agent.name not in self._mailboxes:
            stack = self._mailboxes[agent.name] = AsyncExitStack()
            await stack.enter_async_context(self._broadcast.reading(agent.topic))
            await stack.enter_async_context(Mailbox(agent, self._log, self._runner.take))

    async def _leave(self, name: str) -> None:
        await self._mailboxes.pop(name).aclose()

    async def _leave_all(self) -> None:
        for name in list(self._mailboxes):
            await self._leave(name)

    async def _follow(self) -> None:
        await self._follow_rows()
        await self._report_presence()

    async def _report_end(self) -> None:
        with suppress(HoldfastError):  # other processes notice it by themselves
            await self._presence_reporter.end()

    async def _report_presence(self) -> None:
        """Report to other processes which agents are served here."""
        await self._presence_reporter.report([*{*self._mailboxes, *self._declared}])

    async def _follow_rows(self) -> None:
        """Serve the agents that are stored as rows. A definition is read when it is new or has changed."""
        stored = {
            name: stamp for name, stamp in (await self._definitions.stored()).items() if name not in self._declared
        }
        for name in [name for name in self._mailboxes if name not in stored and name not in self._declared]:
            self._runner.leave(name)
            await self._leave(name)
        for name, stamp in stored.items():
            if self._stored.get(name) != stamp:
                await self._serve_row(name)
        self._stored = stored

    async def _serve_row(self, name: str) -> None:
        try:
            agent = self._definitions.ceilings.apply(agent_of(await self._definitions.get(name), self._tools))
        except NotFound:  # it was removed just now
            return
        except (InvalidInput, TypeError) as error:
            log.warning("the stored agent %s is not served: %s", name, error)
        else:
            await self._serve(agent)


class Channels:
    """Runs channels within an `async with` block. A channel that fails is restarted with a back-off.

    A channel is a function that runs as long as the process serves agents, such as mail or another chat. It sends
    incoming messages with `agents.send`, and receives the answers with `agents.watch`. The rows store what was said;
    the channel stores what it has passed on.
    """

    def __init__(self, agents: Agents, channels: Iterable[Agent]) -> None:
        self._agents = agents
        self._channels = list(channels)
        self._running: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._running = [
            asyncio.create_task(self._run(channel), name=f"channel {channel.name}") for channel in self._channels
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            left = (await asyncio.wait(self._running, timeout=TIDYING))[1]
            for task in left:
                log.warning("the %s does not stop; it is abandoned", task.get_name())

    async def _run(self, channel: Agent) -> None:
        assert channel.channel is not None
        loop, pause = asyncio.get_running_loop(), FIRST_PAUSE
        while True:
            began = loop.time()
            try:
                await channel.channel(self._agents, channel.name)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                log.warning("the channel %s was cancelled; it restarts in %g s", channel.name, pause)
            except Exception:
                log.exception("the channel %s failed; it restarts in %g s", channel.name, pause)
            else:
                log.info("the channel %s has ended", channel.name)
                return
            if loop.time() - began >= LONGEST_PAUSE:
                pause = FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
