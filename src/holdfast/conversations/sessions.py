"""Active sessions: which conversation a user is in with each agent, whatever device they come from."""

from dataclasses import dataclass
from datetime import datetime

from msgspec import UNSET, UnsetType

from holdfast.access.identities import Identities
from holdfast.core.errors import NotFound
from holdfast.core.names import stored_name
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class ActiveSession:
    """The session that a user is in with an agent."""

    session_id: str
    user: str
    agent: str
    last_active_at: datetime
    created_at: datetime


class Sessions:
    """Knows, changes and ends the sessions that users are in."""

    def __init__(self, database: Database, identities: Identities) -> None:
        self._database = database
        self._identities = identities

    async def active(self, *, user: str, agent: str) -> ActiveSession | None:
        """The session that `user` is in with `agent`, if any."""
        user_id = await self._identities.known_as("user", user)
        row = await self._database.one(sql("active_session"), user_id, stored_name("agent", agent))
        return None if row is None else _active_session(row, user, agent)

    async def activate(
        self,
        *,
        user: str,
        agent: str,
        session_id: str,
        instead_of: str | UnsetType | None = UNSET,
        tx: Transaction | None = None,
    ) -> ActiveSession:
        """Make it the session that `user` is in with `agent`, and return the one in force.

        A conversation that is another user's, or with another agent, is not found.
        With `instead_of` it yields to any other session that is active: of many who start at once with
        `instead_of=None` one wins, and all get that one.
        """
        agent_name, session = stored_name("agent", agent), stored_name("session", session_id)
        only_instead = None if instead_of is None or instead_of is UNSET else store(instead_of)
        user_id = await self._identities.id("user", user, tx=tx)
        row = await (await self._database.within(tx)).one(
            sql("set_active_session"), user_id, agent_name, session, instead_of is not UNSET, only_instead
        )
        if row is None:
            raise _not_found(session_id)
        return _active_session(row, user, agent)

    async def end(self, session_id: str, *, user: str | None = None, tx: Transaction | None = None) -> None:
        """End a session: nobody is in it any more, and its memories expire. With `user` only if it is theirs."""
        session = stored_name("session", session_id)
        user_id = None if user is None else await self._identities.known_as("user", user)
        owner = await self._identities.known_as("session", session_id)
        if not await (await self._database.within(tx)).value(sql("end_active_session"), user_id, session, owner):
            raise _not_found(session_id)


def _not_found(session_id: str) -> NotFound:
    return NotFound(f"there is no session {session_id[:100]!r}", next="Start a new one.")


def _active_session(row: Row, user: str, agent: str) -> ActiveSession:
    return ActiveSession(restore(row["active_session_id"]), user, agent, row["last_active_at"], row["created_at"])
