"""Owners: whose a memory is, which is how long it lives and who finds it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args
from uuid import UUID

from holdfast.access.identities import Identities
from holdfast.core.errors import InvalidInput
from holdfast.core.ids import Kind
from holdfast.core.names import stored_name
from holdfast.postgres.database import Transaction

Scope = Literal["session", "user", "agent", "organization"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Owner:
    """A session, a user, an agent, or the organization: the whole tenant.

    `agent` is who brings a memory in, or, in a search, whose memories are meant alone; `user` is whose session it is.
    """

    scope: Scope
    name: str = ""
    agent: str | None = None
    user: str | None = None

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise InvalidInput(f"there is no scope {self.scope!r:.100}", next=f"Use one of {', '.join(SCOPES)}.")
        if self.scope != "organization":
            stored_name(self.scope, self.name)
        elif self.name:
            raise InvalidInput("an organization has no name here", why="it is the tenant", next="Leave the name out.")
        if self.agent is not None:
            stored_name("agent", self.agent)
        if self.user is not None:
            stored_name("user", self.user)


def session(session_id: str, *, agent: str | None = None, user: str | None = None) -> Owner:
    """A session's memories: they expire, at the latest when it ends."""
    return Owner("session", session_id, agent, user)


def user(name: str, *, agent: str | None = None) -> Owner:
    """A user's memories, which serve all agents."""
    return Owner("user", name, agent)


def agent(name: str) -> Owner:
    """An agent's own memories, whoever it talks to."""
    return Owner("agent", name, name)


def organization(*, agent: str | None = None) -> Owner:
    """The memories of the whole tenant."""
    return Owner("organization", "", agent)


@dataclass(frozen=True, slots=True)
class OwnerIds:
    """An owner as its rows name it."""

    scope: Scope
    id: UUID
    agent: UUID | None
    user: UUID | None


class Owners:
    """Gives owners their ids, and ids their owners back."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    async def sought(self, owner: Owner) -> OwnerIds:
        """The ids of an owner whose memories are looked for: nothing is stored."""
        check_owner(owner)
        only = owner.agent if owner.scope in ("user", "session") else None
        agent_id = None if only is None else await self._identities.known_as("agent", only)
        if owner.scope == "organization":
            return OwnerIds(owner.scope, await self._identities.tenant(), agent_id, None)
        return OwnerIds(owner.scope, await self._identities.known_as(owner.scope, owner.name), agent_id, None)

    async def stored(self, owner: Owner, *, tx: Transaction | None = None) -> OwnerIds:
        """The ids of an owner who gets a memory."""
        check_owner(owner)

        async def known(kind: Kind, name: str | None) -> UUID | None:
            return None if name is None else await self._identities.id(kind, name, tx=tx)

        whose = (
            await self._identities.tenant()
            if owner.scope == "organization"
            else await self._identities.id(owner.scope, owner.name, tx=tx)
        )
        return OwnerIds(owner.scope, whose, await known("agent", owner.agent), await known("user", owner.user))

    async def owner(self, ids: OwnerIds, *, tx: Transaction | None = None) -> Owner:
        """The owner that these ids stand for."""
        return (await self.named([ids], tx=tx))[0]

    async def named(self, several: Sequence[OwnerIds], *, tx: Transaction | None = None) -> list[Owner]:
        """The owner of each; names are looked up together, however many there are."""
        wanted: defaultdict[Kind, set[UUID]] = defaultdict(set)
        for ids in several:
            for kind, id in _named_by_id(ids):
                wanted[kind].add(id)
        names: dict[tuple[Kind, UUID | None], str] = {}
        for kind, sought in wanted.items():
            found = await self._identities.names(kind, sought, tx=tx)
            names |= {(kind, id): name for id, name in found.items()}
        return [
            Owner(
                ids.scope,
                "" if ids.scope == "organization" else names[ids.scope, ids.id],
                names.get(("agent", ids.agent)),
                names.get(("user", ids.user)),
            )
            for ids in several
        ]


def _named_by_id(ids: OwnerIds) -> list[tuple[Kind, UUID]]:
    found: list[tuple[Kind, UUID | None]] = [("agent", ids.agent), ("user", ids.user)]
    if ids.scope != "organization":
        found.append((ids.scope, ids.id))
    return [(kind, id) for kind, id in found if id is not None]


def check_owner(owner: object) -> None:
    """Refuse what is no owner."""
    if not isinstance(owner, Owner):
        raise InvalidInput(f"{owner!r:.100} is no owner", next='Give one, such as user("ann").')
