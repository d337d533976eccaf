"""The command queue: checks commands and stores them, many in one commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.bus.command_events import LARGEST, SkillInvocationEvent, check_name, invocation_headers, is_whole
from holdfast.bus.log import Log
from holdfast.bus.notifications import Notifications, channel
from holdfast.bus.records import RecordDraft, draft, hash_of
from holdfast.bus.topics import COMMANDS, EVENTS, topic_name
from holdfast.core.batching import Batcher
from holdfast.core.errors import AlreadyExists, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.core.settings import BusSettings
from holdfast.core.text import dumps, store
from holdfast.postgres.database import Database, Statements, Transaction
from holdfast.postgres.sql import statements

LONGEST = timedelta(days=36_525)
YEARS = range(2, 9999)  # years whose times exist in every time zone

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class QueuedCommand:
    """A command to store. Without a record, it is one that a foreign program has published already."""

    event: SkillInvocationEvent
    arguments: str
    headers: str
    priority: int = 0
    max_attempts: int | None = None
    run_at: datetime | None = None
    delay: timedelta | None = None
    record: RecordDraft | None = None

    @property
    def command_columns(self) -> tuple[object, ...]:
        """The arguments of `holdfast.submit_commands` for the command."""
        event = self.event
        return (
            store(event.correlation_id), store(event.skill_name), self.arguments, event.reply_to, self.headers,
            hash_of(event.correlation_id), self.priority, self.max_attempts, self.run_at, self.delay,
        )  # fmt: skip

    @property
    def record_columns(self) -> tuple[object, ...]:
        """The arguments of `holdfast.submit_commands` for the record."""
        record = self.record
        return (None,) * 4 if record is None else (record.id, record.headers, record.value, record.bytes)


class CommandQueue:
    """Stores commands, publishes their invocations, and wakes workers."""

    def __init__(self, database: Database, log: Log, *, notifications: Notifications, settings: BusSettings) -> None:
        self._database = database
        self._log = log
        self._notifications = notifications
        self._most = settings.max_record_bytes
        self._batcher = Batcher(self._store, size=lambda command: command.record.bytes if command.record else 0)
        self._ready = False

    def encode(
        self,
        event: SkillInvocationEvent,
        *,
        headers: Mapping[str, str],
        priority: int = 0,
        max_attempts: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        foreign: bool = False,
    ) -> QueuedCommand:
        """Check and encode a command. Raise an error that says what is wrong with it."""
        check_name("correlation id", event.correlation_id)
        check_name("skill's name", event.skill_name)
        if topic_name(event.reply_to) == COMMANDS:
            raise InvalidInput(
                f"completions cannot be sent to {COMMANDS}",
                why="its consumers would read them as commands",
                next=f"Use {EVENTS}.",
            )
        why = _find_error(event.arguments, headers, priority, max_attempts, run_at, delay)
        if why:
            raise InvalidInput("the command is invalid", why=why)
        all_headers = {**headers, **invocation_headers(event)}
        record = draft(COMMANDS, event, key=event.correlation_id, headers=all_headers, max_bytes=self._most)
        return QueuedCommand(
            event,
            dumps(event.arguments),
            dumps(dict(headers)),
            priority,
            max_attempts,
            run_at,
            delay,
            None if foreign else record,
        )

    async def submit(self, command: QueuedCommand, *, tx: Transaction | None = None) -> bool:
        """Store a command. Return whether it is new. Without a transaction, concurrent calls share a commit."""
        await self.prepare(tx=tx)
        if tx is None:
            return await self._batcher(command)
        within = await self._database.within(tx)
        outcome = (await self._submit(within, [command], tx=tx))[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def prepare(self, *, tx: Transaction | None = None) -> None:
        """Create the two topics, unless they exist."""
        if self._ready:
            return
        for topic in (COMMANDS, EVENTS):
            await self._log.create(topic, tx=tx)
        if tx is None:
            self._ready = True
        else:
            tx.after_commit.append(self._mark_ready)

    def _mark_ready(self) -> None:
        self._ready = True

    async def _store(self, commands: Sequence[QueuedCommand]) -> list[bool | Exception]:
        return await self._submit(self._database, commands, tx=None)

    async def _submit(
        self, within: Statements, commands: Sequence[QueuedCommand], *, tx: Transaction | None
    ) -> list[bool | Exception]:
        columns = [list(column) for column in zip(*(command.command_columns for command in commands), strict=True)]
        records = [list(column) for column in zip(*(command.record_columns for command in commands), strict=True)]
        rows = await within.all(sql("submit_commands"), *columns, COMMANDS, *records)
        if any(row["created"] for row in rows):
            self._notifications.send(commands_channel(await self._database.tenant()), tx=tx)
            await self._log.announce(COMMANDS, tx=tx)
        return [
            row["created"] if row["same"] else _already_used(command.event.correlation_id)
            for command, row in zip(commands, rows, strict=True)
        ]


def commands_channel(tenant: TenantId) -> str:
    """Return the channel on which workers are woken."""
    return channel("commands", tenant)


def _find_error(
    arguments: object, headers: object, priority: object, max_attempts: object, run_at: object, delay: object
) -> str:
    """Return what is wrong with a command, or "". An invalid one must not fail those that share its commit."""
    if not isinstance(arguments, Mapping):
        return f"its arguments are a {type(arguments).__name__}, not an object"
    if not isinstance(headers, Mapping):
        return f"its headers are a {type(headers).__name__}, not an object"
    if not is_whole(priority, -LARGEST, LARGEST):
        return f"its priority is not an integer from {-LARGEST} to {LARGEST}"
    if max_attempts is not None and not is_whole(max_attempts, 1, LARGEST):
        return f"its max_attempts is not an integer from 1 to {LARGEST}"
    if run_at is not None and delay is not None:
        return "it has both run_at and delay"
    return _find_time_error(run_at) or _find_delay_error(delay)


def _find_time_error(run_at: object) -> str:
    if run_at is None:
        return ""
    if not isinstance(run_at, datetime):
        return f"its run_at is a {type(run_at).__name__}, not a datetime"
    if run_at.utcoffset() is None:
        return "its run_at has no time zone"
    return "" if run_at.year in YEARS else f"the year {run_at.year} of its run_at is out of range"


def _find_delay_error(delay: object) -> str:
    if delay is None:
        return ""
    if not isinstance(delay, timedelta):
        return f"its delay is a {type(delay).__name__}, not a timedelta"
    return "" if timedelta() <= delay <= LONGEST else "its delay is negative, or longer than a hundred years"


def _already_used(correlation_id: str) -> AlreadyExists:
    return AlreadyExists(
        f"the correlation id {correlation_id} is already used",
        why="the command with this id is for another skill, or has other arguments",
        next="Use a different id for each command, or omit it to have one generated.",
    )
