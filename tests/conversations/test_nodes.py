import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from holdfast.conversations import Conversation, Conversations, Node, NodeInput
from holdfast.conversations.conversations import MAX_NODES
from holdfast.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from holdfast.engine import Engine
from holdfast.postgres.sql import statements

USER = "text:user:ann"
CHILDREN = 100_000
sql = statements("holdfast.conversations.conversations")
HOSTILE = ["", " ", "ünï 😀", "nul\0nul", "half \ud83d", "quote ' \" \\ $1", "\U0010fffe0000", "a\nb\r\n\tc"]


@dataclass(frozen=True)
class Outline:
    """A document: two chapters, the first with two sections, one of which has a paragraph."""

    root: UUID
    one: Node
    two: Node
    first: Node
    second: Node
    paragraph: Node


@pytest.fixture
async def outline(conversations: Conversations, document: Conversation) -> Outline:
    """A document with a few nodes."""

    async def write(content: str, parent: UUID | None = None) -> Node:
        return await conversations.append(document.id, content, context="text:section:book", parent=parent)

    one, two = await write("one"), await write("two")
    first, second = await write("first", one.id), await write("second", one.id)
    return Outline(document.id, one, two, first, second, await write("paragraph", first.id))


async def say(conversations: Conversations, talk: Conversation, *contents: str) -> list[Node]:
    """Append one node for each text."""
    return [await conversations.append(talk.id, content, context=USER) for content in contents]


async def read(conversations: Conversations, node: UUID) -> list[str]:
    """What stands in a tree, in reading order."""
    return [node.content for node in await conversations.subtree(node)]


# Appending


@pytest.mark.req("CONV-02", "CONV-03")
async def test_what_append_gives_is_what_is_read(conversations: Conversations, talk: Conversation) -> None:
    payload = {"role": "user", "attachments": [{"uri": "file:a"}], "own": {"deep": [1, None, 2.5]}}

    node = await conversations.append(
        talk.id, "Where is my parcel?", context=USER, payload=payload, key="msg-1", state={"step": 1}
    )

    assert await conversations.read(node.id) == node
    assert (node.root, node.parent, node.seq, node.version, node.revision) == (talk.id, talk.id, 1, 1, 1)
    assert (node.context, node.author, node.content, node.payload) == (USER, "ann", "Where is my parcel?", payload)
    assert (node.key, node.state, node.deleted) == ("msg-1", {"step": [1]}, False)
    assert (await conversations.get(talk.id)).last_seq == 1


@pytest.mark.req("CONV-03")
async def test_numbers_have_no_gap_whatever_fails(conversations: Conversations, talk: Conversation) -> None:
    await say(conversations, talk, "one")
    with pytest.raises(Conflict):
        await conversations.append(talk.id, "stale", context=USER, expect=0)
    with pytest.raises(InvalidInput):
        await conversations.append(talk.id, "bad", context=USER, form="adk", native="{no json")
    with pytest.raises(NotFound):
        await conversations.append(talk.id, "lost", context=USER, parent=uuid4())

    await say(conversations, talk, "two")

    assert [(node.seq, node.content) for node in await conversations.since(talk.id, 0)] == [(1, "one"), (2, "two")]


@pytest.mark.req("CONV-02", "ENG-08")
@pytest.mark.parametrize("text", HOSTILE)
async def test_any_text_comes_back_as_it_went_in(conversations: Conversations, talk: Conversation, text: str) -> None:
    payload = {"own": {text: [text, math.inf]}}

    await conversations.append(
        talk.id, text, context=f"text:user:{text}x", payload=payload, key=f"k{text}", state={f"k{text}": text}
    )

    (node,) = await conversations.last(talk.id, 1)
    assert (node.content, node.context, node.author) == (text, f"text:user:{text}x", f"{text}x")
    assert (node.payload, node.key, node.state) == (payload, f"k{text}", {f"k{text}": [text]})


@pytest.mark.req("CONV-06")
async def test_the_same_key_stores_once_and_gives_the_first_node(
    conversations: Conversations, talk: Conversation
) -> None:
    first = await conversations.append(talk.id, "one", context=USER, key="k", expect=0, state={"n": 1})
    await say(conversations, talk, "two")

    again = await conversations.append(talk.id, "other", context=USER, key="k", expect=0, state={"n": 2})

    assert again == first
    assert (await conversations.get(talk.id)).revision == 2


