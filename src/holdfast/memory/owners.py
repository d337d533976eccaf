"""Owners of memories. The owner determines who finds a memory and how long it is kept."""

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from holdfast.access.identities import Identities
from holdfast.core.errors import Conflict, InvalidInput, NotFound
from holdfast.core.ids import Kind, uuid7
from holdfast.core.names import qualified_name, stored_name
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Transaction
from holdfast.postgres.sql import statements

Scope = Literal["session", "user", "agent", "organization"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
APP = "default"  # the app of a session that is created by a memory
NOBODY = UUID(int=0)  # an owner without memories
REMEMBERED = 10_000  # session names to cache

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Owner:
    """A session, a user, an agent, or the organization: the whole tenant.

    `agent` is the agent that stores a memory; a search of a session or a user finds only the memories of this agent.
    `user` is the user of a session. `conversation` is the one of the session, if known: several users can have a
    session of the same name.
    """

    scope: Scope
    name: str = ""
    agent: str | None = None
    user: str | None = None
    conversation: UUID | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise InvalidInput(f"the scope {self.scope!r:.100} is unknown", next=f"Use one of {', '.join(SCOPES)}.")
        if self.scope != "organization":
            stored_name(self.scope, self.name)
        elif self.name:
            raise InvalidInput("an organization has no name", why="it is the tenant", next="Omit the name.")
        if self.agent is not None:
            stored_name("agent", self.agent)
        if self.user is not None:
            stored_name("user", self.user)


def session(
    session_id: str, *, agent: str | None = None, user: str | None = None, conversation: UUID | None = None
) -> Owner:
    """Return a session as owner. Its memories expire when it ends at the latest, and are deleted with its conversation.

    With `user`, it is this user's session of that name, or one without a user. Without `user`, a name that several
    users have raises Conflict.
    """
    return Owner("session", session_id, agent, user, conversation)


def user(name: str, *, agent: str | None = None) -> Owner:
    """Return a user as owner. Its memories are shared by all agents."""
    return Owner("user", name, agent)


def agent(name: str) -> Owner:
    """Return an agent as owner. Its memories are shared by all its conversations."""
    return Owner("agent", name, name)


def organization(*, agent: str | None = None) -> Owner:
    """Return the organization, the whole tenant, as owner."""
    return Owner("organization", "", agent)


ExactOwner = tuple[Owner, UUID | None]


def exact_owner(owner: Owner) -> ExactOwner:
    """Return an owner with its conversation, which `==` ignores: two users can have sessions of the same name."""
    return owner, owner.conversation


@dataclass(frozen=True, slots=True)
class OwnerIds:
    """The ids of an owner, as in rows of `memory`."""

    scope: Scope
    id: UUID
    agent: UUID | None
    user: UUID | None


class SessionName(NamedTuple):
    """The name of a session, the id it is stored under, and its user if other users can have the same name."""

    name: str
    stored: str
    user: str | None


class Owners:
    """Converts owners to ids and back. The id of a session is the id of its conversation."""

    def __init__(self, database: Database, identities: Identities) -> None:
        self._database = database
        self._identities = identities
        self._sessions: OrderedDict[UUID, SessionName] = OrderedDict()  # by conversation, whose ids are never reused

    async def find_ids(self, owner: Owner) -> OwnerIds:
        """Return the ids of an owner for reading. Nothing is stored."""
        check_owner(owner)
        agent_name = owner.agent if owner.scope in ("user", "session") else None
        agent_id = None if agent_name is None else await self._identities.find_id("agent", agent_name)
        if owner.scope == "organization":
            return OwnerIds(owner.scope, await self._identities.tenant(), agent_id, None)
        if owner.scope == "session":
            return OwnerIds(owner.scope, await self._conversation(owner, None) or NOBODY, agent_id, None)
        return OwnerIds(owner.scope, await self._identities.find_id(owner.scope, owner.name), agent_id, None)

    async def store_ids(self, owner: Owner, *, tx: Transaction | None = None) -> OwnerIds:
        """Return the ids of an owner for writing. Stores its names, and creates the conversation of a new session."""
        check_owner(owner)

        async def id_of(kind: Kind, name: str | None) -> UUID | None:
            return None if name is None else await self._identities.id(kind, name, tx=tx)

        match owner.scope:
            case "organization":
                owner_id = await self._identities.tenant()
            case "session":
                owner_id = await self._session(owner, tx)
            case _:
                owner_id = await self._identities.id(owner.scope, owner.name, tx=tx)
        return OwnerIds(owner.scope, owner_id, await id_of("agent", owner.agent), await id_of("user", owner.user))

    async def owner(self, ids: OwnerIds, *, tx: Transaction | None = None) -> Owner:
        """Return the owner with these ids."""
        return (await self.from_ids([ids], tx=tx))[0]

    async def from_ids(self, all_ids: Sequence[OwnerIds], *, tx: Transaction | None = None) -> list[Owner]:
        """Return the owners with these ids. One statement per kind looks up the names."""
        wanted: defaultdict[Kind, set[UUID]] = defaultdict(set)
        for ids in all_ids:
            for kind, id in _ids_by_kind(ids):
                wanted[kind].add(id)
        sessions = await self._session_names(wanted.pop("session", set()), tx)
        names: dict[tuple[Kind, UUID | None], str] = {}
        for kind, kind_ids in wanted.items():
            found = await self._identities.names(kind, kind_ids, tx=tx)
            names |= {(kind, id): name for id, name in found.items()}
        owners: list[Owner] = []
        for ids in all_ids:
            agent, user = names.get(("agent", ids.agent)), names.get(("user", ids.user))
            if ids.scope == "session":
                session = sessions.get(ids.id, SessionName(str(ids.id), str(ids.id), None))
                owners.append(Owner(ids.scope, session.name, agent, user or session.user, ids.id))
            else:
                name = "" if ids.scope == "organization" else names[ids.scope, ids.id]
                owners.append(Owner(ids.scope, name, agent, user))
        return owners

    async def _conversation(self, owner: Owner, tx: Transaction | None) -> UUID | None:
        """Find the conversation of a session: the user's own or one without a user; without `user`, the only one."""
        if owner.conversation is not None:
            return owner.conversation
        run = await self._database.within(tx)
        name = store(owner.name)
        if owner.user is not None:
            user_id = await self._identities.find_id("user", owner.user)
            return await run.value(sql("session_of_user"), name, user_id)
        rows = await run.all(sql("sessions_by_name"), name)
        if len(rows) > 1:
            raise Conflict(
                f"several users have a session {owner.name[:100]!r}",
                expected=1,
                current=2,
                why="session ids are unique per user, and no user was given",
                next=f"Pass the user: session({owner.name[:100]!r}, user=…).",
            )
        return rows[0]["id"] if rows else None

    async def _session(self, owner: Owner, tx: Transaction | None) -> UUID:
        """Find or create the conversation of a session, and store the uuid of its name, which plain SQL uses."""
        id = await self._conversation(owner, tx)
        if id is None:
            await self._begin(owner, tx)
            id = await self._conversation(owner, tx)
        known = {} if id is None else await self._session_names([id], tx)
        if id is None or id not in known:
            raise NotFound(f"the session {owner.name[:100]!r} was deleted", next="Start a new session.")
        await self._identities.id("session", known[id].stored, tx=tx)
        return id

    async def _begin(self, owner: Owner, tx: Transaction | None) -> None:
        user_id, other, user = None, None, None
        if owner.user is not None:
            user_id, user = await self._identities.id("user", owner.user, tx=tx), stored_name("user", owner.user)
            other = stored_name("session", qualified_name(APP, owner.user, owner.name))
        run = await self._database.within(tx)
        await run.run(sql("begin_session"), uuid7(), stored_name("session", owner.name), other, APP, user_id, user)

    async def _session_names(self, ids: Collection[UUID], tx: Transaction | None) -> "dict[UUID, SessionName]":
        missing = [id for id in ids if id not in self._sessions]
        if missing:
            rows = await (await self._database.within(tx)).all(sql("session_names"), missing)
            for row in rows:
                user = row["user_name"]
                name, stored = restore(row["name"]), restore(row["stored"])
                self._sessions[row["id"]] = SessionName(name, stored, user and restore(user))
        found = {id: self._sessions[id] for id in ids if id in self._sessions}
        while len(self._sessions) > REMEMBERED:
            self._sessions.popitem(last=False)
        return found


def _ids_by_kind(ids: OwnerIds) -> list[tuple[Kind, UUID]]:
    found: list[tuple[Kind, UUID | None]] = [("agent", ids.agent), ("user", ids.user)]
    if ids.scope != "organization":
        found.append((ids.scope, ids.id))
    return [(kind, id) for kind, id in found if id is not None]


def check_owner(owner: object) -> None:
    """Raise InvalidInput for a value that is not an `Owner`."""
    if not isinstance(owner, Owner):
        raise InvalidInput(f"{owner!r:.100} is not an owner", next='Pass an owner, such as user("ann").')
