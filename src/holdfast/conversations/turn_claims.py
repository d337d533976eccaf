"""Turns: they let one caller at a time work on a conversation.

A turn is a claim in the database with a lease that its holder renews. If the holder crashes, its lease expires: the
conversation becomes free, and later appends of that turn are rejected. A run of an agent holds its conversation in the
same way: turns and runs wait in one queue. The caller chooses what happens if another turn or a run holds the
conversation: `reject` fails, `enqueue` waits in order, `interrupt` tells the other turn to stop and waits,
`fork` works on a copy. `merge` is for messages to agents (see `agents`): a turn has nothing to merge, and waits as with
`enqueue`.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, cast, get_args
from uuid import UUID

from holdfast.bus.feed_options import Listen
from holdfast.bus.notifications import Notifications, channel
from holdfast.conversations.errors import turn_not_held, unknown_conversation
from holdfast.core.background import end_task
from holdfast.core.errors import Busy, HoldfastError, InvalidInput, TimedOut
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

if TYPE_CHECKING:
    from holdfast.conversations.conversations import Conversations

Policy = Literal["reject", "enqueue", "merge", "interrupt", "fork"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

LEASE = timedelta(seconds=30)
POLL = 1.0  # seconds between two polls of a waiting turn, at most: a wake-up is only a hint

sql = statements(__name__)


@dataclass(slots=True)
class HeldTurn:
    """A turn that holds a conversation."""

    conversation: UUID
    number: int
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)  # this turn should end: another one waits


@dataclass(frozen=True, slots=True)
class ClaimedTurn:
    """The claim of a turn: it holds the conversation, or waits for it."""

    conversation: UUID
    number: int
    held: bool
    interrupted: bool = False


class TurnClaims:
    """Lets one turn at a time work on a conversation."""

    def __init__(
        self, database: Database, conversations: "Conversations", *, listen: Listen, notifications: Notifications
    ) -> None:
        self._database = database
        self._notifications = notifications
        self._conversations = conversations
        self._listen = listen

    @asynccontextmanager
    async def take(
        self,
        conversation: UUID,
        *,
        busy: Policy = "reject",
        holder: str = "",
        lease: timedelta = LEASE,
        wait: float | None = None,
    ) -> AsyncGenerator[HeldTurn]:
        """Hold a conversation while the block runs. Wait for it at most `wait` seconds."""
        claim = await self.claim(conversation, busy=busy, holder=holder, lease=lease)
        try:
            async with contextlib.AsyncExitStack() as stack:
                if not claim.held:
                    await self._wait(claim, lease, wait)
                turn = HeldTurn(claim.conversation, claim.number)
                renewal = asyncio.create_task(self._renew(turn, lease))
                stack.push_async_callback(end_task, renewal)
                yield turn
        finally:
            await self.release(claim.conversation, claim.number)

    async def claim(
        self, conversation: UUID, *, busy: Policy = "reject", holder: str = "", lease: timedelta = LEASE
    ) -> ClaimedTurn:
        """Claim a conversation, or a place in its queue. The caller has to renew and release the claim."""
        if busy not in POLICIES or lease <= timedelta():
            raise InvalidInput(
                "the claim is invalid",
                why=f"the policy must be one of {', '.join(POLICIES)}, and the lease must be greater than zero",
            )
        first = {"fork": "reject", "merge": "enqueue"}.get(busy, busy)
        row = cast(
            Row,
            await self._database.one(sql("claim_turn"), conversation, store(holder or _process_name()), lease, first),
        )
        if row["outcome"] == "missing":
            raise unknown_conversation(conversation)
        if row["outcome"] != "busy":
            if busy == "interrupt":
                await wake_queue(self._database, self._notifications)
            return ClaimedTurn(conversation, row["number"], row["outcome"] == "held")
        if busy == "fork":
            return await self.claim((await self._conversations.fork(conversation)).id, holder=holder, lease=lease)
        raise held_by(restore(row["holder"]), until=row["until"])

    async def renew(self, conversation: UUID, number: int, *, lease: timedelta = LEASE) -> ClaimedTurn:
        """Renew the lease of a claim; return whether it holds the conversation, and whether it was interrupted."""
        row = cast(Row, await self._database.one(sql("renew_turn"), conversation, number, lease))
        if row["held"] is None:
            raise turn_not_held(number)
        return ClaimedTurn(conversation, number, row["held"], row["interrupted"])

    async def release(self, conversation: UUID, number: int) -> None:
        """Release a claim. A claim that no longer exists is no error."""
        if await self._database.value(sql("release_turn"), conversation, number):
            await wake_queue(self._database, self._notifications)

    async def _wait(self, claim: ClaimedTurn, lease: timedelta, wait: float | None) -> None:
        try:
            async with asyncio.timeout(wait), self._listen(await queue_channel(self._database)) as woken:
                while not (await self.renew(claim.conversation, claim.number, lease=lease)).held:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(min(POLL, lease.total_seconds() / 3)):
                            await woken.wait()
                    woken.clear()
        except TimeoutError:
            raise TimedOut(
                "the conversation did not become free",
                why=f"other turns held it for {wait:g} seconds",
                next="Try again.",
            ) from None

    async def _renew(self, turn: HeldTurn, lease: timedelta) -> None:
        """Renew the lease until the turn ends or is interrupted. An interrupted turn can use up its lease."""
        loop = asyncio.get_running_loop()
        due = loop.time() + lease.total_seconds() / 3
        async with self._listen(await queue_channel(self._database)) as woken:
            while not turn.interrupted.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(due):
                        await woken.wait()
                woken.clear()
                with contextlib.suppress(HoldfastError):  # the database may be back before the lease expires
                    if await self._is_interrupted(turn, None if loop.time() < due else lease):
                        turn.interrupted.set()
                if loop.time() >= due:
                    due = loop.time() + lease.total_seconds() / 3

    async def _is_interrupted(self, turn: HeldTurn, lease: timedelta | None) -> bool:
        """Whether the turn should end. With `lease`, renew the lease, too."""
        if lease is None:  # a wake-up, most often for another turn: write nothing
            interrupted = await self._database.value(sql("turn_interrupted"), turn.conversation, turn.number)
            return interrupted is not False
        try:
            return (await self.renew(turn.conversation, turn.number, lease=lease)).interrupted
        except Busy:
            return True


def held_by(holder: str, *, until: datetime | None = None) -> Busy:
    """Return the error for a conversation that a turn or an agent holds. `until`: the end of the turn's lease."""
    lease = "" if until is None else f" until {until.isoformat()}"
    return Busy(
        "another turn holds the conversation",
        why=f"{holder} holds it{lease}",
        next="Try again later, or use the policy `enqueue`, `interrupt` or `fork`.",
        holder=holder,
    )


async def queue_channel(database: Database) -> str:
    """Return the channel that wakes whoever holds a conversation of a tenant or waits for it: turns and runs."""
    return channel(await database.tenant(), "runs")


async def wake_queue(database: Database, notifications: Notifications) -> None:
    """Wake the turns and the runs of a tenant. It is a hint: they also poll."""
    notifications.send(await queue_channel(database))


def _process_name() -> str:
    return f"process {os.getpid()}"
