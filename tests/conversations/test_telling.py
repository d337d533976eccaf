"""A conversation with an agent tells the agent's topic of every change: once, in order, with its commit, no content."""

import asyncio
import json
import random
from collections import Counter
from datetime import UTC
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

from holdfast.bus.postgres_feed import topic_channel
from holdfast.bus.records import draft, hash_of
from holdfast.conversations import Conversation, Conversations, NodeInput, State
from holdfast.core.errors import Conflict, InvalidInput, NotFound
from holdfast.engine import Engine
from tests.logins import tenant_login
from tests.told import Told, define, told

USER = "text:user:ann"
AGENT = "text:agent:support"
CANARY = "canary-7f3a"
ROWS = 'select partition, key, headers::text, value::text, bytes from record where tenant_id = $1 order by "offset"'
REMOVE = "select holdfast.remove_topic($1, $2)"
IN_TOKYO = "select $1::uuid, set_config('timezone', 'Asia/Tokyo', true)"
WAITS = "select exists (select from pg_locks where not granted)"


@pytest.fixture
async def topic(engine: Engine) -> str:
    """The topic of the agent `support`."""
    return await define(engine, "support")


@pytest.fixture
async def talk(conversations: Conversations, topic: str) -> Conversation:
    """A conversation of ann's with the agent."""
    return await conversations.create(app="shop", user="ann", agent="support", session_id="web-42")


def calls(name: str, **arguments: object) -> dict[str, object]:
    """The payload of a node that calls a tool."""
    return {"tool_calls": [{"id": "c1", "name": name, "arguments": arguments}]}


def brief(found: list[Told]) -> list[tuple[int | None, str, str, UUID]]:
    """The gist of all."""
    return [each.brief for each in found]


# What is told


@pytest.mark.req("TALK-01", "TALK-02")
async def test_every_change_is_told_once_with_what_happened_and_who_did_it(
    engine: Engine, conversations: Conversations, state: State, topic: str, talk: Conversation
) -> None:
    asked = await conversations.append(talk.id, "Where is it?", context=USER)
    looks = await conversations.append(talk.id, "", context=AGENT, payload=calls("track", parcel="P-1"))
    found = await conversations.append(talk.id, "on its way", context="text:agent:tool")
    answer = await conversations.append(talk.id, "On its way.", context=AGENT)
    notice = await conversations.append(talk.id, "Be brief.", context="text:system:system")
    summary = await conversations.append(talk.id, "A parcel.", context="summary:agent:support")
    await conversations.edit(answer.id, "It comes today.", version=1)
    await conversations.move(found.id, version=1, parent=looks.id)
    await conversations.delete(looks.id, version=1)
    await state.set(talk.id, {"step": 1})
    await conversations.clear(talk.id)

    assert brief(await told(engine, topic)) == [
        (1, "create", "ui", asked.id),
        (2, "tool_invoke", "support", looks.id),
        (3, "tool_result", "tool", found.id),
        (4, "append", "support", answer.id),
        (5, "system_message", "system", notice.id),
        (6, "append", "support", summary.id),
        (7, "edit", "system", answer.id),
        (8, "move", "system", found.id),
        (9, "delete", "system", looks.id),
        (10, "state", "system", talk.id),
        (11, "clear", "system", talk.id),
    ]
    assert (await conversations.get(talk.id)).revision == 11


@pytest.mark.req("TALK-02", "BUS-03")
async def test_a_record_has_the_form_that_every_reader_knows(
    engine: Engine, conversations: Conversations, topic: str, talk: Conversation
) -> None:
    node = await conversations.append(talk.id, "Hi", context=USER, form="adk", native="{}")

    (found,) = await told(engine, topic)
    row = await engine.database.one(ROWS)

    assert found.message.version == "1.0.0"
    assert found.message.conversation_id == found.message.docmem_node_id == talk.id
    assert found.message.timestamp == node.created_at.astimezone(UTC)
    assert found.record.value["timestamp"].endswith("Z")
    assert found.message.correlation_id is None
    assert found.message.command is None
    assert found.record.headers == {
        "content-type": "application/json",
        "holdfast-schema": "conversation-message/1.0.0",
        "holdfast-sequence": "1",
        "holdfast-form": "adk",
    }
    assert row is not None
    same = draft(topic, found.record.value, key=str(talk.id), headers=found.record.headers, max_bytes=10_000)
    assert (row["partition"], row["key"], row["bytes"]) == (same.hash % 4, str(talk.id), same.bytes)


