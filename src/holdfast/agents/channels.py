"""Channels: additional ways to agents that an app declares, such as mail or another chat.

A channel is a function that runs as long as the process serves agents. It sends incoming messages with `agents.send`,
and receives the answers with `agents.watch`. The rows store what was said; the channel stores what it has passed on.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Self

from holdfast.agents.agents import Agents
from holdfast.agents.definitions import Agent

FIRST_PAUSE = 1.0  # seconds before a failed channel is restarted; doubled each time
LONGEST_PAUSE = 60.0  # the longest pause; a channel that has worked this long starts again with the first one
TIDYING = 5.0  # seconds that channels have to end

log = logging.getLogger(__name__)


class Channels:
    """Runs channels within an `async with` block. A channel that fails is restarted with a back-off."""

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
                log.warning("the %s does not end, and is left behind", task.get_name())

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
                log.warning("the channel %s was cancelled by itself, and begins anew in %g s", channel.name, pause)
            except Exception:
                log.exception("the channel %s failed, and begins anew in %g s", channel.name, pause)
            else:
                log.info("the channel %s has ended", channel.name)
                return
            if loop.time() - began >= LONGEST_PAUSE:
                pause = FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
