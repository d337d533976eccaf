"""Sessions of MCP clients of 2025-11-25 and before: rows, so that any process can serve any client.

Only the client knows the id of its session; the row has a digest of it. The id proves nothing: a session is found only
for the user and the agent that began it.
"""

import hashlib
import re
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Any, Final, Literal, cast

from holdfast.access.principals import Principal
from holdfast.core.background import PeriodicJob
from holdfast.core.text import restore, store
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.mcp.protocol import INVALID_PARAMS, INVALID_REQUEST, McpError
from holdfast.postgres.database import Database, Postgres, Row
from holdfast.postgres.each_tenant import for_each_tenant, in_batches
from holdfast.postgres.sql import statements
from holdfast.skills.uri_templates import MAX_URI

FRESH: Final = 1.0  # seconds for which a cached row is used
TOUCHED: Final = 60.0  # seconds between two extensions of a session in use
REMEMBERED: Final = 10_000  # cached sessions
MOST: Final = 1000  # sessions of one user
MOST_SUBSCRIPTIONS: Final = 100  # resources of one session
UNHELD: Final = timedelta(minutes=3)  # after which an HTTP+SSE session ends whose stream is gone
USUAL_LEVEL: Final = "info"  # of logs, until a client sets it
NAME: Final = "sweep of MCP sessions"
PAUSE: Final = 60.0  # seconds between two sweeps
TOGETHER: Final = 500  # sessions in one statement

Transport = Literal["http", "sse"]