@pytest.mark.req("TALK-02")
async def test_the_time_is_told_in_utc_wherever_the_session_thinks_it_is(
    engine: Engine, conversations: Conversations, topic: str, talk: Conversation
) -> None:
    async with engine.transaction() as tx:
        await tx.run(IN_TOKYO)
        node = await conversations.append(talk.id, "Hi", context=USER, tx=tx)

    (found,) = await told(engine, topic)

    assert found.message.timestamp == node.created_at


@pytest.mark.req("TALK-02")
@pytest.mark.parametrize("together", [False, True])
async def test_content_is_never_told(
    engine: Engine, conversations: Conversations, state: State, topic: str, talk: Conversation, together: bool
) -> None:
    payload = {"tool_name": CANARY, "result": CANARY, "attachments": [{"name": CANARY}], CANARY: CANARY}
    context, native = f"text:user:{CANARY}", f'"{CANARY}"'
    if together:
        draft = NodeInput(content=CANARY, context=context, payload=payload, key=CANARY, form="adk", native=native)
        (node,) = await conversations.append_all(talk.id, [draft], state={CANARY: CANARY})
    else:
        node = await conversations.append(
            talk.id, CANARY, context=context, payload=payload, key=CANARY, state={CANARY: CANARY}, form="adk",
            native=native,
        )  # fmt: skip
    await conversations.edit(node.id, f"{CANARY}!", version=1, payload=payload)
    await state.set(talk.id, {f"{CANARY}!": CANARY})
    await conversations.delete(node.id, version=2)

    rows = await engine.database.all(ROWS)

    assert len(rows) == 4
    assert CANARY not in "".join(row["headers"] + row["value"] for row in rows)


@pytest.mark.req("TALK-02", "TALK-05")
@pytest.mark.parametrize("argument", ['köln "quoted" \\ \n', "\0 and \ud800 and \U0010fffe", {"deep": [1, 2.5, None]}])
async def test_a_call_of_a_tool_is_told_with_its_arguments_as_json(
    engine: Engine, conversations: Conversations, topic: str, talk: Conversation, argument: object
) -> None:
    payload = calls("track", parcel=argument)
    payload["tool_calls"] = [*payload["tool_calls"], {"id": "c2", "name": "other", "arguments": {}}]  # pyright: ignore[reportGeneralTypeIssues]
    await conversations.append(talk.id, "", context=AGENT, payload=payload)

    (found,) = await told(engine, topic)

    assert found.message.action == "tool_invoke"
    assert found.message.command is not None
    name, arguments = found.message.command
    assert (name, json.loads(arguments)) == ("track", {"parcel": argument})


@pytest.mark.req("TALK-02", "BUS-01")
async def test_a_call_with_long_arguments_is_told_without_them(
    engine: Engine, conversations: Conversations, topic: str, talk: Conversation
) -> None:
    await conversations.append(talk.id, "", context=AGENT, payload=calls("track", parcel="x" * 1_000_000))

    (found,) = await told(engine, topic)

    assert (found.message.action, found.message.command) == ("tool_invoke", None)


@pytest.mark.req("TALK-02")
@pytest.mark.parametrize(
    ("context", "payload", "action"),
    [
        (USER, calls("track"), "create"),
        ("text:agent:tool", calls("track"), "tool_result"),
        (AGENT, {"tool_calls": []}, "create"),
        ("note:agent:tool", None, "create"),
        ("text:system:system", None, "system_message"),
    ],
)
async def test_what_is_done_follows_from_context_and_payload(
    engine: Engine,
    conversations: Conversations,
    topic: str,
    talk: Conversation,
    context: str,
    payload: dict[str, object] | None,
    action: str,
) -> None:
    await conversations.append(talk.id, "", context=context, payload=payload)

    (found,) = await told(engine, topic)

    assert found.message.action == action


