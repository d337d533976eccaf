"""Whole runs of ADK: a runner, agents, tools, a scripted model, and our sessions under them."""

import asyncio
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, EventsCompactionConfig, ResumabilityConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.session import Session
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Content, FunctionResponse, Part

from holdfast.adapters.adk import PostgresSessionService
from holdfast.engine import Engine
from tests.adapters.adk_events import ScriptedLlm, calls, user_says

pytestmark = [
    pytest.mark.req("ADK-05"),
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning"),  # ADK's name for compaction and resuming
]

ANN: dict[str, Any] = {"user_id": "ann", "session_id": "web-42"}


def track(parcel: int, tool_context: ToolContext) -> dict[str, Any]:
    """Where a parcel is."""
    tool_context.state["parcel"] = parcel
    tool_context.state["user:last_parcel"] = parcel
    tool_context.state["temp:note"] = "gone after the run"
    return {"place": "Rome"}


@pytest.fixture
def service(engine: Engine) -> PostgresSessionService:
    return PostgresSessionService(engine)


async def say(runner: Runner, text: str) -> list[Event]:
    return [event async for event in runner.run_async(**ANN, new_message=user_says(text))]


async def stored(service: PostgresSessionService) -> Session:
    session = await service.get_session(app_name="shop", **ANN)
    assert session is not None
    return session


def texts(session: Session) -> list[str]:
    parts = [part for event in session.events if event.content for part in event.content.parts or []]
    return [part.text for part in parts if part.text]


async def test_a_run_with_a_tool_is_kept_with_its_state_and_goes_on_in_another_process(
    engine: Engine, another_engine: Engine
) -> None:
    service = PostgresSessionService(engine)
    first = ScriptedLlm([calls("track", parcel=7)], "It is in Rome.")
    agent = LlmAgent(name="support", model=first, tools=[track], output_key="answer")
    runner = Runner(app_name="shop", agent=agent, session_service=service, auto_create_session=True)
    await say(runner, "Where is 7?")

    again = PostgresSessionService(another_engine)
    second = ScriptedLlm("As I said: Rome.")
    runner = Runner(app_name="shop", agent=LlmAgent(name="support", model=second), session_service=again)
    await say(runner, "Where?")

    session = await stored(service)
    assert session.state == {"parcel": 7, "user:last_parcel": 7, "answer": "It is in Rome."}
    assert texts(session) == ["Where is 7?", "It is in Rome.", "Where?", "As I said: Rome."]
    assert second.asked == [["Where is 7?", "It is in Rome.", "Where?"]]
    talk = await engine.conversations.find(session_id="web-42")
    assert talk is not None
    messages = await engine.conversations.messages(talk.id, reader="support", tools=True)
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", "Where is 7?"),
        ("assistant", ""),
        ("tool", '{"place":"Rome"}'),
        ("assistant", "It is in Rome."),
        ("user", "Where?"),
        ("assistant", "As I said: Rome."),
    ]


async def test_several_tools_called_at_once_answer_together(engine: Engine, service: PostgresSessionService) -> None:
    model = ScriptedLlm([calls("track", parcel=1), calls("track", parcel=2)], "Both are in Rome.")
    agent = LlmAgent(name="support", model=model, tools=[track])
    runner = Runner(app_name="shop", agent=agent, session_service=service, auto_create_session=True)

    await say(runner, "Where are 1 and 2?")

    session = await stored(service)
    assert [len(event.get_function_responses()) for event in session.events] == [0, 0, 2, 0]
    talk = await engine.conversations.find(session_id="web-42")
    assert talk is not None
    assert talk.last_seq == 5


async def test_a_run_without_a_loop_of_its_own_works(service: PostgresSessionService) -> None:
    agent = LlmAgent(name="support", model=ScriptedLlm("Hello, Ann."))
    runner = Runner(app_name="shop", agent=agent, session_service=service, auto_create_session=True)

    events = await asyncio.to_thread(lambda: list(runner.run(**ANN, new_message=user_says("Hello"))))

    assert [event.author for event in events] == ["support"]
    assert texts(await stored(service)) == ["Hello", "Hello, Ann."]


