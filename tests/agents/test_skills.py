"""Skills in turns: told by name, loaded when they are needed, and then as good as any tool, where it is permitted."""

from typing import Any

import pytest

from holdfast import App
from holdfast.agents.prompt_sections import SKILLS
from holdfast.engine import Engine
from holdfast.llm import ModelRequest
from tests.agents.stage import Player, Stage, calls, ended, met, of, told


@pytest.fixture
def shop() -> App:
    """A program with an agent whose skills bring tools."""
    app, paid = App(), list[dict[str, Any]]()

    @app.tool(access="write")
    async def refund(parcel: str, amount: float, currency: str = "EUR") -> dict[str, Any]:
        """Pay back."""
        paid.append({"parcel": parcel, "amount": amount, "currency": currency})
        return paid[-1]

    @app.tool(access="read", idempotent=True)
    async def policy(country: str) -> str:
        """How long goods can be sent back."""
        return f"30 days in {country}"

    app.add_skill("law", description="What the law says about returns.", instructions="Ask policy.", tools=[policy])
    app.add_skill(
        "returns",
        description="How goods come back.",
        instructions="# Returns\nCheck the law, then pay back.",
        tools=[refund],
        requires=["law"],
    )
    app.add_skill("returns-abroad", description="From other countries.", instructions="Customs!", parent="returns")
    app.add_skill("greetings", description="How we greet.", instructions="Say hello.")
    app.agent("support", instructions="You help.", skills=["returns", "greetings"], memory=False)
    return app


def names(request: ModelRequest) -> set[str]:
    """The tools that a model was told of."""
    return {tool.name for tool in request.tools}


def system(request: ModelRequest) -> str:
    """What stands above the messages."""
    return request.messages[0].content


async def loaded(engine: Engine, model: Player, **options: Any) -> list[ModelRequest]:
    """What the model was sent in a turn that loads the skill `returns`."""
    model.says(calls(("use_skill", {"name": "returns"})), "Ready.")
    await told(engine, "support", "I want to send it back.", user="ann", session_id="web-1", **options)
    return model.requests[-2:]


@pytest.mark.req("SKILL-02")
async def test_a_prompt_begins_with_names_and_a_skill_brings_its_instructions_and_tools(
    stage: Stage, shop: App, model: Player
) -> None:
    engine = await stage.serve(shop)

    before, after = await loaded(engine, model)

    assert f"{SKILLS}- returns: How goods come back.\n- greetings: How we greet." in system(before)
    assert "pay back" not in system(before)
    assert names(before) == {"use_skill", "search_skills"}
    instructions = "## Skill: law\nAsk policy.\n\n## Skill: returns\n# Returns\nCheck the law, then pay back."
    assert system(after) == system(before), "what is loaded in a turn comes with what loaded it"
    assert names(after) == {"use_skill", "search_skills", "policy", "refund"}
    [said] = [message.content for message in after.messages if message.role == "tool"]
    assert said == (
        'returns is loaded, and law, which it needs. Its instructions stand under "Skill: returns" now: follow them.\n'
        "Its tools: policy, refund.\n"
        "It leads to these, which you can load:\n"
        "- returns-abroad: From other countries.\n\n" + instructions
    )


@pytest.mark.req("SKILL-02")
async def test_what_was_loaded_stays_in_the_conversation_and_in_no_other(
    stage: Stage, shop: App, model: Player
) -> None:
    engine = await stage.serve(shop)
    await loaded(engine, model)
    model.says(calls(("refund", {"parcel": "AB-1", "amount": 5})), "Paid.")

    events = await told(engine, "support", "Now!", user="ann", session_id="web-1")
    await told(engine, "support", "Hello", user="ann", session_id="web-2")

    [observation] = of(events, "observation")
    assert observation.text == '{"parcel":"AB-1","amount":5.0,"currency":"EUR"}'
    assert "refund" not in names(model.requests[-1])


