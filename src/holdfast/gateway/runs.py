"""Runs through the gateway: for whom something is called, and who that is."""

from dataclasses import dataclass
from time import monotonic

from holdfast.access.principals import Principal
from holdfast.authorization import Authorization
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.gateway.views import View
from holdfast.skills.client import Client
from holdfast.skills.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerRun(Run):
    """A run that knows who calls, and which tools they see.

    `ends` is when it has to be done, by the process's clock.
    """

    caller: Principal
    view: View
    ends: float


def run_of(caller: Principal, client: Client, view: View, *, seconds: float) -> CallerRun:
    """A run for a caller, of so many seconds at most; each has a key of its own."""
    id, ends = str(uuid7()), monotonic() + seconds
    return CallerRun(
        caller.user, caller.agent, None, None, None, id, f"gateway:{id}", client, caller=caller, view=view, ends=ends
    )


def view_in(run: Run) -> View:
    """Which tools the caller of a run sees."""
    assert isinstance(run, CallerRun)  # what asks for it is run by the gateway alone
    return run.view


def seconds_left(run: Run) -> float:
    """How long a run may still take."""
    assert isinstance(run, CallerRun)
    return run.ends - monotonic()


def caller_of(run: Run) -> Principal:
    """Who calls."""
    assert isinstance(run, CallerRun)
    return run.caller


def authorization_of(engine: Engine, run: Run) -> Authorization:
    """What the caller of a run may read and change."""
    return Authorization(engine, caller_of(run))
