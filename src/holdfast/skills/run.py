"""A run: for whom and in which turn a tool is called."""

from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID

from holdfast.core.errors import InvalidInput
from holdfast.skills.client import SILENT, Client


@dataclass(frozen=True, slots=True)
class Run:
    """For whom and in which turn a tool is called; who calls it directly is in no conversation and no turn.

    `key` is the same when a call is made again after a crash: use it as an idempotency key. `client` is who called it,
    where they can be told how it goes, or asked (see skills/client.py).
    """

    user: str | None
    agent: str | None
    session_id: str | None
    conversation_id: UUID | None
    run_id: UUID | None
    call_id: str
    key: str
    client: Client = SILENT


_current: ContextVar[Run] = ContextVar("holdfast_current_run")


def current_run() -> Run:
    """The run that the calling tool is part of."""
    try:
        return _current.get()
    except LookupError:
        raise InvalidInput("no tool is being run here", next="Call it in a tool that an agent runs.") from None


def begin_run(run: Run) -> None:
    """Have it known to what the current task calls, and to nothing else."""
    _current.set(run)
