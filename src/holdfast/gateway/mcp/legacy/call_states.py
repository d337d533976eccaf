"""Call states: what happens to requests of clients with sessions, told by rows to the process that works on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.legacy.sessions import Session
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.postgres.sql import statements

MOST: Final = 1000  # cancellations of one session that are kept
KEPT: Final = timedelta(minutes=30)  # for which they are
SLACK: Final = timedelta(seconds=2)  # before a request's begin in which it may have been cancelled

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class CallState:
    """Whether the session lives, which requests are cancelled, and whether their stream was taken up elsewhere."""

    alive: bool
    cancelled: Sequence[str]
    taken_up: bool


class CallStates:
    """The states of requests of one tenant's sessions. Row-level security keeps those of other tenants away."""

    def __init__(self, gateway: Gateway) -> None:
        self._database = gateway.engine.database
        self._signals = Signals.of(gateway)

    async def cancel(self, session: Session, request: str) -> None:
        """Have whoever works on a request stop."""
        await self._database.run(sql("forget_cancellations"), session.key, KEPT)
        await self._database.run(sql("cancel_request"), session.key, request, MOST)
        await self._signals.say(session.key, "calls")

    async def look(
        self, session: Session, requests: Sequence[str], *, worked: timedelta, stream: str | None
    ) -> CallState:
        """What has happened to requests that were worked on for so long, and to the stream of their answer."""
        row = await self._database.one(sql("call_states"), session.key, list(requests), worked + SLACK, stream)
        assert row is not None
        return CallState(row["alive"], row["cancelled"], row["taken_up"])
