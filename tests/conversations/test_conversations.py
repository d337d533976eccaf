import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.conversations import Conversation, Conversations, HeldTurn, NodeInput, State
from holdfast.core.errors import AlreadyExists, Broken, HoldfastError, InvalidInput, NotFound, TooLarge
from holdfast.core.names import MAX_NAME_BYTES, qualified_name
from holdfast.engine import Engine
from holdfast.postgres.database import Transaction
from tests.clock import Clock

NAMES = ["web-42", " ", "ünï 😀", "nul\0nul", "half \ud83d", "quote ' \" \\ $1", str(UUID(int=7)), "x" * MAX_NAME_BYTES]
TABLES = ("conversation", "node", "node_revision", "state_change", "turn_claim")

# Everything that is asked for with the id of a conversation or of a node.
ASKED: dict[str, Callable[[Engine, UUID], Awaitable[object]]] = {
    "get": lambda engine, id: engine.conversations.get(id),
    "append": lambda engine, id: engine.conversations.append(id, "hi", context="text:user:ann"),
    "append with key": lambda engine, id: engine.conversations.append(id, "hi", context="text:user:ann", key="k"),
    "append expecting": lambda engine, id: engine.conversations.append(id, "hi", context="text:user:ann", expect=0),
    "append in a turn": lambda engine, id: engine.conversations.append(
        id, "hi", context="text:user:ann", turn=HeldTurn(id, 1)
    ),
    "append all": lambda engine, id: engine.conversations.append_all(
        id, [NodeInput(content="hi", context="text:user:ann")]
    ),
    "fork": lambda engine, id: engine.conversations.fork(id),
    "remove": lambda engine, id: engine.conversations.remove(id),
    "last": lambda engine, id: engine.conversations.last(id, 20),
    "since": lambda engine, id: engine.conversations.since(id, 0),
    "messages": lambda engine, id: engine.conversations.messages(id, reader="support"),
    "replay": lambda engine, id: anext(engine.conversations.replay(id)),
    "export": lambda engine, id: anext(engine.conversations.export(id)),
    "read": lambda engine, id: engine.conversations.read(id),
    "subtree": lambda engine, id: engine.conversations.subtree(id),
    "revisions": lambda engine, id: engine.conversations.revisions(id),
    "edit": lambda engine, id: engine.conversations.edit(id, "hi", version=1),
    "delete": lambda engine, id: engine.conversations.delete(id, version=1),
    "move": lambda engine, id: engine.conversations.move(id, version=1, parent=id),
    "state": lambda engine, id: engine.state.get(id),
    "set state": lambda engine, id: engine.state.set(id, {"step": 1}),
    "set no state": lambda engine, id: engine.state.set(id, {}),
    "claim": lambda engine, id: engine.turns.claim(id),
}


async def counts(engine: Engine) -> dict[str, int]:
    """How many rows the tenant has in each table of conversations."""
    statement = "select count(*) from {} where tenant_id = $1"
    return {table: await engine.database.value(statement.format(table)) for table in (*TABLES, "state")}


@pytest.mark.req("CONV-01", "CONV-02")
async def test_a_new_conversation_is_a_blank_root(conversations: Conversations, talk: Conversation) -> None:
    root = await conversations.read(talk.id)

    assert (root.id, root.root, root.parent, root.seq) == (talk.id, talk.id, None, 0)
    assert (root.context, root.content, root.payload, root.author) == ("", "", None, "")
    assert await conversations.subtree(talk.id) == [root]
    assert await conversations.last(talk.id, 20) == []


@pytest.mark.req("CONV-01")
async def test_a_conversation_says_whose_it_is(conversations: Conversations, talk: Conversation) -> None:
    found = await conversations.get(talk.id)

    assert found == talk
    assert (talk.kind, talk.app, talk.user, talk.agent) == ("conversation", "shop", "ann", "support")
    assert (talk.session_id, talk.revision, talk.last_seq) == ("web-42", 0, 0)
    assert (talk.forked_from, talk.forked_at, talk.ended_at) == (None, None, None)


@pytest.mark.req("CONV-01")
async def test_a_document_has_no_session(conversations: Conversations, document: Conversation) -> None:
    another = await conversations.create(document=True)

    assert (document.kind, document.session_id) == ("document", None)
    assert another.id != document.id


