import asyncio
import math
import random
from functools import partial
from typing import Any

import pytest

from holdfast.conversations import DELETED, Conversation, Conversations, NodeInput, State
from holdfast.conversations.state import MAX_KEY_BYTES, MAX_KEYS, StateChanged, StateValue
from holdfast.core.errors import Conflict, InvalidInput, TooLarge
from holdfast.engine import Engine

pytestmark = pytest.mark.req("CONV-03")

MEGABYTE = 1_000_000
HOSTILE = ["", " ", "app", "user", "ünï 😀", "nul\0nul", "half \ud83d", "quote ' \" \\ $1", "\U0010fffe0000"]
USER = "text:user:ann"


@pytest.fixture
async def other(conversations: Conversations) -> Conversation:
    """Another conversation of ann's in the same app."""
    return await conversations.create(app="shop", user="ann")


async def test_a_prefix_says_whose_a_value_is(
    conversations: Conversations, state: State, talk: Conversation, other: Conversation
) -> None:
    bobs = await conversations.create(app="shop", user="bob")
    elsewhere = await conversations.create(app="desk", user="ann")

    await state.set(talk.id, {"step": 3, "user:theme": "dark", "app:motto": "fast"})

    assert await state.get(talk.id) == {"step": 3, "user:theme": "dark", "app:motto": "fast"}
    assert await state.get(other.id) == {"user:theme": "dark", "app:motto": "fast"}
    assert await state.get(bobs.id) == {"app:motto": "fast"}
    assert await state.get(elsewhere.id) == {}


async def test_state_comes_with_a_new_conversation_with_a_node_and_by_itself(
    conversations: Conversations, state: State
) -> None:
    talk = await conversations.create(user="ann", state={"a": 1, "user:u": 1})
    await conversations.append(talk.id, "hi", context="text:user:ann", state={"b": 2, "a": 2})
    await state.set(talk.id, {"c": 3})

    assert await state.get(talk.id) == {"a": 2, "b": 2, "c": 3, "user:u": 1}
    assert (await conversations.get(talk.id)).revision == 2


async def test_what_is_temporary_is_never_stored(
    engine: Engine, conversations: Conversations, state: State, talk: Conversation
) -> None:
    made = await conversations.create(state={"temp:a": 1})
    node = await conversations.append(talk.id, "hi", context="text:user:ann", state={"temp:b": 1, "b": 2})
    await state.set(talk.id, {"temp:c": 1})

    assert await state.get(talk.id) == {"b": 2}
    assert await state.get(made.id) == {}
    assert node.state == {"b": [2]}
    assert await engine.database.value("select count(*) from state where tenant_id = $1") == 1


async def test_none_is_a_value_and_deleted_is_none(state: State, talk: Conversation) -> None:
    await state.set(talk.id, {"a": None, "b": 1, "user:c": 1, "app:d": 1})
    await state.set(talk.id, {"b": DELETED})
    await state.delete(talk.id, "user:c", "app:d", "never there")

    assert await state.get(talk.id) == {"a": None}


async def test_a_node_deletes_keys_too(conversations: Conversations, state: State, talk: Conversation) -> None:
    await state.set(talk.id, {"a": 1, "b": 1})

    node = await conversations.append(talk.id, "hi", context="text:user:ann", state={"a": DELETED, "b": None})

    assert await state.get(talk.id) == {"b": None}
    assert node.state == {"a": [], "b": [None]}


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("prefix", ["", "user:", "app:"])
async def test_any_text_is_a_key_and_any_json_a_value(state: State, talk: Conversation, prefix: str, text: str) -> None:
    value: list[Any] = [text, {text: True}, 1.0, 10**30, math.inf, None]

    await state.set(talk.id, {prefix + text: value})

    assert await state.get(talk.id) == {prefix + text: value}
    await state.delete(talk.id, prefix + text)
    assert await state.get(talk.id) == {}


async def test_a_value_is_replaced_never_merged(state: State, talk: Conversation) -> None:
    await state.set(talk.id, {"a": {"x": 1}, "flag": True})
    await state.set(talk.id, {"a": {"y": 2}})

    assert await state.get(talk.id) == {"a": {"y": 2}, "flag": True}


@pytest.mark.req("ENG-05")
async def test_a_version_grows_with_every_change_even_across_a_deletion(state: State, talk: Conversation) -> None:
    await state.set(talk.id, {"a": 1})
    await state.set(talk.id, {"a": 1, "b": 1})
    assert await state.versions(talk.id) == {"a": StateValue(1, 2), "b": StateValue(1, 1)}

    await state.delete(talk.id, "a")
    await state.set(talk.id, {"a": 2})

    assert (await state.versions(talk.id))["a"] == StateValue(2, 4)


