import math
from uuid import UUID

import msgspec
import pytest

from holdfast.conversations import DELETED, Conversation, Conversations, Node, NodeInput, State
from holdfast.core.errors import AlreadyExists, NotFound
from holdfast.core.text import parse
from holdfast.engine import Engine

pytestmark = pytest.mark.req("CONV-08")

USER = "text:user:ann"
PREFIX = """
select string_agg(concat_ws('|', seq, place, context_type, context_name, context_value, content, payload::text, form,
  native::text, state::text, key, version, revision, deleted, created_at, updated_at), e'\\n' order by seq)
from node where tenant_id = $1 and root = $2 and seq <= $3
"""


@pytest.fixture
async def told(conversations: Conversations, state: State, talk: Conversation) -> Conversation:
    """A conversation in which much has happened."""
    native = '{"b" : 1.0,  "a": [1e3, "\\u00fc"]}'
    await conversations.append(talk.id, "o\0ne", context=USER, payload={"own": [math.nan, 1.0]}, key="k1")
    two = await conversations.append(talk.id, "two", context=USER, form="adk", native=native, state={"step": 2})
    await state.set(talk.id, {"step": 2.5, "between": True, "user:theme": "dark"})
    three = await conversations.append(talk.id, "three", context=USER, state={"step": 3, "between": DELETED})
    await conversations.append(talk.id, "four", context=USER, state={"step": 4, "last": None})
    await conversations.edit(two.id, "edited", version=1)
    await conversations.delete(three.id, version=1)
    return await conversations.get(talk.id)


async def prefix(engine: Engine, id: UUID, upto: int) -> str:
    """All that is stored of the first nodes of a conversation, but for ids."""
    return await engine.database.value(PREFIX, id, upto)


@pytest.mark.parametrize("at", [0, 1, 2, 3, 4, None])
async def test_a_fork_shares_its_prefix_byte_for_byte(
    engine: Engine, conversations: Conversations, told: Conversation, at: int | None
) -> None:
    upto = told.last_seq if at is None else at

    fork = await conversations.fork(told.id, at=at)

    assert await prefix(engine, fork.id, 99) == await prefix(engine, told.id, upto)
    assert (fork.forked_from, fork.forked_at, fork.last_seq) == (told.id, upto, upto)
    assert (fork.app, fork.user, fork.agent, fork.kind) == (told.app, told.user, told.agent, told.kind)
    assert fork.session_id == str(fork.id)
    assert await conversations.get(told.id) == told


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (0, {}),
        (1, {}),
        (2, {"step": 2.5, "between": True}),
        (3, {"step": 3}),
        (4, {"step": 4, "last": None}),
    ],
)
async def test_a_fork_has_the_state_of_its_node(
    conversations: Conversations, state: State, told: Conversation, at: int, expected: dict[str, object]
) -> None:
    fork = await conversations.fork(told.id, at=at)

    assert await state.get(fork.id) == {**expected, "user:theme": "dark"}
    steps = {step.node.seq: step.state async for step in conversations.replay(told.id)}
    assert steps[at] == expected


async def test_a_fork_begins_with_the_state_that_the_conversation_began_with(
    conversations: Conversations, state: State
) -> None:
    talk = await conversations.create(state={"a": 1})
    await conversations.append(talk.id, "hi", context=USER, state={"a": 2})

    fork = await conversations.fork(talk.id, at=0)

    assert await state.get(fork.id) == {"a": 1}


async def test_what_happens_after_a_fork_stays_where_it_happened(
    conversations: Conversations, state: State, told: Conversation
) -> None:
    fork = await conversations.fork(told.id)
    ours, theirs = await conversations.last(told.id, 9), await conversations.last(fork.id, 9)

    await conversations.edit(theirs[0].id, "changed", version=1)
    await conversations.append(fork.id, "more", context=USER, state={"step": 5})
    await conversations.delete(ours[-1].id, version=1)

    assert [node.content for node in await conversations.last(fork.id, 9)] == ["changed", "edited", "four", "more"]
    assert [node.content for node in await conversations.last(told.id, 9)] == ["o\0ne", "edited"]
    assert (await state.get(told.id))["step"] == 4
    assert not {node.id for node in ours} & {node.id for node in theirs}


async def test_a_fork_of_a_fork_shares_the_prefix_too(
    engine: Engine, conversations: Conversations, told: Conversation
) -> None:
    first = await conversations.fork(told.id, at=3)
    await conversations.append(first.id, "another", context=USER)

    second = await conversations.fork(first.id)

    assert await prefix(engine, second.id, 99) == await prefix(engine, first.id, 99)
    assert await prefix(engine, second.id, 3) == await prefix(engine, told.id, 3)
    assert await conversations.fork(told.id, at=3) != first
    await conversations.remove(told.id)
    assert (await conversations.get(second.id)).last_seq == 4


