"""Nodes: what is said in a conversation, and what a document is made of."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from holdfast.conversations.nodes import Draft, Node, NodeRevision
from holdfast.conversations.turns import Turn
from holdfast.core.errors import Busy, Conflict, InvalidInput, NotFound, TooLarge
from holdfast.server.fields import ContextText
from holdfast.server.operations import Call, Operations
from holdfast.server.pages import listed, page_of
from holdfast.server.routes.conversations import MAX_PAGE, Limit, Name, Number
from holdfast.server.routes.state import change

operations = Operations("nodes")

Version = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
AfterVersion = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class NodeDraft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node to append. Without a context it is the caller's: `text:user:NAME`. The same key twice stores once."""

    content: str
    context: ContextText | None = None
    payload: dict[str, Any] | None = None
    key: Name | None = None


class NewNode(NodeDraft, frozen=True, forbid_unknown_fields=True):
    """A node to append, and the state that changes with it.

    `expect`: the revision the conversation must have. `parent`: the node of a document under which it goes.
    `turn`: only while that turn holds the conversation.
    """

    expect: Number | None = None
    state: dict[str, Any] = {}
    delete_state: list[str] = []
    parent: UUID | None = None
    turn: Number | None = None


class NewNodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes that belong together: all of them are appended, with nothing between, or none."""

    nodes: Annotated[list[NodeDraft], msgspec.Meta(min_length=1, max_length=MAX_PAGE)]
    expect: Number | None = None
    state: dict[str, Any] = {}
    delete_state: list[str] = []
    turn: Number | None = None


class NodeEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another content for a node of this version; without a payload it keeps its own, with null it has none."""

    content: str
    version: Version
    payload: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


