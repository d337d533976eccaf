"""Who may read and change memories: as with conversations, what is another's is answered as what does not exist.

That is so of memories and of sessions. To name another user is forbidden, whether there is one or not.

A user's memories, and those of their sessions, are the user's and of whoever administers the tenant. An agent's and the
organization's are read by every caller, and changed by whoever administers the tenant: what stands there is told to
everybody.
"""

from typing import Annotated
from uuid import UUID

import msgspec

from holdfast.core.errors import Forbidden, InvalidInput, NotFound
from holdfast.memory import Memory, Owner, Scope, Trust
from holdfast.server.fields import stated
from holdfast.server.operations import Call
from holdfast.server.visibility import is_seen, seen_session, sees_all

SHARED: frozenset[Scope] = frozenset({"agent", "organization"})

Name = Annotated[str, msgspec.Meta(min_length=1)]


class OwnerName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose memories are meant: a user's (the caller's without a name), a session's, an agent's, the organization's.

    `agent` is who brings a memory in, or, in a search, whose are meant alone.
    """

    scope: Scope = "user"
    name: Name | None = None
    agent: Name | None = None


# A session and an agent have a name, a user may have one, and the organization has none.
NamedOwner = Annotated[
    OwnerName,
    stated(
        anyOf=[
            {"properties": {"scope": {"const": "user"}}},
            {
                "properties": {"scope": {"enum": ["session", "agent"]}, "name": {"type": "string"}},
                "required": ["scope", "name"],
            },
            {"properties": {"scope": {"const": "organization"}, "name": {"type": "null"}}, "required": ["scope"]},
        ]
    ),
]


async def readable(call: Call, named: OwnerName) -> Owner:
    """The owner, if the caller may read their memories."""
    match named.scope:
        case "user":
            owner = Owner("user", named.name or call.principal.user, named.agent)
            if not await _is_caller(call, owner.name):
                call.principal.require("admin")
            return owner
        case "session":
            return await _session(call, _needed(named), named.agent)
        case "agent":
            return Owner("agent", _needed(named), named.name)
        case "organization":
            return Owner("organization", named.name or "", named.agent)


async def writable(call: Call, named: OwnerName) -> Owner:
    """The owner, if the caller may change their memories."""
    owner = await readable(call, named)
    _check_shared(call, owner)
    return owner


async def seen_memory(call: Call, id: UUID) -> Memory:
    """The memory, if the caller may read it."""
    try:
        memory = await call.engine.memory.get(id)
    except NotFound:
        if sees_all(call.principal):
            raise
    else:
        if await _is_visible(call, memory.owner):
            return memory
    # When and why one was deleted is for those who could have read it, and of that nothing is known any more.
    raise NotFound(f"there is no memory {id}", next="Search for it.")


async def own_memory(call: Call, id: UUID) -> Memory:
    """The memory, if the caller may change it."""
    memory = await seen_memory(call, id)
    _check_shared(call, memory.owner)
    return memory


def check_trust(call: Call, trust: Trust | None) -> None:
    """Refuse to be trusted as the system is, but to those who administer the tenant."""
    if trust == "system" and not sees_all(call.principal):
        raise Forbidden(
            f"{call.principal.user!r} may not be trusted as the system",
            why="that needs the scope 'admin'",
            next="Use 'user', 'agent', 'tool' or 'untrusted'.",
        )


async def _is_visible(call: Call, owner: Owner) -> bool:
    if sees_all(call.principal) or owner.scope in SHARED:
        return True
    if owner.scope == "user":
        return await _is_caller(call, owner.name)
    return owner.conversation is not None and await is_seen(
        call, await call.engine.conversations.get(owner.conversation)
    )


async def _session(call: Call, session_id: str, agent: str | None) -> Owner:
    try:
        talk = await seen_session(call, session_id)
    except NotFound:
        if not sees_all(call.principal):
            raise
        return Owner("session", session_id, agent)  # which begins with what an admin has it remember
    return Owner("session", session_id, agent, talk.user, talk.id)


async def _is_caller(call: Call, user: str) -> bool:
    identities = call.engine.identities
    return await identities.known_as("user", user) == await identities.known_as("user", call.principal.user)


def _check_shared(call: Call, owner: Owner) -> None:
    if owner.scope in SHARED and not sees_all(call.principal):
        raise Forbidden(
            f"{call.principal.user!r} may not change memories of the {owner.scope}",
            why="everybody is told of them: that needs the scope 'admin'",
            next="Remember it for the user or the session.",
        )


def _needed(named: OwnerName) -> str:
    if named.name is None:
        raise InvalidInput(f"whose memories of the scope {named.scope!r} are meant is not said", next="Give a name.")
    return named.name