_ID = re.compile(r"[A-Za-z0-9_-]{43}")

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class McpSession:
    """The session of a client; `key` identifies its rows."""

    key: str
    user: str
    agent: str | None
    transport: Transport
    version: str
    client: Mapping[str, Any]
    level: str = USUAL_LEVEL
    subscriptions: frozenset[str] = frozenset()
    listener: str = ""  # token of the connection that has its stream; later ones are greater

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client can be asked for, as it has declared."""
        return self.client.get("capabilities", {})


@dataclass(slots=True)
class CachedSession:
    """A session as this process last read it."""

    session: McpSession
    read_at: float
    touched_at: float


class McpSessions:
    """Begins, finds and ends sessions of one tenant. It caches rows for a second."""

    def __init__(self, gateway: Gateway) -> None:
        self._database = gateway.engine.database
        self._signals = Signals.of(gateway)
        self._http_lifetime = timedelta(minutes=gateway.engine.config.gateway.session_minutes)
        self._known: OrderedDict[str, CachedSession] = OrderedDict()

    @classmethod
    def of(cls, gateway: Gateway) -> "McpSessions":
        """Return the sessions of a gateway's tenant."""
        return gateway.cache.get(cls, lambda: cls(gateway))

    async def begin(
        self, caller: Principal, version: str, client: Mapping[str, Any], *, transport: Transport = "http"
    ) -> tuple[str, McpSession]:
        """Begin a session. Return its id, which nobody can guess, and the session."""
        id = secrets.token_urlsafe(32)
        session = McpSession(key_of(id), caller.user, caller.agent, transport, version, client)
        await self._database.value(
            sql("begin_session"),
            session.key,
            store(caller.user),
            None if caller.agent is None else store(caller.agent),
            transport,
            version,
            client,
            self._lifetime(transport),
            MOST,
        )
        self._remember(session, touched_at=monotonic())
        return id, session

    async def find(self, caller: Principal, id: str, *, transport: Transport = "http") -> McpSession:
        """Return the session of an id. Raise the same McpError if there is none and if it is another caller's."""
        session = await self._find(key_of(id)) if _ID.fullmatch(id) else None
        if session is None or (session.user, session.agent, session.transport) != (
            caller.user,
            caller.agent,
            transport,
        ):
            raise _unknown()
        return session

    async def current(self, session: McpSession) -> McpSession | None:
        """Return the current state of a session; None if it has ended."""
        return await self._find(session.key)

    async def introduce(self, session: McpSession, version: str, client: Mapping[str, Any]) -> None:
        """Store what the client of a session says about itself."""
        await self._change(session, "introduce_session", version, client)

    def settings_of(self, session: McpSession) -> "StoredSettings":
        """Return the settings of a session, for its client to change."""
        return StoredSettings(partial(self._change, session))

    async def listen(self, session: McpSession, token: str) -> None:
        """Take over the stream of a session; the connection that had it is notified, and closes."""
        await self._database.run(sql("listen"), session.key, token)
        self.forget(session)
        await self._signals.notify(session.key, "session")

    async def end(self, session: McpSession) -> None:
        """End a session in all processes, with all its requests."""
        await self._database.run(sql("end_session"), session.key)
        self.forget(session)
        await self._signals.notify(session.key, "session", "calls", "events")

    def forget(self, session: McpSession) -> None:
        """Remove a session from the cache, so that its row is read again."""
        self._known.pop(session.key, None)

    async def _change(self, session: McpSession, statement: str, *values: object) -> int:
        """Change a session's row. Return how many rows were changed; raise McpError if the session has ended."""
        changed = await self._database.run(sql(statement), session.key, *values)
        self.forget(session)
        if changed:
            await self._signals.notify(session.key, "session")
        elif await self.current(session) is None:
            raise _unknown()
        return changed

    async def _find(self, key: str) -> McpSession | None:
        now, known = monotonic(), self._known.get(key)
        if known is None or now - known.read_at > FRESH:
            row = await self._database.one(sql("session"), key)
            if row is None:
                self._known.pop(key, None)
                return None
            known = self._remember(_session_of(key, row), touched_at=0.0 if known is None else known.touched_at)
        if now - known.touched_at > TOUCHED:
            known.touched_at = now
            await self._database.run(sql("touch_session"), key, self._lifetime(known.session.transport))
        return known.session

    def _remember(self, session: McpSession, *, touched_at: float) -> CachedSession:
        known = self._known[session.key] = CachedSession(session, monotonic(), touched_at)
        self._known.move_to_end(session.key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return known

    def _lifetime(self, transport: Transport) -> timedelta:
        return UNHELD if transport == "sse" else self._http_lifetime


class StoredSettings:
    """The settings that a client makes in its session; `change` runs a statement on its row."""

    def __init__(self, change: Callable[..., Awaitable[int]]) -> None:
        self._change = change

    async def set_level(self, level: str) -> None:
        """Set the lowest level of the logs that the client receives."""
        await self._change("set_log_level", level)

    async def subscribe(self, uri: str) -> None:
        """Subscribe to changes of a resource."""
        if len(uri) > MAX_URI:
            raise McpError(INVALID_PARAMS, f"`uri` has at most {MAX_URI} characters")
        if not await self._change("subscribe", store(uri), MOST_SUBSCRIPTIONS):
            text = f"a session watches at most {MOST_SUBSCRIPTIONS} resources. Unsubscribe from one."
            raise McpError(INVALID_PARAMS, text)

    async def unsubscribe(self, uri: str) -> None:
        """Unsubscribe from changes of a resource."""
        await self._change("unsubscribe", store(uri))


def key_of(id: str) -> str:
    """Return the key of a session's rows."""
    return hashlib.sha256(id.encode()).hexdigest()


def _unknown() -> McpError:
    return McpError(
        INVALID_REQUEST,
        "there is no such session: it has ended, or there was none. Begin a new one by `initialize`.",
        status=HTTPStatus.NOT_FOUND,
    )


def _session_of(key: str, row: Row) -> McpSession:
    return McpSession(
        key,
        restore(row["user_name"]),
        None if row["agent"] is None else restore(row["agent"]),
        cast(Transport, row["transport"]),
        row["protocol_version"],
        row["client"],
        row["log_level"] or USUAL_LEVEL,
        frozenset(map(restore, row["subscriptions"])),
        row["listener"] or "",
    )


class SessionSweeper(PeriodicJob):
    """Deletes the expired sessions of every tenant, inside an `async with` block."""

    def __init__(self, postgres: Postgres) -> None:
        super().__init__(NAME, pause=PAUSE)
        self._postgres = postgres

    async def sweep(self) -> int:
        """Delete expired sessions. Return how many."""
        tenants = await self._postgres.system.all(sql("tenants_with_ended_sessions"))
        return await for_each_tenant(self._postgres, tenants, _end, name=NAME)

    async def step(self) -> None:
        """Sweep."""
        await self.sweep()


async def _end(database: Database) -> int:
    return await in_batches(lambda: database.run(sql("end_sessions"), TOGETHER), TOGETHER)