@pytest.mark.req("CONV-06")
async def test_a_key_holds_in_one_conversation(conversations: Conversations, talk: Conversation) -> None:
    other = await conversations.create()
    first = await conversations.append(talk.id, "one", context=USER, key="k")

    second = await conversations.append(other.id, "two", context=USER, key="k")

    assert (first.content, second.content) == ("one", "two")


@pytest.mark.req("CONV-03", "ENG-05")
async def test_a_stale_writer_is_told_the_current_revision(conversations: Conversations, talk: Conversation) -> None:
    (node,) = await say(conversations, talk, "one")
    await conversations.edit(node.id, "changed", version=1)

    with pytest.raises(Conflict) as refused:
        await conversations.append(talk.id, "two", context=USER, expect=1)

    assert (refused.value.expected, refused.value.current) == (1, 2)
    node = await conversations.append(talk.id, "two", context=USER, expect=refused.value.current)
    assert (node.seq, node.revision) == (2, 3)


@pytest.mark.req("CONV-02")
@pytest.mark.parametrize("context", ["", "text", "text:user", "text:user:", "Text:user:ann", ":user:ann", "text::ann"])
async def test_a_context_of_another_form_is_refused(
    conversations: Conversations, talk: Conversation, context: str
) -> None:
    with pytest.raises(InvalidInput, match="type:name:value"):
        await conversations.append(talk.id, "hi", context=context)
    with pytest.raises(InvalidInput, match="type:name:value"):
        await conversations.append_all(talk.id, [NodeInput(content="hi", context=context)])

    assert await conversations.last(talk.id, 1) == []


@pytest.mark.req("CONV-02")
@pytest.mark.parametrize(
    "payload",
    [
        {"role": "robot"},
        {"tool_calls": [{"id": "c1", "name": "track"}]},
        {"tool_calls": {"id": "c1"}},
        {"tool_call_id": 7},
        {"attachments": ["file"]},
    ],
)
async def test_a_payload_whose_known_parts_are_of_another_kind_is_refused(
    conversations: Conversations, talk: Conversation, payload: dict[str, Any]
) -> None:
    node = await conversations.append(talk.id, "hi", context=USER)

    with pytest.raises(InvalidInput, match="payload"):
        await conversations.append(talk.id, "hi", context=USER, payload=payload)
    with pytest.raises(InvalidInput, match="payload"):
        await conversations.append_all(talk.id, [NodeInput(content="hi", context=USER, payload=payload)])
    with pytest.raises(InvalidInput, match="payload"):
        await conversations.edit(node.id, "hi", version=1, payload=payload)

    assert await conversations.since(talk.id, 0) == [node]


async def test_a_payload_may_be_any_mapping(conversations: Conversations, talk: Conversation) -> None:
    node = await conversations.append(talk.id, "hi", context=USER, payload=MappingProxyType({"role": "user"}))

    assert (await conversations.read(node.id)).payload == {"role": "user"}


@pytest.mark.req("CONV-02", "ENG-08")
async def test_what_is_too_large_is_refused_plainly(conversations: Conversations, talk: Conversation) -> None:
    large = "x" * 10_000_000
    (node,) = await say(conversations, talk, "one")

    for work in (
        conversations.append(talk.id, large, context=USER),
        conversations.append(talk.id, "", context=USER, payload={"own": large}),
        conversations.append(talk.id, "", context=USER, state={"large": large}),
        conversations.append(talk.id, "", context=USER, key=large),
        conversations.append_all(talk.id, [NodeInput(content=large, context=USER)]),
        conversations.append_all(talk.id, [NodeInput(content="", context=USER)] * (MAX_NODES + 1)),
        conversations.edit(node.id, large, version=1),
    ):
        with pytest.raises(TooLarge):
            await work

    assert await conversations.since(talk.id, 0) == [node]


@pytest.mark.req("CONV-02")
async def test_eight_megabytes_of_content_are_kept(conversations: Conversations, talk: Conversation) -> None:
    text = "x" * (8 * 1024 * 1024)

    node = await conversations.append(talk.id, text, context=USER)

    assert (await conversations.read(node.id)).content == text