@pytest.mark.req("ENG-05")
@pytest.mark.parametrize("key", ["step", "user:step", "app:step"])
async def test_a_change_that_expected_another_version_is_refused_with_the_current_one(
    state: State, talk: Conversation, key: str
) -> None:
    await state.set(talk.id, {key: 1})
    await state.set(talk.id, {key: 2}, expect={key: 1, "absent": 0})

    for expected in (0, 1, 3):
        with pytest.raises(Conflict) as refused:
            await state.set(talk.id, {key: 9, "more": 1}, expect={key: expected})
        assert (refused.value.expected, refused.value.current) == (expected, 2)
        assert refused.value.details["key"] == key
    with pytest.raises(Conflict, match="absent"):
        await state.set(talk.id, {key: 9}, expect={key: 2, "absent": 1})

    assert await state.get(talk.id) == {key: 2}


@pytest.mark.req("ENG-05")
async def test_a_deleted_key_is_one_that_is_not_there(state: State, talk: Conversation) -> None:
    await state.set(talk.id, {"a": 1})
    await state.delete(talk.id, "a")

    with pytest.raises(Conflict) as refused:
        await state.set(talk.id, {"a": 2}, expect={"a": 1})
    await state.set(talk.id, {"a": 2}, expect={"a": 0})

    assert refused.value.current == 0
    assert await state.get(talk.id) == {"a": 2}


@pytest.mark.req("ENG-05")
async def test_versions_can_be_expected_of_keys_that_stay_as_they_are(state: State, talk: Conversation) -> None:
    await state.set(talk.id, {"a": 1})

    await state.set(talk.id, {}, expect={"a": 1})
    with pytest.raises(Conflict):
        await state.set(talk.id, {"temp:b": 1}, expect={"a": 2})

    assert await state.versions(talk.id) == {"a": StateValue(1, 1)}


@pytest.mark.req("ENG-05")
@pytest.mark.parametrize("key", ["user:first", "app:first"])
async def test_of_two_conversations_that_expect_a_key_to_be_absent_one_sets_it(
    engine: Engine, second: Engine, talk: Conversation, other: Conversation, key: str
) -> None:
    outcomes = await asyncio.gather(
        engine.state.set(talk.id, {key: "talk"}, expect={key: 0}),
        second.state.set(other.id, {key: "other"}, expect={key: 0}),
        return_exceptions=True,
    )

    (lost,) = [outcome for outcome in outcomes if outcome is not None]
    assert isinstance(lost, Conflict)
    assert lost.current == 1
    assert await engine.state.versions(talk.id) == {key: StateValue("talk" if outcomes[0] is None else "other", 1)}


@pytest.mark.req("ENG-05")
async def test_counting_from_two_conversations_loses_nothing(
    engine: Engine, second: Engine, talk: Conversation, other: Conversation
) -> None:
    async def count(engine: Engine, conversation: Conversation) -> None:
        for _ in range(10):
            while True:
                found = (await engine.state.versions(conversation.id)).get("user:n", StateValue(0, 0))
                try:
                    await engine.state.set(
                        conversation.id, {"user:n": found.value + 1}, expect={"user:n": found.version}
                    )
                except Conflict:
                    continue
                break

    async with asyncio.timeout(60):
        await asyncio.gather(count(engine, talk), count(second, other), count(second, talk), count(engine, other))

    assert await engine.state.versions(talk.id) == {"user:n": StateValue(40, 40)}


async def test_parallel_creates_keep_every_shared_key(engine: Engine, second: Engine) -> None:
    both = (engine, second)

    made = await asyncio.gather(
        *(
            both[number % 2].conversations.create(
                app="shop", user="ann", state={f"user:{number}": 1, f"app:{number}": 1}
            )
            for number in range(24)
        )
    )

    assert await engine.state.get(made[0].id) == {f"{scope}:{n}": 1 for scope in ("app", "user") for n in range(24)}


@pytest.mark.req("CONV-10")
async def test_a_megabyte_of_state_is_kept_in_one_value_and_in_many(state: State, talk: Conversation) -> None:
    whole = {"whole": "x" * MEGABYTE, **{f"key {number}": "x" * 1000 for number in range(1000)}}

    await state.set(talk.id, whole)
    await state.set(talk.id, {"key 7": "changed"})

    assert await state.get(talk.id) == {**whole, "key 7": "changed"}


@pytest.mark.parametrize(
    "state_of_all", [{"x" * (MAX_KEY_BYTES + 1): 1}, dict.fromkeys(map(str, range(MAX_KEYS + 1)), 1)]
)
async def test_too_many_keys_or_too_long_ones_are_refused(
    state: State, talk: Conversation, state_of_all: dict[str, int]
) -> None:
    with pytest.raises(TooLarge, match="state"):
        await state.set(talk.id, state_of_all)

    assert await state.get(talk.id) == {}


async def test_a_user_is_needed_to_keep_something_for_them(conversations: Conversations, state: State) -> None:
    talk = await conversations.create()

    for work in (
        state.set(talk.id, {"user:theme": "dark"}),
        state.set(talk.id, {"a": 1}, expect={"user:theme": 0}),
        conversations.append(talk.id, "hi", context="text:user:ann", state={"a": 1, "user:theme": "dark"}),
        conversations.create(state={"user:theme": "dark"}),
    ):
        with pytest.raises(InvalidInput, match="it has no user"):
            await work

    assert await state.get(talk.id) == {}
    assert await conversations.list() == [talk]


