"""LangChain's own `PostgresChatMessageHistory`, unmodified, on the address of a tenant's login."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import psycopg
import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    message_to_dict,
)
from langchain_postgres import PostgresChatMessageHistory

from holdfast.conversations import NodeInput
from holdfast.conversations.payloads import Payload
from holdfast.core.config import load_config
from holdfast.core.text import loads
from holdfast.engine import Engine, open_engine
from holdfast.postgres.database import open_owner
from holdfast.postgres.options import Options
from tests.logins import VIEW, Login, tenant_login
from tests.rules.plans import ROWS

pytestmark = pytest.mark.req("STM-01")

CALL = ToolCall(name="track", args={"parcel": "P-1", "deep": {"n": [1, 2.5, None]}}, id="call-1", type="tool_call")
MESSAGES: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("Where is my parcel?", id="h-1"),
    AIMessage("I shall look.", tool_calls=[CALL], response_metadata={"model": "m", "logprobs": [-0.25, 1e-9]}),
    ToolMessage("no such parcel", tool_call_id="call-1", name="track", status="error"),
    AIMessage([{"type": "text", "text": "I cannot "}, {"type": "reasoning", "reasoning": "…"}, "find it."]),
    HumanMessage([{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "https://x.test/p.png"}}]),
    ChatMessage(content="As I said.", role="assistant"),
    FunctionMessage(content="42", name="answer"),
    AIMessageChunk(content="half a"),
]  # fmt: skip
ODD_DATA: list[dict[str, Any]] = [
    {},
    {"content": None, "name": 7, "tool_calls": {}, "status": []},
    {"content": 7, "tool_calls": [1, None, {}, {"id": None, "name": None, "args": "x"}]},
    {
        "content": [
            1,
            None,
            {},
            [],
            {"type": "text"},
            {"type": "image", "image_url": {}},
            {"type": "file", "url": 7},
        ]
    },
    {"content": "x", "name": "n" * 5000},
    {"content": "x", "name": ""},
]
FORGERIES = (
    "set holdfast.tenant = '{other}'",
    "set local holdfast.tenant = '{other}'",
    "select set_config('holdfast.tenant', '{other}', false)",
    "reset holdfast.tenant",
    "reset all",
)
UNSTORABLE = [
    "\0",
    "a\0b\0\0",
    "\\u0000",
    "\\\0",
    "\\\\u0000 \\\\\0",
    "\ud83d",
    "\ude00\ud83d",
    "😀\ud83d😀",
    "\U0010fffe",
    "\U0010fffe0000",
    "\\\U0010fffefffe",
    '"\U0010fffenan"',
]


@pytest.fixture
async def ann(engine: Engine) -> AsyncIterator[Login]:
    """The tenant ann."""
    async with tenant_login(engine, "ann") as login:
        yield login


@pytest.fixture
async def bob(engine: Engine) -> AsyncIterator[Login]:
    """The tenant bob."""
    async with tenant_login(engine, "bob") as login:
        yield login


@pytest.fixture
def session() -> str:
    """A session id as LangChain's class takes it."""
    return str(uuid4())


async def test_the_unmodified_client_adds_reads_and_clears(ann: Login, session: str) -> None:
    history = ann.history(session)

    assert history.messages == []
    history.add_messages(MESSAGES[:3])
    history.add_messages(MESSAGES[3:])

    assert ann.history(session).messages == MESSAGES
    history.clear()
    assert ann.history(session).messages == []
    history.add_messages(MESSAGES[:1])
    assert history.messages == MESSAGES[:1]


async def test_the_unmodified_client_adds_reads_and_clears_with_asyncio(ann: Login, session: str) -> None:
    history = await ann.async_history(session)

    assert await history.aget_messages() == []
    await history.aadd_messages(MESSAGES)

    assert await (await ann.async_history(session)).aget_messages() == MESSAGES
    await history.aclear()
    assert await history.aget_messages() == []


async def test_its_columns_are_the_tables_but_for_wider_numbers_any_session_and_json_to_the_letter(ann: Login) -> None:
    query = f"select attname::text, format_type(atttypid, -1) from pg_attribute where attrelid = '{VIEW}'::regclass"

    assert ann.connect().execute(query.encode()).fetchall() == [
        ("id", "bigint"),
        ("session_id", "text"),
        ("message", "json"),
        ("created_at", "timestamp with time zone"),
    ]