@pytest.mark.req("TALK-02")
async def test_nodes_that_are_appended_together_are_told_one_by_one(
    engine: Engine, conversations: Conversations, topic: str, talk: Conversation
) -> None:
    known = await conversations.append(talk.id, "hi", context=USER, key="k0")
    drafts = [NodeInput(content=str(number), context=USER, key=f"k{number}", form="adk") for number in range(1000)]
    drafts[1] = NodeInput(content="", context=AGENT, payload=calls("track"))

    nodes = await conversations.append_all(talk.id, drafts, state={"step": 1})

    found = await told(engine, topic)
    assert nodes[0] == known
    assert [each.message.node_id for each in found] == [node.id for node in nodes]
    assert [each.sequence for each in found] == list(range(1, 1001))
    assert [each.message.action for each in found[:3]] == ["create", "tool_invoke", "append"]
    assert [each.record.headers.get("holdfast-form") for each in found[:3]] == [None, None, "adk"]
    assert len({each.record.id for each in found}) == 1000


@pytest.mark.req("TALK-01", "STM-01")
async def test_what_langchain_adds_and_deletes_is_told(engine: Engine) -> None:
    async with tenant_login(engine, "globex") as login:
        topic = await define(login.engine, "support")
        talk = await login.engine.conversations.create(agent="support")
        call = ToolCall(name="track", args={"parcel": "P-1"}, id="c1", type="tool_call")

        history = login.history(str(talk.session_id))
        history.add_messages(
            [HumanMessage("Where?"), AIMessage("", tool_calls=[call]), ToolMessage("?", tool_call_id="c1")]
        )
        history.clear()

        found = await told(login.engine, topic, talk.id)
    assert [(each.sequence, each.message.action, each.message.agent_id) for each in found] == [
        (1, "create", "ui"),
        (2, "tool_invoke", "support"),
        (3, "tool_result", "tool"),
        (4, "delete", "system"),
        (5, "delete", "system"),
        (6, "delete", "system"),
    ]
    assert found[1].message.command == ["track", '{"parcel": "P-1"}']
    assert [each.record.headers.get("holdfast-form") for each in found] == ["langchain"] * 3 + [None] * 3


# Once, in order, with the commit


@pytest.mark.req("TALK-01", "BUS-03")
async def test_the_revisions_that_many_writers_tell_of_have_no_gap_and_no_twin(
    engine: Engine, second: Engine, topic: str
) -> None:
    talks = [await engine.conversations.create(user="ann", agent="support") for _ in range(3)]
    done: Counter[str] = Counter()

    async def write(writer: int) -> None:
        choose = random.Random(writer)
        own = (engine, second)[writer % 2]
        talk = talks[writer % 3]
        for number in range(8):
            how = choose.choice(["append", "append_all", "edit", "delete", "state", "keyed", "stale"])
            node = await own.conversations.append(talk.id, "x", context=USER)
            match how:
                case "append_all":
                    await own.conversations.append_all(talk.id, [NodeInput(content="x", context=AGENT)] * 3)
                case "edit":
                    await own.conversations.edit(node.id, "y", version=1)
                case "delete":
                    await own.conversations.delete(node.id, version=1)
                case "state":
                    await own.state.set(talk.id, {f"{number}": writer, "user:n": number, "app:n": number})
                case "keyed":
                    for _ in range(2):
                        await own.conversations.append(talk.id, "x", context=USER, key=f"{writer}/{number}")
                case "stale":
                    with pytest.raises(Conflict):
                        await own.conversations.append(talk.id, "x", context=USER, expect=0)
                case _:
                    pass
            done[how] += 1

    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        for writer in range(20):
            group.create_task(write(writer))

    assert len(done) == 7, "everything was done"
    for talk in talks:
        found = await told(engine, topic, talk.id)
        assert [each.sequence for each in found] == list(
            range(1, (await engine.conversations.get(talk.id)).revision + 1)
        )
        assert len({each.record.partition for each in found}) == 1
        nodes = await engine.conversations.since(talk.id, 0)
        said = [each for each in found if each.message.action in ("create", "append")]
        assert [each.message.node_id for each in said] == [node.id for node in nodes]
        last = {each.message.node_id: each.sequence for each in found}
        assert all(last[node.id] == node.revision for node in nodes)


