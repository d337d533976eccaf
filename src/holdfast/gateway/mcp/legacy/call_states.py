"""Call states: rows that tell a process what happened to the requests of legacy sessions that it works on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.legacy.sessions import McpSession
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.postgres.sql import statements

MOST: Final = 1000  # stored cancellations of one session
KEPT: Final = timedelta(minutes=30)  # for which a cancellation is stored
SLACK: Final = timedelta(seconds=2)  # a cancellation may be this much older than the work on its request

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class CallState:
    """Whether the session is alive, which requests are cancelled, and whether the client has resumed their stream."""

    alive: bool
    cancelled: Sequence[str]
    resumed: bool


class CallStates:
    """The states of requests of one tenant's sessions. Row-level security hides those of other tenants."""

    def __init__(self, gateway: Gateway) -> None:
        self._database = gateway.engine.database
        self._signals = Signals.of(gateway)

    async def cancel(self, session: McpSession, request: str) -> None:
        """Cancel a request in the process that works on it. If the session has too many, forget the oldest ones."""
        await self._database.run(sql("forget_cancellations"), session.key, KEPT, MOST - 1)
        await self._database.run(sql("cancel_request"), session.key, request)
        await self._signals.notify(session.key, "calls")

    async def read(
        self, session: McpSession, requests: Sequence[str], *, worked: timedelta, stream: str | None
    ) -> CallState:
        """Read what has happened to requests, and to the stream of their answer; `worked` is how long they have run."""
        row = await self._database.one(sql("call_states"), session.key, list(requests), worked + SLACK, stream)
        assert row is not None
        return CallState(row["alive"], row["cancelled"], row["taken_up"])