async def test_a_session_that_nobody_knew_becomes_a_conversation(ann: Login, session: str) -> None:
    ann.history(session).add_messages(MESSAGES[:2])

    talk = await ann.engine.conversations.find(session_id=session)

    assert talk is not None
    assert (talk.kind, talk.app, talk.user, talk.agent, talk.last_seq) == ("conversation", "default", None, None, 2)


@pytest.mark.req("CONV-09")
async def test_its_messages_are_nodes_with_role_calls_and_results(ann: Login, session: str) -> None:
    await ann.engine.conversations.create(session_id=session, user="Ann", agent="support")
    ann.history(session).add_messages([*MESSAGES, HumanMessage("Me.", name="eve"), AIMessage("Hm.", name="critic")])

    nodes = await ann.nodes(session)

    assert [(node.context, node.content) for node in nodes] == [
        ("text:system:system", "Be brief."),
        ("text:user:Ann", "Where is my parcel?"),
        ("text:agent:support", "I shall look."),
        ("text:agent:tool", "no such parcel"),
        ("text:agent:support", "I cannot find it."),
        ("text:user:Ann", "Look:"),
        ("text:agent:support", "As I said."),
        ("text:agent:tool", "42"),
        ("text:agent:support", "half a"),
        ("text:user:eve", "Me."),
        ("text:agent:critic", "Hm."),
    ]
    call = {"id": "call-1", "name": "track", "arguments": CALL["args"]}
    assert [node.payload for node in nodes[:8]] == [
        {"role": "system"},
        {"role": "user"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call-1", "tool_name": "track", "error": True},
        {"role": "assistant"},
        {"role": "user", "attachments": [{"uri": "https://x.test/p.png"}]},
        {"role": "assistant"},
        {"role": "tool", "tool_name": "answer"},
    ]
    messages = await ann.engine.conversations.messages(nodes[0].root, reader="support", tools=True)
    assert messages[:4] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is my parcel?"},
        {"role": "assistant", "content": "I shall look.", "tool_calls": [call]},
        {"role": "tool", "content": "no such parcel", "tool_call_id": "call-1", "name": "track"},
    ]


@pytest.mark.req("CONV-09")
async def test_it_reads_what_the_engine_and_other_frameworks_wrote(ann: Login, session: str) -> None:
    conversations = ann.engine.conversations
    talk = await conversations.create(session_id=session, user="Ann", agent="support")
    call = {"id": "c", "name": "track", "arguments": {"parcel": "P\0"}}
    result = {"state": "lost", "at": [1, 2]}
    drafts = [
        NodeInput(content="Be kind.", context="text:system:system"),
        NodeInput(content="Where is it?", context="text:user:Ann", form="adk", native='{"content": {}}'),
        NodeInput(content="", context="text:agent:support", payload={"tool_calls": [call]}),
        NodeInput(
            content="", context="text:agent:tool", payload={"tool_call_id": "c", "tool_name": "f", "result": result}
        ),
        NodeInput(content="", context="event:agent:support"),
        NodeInput(content="Lost\0.", context="text:agent:assistant"),
        NodeInput(content="A step.", context="text:agent:ui-123"),
        NodeInput(content="A step of mine.", context="text:agent:critic", payload={"role": "assistant"}),
        NodeInput(content="See.", context="text:user:Ann", payload={"attachments": [{"uri": "s3://x", "name": "x"}]}),
        NodeInput(content="", context="text:agent:tool", payload={"tool_call_id": "d", "error": True}),
    ]  # fmt: skip
    nodes = await conversations.append_all(talk.id, drafts)
    ids = [str(node.id) for node in nodes]

    assert ann.history(session).messages == [
        SystemMessage("Be kind.", id=ids[0]),
        HumanMessage("Where is it?", id=ids[1]),
        AIMessage("", id=ids[2], tool_calls=[{"name": "track", "args": {"parcel": "P\0"}, "id": "c"}]),
        ToolMessage('{"at": [1, 2], "state": "lost"}', id=ids[3], tool_call_id="c", name="f", artifact=result),
        AIMessage("Lost\0.", id=ids[5]),
        HumanMessage("A step.", id=ids[6], name="ui-123"),
        AIMessage("A step of mine.", id=ids[7], name="critic"),
        HumanMessage("See.", id=ids[8], additional_kwargs={"attachments": [{"uri": "s3://x", "name": "x"}]}),
        ToolMessage("", id=ids[9], tool_call_id="d", status="error"),
    ]