@pytest.mark.req("CONV-09")
async def test_what_a_framework_wrote_is_kept_to_the_letter_and_read_for_that_framework_alone(
    conversations: Conversations, talk: Conversation
) -> None:
    native = '{"b" : 1.0,  "a": [1e3, "\\u00fc"], "a": 2}'
    await conversations.append(talk.id, "hi", context=USER, form="adk", native=native)
    await say(conversations, talk, "plain")

    for framework, expected in (("adk", [native, None]), ("langchain", [None, None]), (None, [None, None])):
        assert [node.native for node in await conversations.last(talk.id, 9, native=framework)] == expected
        assert [node.native for node in await conversations.since(talk.id, 0, native=framework)] == expected


@pytest.mark.req("CONV-03")
async def test_nodes_that_belong_together_are_appended_together(
    conversations: Conversations, talk: Conversation
) -> None:
    drafts = [
        NodeInput(content="one", context=USER, payload={"role": "user"}, key="k1"),
        NodeInput(content="two\0", context="text:agent:support", form="adk", native='{"a":1}'),
    ]

    nodes = await conversations.append_all(talk.id, drafts, expect=0, state={"step": 1})

    assert [(node.seq, node.content, node.key, node.form, node.native) for node in nodes] == [
        (1, "one", "k1", None, None),
        (2, "two\0", None, "adk", '{"a":1}'),
    ]
    assert [node.state for node in nodes] == [{"step": [1]}, None]
    assert await conversations.since(talk.id, 0, native="adk") == nodes


@pytest.mark.req("CONV-03", "CONV-06")
async def test_nodes_appended_together_again_are_stored_once(conversations: Conversations, talk: Conversation) -> None:
    drafts = [NodeInput(content=str(number), context=USER, key=f"k{number}") for number in range(3)]
    first = await conversations.append_all(talk.id, drafts, expect=0, state={"step": 1})

    again = await conversations.append_all(talk.id, drafts, expect=0, state={"step": 2})

    assert again == first
    assert (await conversations.get(talk.id)).revision == 3


@pytest.mark.req("CONV-03", "ENG-05")
async def test_new_nodes_beside_known_ones_are_refused_when_the_conversation_has_gone_on(
    conversations: Conversations, talk: Conversation
) -> None:
    known = NodeInput(content="known", context=USER, key="k")
    await conversations.append_all(talk.id, [known], expect=0)
    await say(conversations, talk, "meanwhile")

    with pytest.raises(Conflict) as refused:
        await conversations.append_all(talk.id, [known, NodeInput(content="new", context=USER)], expect=0)

    assert refused.value.current == 2
    assert (await conversations.get(talk.id)).last_seq == 2


@pytest.mark.req("CONV-03")
async def test_state_comes_with_the_first_node_that_is_new(
    engine: Engine, conversations: Conversations, talk: Conversation
) -> None:
    known = NodeInput(content="known", context=USER, key="k")
    await conversations.append_all(talk.id, [known])

    _, new = await conversations.append_all(talk.id, [known, NodeInput(content="new", context=USER)], state={"step": 1})

    assert new.state == {"step": [1]}
    assert await engine.state.get(talk.id) == {"step": 1}


@pytest.mark.req("CONV-03")
async def test_appending_nothing_does_nothing(conversations: Conversations, talk: Conversation) -> None:
    assert await conversations.append_all(talk.id, []) == []

    assert await conversations.get(talk.id) == talk


# Editing and deleting


@pytest.mark.req("CONV-03", "CONV-04")
async def test_an_edit_leaves_the_former_version_readable(conversations: Conversations, talk: Conversation) -> None:
    node = await conversations.append(talk.id, "one", context=USER, payload={"role": "user"}, form="adk", native="{}")

    second = await conversations.edit(node.id, "two", version=1)
    third = await conversations.edit(node.id, "three", version=2, payload=None)

    assert (second.content, second.payload, second.version, second.form) == ("two", {"role": "user"}, 2, None)
    assert (third.content, third.payload, third.version, third.seq) == ("three", None, 3, 1)
    revisions = await conversations.revisions(node.id)
    assert [(former.version, former.content, former.payload) for former in revisions] == [
        (1, "one", {"role": "user"}),
        (2, "two", {"role": "user"}),
        (3, "three", None),
    ]
    assert (await conversations.get(talk.id)).revision == 3


