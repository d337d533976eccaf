"""Agents as they are declared and stored: what they may be called, who may change them, and in which version."""

from functools import partial
from typing import Any

import pytest

from holdfast import App
from holdfast.agents import Agent, Limits
from holdfast.agents.definitions import MAX_INSTRUCTIONS, agent_of
from holdfast.agents.operator_limits import OperatorLimits
from holdfast.core.config import Config
from holdfast.core.errors import AlreadyExists, Conflict, HoldfastError, InvalidInput, NotFound
from holdfast.core.settings import AgentSettings, LlmSettings
from holdfast.engine import Engine, open_engine
from holdfast.skills.function_tools import tool_of
from tests.agents.stage import changed


async def track(parcel: str) -> str:
    """Where a parcel is."""
    return parcel


@pytest.mark.req("AGENT-06", "TALK-01")
async def test_an_agent_of_a_program_is_stored_with_its_topic(words_only: Engine) -> None:
    agent = Agent(
        "support", instructions="Help.", description="Helps.", tools=(tool_of(track),), limits=Limits(steps=3)
    )

    await words_only.definitions.declare([agent])
    await words_only.definitions.declare([agent])

    stored = await words_only.definitions.get("support")
    assert (stored.kind, stored.origin, stored.instructions, stored.tools, stored.limits, stored.version) == (
        "llm", "code", "Help.", ("track",), Limits(steps=3), 1,
    )  # fmt: skip
    assert [topic.name for topic in await words_only.log.topics()] == ["llm-support"]


@pytest.mark.req("AGENT-06", "ENG-05")
async def test_a_stored_agent_is_changed_in_the_version_that_was_read(words_only: Engine) -> None:
    definitions = words_only.definitions
    first = await definitions.put("helper", instructions="Help.", tools=["track"], approve=["track"], by="ann")

    second = await definitions.put("helper", instructions="Help well.\0", memory=False, version=1, by="bob")

    assert (first.version, first.origin, first.updated_by, first.tools) == (1, "db", "ann", ("track",))
    assert (second.version, second.instructions, second.memory, second.updated_by) == (2, "Help well.\0", False, "bob")
    with pytest.raises(Conflict) as stale:
        await definitions.put("helper", instructions="Old.", version=1)
    with pytest.raises(AlreadyExists, match="Give its version, 2"):
        await definitions.put("helper", instructions="New.")
    assert (stale.value.details["expected"], stale.value.details["current"]) == (1, 2)
    assert [each.name for each in await definitions.list()] == ["helper"]


@pytest.mark.req("AGENT-06")
async def test_what_a_program_declares_is_its_alone_to_change(words_only: Engine) -> None:
    definitions = words_only.definitions
    await definitions.put("support", instructions="Stored.")

    await definitions.declare([Agent("support", instructions="Declared.")])

    assert (await definitions.get("support")).origin == "code"
    with pytest.raises(AlreadyExists, match="declared in an app"):
        await definitions.put("support", instructions="Changed.", version=2)
    with pytest.raises(AlreadyExists, match="declared in an app"):
        await definitions.remove("support")


@pytest.mark.req("AGENT-06")
async def test_a_removed_agent_is_gone_and_its_conversations_stay(words_only: Engine) -> None:
    definitions = words_only.definitions
    await definitions.put("helper", instructions="Help.")
    sent = await words_only.agents.send("helper", "Hello!", user="ann")

    await definitions.remove("helper")

    with pytest.raises(NotFound, match="there is no agent 'helper'"):
        await definitions.get("helper")
    with pytest.raises(NotFound, match="there is no agent 'helper'"):
        await definitions.remove("helper")
    assert (await words_only.agents.runs.get(sent.run_id)).agent == "helper"


@pytest.mark.req("AGENT-06", "TALK-02")
@pytest.mark.parametrize(
    "name", ["ui", "tool", "user", "system", "assistant", "", "a b", "ä", "x" * 101, "a/b", "a.b", "a\n"]
)
def test_a_name_that_means_somebody_else_or_makes_no_topic_is_refused(name: str) -> None:
    app = App()

    with pytest.raises(InvalidInput, match="cannot be declared"):
        app.agent(name)
    with pytest.raises(InvalidInput, match="cannot be declared"):
        app.system(name)(_answers)

    assert not app.agents


@pytest.mark.req("AGENT-06")
@pytest.mark.parametrize(
    "wrong",
    [
        {"instructions": "x" * (MAX_INSTRUCTIONS + 1)},
        {"instructions": None},
        {"limits": Limits(steps=0)},
        {"limits": Limits(seconds=-1)},
        {"limits": Limits(cost="much")},  # pyright: ignore[reportArgumentType]
        {"tools": (tool_of(track), tool_of(track))},
        {"kind": "system"},
        {"kind": "ui"},
    ],
)
def test_an_agent_that_could_not_work_is_refused_with_the_reason(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="cannot be declared") as refused:
        Agent("support", **wrong)

    assert refused.value.why