async def test_it_reads_what_became_of_a_message_that_was_edited_or_deleted(ann: Login, session: str) -> None:
    history = ann.history(session)
    history.add_messages(MESSAGES[1:4])
    asked, _, failed = await ann.nodes(session)

    await ann.engine.conversations.edit(asked.id, "Where is parcel P-1?", version=1)
    await ann.engine.conversations.delete(failed.id, version=1)

    assert history.messages == [HumanMessage("Where is parcel P-1?", id=str(asked.id)), MESSAGES[2]]


@pytest.mark.req("CONV-04")
async def test_what_was_cleared_stays_readable(ann: Login, session: str) -> None:
    history = ann.history(session)
    history.add_messages(MESSAGES[:2])
    history.clear()
    history.clear()

    nodes = await ann.nodes(session)

    assert [(node.seq, node.deleted, node.content, node.version) for node in nodes] == [
        (1, True, "", 2),
        (2, True, "", 2),
    ]
    former = [(await ann.engine.conversations.revisions(node.id))[0].content for node in nodes]
    assert former == ["Be brief.", "Where is my parcel?"]


@pytest.mark.parametrize("text", UNSTORABLE)
async def test_what_postgresql_cannot_hold_comes_back_and_the_connection_stays_usable(
    ann: Login, session: str, text: str
) -> None:
    history = ann.history(session)
    call = ToolCall(name="f", args={text: [text]}, id="c", type="tool_call")
    messages = [
        HumanMessage(text, name=text),
        AIMessage([{"type": "text", "text": text}], tool_calls=[call], additional_kwargs={"raw": text}),
        ToolMessage(text, tool_call_id="c", name=text),
    ]

    history.add_messages(messages)
    history.add_messages([HumanMessage("Still there?")])

    assert history.messages == [*messages, HumanMessage("Still there?")]
    asked, called, answered, _ = await ann.nodes(session)
    assert (asked.context, asked.content, called.content, answered.content) == (f"text:user:{text}", text, text, text)
    assert called.payload == {
        "role": "assistant",
        "tool_calls": [{"id": "c", "name": "f", "arguments": {text: [text]}}],
    }
    assert called.native is not None
    assert loads(called.native)["data"]["additional_kwargs"] == {"raw": text}


async def test_numbers_that_json_lacks_are_read_as_far_as_it_goes(ann: Login, session: str) -> None:
    talk = await ann.engine.conversations.create(session_id=session)
    calls = [{"id": "c", "name": "f", "arguments": {"n": [float("inf"), float("-inf"), float("nan"), 1e16, 10**30]}}]

    await ann.engine.conversations.append(talk.id, "", context="text:agent:assistant", payload={"tool_calls": calls})

    (message,) = ann.history(session).messages
    assert isinstance(message, AIMessage)
    assert message.tool_calls[0]["args"] == {"n": [float("inf"), float("-inf"), None, 1e16, 10**30]}


async def test_a_number_that_is_no_json_is_refused_and_nothing_is_stored(ann: Login, session: str) -> None:
    history = ann.history(session, ann.at_hand())

    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        history.add_messages([HumanMessage("Hello"), AIMessage("Hi", response_metadata={"score": float("nan")})])

    ann.at_hand().rollback()
    assert history.messages == []


async def test_no_message_appears_before_one_that_was_read(ann: Login, session: str) -> None:
    slow, reader = ann.connect(), ann.history(session)
    ann.history(session).add_messages([HumanMessage("zero")])
    with slow.cursor() as cursor:
        first = json.dumps(message_to_dict(HumanMessage("first")))
        cursor.execute(f"insert into {VIEW} (session_id, message) values (%s, %s)", (session, first))

    second = asyncio.create_task(asyncio.to_thread(ann.history(session).add_messages, [HumanMessage("second")]))
    async with asyncio.timeout(10), open_owner(ann.url, Options()) as login:
        while not await login.value("select exists (select from pg_locks where not granted)"):
            assert not second.done()
    seen = reader.messages
    slow.commit()
    await second

    assert seen == [HumanMessage("zero")]
    assert reader.messages == [HumanMessage("zero"), HumanMessage("first"), HumanMessage("second")]


