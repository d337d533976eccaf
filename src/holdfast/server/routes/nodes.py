"""Nodes: the entries of a conversation and the parts of a document."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec.structs import asdict

from holdfast.authorization import Name
from holdfast.conversations.nodes import Node, NodeInput, NodeRevision
from holdfast.conversations.turn_claims import HeldTurn
from holdfast.core.errors import Busy, Conflict, InvalidInput, NotFound, TooLarge
from holdfast.server.fields import ContextText, Number, RowVersion
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.pages import page_of, page_of_items
from holdfast.server.routes.conversations import MAX_PAGE, Limit
from holdfast.server.routes.state import change

operations = ApiOperations("nodes")

AfterVersion = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class NodeDraft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node to append. The default context is the caller: `text:user:NAME`. `key` is an idempotency key."""

    content: str
    context: ContextText | None = None
    payload: dict[str, Any] | None = None
    key: Name | None = None


class NewNode(NodeDraft, frozen=True, forbid_unknown_fields=True):
    """A node to append, with changes of the state.

    `expect`: the revision that the conversation must have. `parent`: the parent node in a document.
    `turn`: append only while this turn holds the conversation.
    """

    expect: Number | None = None
    state: dict[str, Any] = {}
    delete_state: list[str] = []
    parent: UUID | None = None
    turn: Number | None = None


class NewNodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes to append together, with no other node between them: all or none."""

    nodes: Annotated[list[NodeDraft], msgspec.Meta(min_length=1, max_length=MAX_PAGE)]
    expect: Number | None = None
    state: dict[str, Any] = {}
    delete_state: list[str] = []
    turn: Number | None = None


class NodeEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """New content for this version of a node. An omitted payload is unchanged; null removes it."""

    content: str
    version: RowVersion
    payload: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


class NodeMove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new position for this version of a node: under `parent`, before one of its children or as the last."""

    version: RowVersion
    parent: UUID
    before: UUID | None = None


class Nodes(msgspec.Struct, frozen=True):
    """Nodes, in order."""

    nodes: list[Node]


class NodePage(msgspec.Struct, frozen=True):
    """Nodes. Pass `cursor` as `before` or `since`, as in this request, to get the next page; null on the last page."""

    nodes: list[Node]
    cursor: int | None


class Subtree(msgspec.Struct, frozen=True):
    """Nodes in reading order. Pass `cursor` as `after` to get the next page; it is null on the last page."""

    nodes: list[Node]
    cursor: UUID | None


class NodeRevisions(msgspec.Struct, frozen=True):
    """Versions of a node, oldest first. Pass `cursor` as `since` to get the next page; it is null on the last page."""

    revisions: list[NodeRevision]
    cursor: int | None


@operations.declare("GET", "/api/conversations/{id}/nodes", needs="read", errors=[NotFound])
async def list_nodes(
    call: ApiCall, id: UUID, before: Number | None = None, since: Number | None = None, limit: Limit = 50
) -> NodePage:
    """List the newest nodes, those `before` a number, or those `since` one with deleted ones. Oldest first."""
    await call.authorization.conversation(id)
    conversations = call.engine.conversations
    if since is not None and before is not None:
        raise InvalidInput("'before' and 'since' cannot be combined", next="Give one of them.")

    async def older(most: int, before: int | None) -> list[Node]:
        return (await conversations.last(id, most, before=before))[::-1]

    async def newer(most: int, since: int | None) -> list[Node]:
        return await conversations.since(id, since or 0, limit=most)

    if since is not None:
        return NodePage(*await page_of_items(newer, lambda node: node.seq, limit=limit, start=since))
    newest_first, cursor = await page_of_items(older, lambda node: node.seq, limit=limit, start=before)
    return NodePage(newest_first[::-1], cursor)


