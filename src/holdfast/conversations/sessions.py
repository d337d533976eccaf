"""Active sessions: the session that a user continues with each agent, on any device."""

from dataclasses import dataclass
from datetime import datetime

from msgspec import UNSET, UnsetType

from holdfast.access.identities import Identities
from holdfast.conversations.conversations import APP
from holdfast.conversations.errors import ambiguous_session, unknown_session
from holdfast.core.names import qualified_name, stored_name
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class ActiveSession:
    """The active session of a user with an agent."""

    session_id: str
    user: str
    agent: str
    last_active_at: datetime
    created_at: datetime


class Sessions:
    """Reads, sets and ends active sessions."""

    def __init__(self, database: Database, identities: Identities) -> None:
        self._database = database
        self._identities = identities

    async def active(self, *, user: str, agent: str) -> ActiveSession | None:
        """Return the active session of `user` with `agent`, if any."""
        user_id = await self._identities.find_id("user", user)
        row = await self._database.one(sql("active_session"), user_id, stored_name("agent", agent))
        return None if row is None else _active_session(row, user, agent)

    async def activate(
        self,
        *,
        user: str,
        agent: str,
        session_id: str,
        instead_of: str | UnsetType | None = UNSET,
        adopts: bool = True,
        tx: Transaction | None = None,
    ) -> ActiveSession:
        """Make a session the active one of `user` with `agent`, and return the one that is active now.

        A session of the user with another agent raises NotFound. Another user can have the same session id. A user may
        adopt a conversation without a user that is their active session. So without `adopts`, such a conversation does
        not become the active session. With `instead_of`, the session replaces only this one: if many callers start at
        once with `instead_of=None`, one wins, and all get its session.
        """
        agent_name, session = stored_name("agent", agent), stored_name("session", session_id)
        instead = None if instead_of is None or instead_of is UNSET else store(instead_of)
        user_id = await self._identities.id("user", user, tx=tx)
        other = stored_name("session", qualified_name(APP, user, session_id))
        row = await (await self._database.within(tx)).one(
            sql("set_active_session"), user_id, agent_name, session, other, adopts, instead_of is not UNSET, instead
        )
        if row is None:
            raise unknown_session(session_id)
        return _active_session(row, user, agent)

    async def end(self, session_id: str, *, user: str | None = None, tx: Transaction | None = None) -> None:
        """End a session: it is no longer active, and its memories expire. With `user`, only if it is theirs.

        Without `user`, raise Conflict if several users have the id.
        """
        session = stored_name("session", session_id)
        user_id = None if user is None else await self._identities.find_id("user", user)
        outcome = await (await self._database.within(tx)).value(sql("end_active_session"), user_id, session)
        if outcome == "several":
            raise ambiguous_session(session_id)
        if outcome != "ended":
            raise unknown_session(session_id)


def _active_session(row: Row, user: str, agent: str) -> ActiveSession:
    return ActiveSession(restore(row["session_id"]), user, agent, row["last_active_at"], row["created_at"])
