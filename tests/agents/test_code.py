"""Agents that run code which they write."""

import pytest

from holdfast import App
from tests.agents.stage import Player, Stage, calls, ended, of, reached, told

pytestmark = [pytest.mark.req("EXEC-01", "EXEC-03"), pytest.mark.usefixtures("no_models")]

PRINT = ("run_code", {"language": "python", "code": "import sys; print(6 * int(sys.stdin.read()))", "input": "7"})


@pytest.fixture
def app() -> App:
    """An app with an agent that has run_code, one that has to ask first, and one without it."""
    app = App("lab")
    app.agent("coder", tools=["run_code"])
    app.agent("careful", tools=["run_code"], approve=["run_code"])
    app.agent("clerk")
    return app


async def test_an_agent_that_names_run_code_runs_code_and_reads_what_it_prints(
    stage: Stage, app: App, model: Player
) -> None:
    engine = await stage.serve(app)
    model.says(calls(PRINT), "It is 42.")

    events = await told(engine, "coder", "What is 6 times 7?", user="ann")
    [execution] = await engine.executions.list(run=events[-1].run_id)
    [ran] = await engine.scripts.executions.of(execution.id)

    assert [event.text for event in of(events, "observation")] == ["42"]
    assert (execution.tool, execution.status, execution.result) == ("run_code", "done", "42")
    assert (ran.run_id, ran.sandbox_type, ran.stdout) == (execution.run_id, "python", "42\n")


async def test_an_agent_reads_how_its_code_failed(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says(calls(("run_code", {"language": "bash", "code": "cat /etc/passwd; exit 3"})), "It does not work.")

    events = await told(engine, "coder", "Who is here?", user="ann")

    [text] = [event.text for event in of(events, "observation")]
    assert text.startswith("it ended with exit code 3\nstandard error:\n")
    assert "/etc/passwd: Permission denied" in text


async def test_an_agent_that_does_not_name_run_code_does_not_have_it(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says(calls(PRINT), "I cannot.")

    events = await told(engine, "clerk", "What is 6 times 7?", user="ann")

    assert "there is no tool" in of(events, "observation")[0].text
    assert all("run_code" not in {tool.name for tool in request.tools} for request in model.requests)


async def test_code_waits_for_a_person_if_the_agent_has_to_ask(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.says(calls(PRINT), "It is 42.")
    sent = await engine.agents.send("careful", "What is 6 times 7?", user="ann")
    await reached(engine, sent.run_id, "waiting")
    [approval] = await engine.agents.approvals.pending()

    await engine.agents.decide(approval.id, approve=True, by="boss")
    events = await ended(engine, sent)

    assert (approval.tool, approval.arguments) == PRINT
    assert [event.text for event in of(events, "observation")] == ["42"]


async def test_an_agent_that_is_stored_as_a_row_can_name_run_code(stage: Stage, app: App) -> None:
    engine = await stage.serve(app)

    await engine.definitions.put("stored", instructions="Compute.", tools=["run_code", "unknown"])

    assert await engine.definitions.unknown_tools(["run_code", "unknown"]) == ["unknown"]
