"""A whole run of ADK on our services: what was said in one session reaches the prompt of the next."""

from typing import Any

import pytest
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.runners import Runner
from google.adk.tools.load_memory_tool import load_memory_tool
from google.adk.tools.preload_memory_tool import preload_memory_tool
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Part

from holdfast.adapters.adk import PostgresMemoryService, PostgresSessionService
from holdfast.engine import Engine
from tests.adapters.adk_events import ScriptedLlm, calls, user_says

pytestmark = pytest.mark.req("ADK-02", "ADK-05")

FACT = "My daughter is allergic to peanuts."


@pytest.fixture(params=["engine_without_model", "engine_with_models"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """With and without an embedding model."""
    return request.getfixturevalue(request.param)


async def reserve(people: int, tool_context: ToolContext) -> dict[str, Any]:
    """Reserve a table."""
    tool_context.state["user:table"] = people
    await tool_context.save_artifact("receipt.txt", Part(text=f"A table for {people}."))
    return {"table": 7}


async def remember(callback_context: CallbackContext) -> None:
    """Keep what was said; it is called after each turn."""
    await callback_context.add_session_to_memory()


def runner_of(engine: Engine, model: ScriptedLlm, *tools: Any) -> Runner:
    agent = LlmAgent(name="waiter", model=model, tools=list(tools), after_agent_callback=remember)
    return Runner(
        app_name="restaurant",
        agent=agent,
        session_service=PostgresSessionService(engine),
        memory_service=PostgresMemoryService(engine),
        artifact_service=InMemoryArtifactService(),
        auto_create_session=True,
    )


async def say(runner: Runner, text: str, *, session: str, user: str = "ann") -> None:
    async for _ in runner.run_async(user_id=user, session_id=session, new_message=user_says(text)):
        pass


async def first_session(engine: Engine) -> Runner:
    """The fact, a tool, and some talk."""
    model = ScriptedLlm("I will take care of that.", [calls("reserve", people=3)], "Table 7 is yours.")
    runner = runner_of(engine, model, reserve)
    await say(runner, FACT, session="monday")
    await say(runner, "A table for three, please.", session="monday")
    return runner


async def test_what_was_said_is_in_the_prompt_of_the_next_session(engine: Engine) -> None:
    first = await first_session(engine)
    model = ScriptedLlm("No satay for her.")

    await say(runner_of(engine, model, preload_memory_tool), "What must my daughter not eat?", session="friday")

    [remembered, question] = model.asked[0]
    assert question == "What must my daughter not eat?"
    assert f"user: {FACT}" in remembered
    session = await first.session_service.get_session(app_name="restaurant", user_id="ann", session_id="friday")
    assert session is not None
    assert session.state == {"user:table": 3}
    assert first.artifact_service is not None
    saved = await first.artifact_service.load_artifact(
        app_name="restaurant", user_id="ann", session_id="monday", filename="receipt.txt"
    )
    assert saved == Part(text="A table for 3.")


async def test_a_model_that_asks_its_memory_is_told(engine: Engine) -> None:
    await first_session(engine)
    model = ScriptedLlm([calls("load_memory", query="daughter allergic")], "No peanuts.")

    await say(runner_of(engine, model, load_memory_tool), "What must she not eat?", session="friday")

    assert FACT not in model.prompts[0]
    assert FACT in model.prompts[1]


async def test_each_turn_is_remembered_once_and_no_tool_among_them(engine: Engine) -> None:
    runner = await first_session(engine)

    assert runner.memory_service is not None
    found = await runner.memory_service.search_memory(
        app_name="restaurant", user_id="ann", query="daughter peanuts table care"
    )

    said = {part.text for entry in found.memories for part in entry.content.parts or []}
    assert said == {FACT, "I will take care of that.", "A table for three, please.", "Table 7 is yours."}
    assert len(found.memories) == 4


async def test_another_user_is_told_nothing(engine: Engine) -> None:
    await first_session(engine)
    model = ScriptedLlm("How should I know?")

    await say(
        runner_of(engine, model, preload_memory_tool), "What must my daughter not eat?", session="friday", user="bob"
    )

    assert model.asked == [["What must my daughter not eat?"]]