@operations.declare(
    "POST",
    "/api/conversations/{id}/nodes",
    needs="write",
    status=201,
    or_status=200,
    errors=[NotFound, Conflict, Busy],
)
async def append_node(call: ApiCall, id: UUID, body: NewNode) -> Node:
    """Append a node; 200 if its key was used before, with the node that was stored then."""
    conversation = await call.authorization.conversation(id)
    node = await call.engine.conversations.append(
        id,
        body.content,
        context=call.authorization.context(conversation, body.context, body.payload),
        payload=body.payload,
        key=body.key,
        expect=body.expect,
        state=change(call, body.state, body.delete_state),
        parent=body.parent,
        turn=None if body.turn is None else HeldTurn(id, body.turn),
    )
    if node.seq <= conversation.last_seq:  # two concurrent requests with the same key can both get 201
        call.status = 200
    return node


@operations.declare(
    "POST", "/api/conversations/{id}/nodes/batch", needs="write", status=201, errors=[NotFound, Conflict, Busy]
)
async def append_nodes(call: ApiCall, id: UUID, body: NewNodes) -> Nodes:
    """Append nodes together: all or none."""
    conversation = await call.authorization.conversation(id)
    drafts = [
        NodeInput(
            content=draft.content,
            context=call.authorization.context(conversation, draft.context, draft.payload),
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
            turn=None if body.turn is None else HeldTurn(id, body.turn),
        )
    )


@operations.declare("GET", "/api/nodes/{id}", needs="read", errors=[NotFound])
async def read_node(call: ApiCall, id: UUID) -> Node:
    """Get a node, also a deleted one."""
    return await call.authorization.node(id)


@operations.declare("PATCH", "/api/nodes/{id}", needs="write", errors=[NotFound, Conflict])
async def edit_node(call: ApiCall, id: UUID, body: NodeEdit) -> Node:
    """Edit the content of a node. Former versions stay readable."""
    await call.authorization.node_to_change(id)
    if body.payload:
        call.authorization.check_role(body.payload.get("role"))
    return await call.engine.conversations.edit(id, **asdict(body))


@operations.declare("DELETE", "/api/nodes/{id}", needs="write", errors=[NotFound, Conflict])
async def delete_node(call: ApiCall, id: UUID, version: RowVersion) -> Node:
    """Empty a node and all nodes below it. Their numbers stay, and former versions stay readable."""
    await call.authorization.node_to_change(id)
    return await call.engine.conversations.delete(id, version=version)


@operations.declare("POST", "/api/nodes/{id}/move", needs="write", errors=[NotFound, Conflict])
async def move_node(call: ApiCall, id: UUID, body: NodeMove) -> Node:
    """Move a node and all nodes below it to another position in the tree."""
    await call.authorization.node_to_change(id)
    return await call.engine.conversations.move(id, **asdict(body))


@operations.declare("GET", "/api/nodes/{id}/subtree", needs="read", errors=[NotFound, TooLarge])
async def read_subtree(call: ApiCall, id: UUID, after: UUID | None = None) -> Subtree:
    """List a node and all nodes below it, in reading order, without deleted ones; with `after`, those after a node."""
    await call.authorization.node(id)
    conversations = call.engine.conversations
    ids = await conversations.outline(id)
    if after is not None and after not in ids:
        raise NotFound(
            f"the node {after} is not below {id}",
            why="it was moved or deleted, or never existed",
            next="Read the subtree from its start, without `after`.",
        )

    async def read(most: int, start: int | None) -> tuple[list[Node], int | None]:
        end = (start or 0) + most
        return await conversations.nodes_of_tree(ids[start or 0 : end]), end if end < len(ids) else None

    start = None if after is None else ids.index(after) + 1
    nodes, end = await page_of(read, limit=len(ids), start=start)
    return Subtree(nodes, None if end is None else ids[end - 1])


@operations.declare("GET", "/api/nodes/{id}/revisions", needs="read", errors=[NotFound])
async def list_node_revisions(
    call: ApiCall, id: UUID, since: AfterVersion | None = None, limit: Limit = 1000
) -> NodeRevisions:
    """List the versions of a node, oldest first; with `since`, those after a version."""
    await call.authorization.node(id)

    async def read(most: int, since: int | None) -> list[NodeRevision]:
        return await call.engine.conversations.revisions(id, since=since or 0, limit=most)

    return NodeRevisions(*await page_of_items(read, lambda former: former.version, limit=limit, start=since))