async def test_eight_writers_at_once_lose_nothing(ann: Login, session: str) -> None:
    histories = [await ann.async_history(session) for _ in range(8)]

    async def write(number: int, history: PostgresChatMessageHistory) -> None:
        for turn in range(5):
            await history.aadd_messages([HumanMessage(f"{number} {turn} asks"), AIMessage(f"{number} {turn} answers")])

    async with asyncio.timeout(60):
        await asyncio.gather(*(write(number, history) for number, history in enumerate(histories)))

    texts = [str(message.content) for message in await histories[0].aget_messages()]
    assert len(texts) == 80
    for number in range(8):
        own = [text for text in texts if text.startswith(f"{number} ")]
        assert own == [f"{number} {turn} {does}" for turn in range(5) for does in ("asks", "answers")]
    for turn in zip(texts[::2], texts[1::2], strict=True):
        assert turn[0].removesuffix("asks") == turn[1].removesuffix("answers")
    assert [node.seq for node in await ann.nodes(session)] == list(range(1, 81))


@pytest.mark.req("SAFE-02")
@pytest.mark.parametrize("forgery", [*FORGERIES, "set search_path = pg_temp"])
async def test_one_tenant_neither_sees_nor_adds_nor_clears_in_anothers_session(
    ann: Login, bob: Login, session: str, forgery: str
) -> None:
    bob.history(session).add_messages(MESSAGES[:2])
    connection = ann.connect()
    connection.execute(forgery.format(other=await bob.engine.database.tenant()).encode())
    connection.execute("set search_path = public")
    history = ann.history(session, connection)

    seen = history.messages
    history.clear()
    history.add_messages(MESSAGES[2:3])
    added = history.messages
    history.clear()

    assert (seen, added, history.messages) == ([], MESSAGES[2:3], [])
    assert bob.history(session).messages == MESSAGES[:2]


@pytest.mark.req("SAFE-02")
@pytest.mark.parametrize(
    "attempt",
    [
        "update chat_message_history set session_id = 'mine'",
        "drop view chat_message_history",
        "delete from node",
        "insert into conversation (tenant_id, id, app_name) values ('{other}', '{other}', 'x')",
        "select holdfast.tenant_of_caller()",
        "select holdfast.clear_messages('{other}', '{other}')",
        "select holdfast.delete_node('{other}', '{other}', 1)",
        "select holdfast.create_conversation('{other}', '{other}', 's', null, 'x', null, null, null, null)",
        f"select holdfast.append('{{other}}', '{{other}}', '{{other}}'{', null' * 12})",
        """create temp view mine as select 1; create trigger mine instead of insert on mine
        for each row execute function holdfast.add_chat_message()""",
    ],
)
async def test_there_is_no_other_way_to_write(ann: Login, bob: Login, session: str, attempt: str) -> None:
    bob.history(session).add_messages(MESSAGES[:1])

    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ObjectNotInPrerequisiteState)):
        ann.connect().execute(attempt.format(other=await bob.engine.database.tenant()).encode())

    assert bob.history(session).messages == MESSAGES[:1]


async def test_what_a_client_leaves_in_its_temporary_schema_is_not_called(ann: Login, session: str) -> None:
    connection = ann.connect()
    connection.execute("create temp table node (like public.node); create temp table conversation (id uuid)")
    connection.execute(
        "create function pg_temp.lower(text) returns text language plpgsql as $$ begin raise 'called'; end $$"
    )
    connection.execute("set search_path = pg_temp, public, pg_catalog")
    history = ann.history(session, connection)

    history.add_messages(MESSAGES)

    assert history.messages == MESSAGES


@pytest.mark.parametrize("tenancy", ["connection", "transaction"])
async def test_the_application_adds_for_the_tenant_it_asks_for(ann: Login, bob: Login, session: str) -> None:
    insert = f"insert into {VIEW} (session_id, message) select $2, $3::text::json where $1::uuid is not null"
    for tenant, text in ((ann, "ann's"), (bob, "bob's")):
        message = json.dumps(message_to_dict(HumanMessage(text)))
        await tenant.engine.database.run(insert, session, message)

    assert ann.history(session).messages == [HumanMessage("ann's")]
    assert bob.history(session).messages == [HumanMessage("bob's")]


async def test_an_insert_gives_the_messages_number_and_date(ann: Login, session: str) -> None:
    message = json.dumps(message_to_dict(HumanMessage("Hello")))

    insert = f"insert into {VIEW} (session_id, message) values (%s, %s) returning id, created_at"
    rows = [ann.connect().execute(insert.encode(), (session, message)).fetchone() for session in ("a", "b")]

    assert [row and row[0] for row in rows] == [1, 1]
    assert all(row and row[1].tzinfo for row in rows)