@pytest.mark.req("SKILL-02")
async def test_what_it_saves_is_counted_and_shown_in_the_run(stage: Stage, shop: App, model: Player) -> None:
    engine = await stage.serve(shop)

    events = await told(engine, "support", "Hello", user="ann")

    [step] = await engine.agents.steps(events[-1].run_id or pytest.fail("no run"))
    [part] = (part for part in step.sent["parts"] if part["name"] == "skills")
    saved = part["refs"]["saved"]
    assert saved["counter"] == step.sent["counter"]
    assert saved["saved"] == saved["whole"] - saved["shown"] > 0
    assert (part["refs"]["listed"], part["refs"]["loaded"]) == (["returns", "greetings"], [])


@pytest.mark.req("SKILL-02", "SKILL-04")
async def test_a_skill_that_is_not_listed_is_searched_for_and_loaded(stage: Stage, shop: App, model: Player) -> None:
    engine = await stage.serve(shop)
    model.says(
        calls(("search_skills", {"query": "goods from other countries"})),
        calls(("use_skill", {"name": "returns-abroad"})),
        "Done.",
    )

    events = await told(engine, "support", "From Norway.", user="ann")

    found, opened = of(events, "observation")
    assert "- returns-abroad: From other countries." in (found.text or "")
    assert (opened.text or "").startswith("returns-abroad is loaded. ")
    assert "## Skill: returns-abroad\nCustoms!" in model.requests[-1].messages[-1].content


@pytest.mark.req("SKILL-02", "ENG-08")
async def test_a_skill_that_there_is_not_is_a_result_that_names_those_that_there_are(
    stage: Stage, shop: App, model: Player
) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("use_skill", {"name": "refunds"})), "Sorry.")

    events = await told(engine, "support", "Hello", user="ann")

    [observation] = of(events, "observation")
    assert observation.failed
    assert "support has no skill 'refunds'" in (observation.text or "")
    assert events[-1].state == "done"


@pytest.mark.req("SKILL-07")
async def test_a_tool_that_is_not_permitted_is_not_disclosed(stage: Stage, shop: App, model: Player) -> None:
    engine = await stage.serve(shop)
    await engine.tools.permit("refund", {"agents": {"support": "read"}})

    _, after = await loaded(engine, model)

    assert names(after) == {"use_skill", "search_skills", "policy"}
    [told_so] = [message.content for message in after.messages if message.role == "tool"]
    assert "Not for you: refund, for it requires the access write" in told_so


@pytest.mark.req("SKILL-07")
@pytest.mark.parametrize("how", ["permissions", "off", "unlinked", "unassigned"])
async def test_what_is_taken_back_after_it_was_disclosed_is_not_executed(
    stage: Stage, shop: App, model: Player, how: str
) -> None:
    engine = await stage.serve(shop)
    await loaded(engine, model)
    model.hold()
    model.says(calls(("refund", {"parcel": "AB-1", "amount": 5})), "Sorry.")
    sent = await engine.agents.send("support", "Now!", user="ann", session_id="web-1")
    await met(lambda: len(model.requests) == 3)
    match how:
        case "permissions":
            await engine.tools.permit("refund", {"default": "none"})
        case "off":
            await engine.tools.activate("refund", False)
        case "unlinked":
            await engine.skills.unlink("returns", "refund")
        case _:
            await engine.skills.unassign("support", "returns")

    model.release()

    events = await ended(engine, sent)
    [observation] = [event for event in of(events, "observation") if event.run_id == sent.run_id]
    assert observation.failed
    assert "refund was not called" in (observation.text or "")


@pytest.mark.req("SKILL-01")
async def test_configs_fix_arguments_that_the_model_is_not_told_of(stage: Stage, shop: App, model: Player) -> None:
    engine = await stage.serve(shop)
    await engine.skills.link("returns", "refund", config={"arguments": {"currency": "CHF"}}, version=1)

    _, after = await loaded(engine, model)
    model.says(calls(("refund", {"parcel": "AB-1", "amount": 5, "currency": "USD"})), "Paid.")
    events = await told(engine, "support", "Now!", user="ann", session_id="web-1")

    [refund] = [tool for tool in after.tools if tool.name == "refund"]
    assert set(refund.parameters["properties"]) == {"parcel", "amount"}
    [observation] = of(events, "observation")
    assert observation.text == '{"parcel":"AB-1","amount":5.0,"currency":"CHF"}'