@pytest.mark.req("CONV-04")
async def test_a_deleted_node_keeps_its_number_and_its_former_version(
    conversations: Conversations, talk: Conversation
) -> None:
    one, two = await say(conversations, talk, "one", "two")

    gone = await conversations.delete(one.id, version=1)

    assert (gone.deleted, gone.content, gone.payload, gone.version, gone.seq) == (True, "", None, 2, 1)
    assert await conversations.last(talk.id, 9) == [two]
    assert [node.seq for node in await conversations.since(talk.id, 0)] == [1, 2]
    assert [(node.content, node.deleted) for node in await conversations.revisions(one.id)] == [
        ("one", False),
        ("", True),
    ]
    assert await conversations.subtree(one.id) == []


@pytest.mark.req("CONV-01", "CONV-04")
async def test_what_lies_below_a_deleted_node_is_deleted_too(conversations: Conversations, outline: Outline) -> None:
    await conversations.delete(outline.one.id, version=1)

    assert await read(conversations, outline.root) == ["", "two"]
    assert (await conversations.read(outline.paragraph.id)).deleted
    assert (await conversations.revisions(outline.paragraph.id))[0].content == "paragraph"
    with pytest.raises(NotFound):
        await conversations.append(outline.root, "x", context=USER, parent=outline.first.id)


@pytest.mark.req("ENG-05", "CONV-03")
@pytest.mark.parametrize("how", ["edit", "delete", "move"])
@pytest.mark.parametrize("version", [0, 1, 3, -1])
async def test_a_change_of_another_version_is_refused_with_the_current_one(
    conversations: Conversations, outline: Outline, how: str, version: int
) -> None:
    node = await conversations.edit(outline.one.id, "changed", version=1)
    changes = {
        "edit": conversations.edit(node.id, "x", version=version),
        "delete": conversations.delete(node.id, version=version),
        "move": conversations.move(node.id, version=version, parent=outline.two.id),
    }

    with pytest.raises(Conflict) as refused:
        await changes.pop(how)

    assert (refused.value.expected, refused.value.current) == (version, 2)
    assert await conversations.read(node.id) == node
    for unused in changes.values():
        unused.close()


@pytest.mark.req("CONV-03")
async def test_neither_a_root_nor_a_deleted_node_is_changed(conversations: Conversations, outline: Outline) -> None:
    gone = await conversations.delete(outline.two.id, version=1)

    for work in (
        conversations.edit(outline.root, "x", version=1),
        conversations.delete(outline.root, version=1),
        conversations.move(outline.root, version=1, parent=outline.one.id),
        conversations.edit(gone.id, "x", version=2),
        conversations.delete(gone.id, version=2),
        conversations.move(gone.id, version=2, parent=outline.one.id),
        conversations.move(outline.one.id, version=1, parent=gone.id),
    ):
        with pytest.raises(InvalidInput, match="cannot be changed"):
            await work


# Trees


@pytest.mark.req("CONV-01", "CONV-03")
async def test_a_tree_is_read_in_reading_order(conversations: Conversations, outline: Outline) -> None:
    assert await read(conversations, outline.root) == ["", "one", "first", "paragraph", "second", "two"]
    assert await read(conversations, outline.one.id) == ["one", "first", "paragraph", "second"]
    assert await read(conversations, outline.two.id) == ["two"]
    assert [node.seq for node in await conversations.since(outline.root, 0)] == [1, 2, 3, 4, 5]


@pytest.mark.req("CONV-03")
async def test_a_node_moves_with_all_below_it(conversations: Conversations, outline: Outline) -> None:
    moved = await conversations.move(outline.first.id, version=1, parent=outline.two.id)

    assert (moved.parent, moved.version, moved.seq, moved.content) == (outline.two.id, 2, 3, "first")
    assert await read(conversations, outline.root) == ["", "one", "second", "two", "first", "paragraph"]
    assert [former.parent for former in await conversations.revisions(moved.id)] == [outline.one.id, outline.two.id]


@pytest.mark.req("CONV-03")
async def test_a_node_moves_before_a_sibling_and_to_the_end(conversations: Conversations, outline: Outline) -> None:
    await conversations.move(outline.two.id, version=1, parent=outline.root, before=outline.one.id)
    assert await read(conversations, outline.root) == ["", "two", "one", "first", "paragraph", "second"]

    await conversations.move(outline.paragraph.id, version=1, parent=outline.one.id, before=outline.second.id)
    assert await read(conversations, outline.one.id) == ["one", "first", "paragraph", "second"]

    await conversations.move(outline.first.id, version=1, parent=outline.one.id)
    assert await read(conversations, outline.one.id) == ["one", "paragraph", "second", "first"]