@pytest.mark.req("ENG-08")
async def test_a_value_that_is_no_json_is_refused_and_the_connection_stays_usable(
    state: State, talk: Conversation
) -> None:
    with pytest.raises(InvalidInput, match="JSON"):
        await state.set(talk.id, {"a": object()})

    await state.set(talk.id, {"a": 1})
    assert await state.get(talk.id) == {"a": 1}


@pytest.mark.parametrize("app", ["shop", "nul\0nul", "half \ud83d"])
async def test_what_an_app_keeps_for_a_user_is_read_without_a_conversation(engine: Engine, app: str) -> None:
    await engine.conversations.create(app=app, user="ann", state={"user:theme": "dark", "user:gone": 1, "step": 1})
    talk = await engine.conversations.create(app=app, user="ann", state={"user:gone": DELETED})
    ann = await engine.identities.find_id("user", "ann")

    found = await engine.state.of_user(app, ann)

    assert found == {"theme": "dark"}
    assert await engine.state.of_user("other", ann) == {}
    assert await engine.state.get(talk.id) == {"user:theme": "dark"}


@pytest.mark.req("ENG-05")
async def test_a_refused_change_leaves_nothing_behind(engine: Engine, state: State, talk: Conversation) -> None:
    wrong = {"mine": 7, "user:theirs": 7, "app:ours": 7}

    with pytest.raises(Conflict):
        await state.set(talk.id, {"step": 1}, expect=wrong)

    assert await engine.database.value("select count(*) from state where tenant_id = $1") == 0


@pytest.mark.req("ENG-05")
@pytest.mark.parametrize("expect", [{"temp:x": 0}, {"x" * 1001: 0}, {str(number): 0 for number in range(10_001)}])
async def test_what_cannot_be_a_key_cannot_be_expected(
    state: State, talk: Conversation, expect: dict[str, int]
) -> None:
    with pytest.raises((InvalidInput, TooLarge)):
        await state.set(talk.id, {"step": 1}, expect=expect)

    assert await state.get(talk.id) == {}


def folded(changes: list[StateChanged], upto: int) -> dict[str, Any]:
    """A conversation's own state at a node, as a page reckons it."""
    state: dict[str, Any] = {}
    for change in changes:
        if change.seq <= upto:
            state |= change.set
            state = {name: value for name, value in state.items() if name not in change.deleted}
    return {name: value for name, value in state.items() if not name.startswith("user:")}


@pytest.mark.req("UI-01", "CONV-08")
@pytest.mark.parametrize("seed", range(3))
async def test_the_changes_up_to_a_node_make_the_state_that_a_fork_there_has(
    conversations: Conversations, state: State, seed: int
) -> None:
    chance = random.Random(seed)
    talk = await conversations.create(user="ann", state={"a": 0})
    nodes = [await conversations.append(talk.id, "0", context=USER)]
    for number in range(30):
        change = {
            chance.choice(["a", "b", "c", "user:a", "temp:a"]): chance.choice([number, None, [number], DELETED])
            for _ in range(chance.randint(0, 3))
        }
        match chance.randrange(5):
            case 0 | 1:
                nodes.append(await conversations.append(talk.id, str(number), context=USER, state=change))
            case 2:
                drafts = [NodeInput(content="x", context=USER), NodeInput(content="y", context=USER)]
                nodes += await conversations.append_all(talk.id, drafts, state=change)
            case 3:
                await state.set(talk.id, change)
            case _:  # a node that changes later keeps the state that came with it, at its place
                place = chance.randrange(len(nodes))
                if not nodes[place].deleted:
                    changed = conversations.delete if number % 2 else partial(conversations.edit, content="z")
                    nodes[place] = await changed(nodes[place].id, version=nodes[place].version)
        if number == 20:  # a fork goes on where the conversation was
            talk = await conversations.fork(talk.id)
            nodes = await conversations.since(talk.id, 0)

    changes = await state.changes(talk.id)
    paged: list[StateChanged] = []
    while page := await state.changes(talk.id, since=paged[-1].revision if paged else None, limit=4):
        paged += page

    assert paged == changes
    for node in nodes:
        fork = await conversations.fork(talk.id, at=node.seq)
        own = {name: value for name, value in (await state.get(fork.id)).items() if not name.startswith("user:")}
        assert folded(changes, node.seq) == own
        assert await state.changes(fork.id) == [change for change in changes if change.seq <= node.seq]


@pytest.mark.req("UI-01", "ENG-04")
async def test_a_conversation_without_changes_and_one_of_another_tenant_tell_none(
    conversations: Conversations, state: State, talk: Conversation, acme: Engine
) -> None:
    await conversations.append(talk.id, "Hello", context=USER)

    before = await state.changes(talk.id)
    await state.set(talk.id, {"step": 1})

    assert before == await acme.state.changes(talk.id) == []
    assert [change.set for change in await state.changes(talk.id)] == [{"step": 1}]
