"""Conversations: those of the caller's user; who administers the tenant reaches all of them."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any
from uuid import UUID

import msgspec
from starlette.responses import Response, StreamingResponse

from holdfast.conversations.contexts import ASSISTANT
from holdfast.conversations.conversation import Conversation, Found
from holdfast.conversations.conversations import APP
from holdfast.conversations.messages import Message, as_messages
from holdfast.conversations.nodes import Node
from holdfast.core.errors import AlreadyExists, Conflict, NotFound, TooLarge
from holdfast.server.fields import Cursor, stated
from holdfast.server.operations import JSON_LINES, Call, Operations
from holdfast.server.pages import listed, page_of
from holdfast.server.routes.state import change

operations = Operations("conversations")

MAX_PAGE = 1000

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # of a node, a revision, a turn
Name = Annotated[str, msgspec.Meta(min_length=1)]


class NewConversation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation to make, or a document, which has no session; only an admin names another user, or none."""

    app: Name = APP
    agent: Name | None = None
    session_id: Name | None = None
    user: Name | msgspec.UnsetType | None = msgspec.UNSET
    state: dict[str, Any] = {}
    document: bool = False


SESSION_RULE = stated(
    anyOf=[{"properties": {"document": {"const": False}}}, {"properties": {"session_id": {"type": "null"}}}]
)


class ConversationFork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to fork: at the node of this number, or behind the last one. Without a session id one is made."""

    at: Number | None = None
    session_id: Name | None = None


class ConversationPage(msgspec.Struct, frozen=True):
    """Conversations, the newest first, and the cursor that the next page is asked for with; null: there is none.

    `openings`, if they were asked for: by conversation, the beginning of the first thing that a user said in it.
    """

    conversations: list[Conversation]
    cursor: str | None
    openings: dict[str, str] = {}


class FoundPage(msgspec.Struct, frozen=True):
    """Nodes that were found, and the cursor that the next page is asked for with; null: there is none."""

    found: list[Found]
    cursor: str | None


class Messages(msgspec.Struct, frozen=True):
    """What a model is given, oldest first."""

    messages: list[Message]


@operations.declare("POST", "/api/conversations", needs="write", status=201, errors=[AlreadyExists])
async def create_conversation(call: Call, body: Annotated[NewConversation, SESSION_RULE]) -> Conversation:
    """Make a conversation."""
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
    call: Call,
    user: Name | None = None,
    app: Name | None = None,
    agent: Name | None = None,
    document: bool = False,
    spoken: bool = False,
    openings: bool = False,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> ConversationPage:
    """The caller's conversations, the newest first; for an admin those of the tenant, or of one user.

    With `spoken` only those in which something was said; with `openings` the page has what a user said first in each.
    """
    of = await call.authorization.users(user)

    async def read(most: int, cursor: str | None) -> tuple[list[Conversation], str | None]:
        page = await call.engine.conversations.list(
            user=of, app=app, agent=agent, document=document, spoken=spoken, limit=most, cursor=cursor
        )
        return page, page.cursor

    page, cursor = await page_of(read, limit=limit, start=cursor)
    said = await call.engine.conversations.openings([talk.id for talk in page]) if openings else {}
    return ConversationPage(page, cursor, {str(id): text for id, text in said.items()})


# Names come before ids: the first path that fits is taken.
@operations.declare("GET", "/api/conversations/search", needs="read", errors=[TooLarge])
async def search_conversations(
    call: Call,
    text: Name,
    user: Name | None = None,
    app: Name | None = None,
    agent: Name | None = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> FoundPage:
    """Nodes whose content has this text in it, whatever its case."""
    of = await call.authorization.users(user)

    async def read(most: int, cursor: str | None) -> tuple[list[Found], str | None]:
        page = await call.engine.conversations.search(text, user=of, app=app, agent=agent, limit=most, cursor=cursor)
        return page, page.cursor

    return FoundPage(*await page_of(read, limit=limit, start=cursor))


@operations.declare("GET", "/api/conversations/by-session", needs="read", errors=[NotFound, Conflict])
async def find_conversation(call: Call, session_id: str) -> Conversation:
    """The conversation of a session of the caller's; for an admin who has none of this id, anybody's."""
    return await call.authorization.session(session_id)


@operations.declare("GET", "/api/conversations/{id}", needs="read", errors=[NotFound])
async def get_conversation(call: Call, id: UUID) -> Conversation:
    """What is known of a conversation without reading it."""
    return await call.authorization.conversation(id)


@operations.declare("DELETE", "/api/conversations/{id}", needs="write", status=204, errors=[NotFound])
async def remove_conversation(call: Call, id: UUID) -> None:
    """Remove a conversation and all that belongs to it alone, for good."""
    await call.authorization.conversation(id)
    await call.engine.conversations.remove(id)


@operations.declare("POST", "/api/conversations/{id}/fork", needs="write", status=201, errors=[NotFound, AlreadyExists])
async def fork_conversation(call: Call, id: UUID, body: ConversationFork) -> Conversation:
    """A copy up to a node: the same nodes, and the state that there was."""
    await call.authorization.conversation(id)
    return await call.engine.conversations.fork(id, at=body.at, session_id=body.session_id)


@operations.declare(
    "GET", "/api/conversations/{id}/export", needs="read", errors=[NotFound], response_format=JSON_LINES
)
async def export_conversation(call: Call, id: UUID) -> Response:
    """The whole conversation as lines of JSON: first itself, then its nodes with all they were."""
    await call.authorization.conversation(id)
    return StreamingResponse(_lines(call.engine.conversations.export(id)), media_type=JSON_LINES)


@operations.declare("GET", "/api/conversations/{id}/messages", needs="read", errors=[NotFound])
async def read_messages(
    call: Call, id: UUID, reader: Name | None = None, limit: Limit = 40, tools: bool = False
) -> Messages:
    """The newest nodes as an agent sees them, by default the conversation's own, ready for a model.

    Fewer than `limit` where those have more than 8 MB.
    """
    agent = (await call.authorization.conversation(id)).agent

    async def older(most: int, before: int | None) -> list[Node]:
        return (await call.engine.conversations.last(id, most, before=before))[::-1]

    newest_first, _ = await listed(older, lambda node: node.seq, limit=limit)
    return Messages(as_messages(newest_first[::-1], reader or agent or ASSISTANT, tools=tools))


async def _lines(exported: AsyncGenerator[str]) -> AsyncGenerator[str]:
    async with aclosing(exported):
        async for line in exported:
            yield line + "\n"
