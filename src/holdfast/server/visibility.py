"""Who may see a conversation: its user, and whoever administers the tenant.

Users of a tenant are kept apart as tenants are: what is another's is answered exactly as what does not exist.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from holdfast.access.principals import Principal
from holdfast.conversations.contexts import Context, by_user, parse_context
from holdfast.conversations.conversation import Conversation
from holdfast.conversations.nodes import Node
from holdfast.conversations.payloads import role_of
from holdfast.conversations.refusals import unknown, unknown_node, unknown_session
from holdfast.core.errors import Forbidden
from holdfast.server.operations import Call


def sees_all(caller: Principal) -> bool:
    """Whether everything in the tenant is shown to the caller."""
    return "admin" in caller.scopes


def whose(caller: Principal, user: str | None) -> str | None:
    """Whose conversations a caller means who named this user, or nobody; None: everyone's."""
    if sees_all(caller):
        return user
    if user is not None and user != caller.user:
        caller.require("admin")
    return caller.user


async def seen(call: Call, id: UUID) -> Conversation:
    """The conversation, if the caller may see it."""
    conversation = await call.engine.conversations.get(id)
    if not await is_seen(call, conversation):
        raise unknown(id)
    return conversation


async def seen_session(call: Call, session_id: str) -> Conversation:
    """The conversation that the caller means by a session id: their own, or for an admin anybody's.

    One that is nobody's is seen by those who may adopt it.
    """
    who = call.principal
    find = call.engine.conversations.find
    found = await find(session_id=session_id, user=who.user, adopts=who.adopts)
    if found is None and sees_all(who):
        found = await find(session_id=session_id)
    if found is None:
        raise unknown_session(session_id)
    return found


async def seen_node(call: Call, id: UUID) -> Node:
    """The node, if the caller may see its conversation."""
    node = await call.engine.conversations.read(id)
    if not sees_all(call.principal) and not await is_seen(call, await call.engine.conversations.get(node.root)):
        raise unknown_node(id)
    return node


async def changeable_node(call: Call, id: UUID) -> Node:
    """The node, if the caller may change it: what the system says, a user may not reword."""
    node = await seen_node(call, id)
    if node.context:
        context = parse_context(node.context)
        check_role(call.principal, "system" if context.name == "system" else role_of(context, node.payload))
    return node


async def is_seen(call: Call, conversation: Conversation) -> bool:
    """Whether the caller may see a conversation."""
    if sees_all(call.principal):
        return True
    if conversation.user is None:
        return False
    # A user may go by more than one name: the one that is mapped to an id, and the id itself.
    identities = call.engine.identities
    return await identities.known_as("user", conversation.user) == await identities.known_as(
        "user", call.principal.user
    )


def spoken(caller: Principal, talk: Conversation, context: str | None, payload: Mapping[str, Any] | None) -> Context:
    """The context of what a caller writes: in a conversation as themselves or as agents, in a document as they like."""
    parsed = by_user(caller.user) if context is None else parse_context(context)
    if talk.kind == "conversation" and parsed.name != "agent" and parsed.value != caller.user:
        _require_admin(caller, str(parsed))
    check_role(caller, role_of(parsed, payload))
    return parsed


def check_role(caller: Principal, role: str | None) -> None:
    """Refuse to speak as the system: a model obeys it."""
    if role == "system":
        _require_admin(caller, role)


def _require_admin(caller: Principal, speaker: str) -> None:
    if not sees_all(caller):
        raise Forbidden(
            f"{caller.user!r} may not write as {speaker[:100]!r}",
            why="to speak as another user, or as the system, needs the scope 'admin'",
            next=f"Write as {str(by_user(caller.user))!r}, or as an agent.",
        )
