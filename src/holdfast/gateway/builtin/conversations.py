"""Conversations as tools: the caller's own; a caller who acts for an agent has only those with that agent."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from holdfast.conversations import Conversation, Node
from holdfast.conversations.contexts import parse_context
from holdfast.conversations.payloads import role_of
from holdfast.core.errors import NotFound
from holdfast.engine import Engine
from holdfast.gateway.runs import authorization_of, caller_of
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

MOST_LISTED = 100
MOST_READ = 200


def conversation_tools(engine: Engine) -> list[Tool]:
    """Return the tools that list and read conversations."""

    async def list_conversations(run: Run, limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 20) -> dict[str, Any]:
        """List the user's conversations with agents, the newest first.

        Args:
            limit: how many, at most.
        """
        found = await engine.conversations.list(user=caller_of(run).user, agent=run.agent, limit=limit)
        return {
            "conversations": [
                {
                    "session_id": each.session_id,
                    "agent": each.agent,
                    "messages": each.last_seq,
                    "updated_at": each.updated_at,
                }
                for each in found
            ]
        }

    async def read_conversation(
        run: Run,
        session_id: Annotated[str, Meta(min_length=1)],
        last: Annotated[int, Meta(ge=1, le=MOST_READ)] = 40,
    ) -> dict[str, Any]:
        """Read what was said in one of the user's conversations, oldest first.

        Args:
            session_id: as list_conversations or ask_agent tell it.
            last: how many of the newest messages, at most.
        """
        conversation = await own_conversation(engine, run, session_id)
        return {
            "session_id": session_id,
            "agent": conversation.agent,
            "messages": messages_of(await engine.conversations.last(conversation.id, last)),
        }

    return [
        tool_of(list_conversations, idempotent=True, access="read"),
        tool_of(read_conversation, idempotent=True, access="read"),
    ]


async def own_conversation(engine: Engine, run: Run, session_id: str) -> Conversation:
    """Return the caller's conversation, or one without a user that the caller may adopt; otherwise raise NotFound."""
    conversation = await authorization_of(engine, run).own_session(session_id)
    if conversation is None:
        next = "list_conversations lists your conversations."
        raise NotFound(f"there is no conversation {session_id!r:.200}", next=next)
    return conversation


def messages_of(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """Return the texts of nodes with their authors, and which tools were called."""
    found: list[dict[str, Any]] = []
    for node in nodes:
        context = parse_context(node.context) if node.context else None
        if context is None or context.type not in ("text", "summary"):
            continue
        calls = [call["name"] for call in (node.payload or {}).get("tool_calls") or ()]
        message = {"role": role_of(context, node.payload), "author": context.value, "text": node.content}
        found.append({**message, "at": node.created_at, **({"called": calls} if calls else {})})
    return found
