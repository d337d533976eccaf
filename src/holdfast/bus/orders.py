"""Orders: commands on their way to their rows, many in one commit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from holdfast.bus.gathering import Gathering
from holdfast.bus.log import Log
from holdfast.bus.records import Draft, draft, hash_of
from holdfast.bus.skill_events import SkillInvocationEvent, invocation_headers, named
from holdfast.bus.topics import COMMANDS, EVENTS, topic_name
from holdfast.bus.wakes import Wakes, channel
from holdfast.core.errors import AlreadyExists, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.core.settings import BusSettings
from holdfast.core.text import dumps, store
from holdfast.postgres.database import Database, Statements, Transaction
from holdfast.postgres.sql import statements

LARGEST = 2**31 - 1

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Order:
    """A command as it is stored; without a record, a foreign invoker has published it already."""

    event: SkillInvocationEvent
    arguments: str
    headers: str
    priority: int = 0
    max_attempts: int | None = None
    run_at: datetime | None = None
    delay: timedelta | None = None
    record: Draft | None = None

    @property
    def stored(self) -> tuple[object, ...]:
        """What `holdfast.submit_commands` takes of the command."""
        event = self.event
        return (
            store(event.correlation_id), store(event.skill_name), self.arguments, event.reply_to, self.headers,
            hash_of(event.correlation_id), self.priority, self.max_attempts, self.run_at, self.delay,
        )  # fmt: skip

    @property
    def published(self) -> tuple[object, ...]:
        """What it takes of the record."""
        record = self.record
        return (None,) * 4 if record is None else (record.id, record.headers, record.value, record.bytes)


class Orders:
    """Stores commands, publishes their invocations, and wakes workers."""

    def __init__(self, database: Database, log: Log, wakes: Wakes, settings: BusSettings) -> None:
        self._database = database
        self._log = log
        self._wakes = wakes
        self._most = settings.max_record_bytes
        self._gathered = Gathering(self._store, size=lambda order: order.record.bytes if order.record else 0)
        self._ready = False

    def order(
        self,
        event: SkillInvocationEvent,
        *,
        headers: Mapping[str, str],
        priority: int = 0,
        max_attempts: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        foreign: bool = False,
    ) -> Order:
        """A command that can be stored, or an error that says what is wrong with it."""
        named("correlation id", event.correlation_id)
        named("skill's name", event.skill_name)
        topic_name(event.reply_to)
        _refuse_wrong(event.arguments, priority, max_attempts, run_at, delay)
        told = {**headers, **invocation_headers(event)}
        record = draft(COMMANDS, event, key=event.correlation_id, headers=told, max_bytes=self._most)
        return Order(
            event,
            dumps(event.arguments),
            dumps(dict(headers)),
            priority,
            max_attempts,
            run_at,
            delay,
            None if foreign else record,
        )

    async def submit(self, order: Order, *, tx: Transaction | None = None) -> bool:
        """Store a command; whether it is new. Without a transaction many at once share a commit."""
        await self.prepare(tx=tx)
        if tx is None:
            return await self._gathered(order)
        within = await self._database.within(tx)
        outcome = (await self._submit(within, [order], tx=tx))[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def prepare(self, *, tx: Transaction | None = None) -> None:
        """Make the two topics, unless they are there."""
        if self._ready:
            return
        for topic in (COMMANDS, EVENTS):
            await self._log.create(topic, tx=tx)
        if tx is None:
            self._ready = True
        else:
            tx.afterwards.append(self._prepared)

    def _prepared(self) -> None:
        self._ready = True

    async def _store(self, orders: Sequence[Order]) -> list[bool | Exception]:
        return await self._submit(self._database, orders, tx=None)

    async def _submit(
        self, within: Statements, orders: Sequence[Order], *, tx: Transaction | None
    ) -> list[bool | Exception]:
        commands = [list(column) for column in zip(*(order.stored for order in orders), strict=True)]
        records = [list(column) for column in zip(*(order.published for order in orders), strict=True)]
        rows = await within.all(sql("submit_commands"), *commands, COMMANDS, *records)
        if any(row["created"] for row in rows):
            self._wakes.send(commands_channel(await self._database.tenant()), tx=tx)
            await self._log.announce(COMMANDS, tx=tx)
        return [
            row["created"] if row["same"] else _taken(order.event.correlation_id)
            for order, row in zip(orders, rows, strict=True)
        ]


def commands_channel(tenant: TenantId) -> str:
    """Where workers are woken."""
    return channel("commands", tenant)


def _refuse_wrong(
    arguments: Any, priority: int, max_attempts: int | None, run_at: datetime | None, delay: timedelta | None
) -> None:
    why = ""
    if not isinstance(arguments, Mapping):
        why = f"its arguments are a {type(arguments).__name__}, not an object"
    elif not abs(priority) <= LARGEST:
        why = f"its priority is {priority}, at most {LARGEST} are possible"
    elif max_attempts is not None and not 1 <= max_attempts <= LARGEST:
        why = f"it has {max_attempts} attempts, and needs one"
    elif run_at is not None and run_at.tzinfo is None:
        why = "the time it shall run at has no time zone"
    elif delay is not None and (delay < timedelta() or not math.isfinite(delay.total_seconds())):
        why = "its delay is below zero"
    elif run_at is not None and delay is not None:
        why = "it has a time to run at, and a delay"
    if why:
        raise InvalidInput("the command cannot be submitted", why=why)


def _taken(correlation_id: str) -> AlreadyExists:
    return AlreadyExists(
        f"the correlation id {correlation_id} is taken",
        why="the command that has it is another skill's, or has other arguments",
        next="Use an id of its own for each command; leave it out to have one made.",
    )
