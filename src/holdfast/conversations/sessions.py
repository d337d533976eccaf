"""Active sessions: which conversation a user is in with each agent, whatever device they come from."""

from dataclasses import dataclass
from datetime import datetime

from msgspec import UNSET, UnsetType

from holdfast.access.identities import Identities
from holdfast.conversations.conversations import APP
from holdfast.conversations.refusals import several, unknown_session
from holdfast.core.names import stored_name
from holdfast.core.session_names import qualified
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
        adopts: bool = True,
        tx: Transaction | None = None,
    ) -> ActiveSession:
        """Make it the session that `user` is in with `agent`, and return the one in force.

        A conversation of theirs with another agent is not found. That another user has the id is no obstacle. Whose
        active session a conversation of nobody's is may adopt it: without `adopts` it does not become that.
        With `instead_of` it yields to any other session that is active: of many who start at once with
        `instead_of=None` one wins, and all get that one.
        """
        agent_name, session = stored_name("agent", agent), stored_name("session", session_id)
        instead = None if instead_of is None or instead_of is UNSET else store(instead_of)
        user_id = await self._identities.id("user", user, tx=tx)
        other = stored_name("session", qualified(APP, user, session_id))
        row = await (await self._database.within(tx)).one(
            sql("set_active_session"), user_id, agent_name, session, other, adopts, instead_of is not UNSET, instead
        )
        if row is None:
            raise unknown_session(session_id)
        return _active_session(row, user, agent)

    async def end(self, session_id: str, *, user: str | None = None, tx: Transaction | None = None) -> None:
        """End a session: nobody is in it any more, and its memories expire. With `user` only if it is theirs.

        Without a user a name that several users have is a Conflict.
        """
        session = stored_name("session", session_id)
        user_id = None if user is None else await self._identities.known_as("user", user)
        outcome = await (await self._database.within(tx)).value(sql("end_active_session"), user_id, session)
        if outcome == "several":
            raise several(session_id)
        if outcome != "ended":
            raise unknown_session(session_id)


def _active_session(row: Row, user: str, agent: str) -> ActiveSession:
    return ActiveSession(restore(row["session_id"]), user, agent, row["last_active_at"], row["created_at"])