async def test_agents_hand_over_to_each_other_and_share_the_session(service: PostgresSessionService) -> None:
    clerk_model = ScriptedLlm("I am the clerk.", "Still the clerk.")
    clerk = LlmAgent(name="clerk", description="knows parcels", model=clerk_model)
    root_model = ScriptedLlm([calls("transfer_to_agent", agent_name="clerk")])
    root = LlmAgent(name="support", model=root_model, sub_agents=[clerk])
    runner = Runner(app_name="shop", agent=root, session_service=service, auto_create_session=True)

    await say(runner, "The clerk, please.")
    await say(runner, "Who is there?")

    session = await stored(service)
    assert [event.author for event in session.events] == ["user", "support", "support", "clerk", "user", "clerk"]
    assert [event.actions.transfer_to_agent for event in session.events if event.actions.transfer_to_agent] == ["clerk"]


async def test_a_session_is_rewound_to_before_a_turn(service: PostgresSessionService) -> None:
    model = ScriptedLlm("one", [calls("track", parcel=7)], "two", "three")
    agent = LlmAgent(name="support", model=model, tools=[track])
    runner = Runner(app_name="shop", agent=agent, session_service=service, auto_create_session=True)
    await say(runner, "first")
    second = await say(runner, "second")

    await runner.rewind_async(**ANN, rewind_before_invocation_id=second[0].invocation_id)
    await say(runner, "third")

    session = await stored(service)
    assert model.asked[-1] == ["first", "one", "third"]
    assert session.state.get("parcel") is None
    assert session.events[-3].actions.rewind_before_invocation_id == second[0].invocation_id
    assert "second" in texts(session)


async def test_a_long_session_is_compacted_and_the_summary_is_what_the_model_gets(
    engine: Engine, service: PostgresSessionService
) -> None:
    model = ScriptedLlm("one", "two", "three")
    compaction = EventsCompactionConfig(
        compaction_interval=2, overlap_size=0, summarizer=LlmEventSummarizer(llm=ScriptedLlm("They counted to two."))
    )
    app = App(name="shop", root_agent=LlmAgent(name="support", model=model), events_compaction_config=compaction)
    runner = Runner(app=app, session_service=service, auto_create_session=True)

    for text in ("first", "second", "third"):
        await say(runner, text)

    session = await stored(service)
    assert [bool(event.actions.compaction) for event in session.events].count(True) == 1
    assert model.asked[-1] == ["They counted to two.", "third"]
    talk = await engine.conversations.find(session_id="web-42")
    assert talk is not None
    summaries = [node for node in await engine.conversations.last(talk.id, 20) if node.context.startswith("summary:")]
    assert [node.content for node in summaries] == ["They counted to two."]


def ask_for_approval(amount: int) -> dict[str, str]:
    """Ask a person; the answer comes later."""
    return {"status": "pending", "ticket": f"t-{amount}"}


async def test_a_run_that_waits_for_a_person_is_resumed_in_another_process(
    engine: Engine, another_engine: Engine
) -> None:
    def runner_on(engine: Engine, *answers: Any) -> Runner:
        agent = LlmAgent(
            name="support", model=ScriptedLlm(*answers), tools=[LongRunningFunctionTool(func=ask_for_approval)]
        )
        app = App(name="shop", root_agent=agent, resumability_config=ResumabilityConfig(is_resumable=True))
        return Runner(app=app, session_service=PostgresSessionService(engine), auto_create_session=True)

    paused = await say(runner_on(engine, [calls("ask_for_approval", amount=9)], "I asked."), "Refund 9, please.")
    call = next(call for event in paused for call in event.get_function_calls())
    answer = FunctionResponse(id=call.id, name=call.name, response={"status": "approved"})
    resumed = [
        event
        async for event in runner_on(another_engine, "It is approved.").run_async(
            **ANN,
            invocation_id=paused[0].invocation_id,
            new_message=Content(role="user", parts=[Part(function_response=answer)]),
        )
    ]

    session = await stored(PostgresSessionService(engine))
    assert {event.invocation_id for event in resumed} == {paused[0].invocation_id}
    assert texts(session)[-1] == "It is approved."
    assert any(event.actions.end_of_agent for event in session.events)


async def test_state_given_with_a_message_is_stored_with_it(service: PostgresSessionService) -> None:
    agent = LlmAgent(name="support", model=ScriptedLlm("Hello."))
    runner = Runner(app_name="shop", agent=agent, session_service=service, auto_create_session=True)

    given = {"user:theme": "dark", "temp:t": 1}
    async for _ in runner.run_async(**ANN, new_message=user_says("Hi"), state_delta=given):
        pass

    assert (await stored(service)).state == {"user:theme": "dark"}
