"""Our history class for LangChain: the same messages as its own, in a conversation that everyone else reads, too."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_classic.chains import ConversationChain
from langchain_classic.memory import ConversationBufferWindowMemory
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.history import RunnableWithMessageHistory

from holdfast.adapters.langchain import HoldfastChatMessageHistory
from holdfast.conversations import Node, NodeInput
from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.engine import Engine
from tests.logins import tenant_login
from tests.rules.tree import ROOT

pytestmark = pytest.mark.req("STM-02")

SESSIONS = ["web-42", "ünï 😀", "nul\0nul", "half \ud83d", " ", "x" * 2000, "6ba7b810-9dad-11d1-80b4-00c04fd430c8"]
# LangChain would have everyone use LangGraph instead; that is its users' choice.
deprecated_there = pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")


def python_blocks() -> list[str]:
    """The examples of the how-to."""
    return re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs/langchain.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.fixture
def history(engine: Engine) -> HoldfastChatMessageHistory:
    """The history of a session in which nothing was said."""
    return HoldfastChatMessageHistory("web-42", engine, user="ann", agent="support")


@pytest.mark.parametrize("session", SESSIONS)
async def test_any_string_is_a_session(engine: Engine, session: str) -> None:
    history = HoldfastChatMessageHistory(session, engine)

    await history.aadd_messages([HumanMessage("Hello"), AIMessage("Hi\0")])

    assert await HoldfastChatMessageHistory(session, engine).aget_messages() == [
        HumanMessage("Hello"),
        AIMessage("Hi\0"),
    ]
    assert await HoldfastChatMessageHistory(session + "!", engine).aget_messages() == []


async def test_it_works_from_threads_without_a_loop(history: HoldfastChatMessageHistory) -> None:
    def work() -> list[list[BaseMessage]]:
        history.add_user_message("Hello")
        history.add_messages([AIMessage("Hi"), HumanMessage("Bye")])
        said = history.messages
        history.messages = said[:1]
        replaced = history.get_messages()
        history.clear()
        return [said, replaced, history.messages]

    said, replaced, cleared = await asyncio.to_thread(work)

    assert said == [HumanMessage("Hello"), AIMessage("Hi"), HumanMessage("Bye")]
    assert (replaced, cleared) == ([HumanMessage("Hello")], [])


async def test_blocking_the_engines_own_loop_is_refused(history: HoldfastChatMessageHistory) -> None:
    with pytest.raises(InvalidInput, match="would deadlock"):
        _ = history.messages


def test_it_works_with_an_address_and_shares_one_engine(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "data"))
    histories = [HoldfastChatMessageHistory(f"web-{n}", database_url) for n in range(20)]

    for history in histories:
        history.add_messages([HumanMessage(history.session_id)])
    read = [HoldfastChatMessageHistory(history.session_id, database_url) for history in histories]

    assert [history.messages for history in read] == [[HumanMessage(f"web-{n}")] for n in range(20)]
    assert asyncio.run(read[0].aget_messages()) == [HumanMessage("web-0")]
    for history in (*histories[1:], *read):
        history.close()
    asyncio.run(histories[0].aclose())


async def test_it_reads_and_writes_for_the_tenant_that_was_named(engine: Engine) -> None:
    await engine.tenants.create("acme")

    await HoldfastChatMessageHistory("web-42", engine, tenant="acme").aadd_messages([HumanMessage("Hello")])

    assert await HoldfastChatMessageHistory("web-42", engine).aget_messages() == []
    assert await HoldfastChatMessageHistory("web-42", engine.tenant("acme")).aget_messages() == [HumanMessage("Hello")]


async def test_a_new_session_is_its_users_and_its_agents(engine: Engine, history: HoldfastChatMessageHistory) -> None:
    await history.aadd_messages([HumanMessage("Hello"), AIMessage("Hi")])

    talk = await engine.conversations.find(session_id="web-42")

    assert talk is not None
    assert (talk.app, talk.user, talk.agent) == ("default", "ann", "support")
    nodes = await engine.conversations.last(talk.id, 9)
    assert [node.context for node in nodes] == ["text:user:ann", "text:agent:support"]


@pytest.mark.req("SAFE-02")
async def test_users_have_histories_of_their_own_under_one_id(
    engine: Engine, history: HoldfastChatMessageHistory
) -> None:
    await history.aadd_messages([HumanMessage("Hello")])
    bobs = HoldfastChatMessageHistory("web-42", engine, user="bob")

    before = await bobs.aget_messages()
    await bobs.aclear()
    await bobs.aadd_messages([HumanMessage("Me, too")])

    assert (before, await bobs.aget_messages()) == ([], [HumanMessage("Me, too")])
    assert await history.aget_messages() == [HumanMessage("Hello")]


async def test_a_session_that_is_nobodys_can_be_gone_on_with(
    engine: Engine, history: HoldfastChatMessageHistory
) -> None:
    await HoldfastChatMessageHistory("web-42", engine).aadd_messages([HumanMessage("Hello")])

    await history.aadd_messages([AIMessage("Hi")])

    assert await history.aget_messages() == [HumanMessage("Hello"), AIMessage("Hi")]


@pytest.mark.parametrize(
    ("window", "read"),
    [
        (None, [0, 1, 2, 3, 4, 5]),
        (0, []),
        (1, [5]),
        (4, [2, 3, 4, 5]),
        (6, [0, 1, 2, 3, 4, 5]),
        (99, [0, 1, 2, 3, 4, 5]),
    ],
)
async def test_a_window_counts_messages_and_nothing_else(
    engine: Engine, history: HoldfastChatMessageHistory, window: int | None, read: list[int]
) -> None:
    for number in range(6):
        await history.aadd_messages([HumanMessage(str(number))])
        talk = await engine.conversations.find(session_id="web-42")
        assert talk is not None
        await engine.conversations.append_all(talk.id, [NodeInput(content="", context="event:agent:support")] * 3)
        gone = await engine.conversations.append(talk.id, "gone", context="text:user:ann")
        await engine.conversations.delete(gone.id, version=1)

    windowed = HoldfastChatMessageHistory("web-42", engine, window=window)

    assert await windowed.aget_messages() == [HumanMessage(str(number)) for number in read]


@pytest.mark.req("CONV-10")
async def test_a_window_is_read_without_what_lies_before_it(
    engine: Engine, history: HoldfastChatMessageHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await history.aadd_messages([HumanMessage(str(number)) for number in range(500)])
    rows: list[Node] = []
    last = engine.conversations.last

    async def counted(*args: Any, **options: Any) -> list[Node]:
        found = await last(*args, **options)
        rows.extend(found)
        return found

    monkeypatch.setattr(engine.conversations, "last", counted)
    await HoldfastChatMessageHistory("web-42", engine, window=20).aget_messages()

    assert [node.content for node in rows] == [str(number) for number in range(480, 500)]


async def test_a_history_longer_than_one_page_is_read_whole(
    history: HoldfastChatMessageHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.langchain.MAX_NODES", 3)
    await history.aadd_messages([HumanMessage(str(number)) for number in range(7)])

    read = await history.aget_messages()

    assert read == [HumanMessage(str(number)) for number in range(7)]


def test_a_negative_window_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidInput):
        HoldfastChatMessageHistory("web-42", engine, window=-1)


@pytest.mark.parametrize("id", [None, "run-1"])
async def test_of_messages_that_are_added_together_all_are_stored_or_none(
    history: HoldfastChatMessageHistory, id: str | None
) -> None:
    with pytest.raises(TooLarge):
        await history.aadd_messages([HumanMessage("Hello", id=id), AIMessage("x" * 9 * 1024 * 1024)])

    assert await history.aget_messages() == []
    await history.aadd_messages([HumanMessage("Hello", id=id)])
    assert await history.aget_messages() == [HumanMessage("Hello", id=id)]


async def test_messages_that_are_added_together_stand_together(engine: Engine) -> None:
    async def write(number: int) -> None:
        history = HoldfastChatMessageHistory("web-42", engine)
        for turn in range(3):
            said = f"{number} {turn}"
            await history.aadd_messages([HumanMessage(said), AIMessage(said, id=f"run {said}"), AIMessage(said)])

    async with asyncio.timeout(60):
        await asyncio.gather(*(write(number) for number in range(8)))

    read = await HoldfastChatMessageHistory("web-42", engine).aget_messages()
    said = [message.content for message in read]
    assert said[::3] == said[1::3] == said[2::3]
    assert sorted(map(str, said[::3])) == [f"{number} {turn}" for number in range(8) for turn in range(3)]


@pytest.mark.req("CONV-06")
async def test_a_message_with_an_id_is_stored_once_and_one_without_each_time(
    history: HoldfastChatMessageHistory,
) -> None:
    known, unknown = AIMessage("Hi", id="run-1"), HumanMessage("Hello")

    for _ in range(2):
        await history.aadd_messages([unknown, known])
    await history.aadd_messages([known, known])

    assert await history.aget_messages() == [unknown, known, unknown]


async def test_what_was_cleared_can_be_added_again_with_its_id_as_often_as_one_likes(
    engine: Engine, history: HoldfastChatMessageHistory
) -> None:
    said = [HumanMessage("Hello", id="1"), AIMessage("Hi", id="2"), HumanMessage("Bye")]
    await history.aadd_messages(said)

    for count in (3, 2, 2, 1):
        await history.aclear()
        await history.aadd_messages(said[:count])
        await history.aadd_messages(said[:1])
        assert await history.aget_messages() == said[:count]

    talk = await engine.conversations.find(session_id="web-42")
    assert talk is not None
    assert talk.last_seq == 3 + 3 + 2 + 2 + 1


async def test_what_langchains_own_client_cleared_can_be_added_again_with_its_id(engine: Engine) -> None:
    async with tenant_login(engine, "acme") as login:
        session, said = str(uuid4()), [HumanMessage("Hello", id="1"), AIMessage("Hi", id="2")]
        history = HoldfastChatMessageHistory(session, login.engine)
        await history.aadd_messages(said)
        login.history(session).clear()

        await history.aadd_messages(said)
        await history.aadd_messages(said)

        assert await history.aget_messages() == said


@pytest.mark.req("CONV-06")
async def test_what_others_wrote_under_a_key_is_not_written_again_after_a_clear(
    engine: Engine, history: HoldfastChatMessageHistory
) -> None:
    talk = await engine.conversations.ensure("web-42", user="ann")
    event = NodeInput(content="Hello", context="text:user:ann", key="event-1", form="adk", native="{}")
    await engine.conversations.append_all(talk.id, [event])
    await history.aclear()

    await engine.conversations.append_all(talk.id, [event])

    assert await history.aget_messages() == []


@pytest.mark.req("CONV-04")
async def test_clearing_empties_messages_only_and_what_they_were_stays_readable(
    engine: Engine, history: HoldfastChatMessageHistory
) -> None:
    await history.aclear()
    await history.aadd_messages([HumanMessage("Hello"), AIMessage("Hi")])
    talk = await engine.conversations.find(session_id="web-42")
    assert talk is not None
    await engine.conversations.append(talk.id, "", context="event:agent:support", state={"step": 3})
    below = (await engine.conversations.last(talk.id, 9))[0]
    await engine.conversations.append(talk.id, "an aside", context="note:user:ann", parent=below.id)

    await history.aclear()
    cleared = await engine.conversations.get(talk.id)
    await history.aclear()

    nodes = await engine.conversations.since(talk.id, 0)
    assert [(node.deleted, node.version) for node in nodes] == [(True, 2), (True, 2), (False, 1), (True, 2)]
    assert {node.revision for node in nodes if node.deleted} == {cleared.revision}
    assert (await engine.conversations.get(talk.id)).revision == cleared.revision
    former = [(await engine.conversations.revisions(node.id))[0].content for node in nodes]
    assert former == ["Hello", "Hi", "", "an aside"]
    assert await engine.state.get(talk.id) == {"step": 3}


class ScriptedModel(BaseChatModel):
    """Says what was asked, and how many messages it was given."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        said = f"{len(messages)}: {messages[-1].content}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])


PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Be brief."), MessagesPlaceholder("chat_history"), ("human", "{input}")]
)


@pytest.fixture
def runnable(engine: Engine) -> RunnableWithMessageHistory:
    """A chain with a history for each session."""

    def history_of(session_id: str) -> HoldfastChatMessageHistory:
        return HoldfastChatMessageHistory(session_id, engine, user="ann", agent="support")

    return RunnableWithMessageHistory(
        PROMPT | ScriptedModel(),
        history_of,
        input_messages_key="input",
        history_messages_key="chat_history",
    )


@deprecated_there
async def test_under_runnable_with_message_history(runnable: RunnableWithMessageHistory) -> None:
    config: RunnableConfig = {"configurable": {"session_id": "web-42"}}

    first = await runnable.ainvoke({"input": "one"}, config)
    second = await asyncio.to_thread(runnable.invoke, {"input": "two"}, config)
    third = "".join([chunk.content async for chunk in runnable.astream({"input": "three"}, config)])
    elsewhere = await runnable.ainvoke({"input": "four"}, {"configurable": {"session_id": "web-43"}})

    assert (first.content, second.content, third, elsewhere.content) == ("2: one", "4: two", "6: three", "2: four")


@deprecated_there
async def test_a_turn_under_runnable_with_message_history_is_in_the_conversation(
    engine: Engine, runnable: RunnableWithMessageHistory
) -> None:
    await runnable.ainvoke({"input": "one"}, {"configurable": {"session_id": "web-42"}})

    talk = await engine.conversations.find(session_id="web-42")

    assert talk is not None
    assert await engine.conversations.messages(talk.id, reader="support") == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "2: one"},
    ]


