"""The mailbox of an agent: reads its topic as a member of the agent's group, and claims the runs of new messages.

A message is answered by a run. The sender stores the run with the message. If another program published the message,
the run is missing, and the mailbox stores it. So the committed offset only says how far the topic was read: it is
committed now and then, and a record that is read again finds its run.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Self
from uuid import UUID

from holdfast.agents.definitions import Agent
from holdfast.bus.log import Log
from holdfast.bus.messages import TOOL, ConversationMessage, message_of
from holdfast.bus.records import Record
from holdfast.bus.subscription import Subscription
from holdfast.conversations.contexts import ASSISTANT
from holdfast.core.errors import Busy, HoldfastError, InvalidInput, Overloaded, Unavailable

BATCH = 200  # records read at once
IDLE = 1.0  # seconds without a record before the offset is committed
UNCOMMITTED = 1000  # records after which the offset is committed at the latest
PASSING = (Busy, Overloaded, Unavailable)  # errors that a retry can resolve
FORM_HEADER = "holdfast-form"  # a framework with its own agent wrote the node

log = logging.getLogger(__name__)

Take = Callable[[Agent, Sequence[UUID]], Awaitable[None]]


class Mailbox:
    """Reads the topic of one agent, as a member of the agent's consumer group."""

    def __init__(self, agent: Agent, log: Log, take: Take) -> None:
        self._agent = agent
        self._log = log
        self._take = take
        self._reading: asyncio.Task[None] | None = None
        self.ignored = 0  # how many of the agent's own messages were read

    async def __aenter__(self) -> Self:
        self._reading = asyncio.create_task(self._run(), name=f"mailbox of {self._agent.name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _run(self) -> None:
        while True:
            try:
                async with self._log.subscribe(
                    [self._agent.topic], group=self._agent.group, known_locally=True
                ) as records:
                    await self._read(records)
            except HoldfastError as error:
                log.warning("could not read the mailbox of %s; retrying: %s", self._agent.name, error)
            except Exception:
                log.exception("internal error: could not read the mailbox of %s; retrying", self._agent.name)
            await asyncio.sleep(IDLE)

    async def _read(self, records: Subscription) -> None:
        uncommitted: list[Record] = []
        next_batch: asyncio.Task[list[Record]] | None = None
        try:
            while True:
                next_batch = next_batch or asyncio.ensure_future(records.batch(BATCH))
                done, _ = await asyncio.wait([next_batch], timeout=IDLE if uncommitted else None)
                if done:
                    batch, next_batch = next_batch.result(), None
                    await self._handle(batch)
                    uncommitted += batch
                if uncommitted and (not done or len(uncommitted) >= UNCOMMITTED):
                    with suppress(Busy):  # another consumer has the partition and reads them again
                        await records.commit(*uncommitted)
                    uncommitted = []
        finally:
            if next_batch is not None:
                next_batch.cancel()
                await asyncio.wait([next_batch])
            if uncommitted:
                with suppress(HoldfastError):
                    await records.commit(*uncommitted)

    async def _handle(self, records: Sequence[Record]) -> None:
        """Handle records. A record that cannot be handled is skipped, and the others are handled."""
        try:
            await self._take_runs(records)
        except PASSING:
            raise
        except Exception:
            if len(records) == 1:
                log.exception("%s skips the record %s: handling it failed", self._agent.name, records[0].id)
                return
            for record in records:
                await self._handle([record])

    async def _take_runs(self, records: Sequence[Record]) -> None:
        node_ids: list[UUID] = []
        for record in records:
            try:
                message = message_of(record)
            except InvalidInput as error:  # anybody can publish to the topic
                log.warning("%s received an invalid record: %s", self._agent.name, error)
                continue
            if message.agent_id in (self._agent.name, ASSISTANT):
                self.ignored += 1
            elif self._needs_answer(message, record):
                node_ids.append(message.node_id)
        if node_ids:
            await self._take(self._agent, node_ids)

    def _needs_answer(self, message: ConversationMessage, record: Record) -> bool:
        """Return whether a message needs an answer. Tool and system messages are read with the next one that does."""
        if message.agent_id in (TOOL, "system") or FORM_HEADER in record.headers:
            return False
        return message.action in ("create", "append")