@pytest.mark.req("CONV-03")
async def test_a_node_never_comes_to_lie_below_itself(conversations: Conversations, outline: Outline) -> None:
    for parent in (outline.one.id, outline.first.id, outline.paragraph.id):
        with pytest.raises(InvalidInput, match="its own descendant"):
            await conversations.move(outline.one.id, version=1, parent=parent)

    assert await read(conversations, outline.one.id) == ["one", "first", "paragraph", "second"]


@pytest.mark.req("CONV-03")
async def test_a_node_does_not_leave_its_tree(
    conversations: Conversations, outline: Outline, talk: Conversation
) -> None:
    (elsewhere,) = await say(conversations, talk, "hi")

    for parent in (talk.id, elsewhere.id, uuid4()):
        with pytest.raises(InvalidInput, match="not in the same tree"):
            await conversations.move(outline.one.id, version=1, parent=parent)
    for sibling in (elsewhere.id, outline.second.id, outline.one.id, uuid4()):
        with pytest.raises(InvalidInput, match="not another child"):
            await conversations.move(outline.one.id, version=1, parent=outline.root, before=sibling)
    for parent in (elsewhere.id, talk.id):
        with pytest.raises(NotFound, match="there is no parent node"):
            await conversations.append(outline.root, "x", context=USER, parent=parent)

    assert await conversations.read(outline.one.id) == outline.one


@pytest.mark.req("CONV-03")
async def test_there_is_always_a_place_between_two_siblings(
    conversations: Conversations, document: Conversation
) -> None:
    nodes = await conversations.append_all(
        document.id, [NodeInput(content=f"{number}", context="text:section:book") for number in range(6)]
    )
    first, last = nodes[0], nodes[-1]
    versions = dict.fromkeys((node.id for node in nodes), 1)
    expected = [node.id for node in nodes]

    # Each move halves what is left before the last one; against the order of numbers, which would hide equal places.
    for number in range(400):
        node = nodes[4 - number % 4]
        await conversations.move(node.id, version=versions[node.id], parent=document.id, before=last.id)
        versions[node.id] += 1
        expected.remove(node.id)
        expected.insert(-1, node.id)
        assert [node.id for node in await conversations.subtree(document.id)] == [document.id, *expected]

    await conversations.move(last.id, version=1, parent=document.id, before=first.id)
    assert [node.id for node in await conversations.subtree(document.id)][1:3] == [last.id, first.id]


@pytest.mark.req("CONV-01", "CONV-10")
async def test_a_hundred_thousand_children_can_be_read_in_parts_only(
    conversations: Conversations, talk: Conversation
) -> None:
    drafts = [NodeInput(content="x", context=USER)] * MAX_NODES
    for _ in range(CHILDREN // MAX_NODES):
        await conversations.append_all(talk.id, drafts)

    with pytest.raises(TooLarge, match="last"):
        await conversations.subtree(talk.id)

    assert [node.seq for node in await conversations.last(talk.id, 3)] == [CHILDREN - 2, CHILDREN - 1, CHILDREN]
    assert [node.seq for node in await conversations.last(talk.id, 2, before=10)] == [8, 9]
    assert [node.seq for node in await conversations.since(talk.id, CHILDREN - 1)] == [CHILDREN]
    assert len(await conversations.since(talk.id, 0)) == MAX_NODES
    assert (await conversations.append(talk.id, "next", context=USER)).seq == CHILDREN + 1
    below = (await conversations.last(talk.id, 1))[0]
    assert await conversations.subtree(below.id) == [below]


# Reading


@pytest.mark.req("CONV-03")
async def test_the_newest_and_the_next_nodes_are_read_oldest_first(
    conversations: Conversations, talk: Conversation
) -> None:
    nodes = await say(conversations, talk, *"abcde")

    assert await conversations.last(talk.id, 2) == nodes[3:]
    assert await conversations.last(talk.id, 99) == nodes
    assert await conversations.last(talk.id, 2, before=4) == nodes[1:3]
    assert await conversations.last(talk.id, 2, before=1) == []
    assert await conversations.since(talk.id, 2) == nodes[2:]
    assert await conversations.since(talk.id, 0, limit=2) == nodes[:2]
    assert await conversations.since(talk.id, 5) == []


@pytest.mark.req("CONV-03")
@pytest.mark.parametrize("count", [0, -1, MAX_NODES + 1])
async def test_a_count_that_nobody_can_mean_is_refused(
    conversations: Conversations, talk: Conversation, count: int
) -> None:
    for work in (
        conversations.last(talk.id, count),
        conversations.since(talk.id, 0, limit=count),
        conversations.messages(talk.id, reader="support", limit=count),
        conversations.list(limit=count),
        conversations.search("x", limit=count),
    ):
        with pytest.raises(InvalidInput, match="Use 1 to"):
            await work


@pytest.mark.req("CONV-05")
async def test_messages_are_the_newest_nodes_as_an_agent_sees_them(
    conversations: Conversations, talk: Conversation
) -> None:
    calls = {"tool_calls": [{"id": "c1", "name": "track", "arguments": {"parcel": 7}}]}
    await say(conversations, talk, "forgotten")
    await conversations.append(talk.id, "Where is it?", context=USER)
    await conversations.append(talk.id, "", context="text:agent:support", payload=calls)
    await conversations.append(talk.id, "on its way", context="text:agent:tool", payload={"tool_call_id": "c1"})

    plain = await conversations.messages(talk.id, reader="support", limit=3)
    native = await conversations.messages(talk.id, reader="support", limit=3, tools=True)

    assert plain == [{"role": "user", "content": "Where is it?\n\non its way"}]
    assert native == [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "", **calls},
        {"role": "tool", "content": "on its way", "tool_call_id": "c1", "name": "track"},
    ]