@deprecated_there
@pytest.mark.parametrize("window", [None, 4])
async def test_under_conversation_buffer_window_memory(engine: Engine, window: int | None) -> None:
    history = HoldfastChatMessageHistory("web-42", engine, window=window)
    memory = ConversationBufferWindowMemory(
        chat_memory=history, k=2, memory_key="chat_history", input_key="input", return_messages=True
    )
    chain = ConversationChain(llm=ScriptedModel(), memory=memory, prompt=PROMPT)

    said = [(await asyncio.to_thread(chain.invoke, {"input": text}))["response"] for text in ("one", "two", "three")]
    said.append((await chain.ainvoke({"input": "four"}))["response"])

    assert said == ["2: one", "4: two", "6: three", "6: four"]
    kept = (await memory.aload_memory_variables({}))["chat_history"]
    assert [message.content for message in kept] == ["three", "6: three", "four", "6: four"]
    assert len(await HoldfastChatMessageHistory("web-42", engine).aget_messages()) == 8


@pytest.mark.parametrize("block", python_blocks(), ids=range(len(python_blocks())))
async def test_the_examples_of_the_page_run(engine: Engine, tmp_path: Path, block: str) -> None:
    async with tenant_login(engine, "acme") as login, asyncio.timeout(60):
        settings = {
            "HOLDFAST_DATA": str(tmp_path / "data"),
            "HOLDFAST_DATABASE_URL": engine.place.owner_url,
            "CHAT_DATABASE_URL": login.url,
        }

        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", block, env={**os.environ, **settings}, cwd=tmp_path, stderr=asyncio.subprocess.PIPE
        )
        _, said = await program.communicate()

    assert program.returncode == 0, said.decode()


async def test_messages_that_are_refused_leave_those_there_were(history: HoldfastChatMessageHistory) -> None:
    await history.aadd_messages([HumanMessage("one"), AIMessage("two")])

    with pytest.raises(TooLarge):
        await asyncio.to_thread(setattr, history, "messages", [HumanMessage("x" * 9_000_000)])

    assert [message.content for message in await history.aget_messages()] == ["one", "two"]
