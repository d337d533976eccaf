"""ADK beside others in one conversation: each reads what the other wrote."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from google.genai.types import Content, FileData, FunctionCall, FunctionResponse, Part, Transcription

from holdfast.adapters.adk import PostgresSessionService
from holdfast.adapters.adk_events import FORM, drafts_of, events_of
from holdfast.adapters.langchain import HoldfastChatMessageHistory
from holdfast.conversations import Node, NodeInput
from holdfast.conversations.snapshots import Snapshot
from holdfast.core.text import loads
from holdfast.engine import Engine
from tests.adapters.adk_events import changed, said

pytestmark = pytest.mark.req("ADK-01", "CONV-09")

ID = UUID(int=1)
ANN: dict[str, Any] = {"app_name": "shop", "user_id": "ann"}


@pytest.fixture
def service(engine: Engine) -> PostgresSessionService:
    return PostgresSessionService(engine)


async def read(service: PostgresSessionService, id: str, **asked: Any) -> Session:
    found = await service.get_session(**ANN, session_id=id, config=GetSessionConfig(**asked))
    assert found is not None
    return found


async def nodes_of(engine: Engine, session_id: str) -> list[Node]:
    talk = await engine.conversations.find(session_id=session_id)
    assert talk is not None
    return await engine.conversations.since(talk.id, 0, native=FORM)


def event(*parts: Part, author: str = "support", **more: Any) -> Event:
    return Event(author=author, content=Content(role="model", parts=list(parts)), **more)


def result(id: str, response: dict[str, Any], name: str = "track") -> Part:
    return Part(function_response=FunctionResponse(id=id, name=name, response=response))


# What others see of ADK's events


CASES: list[tuple[Event, str, str, dict[str, Any] | None]] = [
    (said("Where is it?", author="user"), "text:user:ann", "Where is it?", None),
    (said("On its way."), "text:agent:support", "On its way.", None),
    (event(Part(text="hm", thought=True), Part(text="a"), Part(text="b")), "text:agent:support", "ab", None),
    (event(Part(text="hm", thought=True)), "event:agent:support", "", None),
    (changed({"a": 1}), "event:agent:support", "", None),
    (Event(author="user"), "event:user:ann", "", None),
    (
        Event(author="support", error_code="429", error_message="slow down"),
        "event:agent:support",
        "slow down",
        None,
    ),
    (
        event(Part(text="Let me see."), Part(function_call=FunctionCall(id="c1", name="track", args={"parcel": 7}))),
        "text:agent:support",
        "Let me see.",
        {"tool_calls": [{"id": "c1", "name": "track", "arguments": {"parcel": 7}}]},
    ),
    (
        event(Part(function_call=FunctionCall(name="now")), id="e1"),
        "text:agent:support",
        "",
        {"tool_calls": [{"id": "e1-0", "name": "now", "arguments": {}}]},
    ),
    (
        event(result("c1", {"result": "in Rome"})),
        "text:agent:tool",
        "in Rome",
        {"role": "tool", "tool_call_id": "c1", "tool_name": "track"},
    ),
    (
        event(result("c1", {"place": "Rome", "days": 2})),
        "text:agent:tool",
        '{"place":"Rome","days":2}',
        {"role": "tool", "tool_call_id": "c1", "tool_name": "track", "result": {"place": "Rome", "days": 2}},
    ),
    (
        event(result("c1", {"error": "no such parcel"})),
        "text:agent:tool",
        "no such parcel",
        {"role": "tool", "tool_call_id": "c1", "tool_name": "track", "error": True},
    ),
    (
        event(
            Part(text="look"),
            Part(file_data=FileData(file_uri="gs://b/a.pdf", mime_type="application/pdf", display_name="a.pdf")),
            Part.from_bytes(data=b"png", mime_type="image/png"),
            author="user",
        ),
        "text:user:ann",
        "look",
        {
            "attachments": [
                {"mime_type": "application/pdf", "name": "a.pdf", "uri": "gs://b/a.pdf"},
                {"mime_type": "image/png"},
            ]
        },
    ),
    (
        Event(author="user", input_transcription=Transcription(text="spoken", finished=True)),
        "text:user:ann",
        "spoken",
        None,
    ),
    (
        Event(
            author="user",
            actions=EventActions(
                compaction=EventCompaction(
                    start_timestamp=1,
                    end_timestamp=2,
                    compacted_content=Content(role="model", parts=[Part(text="they spoke of a parcel")]),
                )
            ),
        ),
        "summary:agent:user",
        "they spoke of a parcel",
        None,
    ),
]


@pytest.mark.parametrize(("given", "context", "content", "payload"), CASES)
def test_every_reader_understands_an_event(given: Event, context: str, content: str, payload: Any) -> None:
    (draft,), _ = drafts_of(given, "ann")

    assert (str(draft.context), draft.content, draft.payload) == (context, content, payload)


async def test_results_that_came_together_are_a_node_each_and_one_event(
    engine: Engine, service: PostgresSessionService
) -> None:
    session = await service.create_session(**ANN, session_id="s")
    call = event(*(Part(function_call=FunctionCall(id=id, name="track", args={})) for id in ("c1", "c2", "c3")))
    answers = event(
        *(result(id, {"result": f"place {id}"}) for id in ("c1", "c2", "c3")),
        timestamp=77.0,
        actions=EventActions(state_delta={"found": 3}),
    )

    for given in (call, answers, answers, call):
        await service.append_event(session, given)

    nodes = await nodes_of(engine, "s")
    assert [node.content for node in nodes] == ["", "place c1", "place c2", "place c3"]
    assert [node.native is None for node in nodes] == [False, False, True, True]
    assert len(session.events) == 2
    assert await read(service, "s") == session
    assert (await read(service, "s", num_recent_events=1)).events == [answers]
    assert [one.last_update_time for one in (await service.list_sessions(**ANN)).sessions] == [77.0]
    messages = await engine.conversations.messages(nodes[0].root, reader="support", tools=True)
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "tool"]
    await service.append_event(session, said("all found"))
    assert await read(service, "s") == session


@pytest.mark.parametrize("changed_one", [0, 1, 2])
@pytest.mark.parametrize("how", ["edit", "delete"])
async def test_of_results_that_came_together_one_can_be_edited_or_deleted(
    engine: Engine, service: PostgresSessionService, changed_one: int, how: str
) -> None:
    session = await service.create_session(**ANN, session_id="s")
    await service.append_event(session, event(*(result(f"c{n}", {"result": f"place {n}"}) for n in range(3))))
    await service.append_event(session, event(*(result(f"d{n}", {"result": f"other {n}"}) for n in range(2))))
    node = (await nodes_of(engine, "s"))[changed_one]
    if how == "edit":
        await engine.conversations.edit(node.id, "EDITED", version=1)
    else:
        await engine.conversations.delete(node.id, version=1)

    read_by_adk = [
        (response.id, (response.response or {}).get("result"))
        for one in (await read(service, "s")).events
        for response in one.get_function_responses()
    ]
    read_by_all = [
        ((node.payload or {}).get("tool_call_id"), node.content)
        for node in await nodes_of(engine, "s")
        if not node.deleted
    ]
    assert read_by_adk == read_by_all
    assert len(read_by_adk) == (5 if how == "edit" else 4)
    kept = await engine.conversations.revisions((await nodes_of(engine, "s"))[0].id)
    assert [one.native is not None for one in kept] == [True, False]


async def test_another_event_of_the_same_id_is_another_event(engine: Engine, service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, session_id="s")
    first, second = said("first", id="e"), said("second", id="e")
    both = event(result("c1", {"result": "a"}), result("c2", {"result": "b"}), id="e")
    behind = await read(service, "s")

    for given in (first, second, second, both):
        await service.append_event(session, given)

    assert [one.content for one in (await read(service, "s")).events] == [first.content, second.content, both.content]
    assert await read(service, "s") == session
    with pytest.raises(StaleSessionError):
        await service.append_event(behind, said("third", id="e"))


async def test_an_agent_named_tool_is_an_agent(engine: Engine, service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, session_id="s")

    await service.append_event(session, said("I am an agent", author="tool"))

    history = HoldfastChatMessageHistory("s", engine)
    assert [message.type for message in await history.aget_messages()] == ["ai"]


async def test_many_users_continue_nobodys_sessions_at_once(engine: Engine, service: PostgresSessionService) -> None:
    for number in range(40):
        await engine.conversations.create(session_id=f"s{number}")
    sessions = [
        await service.get_session(app_name="shop", user_id=f"user {number}", session_id=f"s{number}")
        for number in range(40)
    ]

    async with asyncio.timeout(8):
        await asyncio.gather(*(service.append_event(one, said("mine")) for one in sessions if one is not None))

    assert len(await engine.conversations.list(app="shop", limit=50)) == 40


async def test_what_adk_stores_in_state_others_read_and_the_other_way(
    engine: Engine, service: PostgresSessionService
) -> None:
    session = await service.create_session(**ANN, session_id="s", state={"step": 1})
    talk = await engine.conversations.find(session_id="s")
    assert talk is not None
    await service.append_event(session, changed({"user:theme": "dark", "step": 2}))

    assert await engine.state.get(talk.id) == {"step": 2, "user:theme": "dark"}
    await engine.state.set(talk.id, {"step": 3})

    with pytest.raises(StaleSessionError):
        await service.append_event(session, said("behind"))
    assert (await read(service, "s")).state == {"step": 3, "user:theme": "dark"}


@pytest.mark.parametrize("given", [case[0] for case in CASES])
@pytest.mark.parametrize("escaped", ["", "\0"])
def test_an_event_is_read_as_adk_itself_would_read_it(given: Event, escaped: str) -> None:
    given = given.model_copy(update={"custom_metadata": {"text": escaped}})
    drafts, _ = drafts_of(given, "ann")
    native = drafts[0].native
    assert native is not None

    (read,) = events_of(Snapshot(ID, "s", "ann", None, 0, {}, 0.0, [native]))

    assert read == given
    assert read.model_dump(exclude_unset=True) == Event.model_validate(loads(native)).model_dump(exclude_unset=True)


# What ADK sees of others'


async def test_what_others_wrote_is_read_as_events(engine: Engine, service: PostgresSessionService) -> None:
    talk = await engine.conversations.create(app="shop", user="ann", agent="support", session_id="s")
    calls = [{"id": "c1", "name": "track", "arguments": {"parcel": 7}}]
    files = [{"mime_type": "text/plain", "uri": "https://x/y"}, {"mime_type": "image/png"}]
    drafts = [
        NodeInput(content="Be kind.", context="text:system:system"),
        NodeInput(content="Where?", context="text:user:ann", payload={"attachments": files}),
        NodeInput(content="", context="text:agent:assistant", payload={"tool_calls": calls}),
        NodeInput(content="Rome", context="text:agent:tool", payload={"tool_call_id": "c1", "tool_name": "track"}),
        NodeInput(
            content="gone",
            context="text:agent:tool",
            payload={"tool_call_id": "c1", "tool_name": "track", "error": True},
        ),
        NodeInput(content="{}", context="text:agent:tool", payload={"tool_call_id": "c2", "result": {"a": [1]}}),
        NodeInput(content="In Rome \0 \ud83d.", context="text:agent:clerk", form="langchain", native='{"type": "ai"}'),
        NodeInput(content="", context="event:agent:clerk"),
    ]
    nodes = await engine.conversations.append_all(talk.id, drafts, state={"a": 1, "user:b": None})

    first, second = await read(service, "s"), await read(service, "s")

    assert first == second
    assert [one.id for one in first.events] == [str(node.id) for node in nodes]
    assert [one.timestamp for one in first.events] == [node.created_at.timestamp() for node in nodes]
    assert [one.author for one in first.events] == [
        "system", "user", "support", "support", "support", "support", "clerk", "clerk"
    ]  # fmt: skip
    assert first.events[0].actions.state_delta == {"a": 1, "user:b": None}
    assert [one.content for one in first.events] == [
        Content(role="user", parts=[Part(text="Be kind.")]),
        Content(
            role="user",
            parts=[Part(text="Where?"), Part(file_data=FileData(file_uri="https://x/y", mime_type="text/plain"))],
        ),
        Content(role="model", parts=[Part(function_call=FunctionCall(id="c1", name="track", args={"parcel": 7}))]),
        Content(role="user", parts=[result("c1", {"result": "Rome"})]),
        Content(role="user", parts=[result("c1", {"error": "gone"})]),
        Content(role="user", parts=[result("c2", {"a": [1]}, name="tool")]),
        Content(role="model", parts=[Part(text="In Rome \0 \ud83d.")]),
        None,
    ]
    await service.append_event(first, said("and on"))
    assert await read(service, "s") == first


async def test_an_event_that_was_edited_says_what_it_says_now_and_a_deleted_one_is_gone(
    engine: Engine, service: PostgresSessionService
) -> None:
    session = await service.create_session(**ANN, session_id="s")
    for text in ("one", "two", "three"):
        await service.append_event(session, said(text))
    nodes = await nodes_of(engine, "s")

    await engine.conversations.edit(nodes[0].id, "first", version=1)
    await engine.conversations.delete(nodes[1].id, version=1)

    got = await read(service, "s")
    assert [one.content.parts[0].text for one in got.events if one.content and one.content.parts] == ["first", "three"]
    assert [one.author for one in got.events] == ["support", "support"]
    with pytest.raises(StaleSessionError):
        await service.append_event(session, said("behind"))


async def test_a_conversation_of_nobody_becomes_the_users_who_continues_it(
    engine: Engine, service: PostgresSessionService
) -> None:
    talk = await engine.conversations.create(session_id="s")
    await engine.conversations.append(talk.id, "Where?", context="text:user:user", form="langchain", native="{}")
    other = await service.create_session(**ANN, session_id="other", state={"app:a": 1, "user:u": 2})

    anns = await read(service, "s")
    bobs = await service.get_session(app_name="shop", user_id="bob", session_id="s")
    assert bobs is not None
    assert (anns.state, bobs.state) == (other.state, {"app:a": 1})
    assert [one.id for one in (await service.list_sessions(**ANN)).sessions] == ["other"]
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**ANN, session_id="s")
    await service.delete_session(**ANN, session_id="s")
    await service.append_event(anns, changed({"user:u": 3}))

    adopted = await engine.conversations.get(talk.id)
    assert (adopted.app, adopted.user) == ("shop", "ann")
    assert await read(service, "s") == anns
    assert anns.state == {"app:a": 1, "user:u": 3}
    assert await service.get_session(app_name="shop", user_id="bob", session_id="s") is None
    with pytest.raises(SessionNotFoundError):
        await service.append_event(bobs, said("mine"))
    await service.append_event(anns, said("and on"))
    assert len((await read(service, "s")).events) == 3


async def test_a_conversation_of_nobody_in_another_app_is_not_found(
    engine: Engine, service: PostgresSessionService
) -> None:
    await engine.conversations.create(app="blog", session_id="s")

    assert await service.get_session(**ANN, session_id="s") is None
    assert (await service.create_session(**ANN, session_id="s")).id == "s"


async def test_a_fork_is_continued_by_itself(engine: Engine, service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, session_id="s")
    for n in range(3):
        await service.append_event(session, changed({"n": n}))
    talk = await engine.conversations.find(session_id="s")
    assert talk is not None
    fork = await engine.conversations.fork(talk.id, at=2, session_id="f")

    copy = await read(service, "f")
    await service.append_event(copy, said("elsewhere"))

    assert (copy.state, [one.id for one in copy.events[:2]]) == ({"n": 1}, [one.id for one in session.events[:2]])
    assert await read(service, "f") == copy
    assert await read(service, "s") == session
    assert (await engine.conversations.get(fork.id)).last_seq == 3