@pytest.mark.req("ENG-09")
@pytest.mark.parametrize("name", NAMES)
async def test_any_string_names_a_session_a_user_an_agent_and_an_app(conversations: Conversations, name: str) -> None:
    made = await conversations.create(app=name, user=name, agent=name, session_id=name)

    assert (made.app, made.user, made.agent, made.session_id) == (name, name, name, name)
    assert await conversations.find(session_id=name) == made
    assert await conversations.list(app=name, user=name, agent=name) == [made]


@pytest.mark.req("ENG-09")
@pytest.mark.parametrize("what", ["app", "user", "agent", "session_id"])
async def test_a_name_that_is_empty_or_too_long_is_refused(conversations: Conversations, what: str) -> None:
    empty: dict[str, Any] = {what: ""}
    long: dict[str, Any] = {what: "x" * (MAX_NAME_BYTES + 1)}

    with pytest.raises(InvalidInput, match="is empty"):
        await conversations.create(**empty)
    with pytest.raises(TooLarge, match="too long"):
        await conversations.create(**long)

    assert await conversations.list() == []


@pytest.mark.req("ENG-09")
async def test_a_session_of_a_user_has_one_conversation(conversations: Conversations, talk: Conversation) -> None:
    with pytest.raises(AlreadyExists, match="web-42"):
        await conversations.create(app="shop", user="ann", session_id="web-42")

    assert await conversations.find(session_id="web-42") == talk
    assert await conversations.find(session_id="web-43") is None


