"""Conversations: those of the caller's user; with the scope `admin`, all of the tenant."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec.structs import asdict
from starlette.responses import Response

from holdfast.authorization import Name
from holdfast.conversations.contexts import ASSISTANT
from holdfast.conversations.conversation import Conversation, NodeHit
from holdfast.conversations.conversations import APP
from holdfast.conversations.messages import ModelMessage, as_messages
from holdfast.conversations.nodes import Node
from holdfast.core.errors import AlreadyExists, Conflict, NotFound, TooLarge
from holdfast.server.attachments import json_lines
from holdfast.server.fields import Cursor, Number, about, documented
from holdfast.server.operations import JSON_LINES, ApiCall, ApiOperations
from holdfast.server.pages import page_of, page_of_items
from holdfast.server.routes.state import change

operations = ApiOperations("conversations")

MAX_PAGE = 1000

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE, description="Maximum number of results.")]


class NewConversation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation to create, or a document, which has no session.

    Without `user`, it belongs to the caller. Only an admin can name another user, or null for no user.
    """

    app: Name = APP
    agent: Name | None = None
    session_id: Name | None = None
    user: Name | msgspec.UnsetType | None = msgspec.UNSET
    state: dict[str, Any] = {}
    document: bool = False


SESSION_RULE = documented(
    anyOf=[{"properties": {"document": {"const": False}}}, {"properties": {"session_id": {"type": "null"}}}]
)


class ConversationFork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of the last node to copy, by default the newest. Without `session_id`, the fork gets a new one."""

    at: Number | None = None
    session_id: Name | None = None


class ConversationPage(msgspec.Struct, frozen=True):
    """Conversations, newest first. Pass `cursor` to get the next page; it is null on the last page.

    `openings`, if requested: the start of the first user message, by conversation.
    """

    conversations: list[Conversation]
    cursor: str | None
    openings: dict[str, str] = {}


class FoundPage(msgspec.Struct, frozen=True):
    """Matching nodes. Pass `cursor` to get the next page; it is null on the last page."""

    found: list[NodeHit]
    cursor: str | None


class Messages(msgspec.Struct, frozen=True):
    """Messages for a model, oldest first."""

    messages: list[ModelMessage]


@operations.declare("POST", "/api/conversations", needs="write", status=201, errors=[AlreadyExists])
async def create_conversation(call: ApiCall, body: Annotated[NewConversation, SESSION_RULE]) -> Conversation:
    """Create a conversation."""
    user = call.principal.user if body.user is msgspec.UNSET else body.user
    if not await call.authorization.is_caller(user):
        call.principal.require("admin")
    return await call.engine.conversations.create(
        app=body.app,
        user=user,
        agent=body.agent,
        session_id=body.session_id,
        state=change(call, body.state),
        document=body.document,
    )


@operations.declare("GET", "/api/conversations", needs="read", errors=[TooLarge])
async def list_conversations(
    call: ApiCall,
    user: Annotated[Name | None, about("Only conversations of this user.")] = None,
    app: Annotated[Name | None, about("Only conversations of this app.")] = None,
    agent: Annotated[Name | None, about("Only conversations with this agent.")] = None,
    document: bool = False,
    spoken: Annotated[bool, about("Only conversations in which something was said.")] = False,
    openings: bool = False,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> ConversationPage:
    """List the caller's conversations, newest first; for an admin, those of the tenant or of one user.

    `spoken`: only conversations with messages. `openings`: include the first user message of each conversation.
    """
    of = await call.authorization.users(user)

    async def read(most: int, cursor: str | None) -> tuple[list[Conversation], str | None]:
        page = await call.engine.conversations.list(
            user=of, app=app, agent=agent, document=document, spoken=spoken, limit=most, cursor=cursor
        )
        return page, page.cursor

    page, cursor = await page_of(read, limit=limit, start=cursor)
    opening_texts = (
        await call.engine.conversations.openings([conversation.id for conversation in page]) if openings else {}
    )
    return ConversationPage(page, cursor, {str(id): text for id, text in opening_texts.items()})


# Fixed paths come before `{id}`: the first route that matches is used.
@operations.declare("GET", "/api/conversations/search", needs="read", errors=[TooLarge])
async def search_conversations(
    call: ApiCall,
    text: Name,
    user: Name | None = None,
    app: Name | None = None,
    agent: Name | None = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> FoundPage:
    """Find nodes whose content contains a text, ignoring case."""
    of = await call.authorization.users(user)

    async def read(most: int, cursor: str | None) -> tuple[list[NodeHit], str | None]:
        page = await call.engine.conversations.search(text, user=of, app=app, agent=agent, limit=most, cursor=cursor)
        return page, page.cursor

    return FoundPage(*await page_of(read, limit=limit, start=cursor))


@operations.declare("GET", "/api/conversations/by-session", needs="read", errors=[NotFound, Conflict])
async def find_conversation(call: ApiCall, session_id: str) -> Conversation:
    """Get the conversation of the caller's session; for an admin without this session id, another user's."""
    return await call.authorization.session(session_id)


@operations.declare("GET", "/api/conversations/{id}", needs="read", errors=[NotFound])
async def get_conversation(call: ApiCall, id: UUID) -> Conversation:
    """Get a conversation, without its nodes."""
    return await call.authorization.conversation(id)


@operations.declare("DELETE", "/api/conversations/{id}", needs="write", status=204, errors=[NotFound], audit=True)
async def remove_conversation(call: ApiCall, id: UUID) -> None:
    """Delete a conversation permanently, with its nodes, its own state and its session memories."""
    await call.authorization.conversation(id)
    await call.engine.conversations.remove(id)


@operations.declare("POST", "/api/conversations/{id}/fork", needs="write", status=201, errors=[NotFound, AlreadyExists])
async def fork_conversation(call: ApiCall, id: UUID, body: ConversationFork) -> Conversation:
    """Copy a conversation up to a node, with the state at that node."""
    await call.authorization.conversation(id)
    return await call.engine.conversations.fork(id, **asdict(body))


@operations.declare(
    "GET", "/api/conversations/{id}/export", needs="read", errors=[NotFound], response_format=JSON_LINES, audit=True
)
async def export_conversation(call: ApiCall, id: UUID) -> Response:
    """Export a conversation as JSON lines: first the conversation, then its nodes with their former versions."""
    await call.authorization.conversation(id)
    return json_lines(call.engine.conversations.export(id))


@operations.declare("GET", "/api/conversations/{id}/messages", needs="read", errors=[NotFound])
async def read_messages(
    call: ApiCall, id: UUID, reader: Name | None = None, limit: Limit = 40, tools: bool = False
) -> Messages:
    """List the newest messages in the form for a model, as an agent sees them.

    `reader`: the agent, by default that of the conversation. There are fewer than `limit` messages if their nodes
    exceed 8 MB.
    """
    agent = (await call.authorization.conversation(id)).agent

    async def older(most: int, before: int | None) -> list[Node]:
        return (await call.engine.conversations.last(id, most, before=before))[::-1]

    newest_first, _ = await page_of_items(older, lambda node: node.seq, limit=limit)
    return Messages(as_messages(newest_first[::-1], reader or agent or ASSISTANT, tools=tools))
