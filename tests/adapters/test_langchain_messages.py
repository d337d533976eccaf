"""LangChain's messages as nodes and back: the same through our class, and through LangChain's own."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from holdfast.adapters.langchain import HoldfastChatMessageHistory, draft_of, message_of
from holdfast.conversations import Node, NodeInput
from holdfast.conversations.contexts import Context
from holdfast.engine import Engine
from tests.logins import Login, tenant_login

pytestmark = pytest.mark.req("STM-02", "CONV-09")

THEN = datetime(2026, 1, 1, tzinfo=UTC)
on_one_database = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _joined(text: str) -> str:
    """Halves of a character that stand together are one: JSON cannot tell them from it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


texts = st.text(st.characters() | st.sampled_from('\0\\"\U0010fffeu0'), max_size=12).map(_joined)
scalars = st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
blocks: st.SearchStrategy[Any] = st.one_of(
    texts,
    texts.map(lambda text: {"type": "text", "text": text}),
    texts.map(lambda text: {"type": "reasoning", "reasoning": text}),
    st.sampled_from(["https://x.test/a.png", "data:image/png;base64,AA==", "data:,x"]).map(
        lambda url: {"type": "image_url", "image_url": {"url": url}}
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["image", "file", "audio"]), "base64": st.just("AA==")}, optional={
        "mime_type": st.just("a/b"), "filename": texts, "url": st.just("https://x.test/f")}),
)  # fmt: skip
contents = texts | st.lists(blocks, max_size=4)
names = st.none() | texts
calls = st.builds(
    ToolCall, name=texts, args=st.dictionaries(texts, values, max_size=3), id=texts, type=st.just("tool_call")
)
common: dict[str, Any] = {
    "content": contents, "name": names, "additional_kwargs": st.dictionaries(texts, values, max_size=2),
    "id": st.none() | st.uuids().map(str),
}  # fmt: skip
messages: st.SearchStrategy[BaseMessage] = st.one_of(
    st.builds(HumanMessage, **common),
    st.builds(SystemMessage, **common),
    st.builds(AIMessage, **common, tool_calls=st.lists(calls, max_size=2)),
    st.builds(ToolMessage, **common, tool_call_id=texts, status=st.sampled_from(["success", "error"])),
    st.builds(ChatMessage, **common, role=st.sampled_from(["user", "Assistant", "developer", "tool", "critic"])),
    st.builds(FunctionMessage, **{**common, "name": texts}),
)
payloads = st.fixed_dictionaries({}, optional={
    "role": st.sampled_from(["user", "assistant", "system", "tool"]),
    "tool_calls": st.lists(st.fixed_dictionaries({
        "id": texts, "name": texts, "arguments": st.dictionaries(texts, values, max_size=2)}), max_size=2),
    "tool_call_id": texts, "tool_name": texts, "error": st.booleans(),
    "result": st.text("ab c", max_size=3) | st.dictionaries(st.text("ab", max_size=2), st.integers(), max_size=2),
    "attachments": st.lists(st.fixed_dictionaries({"uri": texts}), max_size=2),
})  # fmt: skip
drafts = st.builds(
    NodeInput,
    content=texts,
    context=st.builds(
        Context, st.sampled_from(["text", "text", "event"]), st.sampled_from(["user", "agent", "system", "ui"]),
        st.sampled_from(["ann", "support", "assistant", "tool", "ui-123", "Two Words", "\0"])),
    payload=st.none() | payloads,
)  # fmt: skip


@pytest.fixture
async def login(engine: Engine) -> AsyncIterator[Login]:
    """A tenant with a login for LangChain's own client."""
    async with tenant_login(engine, "ann") as login:
        yield login


def node_of(draft: NodeInput, *, native: bool = True) -> Node:
    """The node that a draft becomes."""
    payload = None if draft.payload is None else dict(draft.payload)
    return Node(
        UUID(int=1), UUID(int=2), UUID(int=2), 1, str(draft.context), draft.content, payload, None, draft.key, 1, 1,
        False, THEN, THEN, draft.form, draft.native if native else None,
    )  # fmt: skip


@given(messages)
def test_a_message_comes_back_from_its_node_as_it_was(message: BaseMessage) -> None:
    assert message_of(node_of(draft_of(message))) == message


@given(messages)
def test_without_what_langchain_wrote_role_text_calls_and_result_are_left(message: BaseMessage) -> None:
    draft = draft_of(message, agent="support", user="ann")

    read = message_of(node_of(draft, native=False), agent="support")
    again = draft_of(read, agent="support", user="ann")

    assert again.content == draft.content
    assert draft.payload is not None
    assert again.payload is not None
    kept = {part: value for part, value in draft.payload.items() if part != "attachments"}
    if kept["role"] == "tool":
        kept.setdefault("tool_call_id", "")
    else:
        kept.pop("error", None)
    if kept["role"] != "assistant":
        kept.pop("tool_calls", None)
    assert again.payload == kept


def test_a_class_that_langchain_cannot_find_is_read_as_what_it_says() -> None:
    class Thought(HumanMessage):
        type: str = "thought"  # pyright: ignore[reportIncompatibleVariableOverride]

    draft = draft_of(Thought(content="Hm."))

    assert message_of(node_of(draft)) == HumanMessage("Hm.", id=str(UUID(int=1)))


def test_something_attached_is_told_by_where_it_lies_not_by_what_it_holds() -> None:
    message = HumanMessage(
        [
            {"type": "image_url", "image_url": "https://x.test/a.png"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "AAAA"}},
            {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"},
        ]
    )

    payload = draft_of(message).payload

    assert payload is not None
    assert payload["attachments"] == [
        {"uri": "https://x.test/a.png"},
        {"mime_type": "image/png"},
        {"name": "a.pdf"},
        {"mime_type": "audio/wav"},
    ]


@on_one_database
@given(written=st.lists(messages, min_size=1, max_size=4, unique_by=lambda message: message.id or object()))
async def test_langchains_own_client_reads_what_ours_wrote(login: Login, written: list[BaseMessage]) -> None:
    session = str(uuid4())

    await HoldfastChatMessageHistory(session, login.engine).aadd_messages(written)

    assert login.history(session, login.at_hand()).messages == written


@on_one_database
@given(written=st.lists(messages, min_size=1, max_size=4))
async def test_ours_reads_what_langchains_own_client_wrote(login: Login, written: list[BaseMessage]) -> None:
    session = str(uuid4())

    login.history(session, login.at_hand()).add_messages(written)

    assert await HoldfastChatMessageHistory(session, login.engine).aget_messages() == written
    stored = [(node.context, node.content, node.payload) for node in await login.nodes(session)]
    ours = [draft_of(message) for message in written]
    assert stored == [(str(draft.context), draft.content, draft.payload) for draft in ours]


@on_one_database
@given(written=st.lists(drafts, min_size=1, max_size=4), agent=st.sampled_from([None, "support"]))
async def test_both_read_alike_what_others_wrote(login: Login, written: list[NodeInput], agent: str | None) -> None:
    talk = await login.engine.conversations.create(session_id=str(uuid4()), agent=agent)
    await login.engine.conversations.append_all(talk.id, written)
    assert talk.session_id is not None

    read = await HoldfastChatMessageHistory(talk.session_id, login.engine).aget_messages()

    assert len(read) == sum(Context(*draft.context).type == "text" for draft in written)
    assert read == login.history(talk.session_id, login.at_hand()).messages