# What it costs


async def touched(engine: Engine, talk: Conversation) -> int:
    """How many pages an append with a key and a state change looks at."""
    statement = """
    explain (analyze, buffers, timing off, format json)
    select * from holdfast.append(
      $1, $2, gen_random_uuid(), null, 'text', 'user', 'ann', 'hi', '{}', null, null, $3, null, null, '{"step": [1]}')
    """
    seen: Sequence[int] = []
    for number in range(5):  # the first ones also read the catalogue, and one may begin a new page
        plan = msgspec.json.decode(await engine.database.value(statement, talk.id, f"key {uuid4()} {number}"))[0][
            "Plan"
        ]
        seen = [*seen, plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]]
    return min(seen)


@pytest.mark.req("CONV-10")
async def test_an_append_touches_no_more_pages_in_a_long_conversation_nor_with_a_large_state(
    engine: Engine, conversations: Conversations, talk: Conversation
) -> None:
    drafts = [NodeInput(content="x" * 500, context=USER, key=f"k{number}") for number in range(MAX_NODES)]
    await conversations.append_all(talk.id, drafts[:100], state={"step": 0})
    short = await touched(engine, talk)

    await conversations.append_all(talk.id, drafts[100:])
    await engine.state.set(talk.id, {f"key {number}": "x" * 1000 for number in range(1000)})
    await engine.state.set(talk.id, {"whole": "x" * 1_000_000})

    long = await touched(engine, talk)
    assert 0 < long <= short + 12, "a few pages more are the levels that indexes grow by"


@pytest.mark.req("CONV-10")
async def test_the_last_twenty_touch_no_more_pages_in_a_long_conversation(
    engine: Engine, conversations: Conversations, talk: Conversation
) -> None:
    async def touched() -> int:
        statement = "explain (analyze, buffers, timing off, format json) " + sql("last")
        plan = msgspec.json.decode(await engine.database.value(statement, talk.id, 20, None, None))[0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

    drafts = [NodeInput(content="x" * 500, context=USER)] * MAX_NODES
    await conversations.append_all(talk.id, drafts[:100])
    short = await touched()

    await conversations.append_all(talk.id, drafts)

    assert await touched() <= short + 5


@pytest.mark.req("ENG-05")
async def test_of_two_who_edit_one_version_one_wins(engine: Engine, second: Engine, talk: Conversation) -> None:
    (node,) = await say(engine.conversations, talk, "one")

    outcomes = await asyncio.gather(
        *(both.conversations.edit(node.id, name, version=1) for both, name in ((engine, "a"), (second, "b"))),
        return_exceptions=True,
    )

    (won,) = [outcome for outcome in outcomes if isinstance(outcome, Node)]
    (lost,) = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert lost.current == 2
    assert await engine.conversations.read(node.id) == won