@pytest.mark.req("BUS-02", "TALK-01")
async def test_a_transaction_that_is_rolled_back_tells_nothing_and_the_next_revision_has_no_gap(
    engine: Engine, conversations: Conversations, state: State, topic: str, talk: Conversation
) -> None:
    with pytest.raises(KeyError):  # noqa: PT012 - a transaction is several statements
        async with engine.transaction() as tx:
            node = await conversations.append(talk.id, "one", context=USER, tx=tx)
            await conversations.append_all(talk.id, [NodeInput(content="two", context=USER)], tx=tx)
            await conversations.edit(node.id, "three", version=1, tx=tx)
            await state.set(talk.id, {"step": 1}, tx=tx)
            await conversations.clear(talk.id, tx=tx)
            raise KeyError
    async with engine.transaction() as tx:
        kept = await conversations.append(talk.id, "one", context=USER, tx=tx)

    assert brief(await told(engine, topic)) == [(1, "create", "ui", kept.id)]


@pytest.mark.req("BUS-03", "TALK-01")
async def test_what_changes_nothing_is_not_told(
    engine: Engine, conversations: Conversations, state: State, topic: str, talk: Conversation
) -> None:
    node = await conversations.append(talk.id, "hi", context=USER, key="k1")
    await conversations.clear(talk.id)

    await conversations.append(talk.id, "hi", context=USER, key="k1")
    await conversations.append_all(talk.id, [NodeInput(content="hi", context=USER, key="k1")])
    await conversations.clear(talk.id)
    await state.set(talk.id, {"temp:step": 1})
    for stale in (
        conversations.append(talk.id, "x", context=USER, expect=7),
        conversations.append_all(talk.id, [NodeInput(content="x", context=USER)], expect=7),
        conversations.edit(node.id, "x", version=7),
        state.set(talk.id, {"step": 1}, expect={"step": 7}),
    ):
        with pytest.raises(Conflict):
            await stale
    with pytest.raises(InvalidInput):
        await conversations.delete(node.id, version=2)

    assert [each.message.action for each in await told(engine, topic)] == ["create", "clear"]


@pytest.mark.req("TALK-08")
async def test_readers_are_woken_when_it_has_committed(
    engine: Engine, conversations: Conversations, state: State, topic: str, talk: Conversation
) -> None:
    async def woken() -> None:
        async with asyncio.timeout(10):
            await event.wait()
        event.clear()

    async with engine.postgres.listen(topic_channel(await engine.database.tenant(), topic)) as event:
        await woken()  # the listener is connected
        node = await conversations.append(talk.id, "hi", context=USER)
        await woken()
        await conversations.append_all(talk.id, [NodeInput(content="hi", context=USER)])
        await woken()
        await conversations.edit(node.id, "ho", version=1)
        await woken()
        await state.set(talk.id, {"step": 1})
        await woken()
        await conversations.clear(talk.id)
        await woken()
        async with engine.transaction() as tx:
            await conversations.append(talk.id, "hi", context=USER, tx=tx)
            assert not event.is_set()
        await woken()


# Who tells, and where


@pytest.mark.req("TALK-01")
@pytest.mark.parametrize("agent", [None, "nobody", "retired", "window"])
async def test_a_conversation_without_an_agent_that_answers_tells_nobody(
    engine: Engine, conversations: Conversations, state: State, topic: str, agent: str | None
) -> None:
    await define(engine, "retired", active=False)
    await define(engine, "window", kind="ui")
    talk = await conversations.create(agent=agent)
    page = await conversations.create(agent="support", document=True)

    for id in (talk.id, page.id):
        node = await conversations.append(id, "hi", context=USER)
        await conversations.append_all(id, [NodeInput(content="hi", context=USER)])
        await conversations.edit(node.id, "ho", version=1)
        await state.set(id, {"step": 1})
        await conversations.clear(id)

    assert await engine.database.all(ROWS) == []


@pytest.mark.req("TALK-01", "AGENT-06")
async def test_an_agent_of_code_has_its_own_topic(engine: Engine, conversations: Conversations, topic: str) -> None:
    clock = await define(engine, "clock", kind="system")
    talk = await conversations.create(agent="clock")
    ensured = await conversations.ensure("web-43", agent="clock")

    for each in (talk, ensured):
        await conversations.append(each.id, "hi", context=USER)

    assert clock == "system-clock"
    assert {each.message.conversation_id for each in await told(engine, clock)} == {talk.id, ensured.id}
    assert await told(engine, topic) == []


