"""Ingests commands and completions that foreign programs publish on the log.

A header marks the engine's own records, which are stored as rows already. The others become rows here, exactly once,
because they are committed with the group's position.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from holdfast.bus.assignment import TopicPartition
from holdfast.bus.command_events import (
    COMMAND_HEADER,
    COMPLETION_HEADER,
    SkillCompletionEvent,
    SkillInvocationEvent,
    event_of,
    foreign_error,
)
from holdfast.bus.command_queue import CommandQueue
from holdfast.bus.completions import CommandAnswer, Completions
from holdfast.bus.log import Log
from holdfast.bus.notifications import POLL
from holdfast.bus.positions import bury
from holdfast.bus.records import TRACE_HEADERS, Record
from holdfast.bus.subscription import Subscription
from holdfast.bus.topics import COMMANDS, EVENTS
from holdfast.core.background import Background
from holdfast.core.errors import AlreadyExists, HoldfastError, InvalidInput, NotFound, TooLarge
from holdfast.core.text import dumps, store
from holdfast.postgres.database import Database, Transaction
from holdfast.postgres.sql import statements

BREATH = 0.05  # seconds between two batches of own records: these are skipped, and larger batches cost less

FOREIGN = "a foreign worker"

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestSource:
    """A topic, the group that reads it, the header of our own records, and the function that applies the others."""

    topic: str
    group: str
    mark: str
    apply: Callable[[Record, Transaction], Awaitable[object]]


class Ingest:
    """Reads the topics of commands and their answers, from the first `start` until the engine closes."""

    def __init__(
        self, database: Database, log: Log, *, queue: CommandQueue, completions: Completions, background: Background
    ) -> None:
        self._database = database
        self._log = log
        self._queue = queue
        self._completions = completions
        self._background = background

    def start(self, reply_to: str = EVENTS) -> None:
        """Start reading, unless it runs already. The two topics must exist; `reply_to` is a further one for answers."""
        sources = [
            IngestSource(COMMANDS, "holdfast-commands", COMMAND_HEADER, self._apply_invocation),
            IngestSource(EVENTS, "holdfast-completions", COMPLETION_HEADER, self._apply_completion),
        ]
        if reply_to != EVENTS:
            sources.append(IngestSource(reply_to, "holdfast-completions", COMPLETION_HEADER, self._apply_reply))
        for source in sources:
            self._background.start(("ingest", source.topic, id(self)), lambda source=source: self._follow(source))

    async def _follow(self, source: IngestSource) -> None:
        while True:
            try:
                async with self._log.subscribe([source.topic], group=source.group) as records:
                    await self._read(records, source)
            except NotFound:  # the topic for answers does not exist: they go to `agent-events`
                return
            except HoldfastError as error:
                log.warning("could not read %s; retrying: %s", source.topic, error)
            await asyncio.sleep(POLL)

    async def _read(self, records: Subscription, source: IngestSource) -> None:
        skipped: dict[TopicPartition, Record] = {}
        commit_task = asyncio.create_task(
            self._commit_periodically(records, skipped), name=f"holdfast positions of {source.group}"
        )
        try:
            while True:
                batch = await records.batch()
                for record in batch:
                    slot = TopicPartition(record.topic, record.partition)
                    if source.mark in record.headers:
                        skipped[slot] = record
                    else:
                        skipped.pop(slot, None)
                        await self._process(records, record, source)
                if all(source.mark in record.headers for record in batch):
                    await asyncio.sleep(BREATH)
        finally:
            commit_task.cancel()
            await asyncio.wait([commit_task])

    async def _process(self, records: Subscription, record: Record, source: IngestSource) -> None:
        async with records.handle(record) as tx:
            try:
                await source.apply(record, tx)
            except (InvalidInput, TooLarge, AlreadyExists) as error:  # a retry would fail in the same way
                log.warning(
                    "record %d of %s/%d is a dead letter: %s", record.offset, source.topic, record.partition, error
                )
                await bury(tx, source.group, record, str(error), 1)

    async def _commit_periodically(self, records: Subscription, skipped: dict[TopicPartition, Record]) -> None:
        """Commit the skipped records periodically. To read them again would do no harm."""
        while True:
            await asyncio.sleep(POLL)
            due = list(skipped.values())
            skipped.clear()
            try:
                async with self._database.transaction() as tx:
                    for record in due:
                        await records.commit(record, tx=tx)
            except HoldfastError as error:
                log.info("could not commit positions; the records will be read again: %s", error)

    async def _apply_invocation(self, record: Record, tx: Transaction) -> None:
        event = event_of(record, SkillInvocationEvent)
        headers = {name: record.headers[name] for name in TRACE_HEADERS if name in record.headers}
        if await self._queue.submit(self._queue.encode(event, headers=headers, foreign=True), tx=tx):
            await self._completions.adopt(event.correlation_id, tx=tx)

    async def _apply_completion(self, record: Record, tx: Transaction) -> None:
        event = event_of(record, SkillCompletionEvent)
        error = foreign_error(event.error)
        answer = CommandAnswer(
            event.correlation_id,
            None,
            None if error else dumps(event.result),
            dumps(error) if error else None,
            FOREIGN,
            record.id,
        )
        await self._completions.apply(answer, tx=tx)

    async def _apply_reply(self, record: Record, tx: Transaction) -> None:
        """Apply a completion from a caller's own topic, which may have other records as well."""
        try:
            event = event_of(record, SkillCompletionEvent)
        except InvalidInput:
            return
        if await tx.one(sql("command"), store(event.correlation_id)) is not None:
            await self._apply_completion(record, tx)