@pytest.mark.req("SKILL-01", "SKILL-07")
async def test_a_stored_agent_calls_registered_tools_and_they_are_counted(
    stage: Stage, shop: App, model: Player
) -> None:
    engine = await stage.open()
    serving = await stage.serving(engine, shop)
    await engine.definitions.put("clerk", instructions="You look things up.", tools=["policy"])
    await met(lambda: "clerk" in serving.agents)
    model.says(calls(("policy", {"country": "Norway"})), "Done.")

    events = await told(engine, "clerk", "How long?", user="ann")

    [observation] = of(events, "observation")
    assert observation.text == "30 days in Norway"
    execution = await engine.database.one(
        "select e.status, t.name from tool_executions e join tool_t t on t.host_id = $1 and t.tool_id = e.tool_id "
        "where e.tenant_id = $1 and e.tool = 'policy'"
    )
    assert execution is not None
    assert (execution["status"], execution["name"]) == ("done", "policy")


@pytest.mark.req("SKILL-02", "ENG-08")
async def test_a_skill_that_can_never_fit_is_not_loaded_and_says_what_it_takes(
    stage: Stage, shop: App, model: Player
) -> None:
    shop.add_skill("everything", description="All we know.", instructions="word " * 35_000, tools=["policy"])
    shop.agent("clerk", skills=["everything"], tools=["policy"], memory=False)
    engine = await stage.serve(shop)
    model.says(calls(("use_skill", {"name": "everything"})), "Without it, then.")

    events = await told(engine, "clerk", "What do we know?", user="ann")

    [observation] = of(events, "observation")
    assert observation.failed
    assert "the skill everything was not loaded: its instructions take " in (observation.text or "")
    assert " tokens, and skills have " in (observation.text or "")
    after = model.requests[-1]
    assert "everything: All we know." in system(after)
    assert "policy" in names(after), "what it always has stays"
    assert not await engine.database.value("select count(*) from conversation_skill where tenant_id = $1")


@pytest.mark.req("SKILL-02")
async def test_a_skill_that_lost_its_room_is_named_and_loaded_again_it_is_the_newest(
    stage: Stage, shop: App, model: Player
) -> None:
    for name in ("first", "second"):
        shop.add_skill(name, instructions=f"{name} " * 2000, description="Long.")
    shop.agent("clerk", skills=["first", "second"], memory=False)
    engine = await stage.serve(shop, llm_context_tokens=8000, llm_max_output_tokens=1000)
    model.says(*(calls(("use_skill", {"name": name})) for name in ("first", "second", "first")), "Ready.")

    await told(engine, "clerk", "Learn!", user="ann", session_id="web-1")
    await told(engine, "clerk", "Go on.", user="ann", session_id="web-1")

    first = system(model.requests[-1])
    assert ["## Skill: second" in request.messages[-1].content for request in model.requests[1:4]] == [
        False,
        True,
        False,
    ]
    assert "## Skill: first" in first
    assert "There was no room any more for the skill second." in first


@pytest.mark.req("SKILL-02", "ENG-08")
async def test_who_calls_a_tool_before_its_skill_is_loaded_reads_which_to_load(
    stage: Stage, shop: App, model: Player
) -> None:
    engine = await stage.serve(shop)
    model.says(calls(("refund", {"parcel": "AB-1", "amount": 5})), "# Run policy Norway", "Sorry.")

    events = await told(engine, "support", "Pay back!", user="ann")

    native, written = (observation.text for observation in of(events, "observation"))
    assert native == "the tool refund is not available yet. Load the skill returns with use_skill first."
    assert written == "the tool policy is not available yet. Load the skill law with use_skill first."


