"""Runs of calls through the gateway: who calls, and until when."""

from dataclasses import dataclass
from time import monotonic

from holdfast.access.principals import Principal
from holdfast.authorization import Authorization
from holdfast.core.ids import uuid7
from holdfast.core.request_context import current_request
from holdfast.engine import Engine
from holdfast.gateway.views import CallerView
from holdfast.skills.client import Client
from holdfast.skills.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerRun(Run):
    """A run that knows its caller, and which tools the caller sees.

    `ends` is its deadline, by the monotonic clock of this process.
    """

    caller: Principal
    view: CallerView
    ends: float


def run_of(caller: Principal, client: Client, view: CallerView, *, seconds: float) -> CallerRun:
    """Create a run for a caller, with a deadline in `seconds` and a new idempotency key."""
    id, ends = str(uuid7()), monotonic() + seconds
    return CallerRun(
        caller.user,
        caller.agent,
        None,
        None,
        None,
        id,
        f"gateway:{id}",
        client,
        request_id=current_request().request_id,
        token=caller.token,
        caller=caller,
        view=view,
        ends=ends,
    )


def view_in(run: Run) -> CallerView:
    """Return which tools the caller of a run sees."""
    assert isinstance(run, CallerRun)  # only the gateway runs the functions that need it
    return run.view


def seconds_left(run: Run) -> float:
    """Return how many seconds a run has until its deadline."""
    assert isinstance(run, CallerRun)
    return run.ends - monotonic()


def caller_of(run: Run) -> Principal:
    """Return the caller of a run."""
    assert isinstance(run, CallerRun)
    return run.caller


def authorization_of(engine: Engine, run: Run) -> Authorization:
    """Return what the caller of a run may read and change."""
    return Authorization(engine, caller_of(run))
