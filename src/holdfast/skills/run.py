"""The run of a tool call: its user, agent, conversation and turn."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import UUID

from holdfast.core.errors import InvalidInput
from holdfast.skills.client import SILENT, Client


@dataclass(frozen=True, slots=True)
class Run:
    """The user, agent, conversation and turn of a tool call. A direct call has no conversation and no turn.

    `key` is the same if a call is repeated after a crash: use it as an idempotency key. `client` takes progress reports
    and questions (see skills/client.py). `request_id` is that of the request that made the call. `token` is the token
    of an issuer that the caller sent, if it sent one: back ends that exchange tokens get one for this user.
    """

    user: str | None
    agent: str | None
    session_id: str | None
    conversation_id: UUID | None
    run_id: UUID | None
    call_id: str
    key: str
    client: Client = SILENT
    request_id: str = ""
    token: str | None = field(default=None, repr=False)


_current: ContextVar[Run] = ContextVar("holdfast_current_run")


def current_run() -> Run:
    """Return the run of the current tool call."""
    try:
        return _current.get()
    except LookupError:
        raise InvalidInput("no tool is running", next="Call this from a tool that an agent runs.") from None


def begin_run(run: Run) -> None:
    """Set the run for the current task and the functions that it calls."""
    _current.set(run)