@pytest.mark.parametrize(
    ("session_id", "message", "said"),
    [
        ("", '{"type": "human", "data": {"content": "x"}}', "session_id is invalid"),
        ("x" * 2001, '{"type": "human", "data": {"content": "x"}}', "session_id is invalid"),
        ("s", "[]", "not a LangChain message"),
        ("s", '"text"', "not a LangChain message"),
        ("s", '{"type": "human"}', "not a LangChain message"),
        ("s", '{"type": "human", "data": "text"}', "not a LangChain message"),
        ("s", '{"type": 7, "data": {}}', "not a LangChain message"),
        ("s", '{"type": "human", "data": {"content": "' + "x" * 8 * 1024 * 1024 + '"}}', "too large"),
        ("s", '{"type": "human", "data": {"content": ' + "[" * 200 + "]" * 200 + "}}", "nested too deep"),
    ],
    ids=range(9),
)
async def test_what_is_no_message_is_refused_with_a_reason(
    ann: Login, session_id: str, message: str, said: str
) -> None:
    connection = ann.connect()

    with pytest.raises(psycopg.Error, match=said) as refusal:
        connection.execute(f"insert into {VIEW} (session_id, message) values (%s, %s)".encode(), (session_id, message))

    assert refusal.value.diag.message_hint
    connection.rollback()
    assert connection.execute(f"select count(*) from {VIEW}".encode()).fetchone() == (0,)


@pytest.mark.parametrize("data", ODD_DATA, ids=range(len(ODD_DATA)))
async def test_a_message_of_an_unknown_kind_is_kept_and_others_can_read_it(
    ann: Login, session: str, data: dict[str, Any]
) -> None:
    message = {"type": "thought", "data": data}
    connection = ann.connect()

    insert = f"insert into {VIEW} (session_id, message) values (%s, %s) returning message"
    rows = connection.execute(insert.encode(), (session, json.dumps(message))).fetchall()
    connection.commit()

    (node,) = await ann.nodes(session)
    assert rows == connection.execute(f"select message from {VIEW}".encode()).fetchall() == [(message,)]
    assert node.context.startswith("text:user:")
    assert msgspec.convert(node.payload, Payload) == node.payload
    assert len(await ann.engine.conversations.messages(node.root, reader="support", tools=True)) <= 1


async def test_a_deleted_sessions_messages_are_gone_and_it_can_begin_anew(ann: Login, session: str) -> None:
    history = ann.history(session)
    history.add_messages(MESSAGES)
    talk = await ann.engine.conversations.find(session_id=session)
    assert talk is not None
    await ann.engine.conversations.remove(talk.id)

    assert history.messages == []
    history.add_messages(MESSAGES[:1])
    assert history.messages == MESSAGES[:1]


async def test_it_works_on_a_server_that_is_not_ours(remote_url: str, tmp_path: Path, session: str) -> None:
    config = load_config({"database.url": remote_url, "data": tmp_path / "data"}, environ={}, cwd=tmp_path)

    async with open_engine(config=config) as engine, tenant_login(engine, "ann") as ann:
        await ann.engine.conversations.create(session_id=session, agent="support")
        history = ann.history(session)
        history.add_messages(MESSAGES)

        assert history.messages == MESSAGES
        history.clear()
        assert history.messages == []
        assert len(await ann.nodes(session)) == len(MESSAGES)


async def test_its_one_time_create_tables_is_refused(ann: Login, session: str) -> None:
    connection = ann.connect()

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for schema public"):
        PostgresChatMessageHistory.create_tables(connection, VIEW)

    connection.rollback()
    history = ann.history(session, connection)
    history.add_messages(MESSAGES)
    assert history.messages == MESSAGES


@pytest.mark.req("CONV-10")
async def test_a_session_is_read_and_cleared_by_indexes(engine: Engine, ann: Login) -> None:
    async with engine.postgres.owner() as owner:
        await owner.script(ROWS.replace("limit 50", "order by name = 'ann' desc limit 50"))
    connection = ann.connect()

    plans: list[str] = []
    for statement in (f"select message from {VIEW} where session_id = 'session 7' order by id",
                      f"delete from {VIEW} where session_id = 'session 7'"):  # fmt: skip
        rows = connection.execute(f"explain (verbose) {statement}".encode()).fetchall()
        plans.append("\n".join(row[0] for row in rows))

    found = connection.execute(f"select count(*) from {VIEW} where session_id = 'session 7'".encode()).fetchone()
    assert found is not None
    assert found[0] >= 10
    for plan in plans:
        assert "conversation_tenant_id_session_id_key" in plan
        assert "node_pkey" in plan
        assert "Seq Scan" not in plan