@pytest.mark.req("TALK-01", "SAFE-02")
async def test_two_tenants_tell_their_own_topics(engine: Engine, acme: Engine, topic: str, talk: Conversation) -> None:
    theirs = await acme.conversations.create(agent="support")
    await acme.conversations.append(theirs.id, "nobody is told", context=USER)
    await define(acme, "support")
    later = await acme.conversations.create(agent="support")

    ours = await engine.conversations.append(talk.id, "hi", context=USER)
    said = await acme.conversations.append(later.id, "hi", context=USER)

    assert [each.message.node_id for each in await told(engine, topic)] == [ours.id]
    assert [each.message.node_id for each in await told(acme, topic)] == [said.id]


@pytest.mark.req("TALK-01", "CONV-07")
@pytest.mark.parametrize("at", [0, None])
async def test_a_fork_goes_on_where_its_origin_was_under_its_own_key(
    engine: Engine, conversations: Conversations, topic: str, talk: Conversation, at: int | None
) -> None:
    await conversations.append_all(talk.id, [NodeInput(content="hi", context=USER)] * 2)

    fork = await conversations.fork(talk.id, at=at)
    node = await conversations.append(fork.id, "hi", context=USER)
    (other,) = await conversations.append_all(fork.id, [NodeInput(content="hi", context=USER)])

    found = await told(engine, topic, fork.id)
    assert brief(found) == [(3, "append", "ui", node.id), (4, "append", "ui", other.id)]
    assert found[0].record.partition == hash_of(str(fork.id)) % 4
    assert len(await told(engine, topic, talk.id)) == 2


@pytest.mark.req("TALK-01")
async def test_a_conversation_that_was_there_before_its_agent_tells_from_then_on(
    engine: Engine, conversations: Conversations
) -> None:
    talk = await conversations.create(agent="support")
    await conversations.append(talk.id, "anybody?", context=USER)
    before = await conversations.attach(talk.id)
    topic = await define(engine, "support")

    after = [await conversations.attach(talk.id) for _ in range(2)]
    node = await conversations.append(talk.id, "and now?", context=USER)

    assert (before, after) == (False, [True, True])
    assert brief(await told(engine, topic)) == [(2, "append", "ui", node.id)]
    assert (await told(engine, topic))[0].record.partition == hash_of(str(talk.id)) % 4


@pytest.mark.req("TALK-01", "SAFE-02")
async def test_a_conversation_that_nobody_knows_cannot_be_attached(
    engine: Engine, acme: Engine, topic: str, talk: Conversation
) -> None:
    await define(acme, "support")

    with pytest.raises(NotFound):
        await acme.conversations.attach(talk.id)


@pytest.mark.req("TALK-01")
async def test_a_conversation_goes_on_when_the_topic_was_removed(
    engine: Engine, conversations: Conversations, state: State, topic: str, talk: Conversation
) -> None:
    await engine.log.remove(topic)

    node = await conversations.append(talk.id, "hi", context=USER)
    await conversations.append_all(talk.id, [NodeInput(content="hi", context=USER)])
    await conversations.edit(node.id, "ho", version=1)
    await state.set(talk.id, {"step": 1})
    await conversations.clear(talk.id)

    assert (await conversations.get(talk.id)).revision == 5
    assert await engine.database.all(ROWS) == []


@pytest.mark.req("TALK-01")
@pytest.mark.parametrize("together", [False, True])
async def test_a_conversation_goes_on_while_the_topic_is_removed(
    engine: Engine, conversations: Conversations, topic: str, talk: Conversation, together: bool
) -> None:
    async with engine.transaction() as tx:
        await tx.run(REMOVE, topic)
        appending = asyncio.create_task(
            conversations.append_all(talk.id, [NodeInput(content="hi", context=USER)])
            if together
            else conversations.append(talk.id, "hi", context=USER)
        )
        async with asyncio.timeout(10):
            while not await engine.postgres.system.value(WAITS):
                pass
    await appending

    assert [node.content for node in await conversations.last(talk.id, 5)] == ["hi"]
    assert await engine.database.all(ROWS) == []
