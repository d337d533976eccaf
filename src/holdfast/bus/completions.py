"""Completions: the answers to commands. One is applied; late and duplicate ones are stored, too."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, cast
from uuid import UUID

from holdfast.bus.command_events import CANCELLED, Error
from holdfast.bus.log import Log
from holdfast.bus.notifications import Notifications, channel
from holdfast.bus.topics import EVENTS
from holdfast.core.batching import Batcher
from holdfast.core.errors import TooLarge
from holdfast.core.ids import TenantId, uuid7
from holdfast.core.settings import BusSettings
from holdfast.core.text import dumps, loads, restore, store
from holdfast.postgres.database import Database, Row, Statements, Transaction
from holdfast.postgres.sql import statements

ENVELOPE = 2000  # maximum bytes of a completion's record beside the result

Outcome = Literal["queued", "failed", "dead", "lost"]

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer to a command. `error` is an object with `code` and `message`, or None for a success.

    A completion that is not `applied` is late or a duplicate, or its command was redriven afterwards.
    """

    correlation_id: str
    id: UUID
    applied: bool
    result: Any
    error: Error | None
    worker: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """A completion to store. Without a token, it is from a foreign worker, which claims nothing."""

    correlation_id: str
    token: int | None
    result: str | None  # JSON
    error: str | None  # JSON
    worker: str | None
    id: UUID = field(default_factory=uuid7)


class Completions:
    """Stores the answers to commands, and wakes the waiting callers."""

    def __init__(self, database: Database, log: Log, *, notifications: Notifications, settings: BusSettings) -> None:
        self._database = database
        self._log = log
        self._notifications = notifications
        self._most = settings.max_record_bytes - ENVELOPE
        self._batcher = Batcher(self._store, size=lambda answer: len(answer.result or answer.error or ""))

    async def complete(self, answer: CommandAnswer) -> bool:
        """Store an answer. Return whether it is applied. Concurrent calls share a commit."""
        return await self._batcher(answer)

    async def apply(self, answer: CommandAnswer, *, tx: Transaction) -> bool:
        """Apply an answer that was read from the log. It is not published again."""
        within = await self._database.within(tx)
        return (await self._complete(within, [answer], tx=tx, published=True))[0]

    async def adopt(self, correlation_id: str, *, tx: Transaction) -> None:
        """Apply the answer that came before the command was known, if there is one."""
        within = await self._database.within(tx)
        if await within.value(sql("adopt_completion"), store(correlation_id)):
            await self._notify(set(), tx=tx)

    async def fail(
        self,
        correlation_id: str,
        token: int,
        error: Error,
        *,
        again: bool = True,
        wait: timedelta = timedelta(),
        lease_expired: bool = False,
    ) -> Outcome:
        """Fail an attempt. With `again`, the command is retried after `wait` until its attempts are used up.

        Otherwise, and after the last attempt, the error is its answer. `lease_expired`: only if the lease has expired.
        """
        row = cast(
            Row,
            await self._database.one(
                sql("fail_command"),
                store(correlation_id),
                token,
                uuid7(),
                dumps(error),
                again,
                wait,
                lease_expired,
                EVENTS,
            ),
        )
        if row["topic"]:
            await self._notify({row["topic"]})
        return row["outcome"]

    async def cancel(self, correlation_id: str) -> str | None:
        """Cancel a command that is not finished. Return its state, or None if it does not exist."""
        error = dumps({"code": CANCELLED, "message": "the command was cancelled"})
        row = cast(Row, await self._database.one(sql("cancel_command"), store(correlation_id), uuid7(), error, EVENTS))
        if row["topic"]:
            await self._notify({row["topic"]})
            self._notifications.send(cancelled_channel(await self._database.tenant()))
        return row["state"]

    async def of(self, correlation_id: str) -> list[Completion]:
        """Return all completions of a command, in order of arrival."""
        return [completion_of(row) for row in await self._database.all(sql("completions"), store(correlation_id))]

    def result(self, value: object) -> str:
        """Encode a result as JSON. Raise TooLarge if it cannot be published."""
        text = dumps(value)
        size = len(text.encode())
        if size > self._most:
            raise TooLarge(
                "the result is too large",
                why=f"it has {size} bytes, the limit is {self._most} (bus.max_record_bytes)",
                next="Store the content elsewhere, such as in a node, and return its id.",
                size=size,
                limit=self._most,
            )
        return text

    async def _store(self, answers: Sequence[CommandAnswer]) -> list[bool | Exception]:
        return [*await self._complete(self._database, answers, tx=None, published=False)]

    async def _complete(
        self, within: Statements, answers: Sequence[CommandAnswer], *, tx: Transaction | None, published: bool
    ) -> list[bool]:
        rows = {
            row["id"]: row
            for row in await within.all(
                sql("complete_commands"),
                [store(answer.correlation_id) for answer in answers],
                [answer.token for answer in answers],
                [answer.id for answer in answers],
                [answer.result for answer in answers],
                [answer.error for answer in answers],
                [answer.worker for answer in answers],
                EVENTS,
                published,
            )
        }
        for answer in answers:
            row = rows[answer.id]
            if not row["applied"]:
                log.warning(
                    "a completion of %s was late or a duplicate; stored, but not applied", answer.correlation_id
                )
            elif row["topic"] and row["topic"] != row["reply_to"]:
                log.warning(
                    "the topic %s for the completion of %s does not exist; published to %s",
                    row["reply_to"],
                    answer.correlation_id,
                    row["topic"],
                )
        if any(row["applied"] for row in rows.values()):
            await self._notify({row["topic"] for row in rows.values() if row["topic"]}, tx=tx)
        return [rows[answer.id]["applied"] for answer in answers]

    async def _notify(self, topics: set[str], *, tx: Transaction | None = None) -> None:
        self._notifications.send(completions_channel(await self._database.tenant()), tx=tx)
        if topics:
            await self._log.announce(*topics, tx=tx)


def completion_of(row: Row) -> Completion:
    """Decode a stored completion."""
    return Completion(
        restore(row["correlation_id"]),
        row["id"],
        row["applied"],
        None if row["result"] is None else loads(row["result"]),
        None if row["error"] is None else loads(row["error"]),
        row["worker"],
        row["at"],
    )


def completions_channel(tenant: TenantId) -> str:
    """Return the channel on which callers that wait for answers are woken."""
    return channel("completions", tenant)


def cancelled_channel(tenant: TenantId) -> str:
    """Return the channel on which workers are woken when a command is cancelled."""
    return channel("cancelled", tenant)
