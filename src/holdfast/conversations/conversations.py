"""Conversations: creates, finds, forks and deletes them, and writes and reads their nodes."""

from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import msgspec

from holdfast.access.identities import Identities
from holdfast.bus.log import Log
from holdfast.bus.records import hash_of
from holdfast.conversations.contexts import Context, parse_context
from holdfast.conversations.conversation import Conversation, NodeHit, ReplayStep, conversation_of
from holdfast.conversations.errors import (
    ambiguous_session,
    append_error,
    change_error,
    session_exists,
    unknown_conversation,
    unknown_node,
)
from holdfast.conversations.messages import ModelMessage, as_messages
from holdfast.conversations.nodes import Node, NodeInput, NodeRevision, in_reading_order, node_of, revision_of
from holdfast.conversations.payloads import check_payload
from holdfast.conversations.state import changes_of, fold, missing_user_error
from holdfast.conversations.turn_claims import HeldTurn
from holdfast.core.cursors import Page, read_cursor, write_cursor
from holdfast.core.errors import HoldfastError, InvalidInput, NotFound, TooLarge
from holdfast.core.ids import uuid7
from holdfast.core.names import qualified_name, stored_name
from holdfast.core.text import render, restore, store
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

APP = "default"
REPLAYED = 50  # nodes that a replay reads at once
MAX_NODES = 10_000  # that one call reads or appends, at most
OPENING = 200  # characters of a user's first message
OPENING_NODES = 100  # nodes among which it is searched
ESCAPED = 5  # stored characters for one character, at most
TRIES = 10  # to find or create a session that others create and delete at the same time
SEARCHED = 1000  # conversations per page of a search

sql = statements(__name__)