@pytest.mark.req("SAFE-03", "SKILL-02")
async def test_nobody_takes_the_place_of_the_engine_s_own_tools(stage: Stage, shop: App, model: Player) -> None:
    engine = await stage.serve(shop)
    await engine.database.run("update tool_t set name = 'use_skill' where host_id = $1 and name = 'policy'")

    _, after = await loaded(engine, model)

    [use] = [tool for tool in after.tools if tool.name == "use_skill"]
    assert use.description.startswith("Load a skill")
    assert "## Skill: returns" in after.messages[-1].content


@pytest.mark.req("SKILL-07")
async def test_a_tool_that_is_taken_from_a_stored_agent_is_gone_in_its_next_turn(
    stage: Stage, shop: App, model: Player
) -> None:
    engine = await stage.open()
    serving = await stage.serving(engine, shop)
    await engine.definitions.put("clerk", instructions="You look things up.", tools=["policy", "refund"])
    await met(lambda: "clerk" in serving.agents)
    await told(engine, "clerk", "Hello", user="ann")

    await engine.definitions.put("clerk", instructions="You look things up.", tools=["policy"], version=1)
    await met(lambda: serving._stored["clerk"][0] == 2)  # pyright: ignore[reportPrivateUsage]
    await told(engine, "clerk", "Hello again", user="ann")

    before, after = model.requests[-2:]
    assert names(before) - names(after) == {"refund"}


@pytest.mark.req("EXEC-02")
async def test_a_function_is_called_by_whichever_engine_of_its_tenant_is_asked(stage: Stage, shop: App) -> None:
    engine = await stage.serve(shop)
    other = await engine.tenants.create("other")
    by_name, by_id = engine.tenant("default"), engine.tenant(await engine.tenants.id_of("default"))
    theirs = engine.tenant(other.id)
    row = await engine.tools.get("policy")
    await theirs.tools.put("policy", description="", parameters={}, kind="function", reference=row.tool.reference)

    done = [await each.executions.call("policy", {"country": "Chad"}) for each in (engine, by_name, by_id)]
    elsewhere = await theirs.executions.call("policy")

    assert [call.text for call in done] == ["30 days in Chad"] * 3
    assert elsewhere.status == "failed"
    assert "this process does not have the function" in (elsewhere.error or "")


@pytest.mark.req("MCP-07")
async def test_a_model_is_not_told_of_tools_that_access_rules_hide_and_reads_why_a_call_is_refused(
    stage: Stage, shop: App, model: Player
) -> None:
    engine = await stage.serve(shop)
    await engine.rules.put(
        'no-policy: deny user "ann" tool "policy"\nlarge: deny agent "support" tool "refund" when amount > 100'
    )
    model.says(calls(("search_skills", {"query": "How long goods can be sent back"})), "Hm.")
    searched = await told(engine, "support", "How long?", user="ann")
    _, after = await loaded(engine, model)
    model.says(
        calls(("refund", {"parcel": "A", "amount": 500}), ("policy", {"country": "DE"})),
        calls(("refund", {"parcel": "A", "amount": 5})),
        "Paid.",
    )

    events = await told(engine, "support", "Now!", user="ann", session_id="web-1")

    assert "policy" not in of(searched, "observation")[0].text
    assert names(after) == {"use_skill", "search_skills", "refund"}
    assert "Its tools: refund." in next(message.content for message in after.messages if message.role == "tool")
    refused, unknown, paid = [event.text for event in of(events, "observation")]
    assert "the access rule large denies it" in refused
    assert "policy" in unknown
    assert paid == '{"parcel":"A","amount":5.0,"currency":"EUR"}'


@pytest.mark.req("MCP-07")
async def test_rules_for_a_user_hide_no_tools_in_the_turns_of_others(stage: Stage, shop: App, model: Player) -> None:
    engine = await stage.serve(shop)
    await engine.rules.put('no-policy: deny user "bob" tool "policy"')

    _, after = await loaded(engine, model)

    assert names(after) == {"use_skill", "search_skills", "policy", "refund"}