@pytest.mark.req("AGENT-06")
async def test_a_stored_agent_has_those_of_its_tools_that_the_program_knows(words_only: Engine) -> None:
    stored = await words_only.definitions.put("helper", instructions="Help.", tools=["track", "unknown"])

    agent = agent_of(stored, {"track": tool_of(track)})

    assert [tool.name for tool in agent.tools] == ["track"]
    assert (agent.topic, agent.group) == ("llm-helper", "agent-helper")


@pytest.mark.req("AGENT-06", "SAFE-02")
@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": ["track", "look", "track"]},
        {"model": "scripted:/dev/zero"},
        {"model": "scripted:any.jsonl"},
        {"model": "gpt-5"},
        {"model": "openai:"},
        {"model": "openai: "},
        {"model": "nobody:gpt-5"},
        {"model": ""},
    ],
)
async def test_an_agent_that_could_not_be_served_or_reads_the_servers_files_is_not_stored(
    words_only: Engine, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match="the agent 'helper' cannot be stored"):
        await words_only.definitions.put("helper", instructions="Help.", **wrong)

    assert await words_only.definitions.list() == []


@pytest.mark.req("AGENT-06")
@pytest.mark.parametrize("model", ["offline", "openai:gpt-5", "ollama:a:b", "anthropic:claude"])
async def test_a_stored_agent_may_ask_any_model_of_a_provider(words_only: Engine, model: str) -> None:
    stored = await words_only.definitions.put("helper", instructions="Help.", model=model)

    assert stored.model == model


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Limits(steps=21), "agents.max_steps"),
        (Limits(tokens=200_001), "agents.max_tokens"),
        (Limits(seconds=600.5), "agents.max_seconds"),
        (Limits(cost=1.01), "agents.max_cost"),
    ],
)
async def test_a_stored_agent_takes_no_more_than_the_operator_allows(
    config: Config, no_models: None, limits: Limits, told: str
) -> None:
    async with open_engine(config=changed(config, {"agents_max_cost": 1.0})) as engine:
        with pytest.raises(InvalidInput, match="the operator allows") as refused:
            await engine.definitions.put("helper", instructions="Help.", limits=limits)
        within = await engine.definitions.put(
            "helper", instructions="Help.", limits=Limits(steps=20, tokens=200_000, seconds=600, cost=1)
        )
        await engine.definitions.declare([Agent("own", limits=limits)])  # a program's are the operator's
        own = await engine.definitions.get("own")

    assert told in refused.value.next
    assert (within.limits.steps, own.limits) == (20, limits)


@pytest.mark.req("SAFE-03")
async def test_a_stored_agent_names_a_model_that_the_operator_allows(config: Config, no_models: None) -> None:
    settings = {"llm_allowed_models": ("openai:gpt-5-mini", "ollama:*"), "llm_fallbacks": ("anthropic:cheap",)}
    async with open_engine(config=changed(config, settings)) as engine:
        put = partial(engine.definitions.put, instructions="Help.")
        for number, model in enumerate([None, "offline", "openai:gpt-5-mini", "ollama:a:b", "anthropic:cheap"]):
            assert (await put(f"helper-{number}", model=model)).model == model
        for model in ("openai:gpt-5", "openai:gpt-5-mini-2", "anthropic:claude", "openrouter:x/y"):
            with pytest.raises(InvalidInput, match="does not allow the model"):
                await put("greedy", model=model)


def test_what_was_stored_before_the_settings_changed_is_cut_down() -> None:
    ceilings = OperatorLimits(AgentSettings(max_steps=5, max_cost=1), LlmSettings(allowed_models=("ollama:*",)))
    stored = Agent("helper", model="openai:gpt-5", limits=Limits(steps=50, tokens=10, cost=0.5))

    served = ceilings.apply(stored)

    assert served.limits == Limits(steps=5, tokens=10, cost=0.5)
    assert served.model is None


@pytest.mark.req("SAFE-03")
async def test_a_stored_agent_is_served_within_the_limits_of_now(config: Config, no_models: None) -> None:
    async with open_engine(config=config) as engine:
        await engine.definitions.put("helper", instructions="Help.", limits=Limits(steps=20))
    async with open_engine(config=changed(config, {"agents_max_steps": 2})) as engine:
        served = list[Agent]()
        async with engine.serving(App()) as serving:
            serve = serving._serve  # pyright: ignore[reportPrivateUsage]

            async def noted(agent: Agent) -> None:
                served.append(agent)
                await serve(agent)

            serving._serve = noted  # pyright: ignore[reportPrivateUsage]
            await serving._serve_row("helper")  # pyright: ignore[reportPrivateUsage]

    assert [agent.limits.steps for agent in served] == [2]


@pytest.mark.req("AGENT-06")
def test_two_agents_of_one_name_are_refused() -> None:
    app = App()
    app.agent("support")

    with pytest.raises(HoldfastError, match="declared twice"):
        app.system("support")(_answers)


async def _answers(_: object) -> str:
    return ""