class Conversations:
    """Writes and reads conversations."""

    def __init__(self, database: Database, identities: Identities, log: Log) -> None:
        self._database = database
        self._identities = identities
        self._log = log

    # Conversations

    async def create(
        self,
        *,
        app: str = APP,
        user: str | None = None,
        agent: str | None = None,
        session_id: str | None = None,
        state: Mapping[str, object] | None = None,
        document: bool = False,
        tx: Transaction | None = None,
    ) -> Conversation:
        """Create a conversation, or a document, which has no session.

        A session id is unique per app and user: another user can have the same one.
        """
        if document and session_id is not None:
            raise InvalidInput("a document cannot have a session", next="Omit session_id or document.")
        id = uuid7()
        session = None if document else str(id) if session_id is None else session_id
        row = await self._create(id, session, app, user, agent, state, tx)
        if row["outcome"] == "taken":
            raise session_exists(session)
        return await self.get(id, tx=tx)

    async def ensure(
        self,
        session_id: str,
        *,
        app: str = APP,
        user: str | None = None,
        agent: str | None = None,
        adopts: bool = True,
        tx: Transaction | None = None,
    ) -> Conversation:
        """Return the conversation of a session. If there is none, create it.

        A conversation without a user, if `find` returns it for this user, becomes the user's.
        """
        for _ in range(TRIES):
            found = await self.find(session_id=session_id, user=user, app=app, adopts=adopts, tx=tx)
            if found is None:
                row = await self._create(uuid7(), session_id, app, user, agent, None, tx)
                if user is None or row["outcome"] == "created":
                    return await self.get(row["id"], tx=tx)
            elif user is None or found.user is not None:
                return found
            elif await self.adopt(found.id, app=app, user=user, tx=tx):
                return await self.get(found.id, tx=tx)
        raise session_exists(session_id)  # a call without a user has created a session with the qualified name

    async def get(self, id: UUID, *, tx: Transaction | None = None) -> Conversation:
        """Return the conversation with this id."""
        row = await (await self._database.within(tx)).one(sql("conversation"), id)
        if row is None:
            raise unknown_conversation(id)
        return conversation_of(row)

    async def find(
        self,
        *,
        session_id: str,
        user: str | None = None,
        app: str = APP,
        adopts: bool = False,
        tx: Transaction | None = None,
    ) -> Conversation | None:
        """Return the conversation of a session, if there is one.

        With `user`, return only a conversation of this user, or one without a user that this user may adopt. With
        `adopts`, every user may; otherwise, only a user who is the only one with this active session. Without `user`,
        raise Conflict if several users have the id.
        """
        run = await self._database.within(tx)
        if user is None:
            rows = await run.all(sql("conversation_by_session"), store(session_id))
        else:
            user_id = await self._identities.find_id("user", user)
            rows = await run.all(sql("conversation_of_user_by_session"), store(session_id), user_id, store(app), adopts)
        if len(rows) > 1:
            raise ambiguous_session(session_id)
        return conversation_of(rows[0]) if rows else None

    async def adopt(self, id: UUID, *, app: str = APP, user: str, tx: Transaction | None = None) -> bool:
        """Assign a conversation without a user to this user and app. Return False if it is another's by now."""
        user_id = await self._identities.id("user", user, tx=tx)
        run = await self._database.within(tx)
        return await run.run(sql("adopt_conversation"), id, store(app), user_id, store(user)) > 0

    async def fork(
        self, id: UUID, *, at: int | None = None, session_id: str | None = None, tx: Transaction | None = None
    ) -> Conversation:
        """Copy a conversation up to the node `at`, or to the last: the same nodes, and the state at that node."""
        fork = uuid7()
        session = str(fork) if session_id is None else session_id
        run = await self._database.within(tx)
        name = stored_name("session", session)
        other = None
        if session_id is not None:
            origin = await self.get(id, tx=tx)
            other = _other_name(origin.app, origin.user, session_id)
        outcome = await run.value(sql("fork_conversation"), id, at, fork, name, other, hash_of(str(fork)))
        if outcome == "missing":
            raise unknown_conversation(id)
        if outcome == "no node":
            raise NotFound(f"there is no node {at} to fork at", next="Use the number of a node in the conversation.")
        if outcome == "taken":
            raise session_exists(session)
        return await self.get(fork, tx=tx)

    async def attach(self, id: UUID, *, tx: Transaction | None = None) -> bool:
        """Publish every further change to the topic of the agent. Return False if the agent is not defined."""
        outcome = await (await self._database.within(tx)).value(sql("attach_agent"), id, hash_of(str(id)))
        if outcome == "missing":
            raise unknown_conversation(id)
        return outcome == "attached"

    async def remove(self, id: UUID, *, tx: Transaction | None = None) -> None:
        """Delete a conversation and everything that belongs to it alone, permanently."""
        if not await (await self._database.within(tx)).value(sql("remove_conversation"), id):
            raise unknown_conversation(id)

    # Writing nodes

    async def append(
        self,
        id: UUID,
        content: str,
        *,
        context: str | Context,
        payload: Mapping[str, Any] | None = None,
        key: str | None = None,
        expect: int | None = None,
        state: Mapping[str, object] | None = None,
        parent: UUID | None = None,
        turn: HeldTurn | None = None,
        form: str | None = None,
        native: str | None = None,
        tx: Transaction | None = None,
    ) -> Node:
        """Append a node, together with changes of state.

        `key` is an idempotency key: a second append with the same key stores nothing and returns the first node.
        `expect` is the revision that the conversation must have. `parent` is the node of a document to append under.
        With `turn`, append only while that turn holds the conversation.
        """
        node_context = parse_context(context)
        checked_payload, changes = check_payload(payload), changes_of(state)
        node_id = uuid7()
        run = await self._database.within(tx)
        try:
            outcome, stored_id, seq, revision, at, topic = await run.value(
                sql("append"), id, node_id, parent, node_context.type, node_context.name, store(node_context.value),
                store(content), checked_payload, form, native, _stored_name("key", key), expect, _turn_number(turn, id),
                changes,
            )  # fmt: skip
        except HoldfastError as error:
            raise missing_user_error(error) from error
        if outcome == "repeated":
            return await self.read(stored_id, tx=tx)
        if outcome != "appended":
            raise append_error(outcome, id, revision, expect=expect, parent=parent, turn=turn and turn.number)
        await self._announce(topic, id, tx)
        return Node(
            node_id, id, parent or id, seq, str(node_context), content, checked_payload, changes, key, 1, revision,
            False, at, at, form, native,
        )  # fmt: skip

    async def append_all(
        self,
        id: UUID,
        drafts: Sequence[NodeInput],
        *,
        expect: int | None = None,
        state: Mapping[str, object] | None = None,
        turn: HeldTurn | None = None,
        tx: Transaction | None = None,
    ) -> list[Node]:
        """Append nodes that belong together: all of them, with nothing between, or none."""
        if not drafts:
            return []
        if len(drafts) > MAX_NODES:
            raise TooLarge(
                f"cannot append {len(drafts)} nodes in one call", next=f"Append at most {MAX_NODES} in one call."
            )
        contexts = [parse_context(draft.context) for draft in drafts]
        payloads, changes = [check_payload(draft.payload) for draft in drafts], changes_of(state)
        run = await self._database.within(tx)
        try:
            rows = await run.all(
                sql("append_all"), id, [uuid7() for _ in drafts],
                [context.type for context in contexts], [context.name for context in contexts],
                [store(context.value) for context in contexts], [store(draft.content) for draft in drafts],
                payloads, [draft.form for draft in drafts], [draft.native for draft in drafts],
                [_stored_name("key", draft.key) for draft in drafts], expect, _turn_number(turn, id), changes,
            )  # fmt: skip
        except HoldfastError as error:
            raise missing_user_error(error) from error
        last = rows[-1]
        if last["outcome"] not in ("appended", "repeated"):
            raise append_error(last["outcome"], id, last["revision"], expect=expect, turn=turn and turn.number)
        await self._announce(next((row["topic"] for row in rows if row["topic"] is not None), None), id, tx)
        nodes: list[Node] = []
        for row, draft, context, payload in zip(rows, drafts, contexts, payloads, strict=True):
            if row["outcome"] == "repeated":
                nodes.append(await self.read(row["id"], tx=tx))
                continue
            at = row["at"]
            nodes.append(Node(
                row["id"], id, id, row["seq"], str(context), draft.content, payload, changes, draft.key, 1,
                row["revision"], False, at, at, draft.form, draft.native,
            ))  # fmt: skip
            changes = None  # only the first new node has them
        return nodes

    async def edit(
        self,
        node: UUID,
        content: str,
        *,
        version: int,
        payload: Mapping[str, Any] | msgspec.UnsetType | None = msgspec.UNSET,
        tx: Transaction | None = None,
    ) -> Node:
        """Replace the content of a node, and its payload if one is given. The former version stays readable."""
        if payload is msgspec.UNSET:
            return await self._change(node, version, tx, "edit_node", store(content), None, True)
        return await self._change(node, version, tx, "edit_node", store(content), check_payload(payload), False)

    async def delete(self, node: UUID, *, version: int, tx: Transaction | None = None) -> Node:
        """Empty a node and all nodes below it. They keep their numbers, and former versions stay readable."""
        return await self._change(node, version, tx, "delete_node")

    async def clear(self, id: UUID, *, tx: Transaction | None = None) -> None:
        """Empty every message of a conversation, like `delete`."""
        row = cast(Row, await (await self._database.within(tx)).one(sql("clear_messages"), id))
        if row["outcome"] == "missing":
            raise unknown_conversation(id)
        await self._announce(row["topic"], id, tx)

    async def move(
        self, node: UUID, *, version: int, parent: UUID, before: UUID | None = None, tx: Transaction | None = None
    ) -> Node:
        """Move a node and all nodes below it under `parent`, before the child `before` or as the last child."""
        return await self._change(node, version, tx, "move_node", parent, before)

    # Reading nodes

    async def read(self, node: UUID, *, tx: Transaction | None = None) -> Node:
        """Return a node, also a deleted one."""
        row = await (await self._database.within(tx)).one(sql("node"), node)
        if row is None:
            raise unknown_node(node)
        return node_of(row)

    async def revisions(self, node: UUID, *, since: int = 0, limit: int | None = None) -> list[NodeRevision]:
        """Return the versions of a node after the version `since`, oldest first, including the current one."""
        rows = await self._database.all(sql("node_revisions"), node, since, limit)
        if not rows and since == 0:
            raise unknown_node(node)
        return [revision_of(row) for row in rows]

    async def subtree(self, node: UUID) -> list[Node]:
        """Return a node and all nodes below it, in reading order, without deleted ones."""
        return await self.nodes_of_tree(await self.outline(node))

    async def outline(self, node: UUID) -> list[UUID]:
        """Return the ids of a node and all nodes below it, in reading order, without deleted ones."""
        top = await self.read(node)
        statement = sql("tree" if top.seq == 0 else "subtree")
        rows = await self._database.all(statement, node, MAX_NODES + 1)
        if len(rows) > MAX_NODES:
            raise TooLarge(
                f"the node {node} has more than {MAX_NODES} descendants",
                next="Read a conversation with `last` or `since`, and a document in parts.",
                limit=MAX_NODES,
            )
        return in_reading_order(node, rows)

    async def nodes_of_tree(self, ids: Sequence[UUID]) -> list[Node]:
        """Return the nodes with these ids, in this order, without deleted ones."""
        found = {row["id"]: node_of(row) for row in await self._database.all(sql("nodes_of_tree"), ids)}
        return [found[id] for id in ids if id in found]

    async def last(self, id: UUID, count: int, *, before: int | None = None, native: str | None = None) -> list[Node]:
        """Return the newest nodes, oldest first, without deleted ones; with `before`, those before this number.

        `native` names a framework: nodes that it wrote include its own JSON.
        """
        _check_limit(count)
        return await self._nodes(id, await self._database.all(sql("last"), id, count, before, native))

    async def since(self, id: UUID, seq: int, *, limit: int = MAX_NODES, native: str | None = None) -> list[Node]:
        """Return the nodes after this number, oldest first, including deleted ones, so that no number is missing."""
        _check_limit(limit)
        return await self._nodes(id, await self._database.all(sql("since"), id, seq, limit, native))

    async def messages(self, id: UUID, *, reader: str, limit: int = 40, tools: bool = False) -> list[ModelMessage]:
        """Return the newest nodes as messages for a model, as the agent `reader` sees them. See `messages.py`."""
        return as_messages(await self.last(id, limit), reader, tools=tools)

    async def replay(self, id: UUID, *, until: int | None = None) -> AsyncGenerator[ReplayStep]:
        """Yield the nodes of a conversation, each with the conversation's own state after it."""
        state: dict[str, Any] = {}
        state_changes = await self._state_changes(id)
        seq = -1
        while nodes := await self.since(id, seq, limit=REPLAYED):
            for node in nodes:
                if until is not None and node.seq > until:
                    return
                fold(state, node.state)
                for change in state_changes[node.seq]:
                    fold(state, change["state"])
                yield ReplayStep(node, dict(state))
            seq = nodes[-1].seq

    async def export(self, id: UUID) -> AsyncGenerator[str]:
        """Yield a conversation as lines of JSON: itself, its nodes with former versions, and changes of state."""
        yield render({"conversation": await self.get(id)}).decode()
        state_changes = await self._state_changes(id)
        seq = -1
        while rows := await self._database.all(sql("exported_nodes"), id, seq):
            for node in map(node_of, rows):
                former = (await self.revisions(node.id))[:-1] if node.version > 1 else []
                yield render({"node": node, "former": former} if former else {"node": node}).decode()
                for change in state_changes[node.seq]:
                    yield render({"state": change["state"], "revision": change["revision"]}).decode()
            seq = rows[-1]["seq"]

    # Helpers

    async def _create(
        self,
        id: UUID,
        session: str | None,
        app: str,
        user: str | None,
        agent: str | None,
        state: Mapping[str, object] | None,
        tx: Transaction | None,
    ) -> Row:
        user_id = None if user is None else await self._identities.id("user", user, tx=tx)
        try:
            row = await (await self._database.within(tx)).one(
                sql("create_conversation"), id, _stored_name("session", session), _other_name(app, user, session),
                stored_name("app", app), user_id, _stored_name("user", user), _stored_name("agent", agent),
                changes_of(state), hash_of(str(id)),
            )  # fmt: skip
        except HoldfastError as error:
            raise missing_user_error(error) from error
        return cast(Row, row)

    async def _change(
        self, node: UUID, version: int, tx: Transaction | None, statement: str, *arguments: object
    ) -> Node:
        row = cast(Row, await (await self._database.within(tx)).one(sql(statement), node, version, *arguments))
        if row["outcome"] != "done":
            raise change_error(row, node, version)
        await self._announce(row["topic"], None, tx)
        return await self.read(node, tx=tx)

    async def _announce(self, topic: str | None, id: UUID | None, tx: Transaction | None) -> None:
        if topic is not None:
            await self._log.announce(topic, keys=[str(id)] if id else (), tx=tx)

    async def _state_changes(self, id: UUID) -> defaultdict[int, list[Row]]:
        """Return the changes of state without a node, by the number of the node before them."""
        state_changes: defaultdict[int, list[Row]] = defaultdict(list)
        for row in await self._database.all(sql("state_changes"), id):
            state_changes[row["seq"]].append(row)
        return state_changes

    async def _nodes(self, id: UUID, rows: list[Row]) -> list[Node]:
        if not rows:
            await self.get(id)  # raises an error if there is no such conversation; an empty one is fine
        return [node_of(row) for row in rows]

    # Search. It comes last because `list` is the method from here on.

    async def list(
        self,
        *,
        app: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        document: bool = False,
        spoken: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Conversation]:
        """Return a page of conversations, newest first; with `spoken`, only those in which something was said."""
        _check_limit(limit)
        before, _ = read_cursor(cursor)
        kind = "document" if document else "conversation"
        filters = (app and store(app), agent and store(agent), kind, before, limit + 1, spoken)
        if user is None:
            rows = await self._database.all(sql("list_conversations"), *filters)
        else:
            user_id = await self._identities.find_id("user", user)
            rows = await self._database.all(sql("list_conversations_of_user"), *filters, user_id)
        found = [conversation_of(row) for row in rows[:limit]]
        return Page(found, write_cursor(found[-1].id) if len(rows) > limit else None)

    async def search(
        self,
        text: str,
        *,
        app: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[NodeHit]:
        """Find nodes whose content contains this text, ignoring case; those of the newest conversations first.

        A page can be empty and still have a cursor, because a page searches a limited number of conversations.
        """
        _check_limit(limit)
        if not text.strip():
            raise InvalidInput("the search text is empty", next="Pass at least one character.")
        root, seq = read_cursor(cursor)
        # Unless `seq` is 0, the last page ended inside of `root`.
        list_cursor = cursor if seq == 0 else write_cursor(UUID(int=root.int + 1))
        conversations = await self.list(app=app, user=user, agent=agent, limit=SEARCHED, cursor=list_cursor)
        known = {conversation.id: conversation for conversation in conversations}
        rows = await self._database.all(sql("search_nodes"), [*known], store(text), root, seq, limit + 1)
        found = [NodeHit(known[row["root"]], node_of(row)) for row in rows[:limit]]
        if len(rows) > limit:
            return Page(found, write_cursor(found[-1].conversation.id, found[-1].node.seq))
        return Page(found, conversations.cursor)

    async def openings(self, ids: Sequence[UUID]) -> dict[UUID, str]:
        """Return a user's first message in each conversation, shortened, if it is among the first nodes."""
        rows = await self._database.all(sql("openings"), [*ids], OPENING_NODES, OPENING * ESCAPED)
        return {row["root"]: restore(row["content"])[:OPENING] for row in rows}


def _stored_name(what: str, name: str | None) -> str | None:
    return None if name is None else stored_name(what, name)


def _other_name(app: str, user: str | None, session: str | None) -> str | None:
    """Return the name under which a user's session is stored if another session has its id."""
    return None if user is None or session is None else stored_name("session", qualified_name(app, user, session))


def _turn_number(turn: HeldTurn | None, id: UUID) -> int | None:
    if turn is not None and turn.conversation != id:
        raise InvalidInput(
            f"the turn does not hold the conversation {id}",
            why="the turn belongs to another conversation, perhaps to a fork",
            next="Append to the turn's `conversation`.",
        )
    return turn and turn.number


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_NODES:
        raise InvalidInput(f"the limit {limit} is out of range", next=f"Use 1 to {MAX_NODES}.")