@pytest.mark.req("SAFE-02")
@pytest.mark.parametrize("session_id", ["web-42", "adk://shop/ann/web-42", "é" * (MAX_NAME_BYTES // 2)])
async def test_users_have_sessions_of_one_id_and_get_it_back(conversations: Conversations, session_id: str) -> None:
    users = ("ann", "bob", "c/id " * 60)

    made = [await conversations.create(user=user, session_id=session_id) for user in users]
    forks = [await conversations.fork(talk.id, session_id="fork") for talk in made]

    assert {talk.session_id for talk in made} == {session_id}
    assert {talk.session_id for talk in forks} == {"fork"}
    for user, talk, fork in zip(users, made, forks, strict=True):
        assert await conversations.find(session_id=session_id, user=user) == talk
        assert await conversations.find(session_id="fork", user=user) == fork
        with pytest.raises(AlreadyExists):
            await conversations.create(user=user, session_id=session_id)
        with pytest.raises(AlreadyExists):
            await conversations.fork(talk.id, session_id="fork")
    assert await conversations.find(session_id=session_id, user="dan") is None


@pytest.mark.req("SAFE-02")
async def test_nobody_can_take_the_name_under_which_anothers_session_would_be_stored(
    conversations: Conversations,
) -> None:
    await conversations.create(user="ann", session_id="one")
    await conversations.create(user="mallory", session_id=qualified_name("default", "bob", "one"))

    bobs = await conversations.ensure("one", user="bob")
    await conversations.create(session_id=qualified_name("default", "cid", "one"))  # whoever names no user may
    with pytest.raises(AlreadyExists):
        await conversations.ensure("one", user="cid")

    assert (bobs.user, bobs.session_id) == ("bob", "one")


async def test_a_conversation_is_ensured_by_whoever_comes_first(engine: Engine, second: Engine) -> None:
    both = (engine.conversations, second.conversations)

    found = await asyncio.gather(*(both[number % 2].ensure("web-7", user="ann") for number in range(16)))

    assert len({conversation.id for conversation in found}) == 1
    assert await engine.conversations.list() == [found[0]]


@pytest.mark.req("CONV-03")
async def test_a_removed_conversation_leaves_nothing_but_what_its_user_and_app_share(
    engine: Engine, conversations: Conversations, talk: Conversation
) -> None:
    before = await conversations.create(app="shop", user="ann")
    empty = await counts(engine)
    shared = {"user:theme": "dark", "app:motto": "fast"}
    node = await conversations.append(talk.id, "hi", context="text:user:ann", state={**shared, "step": 1}, key="k")
    await conversations.edit(node.id, "hello", version=1)
    await engine.state.set(talk.id, {"step": 2})
    await engine.turns.claim(talk.id)

    await conversations.remove(talk.id)

    assert await counts(engine) == {**empty, "conversation": 1, "node": 1, "state": 2}
    assert await engine.state.get(before.id) == shared
    assert await conversations.find(session_id="web-42") is None
    with pytest.raises(NotFound):
        await conversations.remove(talk.id)


@pytest.mark.req("ENG-04", "CONV-03")
@pytest.mark.parametrize("asked", ASKED)
async def test_an_id_of_another_tenant_is_answered_exactly_as_an_unknown_one(
    talk: Conversation, acme: Engine, asked: str
) -> None:
    said: list[tuple[type[HoldfastError], str]] = []

    for id in (talk.id, unknown := uuid4()):
        with pytest.raises(NotFound) as refused:
            await ASKED[asked](acme, id)
        said.append((type(refused.value), str(refused.value).replace(str(id), str(unknown))))

    assert said[0] == said[1]
    assert str(unknown) in said[0][1]


@pytest.mark.req("ENG-04")
async def test_tenants_have_sessions_users_and_state_of_their_own(
    talk: Conversation, engine: Engine, acme: Engine
) -> None:
    await engine.state.set(talk.id, {"user:theme": "dark", "app:motto": "fast"})

    theirs = await acme.conversations.create(app="shop", user="ann", session_id="web-42")

    assert theirs.id != talk.id
    assert await acme.state.get(theirs.id) == {}
    assert await acme.conversations.list(user="ann") == [theirs]


@pytest.mark.req("ENG-04")
async def test_a_transaction_of_another_tenant_is_refused(
    conversations: Conversations, talk: Conversation, state: State, acme: Engine
) -> None:
    async with acme.transaction() as tx:
        for work in (
            conversations.create(tx=tx),
            conversations.get(talk.id, tx=tx),
            conversations.append(talk.id, "hi", context="text:user:ann", tx=tx),
            conversations.append_all(talk.id, [NodeInput(content="hi", context="text:user:ann")], tx=tx),
            conversations.fork(talk.id, tx=tx),
            conversations.remove(talk.id, tx=tx),
            state.set(talk.id, {"step": 1}, tx=tx),
            state.get(talk.id, tx=tx),
        ):
            with pytest.raises(Broken, match="belongs to another tenant"):
                await work

    assert await conversations.list() == [talk]
    assert await state.get(talk.id) == {}


@pytest.mark.req("CONV-03")
async def test_a_transaction_that_is_rolled_back_leaves_no_trace_and_no_gap(
    engine: Engine, conversations: Conversations, talk: Conversation
) -> None:
    first = await conversations.append(talk.id, "one", context="text:user:ann")
    before = await counts(engine)

    async def work(tx: Transaction) -> None:
        made = await conversations.create(user="bob", state={"user:theme": "dark"}, tx=tx)
        await conversations.append(made.id, "hi", context="text:user:bob", tx=tx)
        await conversations.append(talk.id, "two", context="text:user:ann", key="k", state={"step": 1}, tx=tx)
        await conversations.edit(first.id, "changed", version=1, tx=tx)
        await conversations.fork(talk.id, session_id="fork", tx=tx)
        await engine.state.set(talk.id, {"user:theme": "dark"}, tx=tx)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await engine.atomically(work)

    assert await counts(engine) == before
    assert await conversations.since(talk.id, 0) == [first]
    second = await conversations.append(talk.id, "two", context="text:user:ann", key="k")
    assert (second.seq, second.revision) == (2, 2)


@pytest.mark.req("CONV-03")
async def test_what_a_transaction_did_is_seen_in_it_at_once_and_by_others_when_it_ends(
    engine: Engine, conversations: Conversations
) -> None:
    async with engine.transaction() as tx:
        made = await conversations.create(session_id="web-7", user="bob", tx=tx)
        node = await conversations.append(made.id, "hi", context="text:user:bob", state={"step": 1}, tx=tx)
        inside = await conversations.read(node.id, tx=tx), await engine.state.get(made.id, tx=tx)
        outside = await conversations.find(session_id="web-7")

    assert inside == (node, {"step": 1})
    assert outside is None
    assert await conversations.last(made.id, 1) == [node]


async def test_many_transactions_at_once_make_conversations_for_users_nobody_knew(engine: Engine) -> None:
    async def begin(number: int) -> Conversation:
        async with engine.transaction() as tx:
            return await engine.conversations.create(user=f"user {number}", tx=tx)

    async with asyncio.timeout(30):
        made = await asyncio.gather(*(begin(number) for number in range(2 * engine.config.database.pool_size)))

    assert {conversation.user for conversation in made} == {f"user {number}" for number in range(len(made))}


async def test_a_conversation_says_when_it_was_changed(
    conversations: Conversations, talk: Conversation, clock: Clock
) -> None:
    later = await clock.advance(timedelta(hours=1))
    node = await conversations.append(talk.id, "hi", context="text:user:ann")

    found = await conversations.get(talk.id)

    assert (found.created_at, found.updated_at) == (talk.created_at, later)
    assert (node.created_at, node.updated_at) == (later, later)
