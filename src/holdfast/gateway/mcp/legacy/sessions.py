"""Sessions of MCP clients of 2025-11-25 and before: rows, so that any process answers any of them.

The id of a session is known to its client alone: the row has a digest of it. It is no proof of anything: a session is
found for the user, and the agent, that it was begun for, and for nobody else.
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
from holdfast.core.text import restore, store
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.mcp.protocol import INVALID_PARAMS, INVALID_REQUEST, McpError
from holdfast.postgres.database import Row
from holdfast.postgres.sql import statements
from holdfast.skills.uri_templates import MAX_URI

FRESH: Final = 1.0  # seconds for which a row is not read again
TOUCHED: Final = 60.0  # seconds between two notes that a session is used
REMEMBERED: Final = 10_000  # sessions
MOST: Final = 1000  # sessions of one user
MOST_SUBSCRIPTIONS: Final = 100  # of one session
UNHELD: Final = timedelta(minutes=3)  # after which a session of HTTP+SSE ends whose stream nobody has
KEPT: Final = "mcp sessions"  # under which a gateway keeps them
USUAL_LEVEL: Final = "info"  # of logs, until a client says what it wants

Transport = Literal["http", "sse"]

_ID = re.compile(r"[A-Za-z0-9_-]{43}")

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    """What is known of a client that keeps a session; `key` is what its rows go by."""

    key: str
    user: str
    agent: str | None
    transport: Transport
    version: str
    client: Mapping[str, Any]
    level: str = USUAL_LEVEL
    subscriptions: frozenset[str] = frozenset()
    listener: str = ""  # who has its stream; of two the greater

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client can be asked for."""
        return self.client.get("capabilities", {})


@dataclass(slots=True)
class Known:
    """A session as this process last saw it."""

    session: Session
    read_at: float
    touched_at: float


class Sessions:
    """Begins, finds and ends sessions of one tenant; each row is read at most once a second."""

    def __init__(self, gateway: Gateway) -> None:
        self._database = gateway.engine.database
        self._signals = Signals.of(gateway)
        self._lasts = timedelta(minutes=gateway.engine.config.gateway.session_minutes)
        self._known: OrderedDict[str, Known] = OrderedDict()

    @classmethod
    def of(cls, gateway: Gateway) -> "Sessions":
        """The sessions of a gateway's tenant."""
        found = gateway.kept.get(KEPT)
        if found is None:
            found = gateway.kept[KEPT] = cls(gateway)
        return found

    async def begin(
        self, caller: Principal, version: str, client: Mapping[str, Any], *, transport: Transport = "http"
    ) -> tuple[str, Session]:
        """A new session and its id, which nobody can guess."""
        id = secrets.token_urlsafe(32)
        session = Session(key_of(id), caller.user, caller.agent, transport, version, client)
        await self._database.value(
            sql("begin_session"),
            session.key,
            store(caller.user),
            None if caller.agent is None else store(caller.agent),
            transport,
            version,
            client,
            self._lasting(transport),
            MOST,
        )
        self._remember(session, touched_at=monotonic())
        return id, session

    async def find(self, caller: Principal, id: str, *, transport: Transport = "http") -> Session:
        """The session of an id; where there is none, or it is somebody else's, the same McpError."""
        session = await self._find(key_of(id)) if _ID.fullmatch(id) else None
        if session is None or (session.user, session.agent, session.transport) != (
            caller.user,
            caller.agent,
            transport,
        ):
            raise _unknown()
        return session

    async def current(self, session: Session) -> Session | None:
        """A session as it is now; None where it has ended."""
        return await self._find(session.key)

    async def introduce(self, session: Session, version: str, client: Mapping[str, Any]) -> None:
        """Keep what the client of a session says of itself."""
        await self._change(session, "introduce_session", version, client)

    def wishes(self, session: Session) -> "Wishes":
        """Where a session keeps what its client wishes."""
        return Wishes(partial(self._change, session))

    async def listen(self, session: Session, token: str) -> None:
        """Have the stream of a session; whoever had it before learns that it is lost."""
        await self._database.run(sql("listen"), session.key, token)
        self.forget(session)
        await self._signals.say(session.key, "session")

    async def end(self, session: Session) -> None:
        """End a session everywhere, with all that runs for it."""
        await self._database.run(sql("end_session"), session.key)
        self.forget(session)
        await self._signals.say(session.key, "session", "calls", "events")

    def forget(self, session: Session) -> None:
        """Read its row when it is asked for next."""
        self._known.pop(session.key, None)

    async def _change(self, session: Session, statement: str, *values: object) -> int:
        """How many rows were changed; McpError where the session has ended."""
        changed = await self._database.run(sql(statement), session.key, *values)
        self.forget(session)
        if changed:
            await self._signals.say(session.key, "session")
        elif await self.current(session) is None:
            raise _unknown()
        return changed

    async def _find(self, key: str) -> Session | None:
        now, known = monotonic(), self._known.get(key)
        if known is None or now - known.read_at > FRESH:
            row = await self._database.one(sql("session"), key)
            if row is None:
                self._known.pop(key, None)
                return None
            known = self._remember(_session_of(key, row), touched_at=0.0 if known is None else known.touched_at)
        if now - known.touched_at > TOUCHED:
            known.touched_at = now
            await self._database.run(sql("touch_session"), key, self._lasting(known.session.transport))
        return known.session

    def _remember(self, session: Session, *, touched_at: float) -> Known:
        known = self._known[session.key] = Known(session, monotonic(), touched_at)
        self._known.move_to_end(session.key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return known

    def _lasting(self, transport: Transport) -> timedelta:
        return UNHELD if transport == "sse" else self._lasts


class Wishes:
    """What a session keeps of the wishes of its client; `change` runs a statement on its row."""

    def __init__(self, change: Callable[..., Awaitable[int]]) -> None:
        self._change = change

    async def set_level(self, level: str) -> None:
        """Logs below a level are not wanted."""
        await self._change("set_log_level", level)

    async def subscribe(self, uri: str) -> None:
        """Changes of a resource are wanted."""
        if len(uri) > MAX_URI:
            raise McpError(INVALID_PARAMS, f"`uri` has at most {MAX_URI} characters")
        if not await self._change("subscribe", store(uri), MOST_SUBSCRIPTIONS):
            text = f"a session watches at most {MOST_SUBSCRIPTIONS} resources. Unsubscribe from one."
            raise McpError(INVALID_PARAMS, text)

    async def unsubscribe(self, uri: str) -> None:
        """Changes of a resource are not wanted any more."""
        await self._change("unsubscribe", store(uri))


def key_of(id: str) -> str:
    """What the rows of a session go by."""
    return hashlib.sha256(id.encode()).hexdigest()


def _unknown() -> McpError:
    return McpError(
        INVALID_REQUEST,
        "there is no such session: it has ended, or there was none. Begin a new one by `initialize`.",
        status=HTTPStatus.NOT_FOUND,
    )


def _session_of(key: str, row: Row) -> Session:
    return Session(
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
