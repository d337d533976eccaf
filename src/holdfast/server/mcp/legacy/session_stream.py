"""The stream of a session: notifies a client which lists and resources have changed."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from holdfast.access.principals import Principal
from holdfast.core.ids import uuid7
from holdfast.core.text import render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.changes import LISTS, ListChange, ListChanges, WantedChanges
from holdfast.gateway.mcp.legacy.sessions import McpSession, McpSessions
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.server.mcp.event_stream import McpEventStream
from holdfast.server.streams import HEARTBEAT

LISTEN: Final = "listen"  # prefix of the event ids on this stream, which belongs to no request


class SessionStream:
    """One client on the stream of its session. A session has one such stream; a new one replaces the old one."""

    def __init__(self, client: McpEventStream, gateway: Gateway, session: McpSession, caller: Principal) -> None:
        self._client = client
        self._gateway = gateway
        self._session = session
        self._caller = caller
        self._sessions = McpSessions.of(gateway)
        self._signals = Signals.of(gateway)
        self._token = uuid7().hex  # ordered by time: the newest stream of the session has the greatest token
        self._number = 0

    @property
    def position(self) -> str:
        """The id of the last event."""
        return f"{LISTEN}.{self._token}.{self._number}"

    async def run(
        self,
        first: bytes,
        encode: Callable[[bytes, str], bytes],
        more: Callable[[], Awaitable[Sequence[bytes]]] | None = None,
        *,
        returned: bool = False,
    ) -> None:
        """Send changes, and the messages that `more` returns, until the client, the session or the server ends.

        `returned`: the client has reconnected. What it missed is unknown, so everything that it follows is reported as
        changed.
        """
        changes, wanted = ListChanges.of(self._gateway), _wanted_changes(self._session)
        async with (
            self._signals.subscribe(self._session.key, "session", self._on_signal),
            self._signals.subscribe(self._session.key, "events", self._client.woken.set),
            changes.watch(self._caller, wanted, wake=self._client.woken) as watch,
        ):
            await self._sessions.listen(self._session, self._token)
            await self._client.begin(first)
            for change in _all_changes(watch.wanted) if returned else ():
                await self._send_change(change, encode)
            while True:
                current = await self._sessions.current(self._session)
                if current is None or current.listener > self._token:
                    return
                watch.wanted = _wanted_changes(current)
                for change in watch.take():
                    await self._send_change(change, encode)
                taken = () if more is None else await more()
                for message in taken:
                    await self._client.send(encode(message, self.position))
                patience = HEARTBEAT if more is None else HEARTBEAT / 3
                if not await self._client.wait(0 if taken else patience):
                    return

    async def _send_change(self, change: ListChange, encode: Callable[[bytes, str], bytes]) -> None:
        self._number += 1
        message = {"jsonrpc": "2.0", "method": change.method, "params": change.params}
        await self._client.send(encode(render(message), self.position))

    def _on_signal(self) -> None:
        self._sessions.forget(self._session)
        self._client.woken.set()


def _wanted_changes(session: McpSession) -> WantedChanges:
    return WantedChanges(frozenset(LISTS), session.subscriptions)


def _all_changes(wanted: WantedChanges) -> list[ListChange]:
    return [ListChange.of_list(kind) for kind in LISTS if kind in wanted.lists] + [
        ListChange.of_resource(uri) for uri in sorted(wanted.uris)
    ]