@pytest.mark.req("CONV-04", "CONV-06")
async def test_a_fork_knows_former_versions_and_keys(conversations: Conversations, told: Conversation) -> None:
    fork = await conversations.fork(told.id)
    one, two = (await conversations.last(fork.id, 9))[:2]

    again = await conversations.append(fork.id, "other", context=USER, key="k1")

    assert again == one
    assert [(former.version, former.content) for former in await conversations.revisions(two.id)] == [
        (1, "two"),
        (2, "edited"),
    ]


@pytest.mark.req("CONV-01")
async def test_a_fork_keeps_the_shape_of_a_tree(conversations: Conversations, document: Conversation) -> None:
    async def write(content: str, parent: Node | None = None) -> Node:
        under = parent and parent.id
        return await conversations.append(document.id, content, context="text:section:book", parent=under)

    one = await write("one")
    first = await write("first", one)
    deep = await write("deep", first)
    two = await write("two")
    late = await write("late")
    await conversations.move(two.id, version=1, parent=one.id, before=first.id)
    await conversations.move(deep.id, version=1, parent=late.id)

    whole, part = await conversations.fork(document.id), await conversations.fork(document.id, at=4)

    assert whole.session_id is None
    read = [node.content for node in await conversations.subtree(document.id)]
    assert read == ["", "one", "two", "first", "late", "deep"]
    assert [node.content for node in await conversations.subtree(whole.id)] == read
    assert [node.content for node in await conversations.subtree(part.id)] == ["", "one", "two", "first", "deep"]
    copy = (await conversations.subtree(whole.id))[1]
    assert [node.content for node in await conversations.subtree(copy.id)] == ["one", "two", "first"]


@pytest.mark.parametrize("at", [-1, 5, 2**40])
async def test_a_fork_at_no_node_is_refused(conversations: Conversations, told: Conversation, at: int) -> None:
    with pytest.raises(NotFound, match=f"no node {at}"):
        await conversations.fork(told.id, at=at)

    assert await conversations.list() == [told]


async def test_a_fork_has_a_session_of_its_own(conversations: Conversations, told: Conversation) -> None:
    fork = await conversations.fork(told.id, session_id="web-43")

    assert fork.session_id == "web-43"
    with pytest.raises(AlreadyExists, match="web-42"):
        await conversations.fork(told.id, session_id="web-42")
    assert await conversations.list() == [fork, told]


async def test_a_replay_tells_every_node_and_the_state_after_it(
    conversations: Conversations, state: State, talk: Conversation
) -> None:
    drafts = [NodeInput(content=str(number), context=USER) for number in range(1, 1500)]
    await conversations.append_all(talk.id, drafts, state={"a": 1})
    await state.set(talk.id, {"a": 2})
    await state.set(talk.id, {"b": [1], "user:c": 1})
    await conversations.append(talk.id, "last", context=USER, state={"a": DELETED})

    steps = [step async for step in conversations.replay(talk.id)]

    assert [step.node.seq for step in steps] == list(range(1501))
    assert [steps[seq].state for seq in (0, 1, 1498, 1499, 1500)] == [
        {},
        {"a": 1},
        {"a": 1},
        {"a": 2, "b": [1]},
        {"b": [1]},
    ]
    part = [step async for step in conversations.replay(talk.id, until=1499)]
    assert part == steps[:1500]


async def test_an_export_tells_all_there_was_in_lines_of_json(conversations: Conversations, told: Conversation) -> None:
    first, *lines = [parse(line.encode()) async for line in conversations.export(told.id)]

    assert msgspec.convert(first["conversation"], Conversation) == told
    nodes = await conversations.since(told.id, -1)
    written = [line for line in lines if "node" in line]
    assert [line["node"]["seq"] for line in written] == [0, 1, 2, 3, 4]
    assert [line["node"]["content"] for line in written] == [node.content for node in nodes]
    assert [[former["content"] for former in line.get("former", [])] for line in written] == [
        [],
        [],
        ["two"],
        ["three"],
        [],
    ]


async def test_an_export_tells_what_frameworks_wrote_and_the_state_between(
    conversations: Conversations, engine: Engine, talk: Conversation
) -> None:
    await conversations.append(talk.id, "hi", context="text:user:ann", form="adk", native='{"own": 1}')
    await engine.state.set(talk.id, {"step": 2})
    await conversations.append(talk.id, "there", context="text:user:ann")

    lines = [parse(line.encode()) async for line in conversations.export(talk.id)]

    assert [line["node"]["native"] for line in lines if "node" in line] == [None, '{"own": 1}', None]
    assert [[*line] for line in lines] == [["conversation"], ["node"], ["node"], ["state", "revision"], ["node"]]
    assert lines[3] == {"state": {"step": [2]}, "revision": 2}


async def test_an_export_of_very_large_nodes_is_read_in_small_parts(
    conversations: Conversations, talk: Conversation
) -> None:
    nodes = [await conversations.append(talk.id, "x" * 5_000_000, context="text:user:ann") for _ in range(3)]
    await conversations.edit(nodes[-1].id, "y" * 5_000_000, version=1)

    sizes = [len(line) async for line in conversations.export(talk.id)]

    assert [size // 5_000_000 for size in sizes] == [0, 0, 1, 1, 2]