class NodeMove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another place for a node of this version: under `parent`, before one of its children or as the last."""

    version: Version
    parent: UUID
    before: UUID | None = None


class Nodes(msgspec.Struct, frozen=True):
    """Nodes, in their order."""

    nodes: list[Node]


class NodePage(msgspec.Struct, frozen=True):
    """Nodes, and the number that the next page is asked for with, `before` or `since` as this one; null: none."""

    nodes: list[Node]
    cursor: int | None


class Subtree(msgspec.Struct, frozen=True):
    """Nodes in reading order, and the id that the next page is asked for `after`; null: there is none."""

    nodes: list[Node]
    cursor: UUID | None


class NodeRevisions(msgspec.Struct, frozen=True):
    """What a node was and is, oldest first."""

    revisions: list[NodeRevision]
    cursor: int | None


@operations.declare("GET", "/api/conversations/{id}/nodes", needs="read", errors=[NotFound])
async def list_nodes(
    call: Call, id: UUID, before: Number | None = None, since: Number | None = None, limit: Limit = 50
) -> NodePage:
    """The newest nodes, or those `before` a number; or those `since` one, the deleted ones too. Oldest first."""
    await call.authorization.conversation(id)
    talks = call.engine.conversations
    if since is not None and before is not None:
        raise InvalidInput("'before' and 'since' do not go together", next="Give one of them.")

    async def older(most: int, before: int | None) -> list[Node]:
        return (await talks.last(id, most, before=before))[::-1]

    async def newer(most: int, since: int | None) -> list[Node]:
        return await talks.since(id, since or 0, limit=most)

    if since is not None:
        return NodePage(*await listed(newer, lambda node: node.seq, limit=limit, start=since))
    newest_first, cursor = await listed(older, lambda node: node.seq, limit=limit, start=before)
    return NodePage(newest_first[::-1], cursor)


@operations.declare(
    "POST",
    "/api/conversations/{id}/nodes",
    needs="write",
    status=201,
    or_status=200,
    errors=[NotFound, Conflict, Busy],
)
async def append_node(call: Call, id: UUID, body: NewNode) -> Node:
    """Add a node at the end; 200 when its key was used before: it is the node that was stored then."""
    talk = await call.authorization.conversation(id)
    node = await call.engine.conversations.append(
        id,
        body.content,
        context=call.authorization.context(talk, body.context, body.payload),
        payload=body.payload,
        key=body.key,
        expect=body.expect,
        state=change(call, body.state, body.delete_state),
        parent=body.parent,
        turn=None if body.turn is None else Turn(id, body.turn),
    )
    if node.seq <= talk.last_seq:  # of two at once with one key, both may be told that it is new
        call.status = 200
    return node


@operations.declare(
    "POST", "/api/conversations/{id}/nodes/batch", needs="write", status=201, errors=[NotFound, Conflict, Busy]
)
async def append_nodes(call: Call, id: UUID, body: NewNodes) -> Nodes:
    """Add nodes that belong together: all of them, or none."""
    talk = await call.authorization.conversation(id)
    drafts = [
        Draft(
            content=draft.content,
            context=call.authorization.context(talk, draft.context, draft.payload),
            payload=draft.payload,
            key=draft.key,
        )
        for draft in body.nodes
    ]
    return Nodes(
        await call.engine.conversations.append_all(
            id,
            drafts,
            expect=body.expect,
            state=change(call, body.state, body.delete_state),
            turn=None if body.turn is None else Turn(id, body.turn),
        )
    )


@operations.declare("GET", "/api/nodes/{id}", needs="read", errors=[NotFound])
async def read_node(call: Call, id: UUID) -> Node:
    """One node; a deleted one says so."""
    return await call.authorization.node(id)


@operations.declare("PATCH", "/api/nodes/{id}", needs="write", errors=[NotFound, Conflict])
async def edit_node(call: Call, id: UUID, body: NodeEdit) -> Node:
    """Give a node another content; what it was stays readable."""
    await call.authorization.node_to_change(id)
    if body.payload:
        call.authorization.check_role(body.payload.get("role"))
    return await call.engine.conversations.edit(id, body.content, version=body.version, payload=body.payload)


@operations.declare("DELETE", "/api/nodes/{id}", needs="write", errors=[NotFound, Conflict])
async def delete_node(call: Call, id: UUID, version: Version) -> Node:
    """Empty a node and all below it; their numbers stay, and what they were stays readable."""
    await call.authorization.node_to_change(id)
    return await call.engine.conversations.delete(id, version=version)


@operations.declare("POST", "/api/nodes/{id}/move", needs="write", errors=[NotFound, Conflict])
async def move_node(call: Call, id: UUID, body: NodeMove) -> Node:
    """Move a node and all below it to another place in its tree."""
    await call.authorization.node_to_change(id)
    return await call.engine.conversations.move(id, version=body.version, parent=body.parent, before=body.before)


@operations.declare("GET", "/api/nodes/{id}/subtree", needs="read", errors=[NotFound, TooLarge])
async def read_subtree(call: Call, id: UUID, after: UUID | None = None) -> Subtree:
    """A node and all below it, in reading order, without what was deleted; `after` one of them: the rest."""
    await call.authorization.node(id)
    talks = call.engine.conversations
    ids = await talks.outline(id)
    if after is not None and after not in ids:
        raise NotFound(
            f"the node {after} is not below {id}",
            why="it was moved or deleted, or never was",
            next="Read the subtree from its start, without `after`.",
        )

    async def read(most: int, start: int | None) -> tuple[list[Node], int | None]:
        end = (start or 0) + most
        return await talks.nodes_of_tree(ids[start or 0 : end]), end if end < len(ids) else None

    start = None if after is None else ids.index(after) + 1
    nodes, end = await page_of(read, limit=len(ids), start=start)
    return Subtree(nodes, None if end is None else ids[end - 1])


@operations.declare("GET", "/api/nodes/{id}/revisions", needs="read", errors=[NotFound])
async def list_node_revisions(
    call: Call, id: UUID, since: AfterVersion | None = None, limit: Limit = 1000
) -> NodeRevisions:
    """What a node was and is, oldest first; or what it was after the version `since`."""
    await call.authorization.node(id)

    async def read(most: int, since: int | None) -> list[NodeRevision]:
        return await call.engine.conversations.revisions(id, since=since or 0, limit=most)

    return NodeRevisions(*await listed(read, lambda former: former.version, limit=limit, start=since))
