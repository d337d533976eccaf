from typing import Any

import pytest

from holdfast.agents.code_tools import code_tools
from holdfast.agents.knowledge_tools import knowledge_tools
from holdfast.agents.memory_tools import memory_tools
from holdfast.agents.skill_tools import skill_tools
from holdfast.core.errors import InvalidInput
from holdfast.core.ids import uuid7
from holdfast.core.text import render
from holdfast.engine import Engine
from holdfast.execution.executor import Executor
from holdfast.execution.function_runner import FunctionRunner
from holdfast.execution.outcomes import Outcome
from holdfast.gateway.builtin import own_tools
from holdfast.llm.tokens import ESTIMATE
from holdfast.memory import agent, organization, user
from holdfast.skills.arguments import ArgumentRefusal, parse_arguments
from holdfast.skills.run import Run
from holdfast.skills.tool import RESERVED, Tool

TALK, TURN = uuid7(), uuid7()


def run_of(name: str | None = "ann", key: str = "key-1", of: str = "support") -> Run:
    return Run(name, of, "web-42", TALK, TURN, "call-1", key)


ANN = run_of()


@pytest.fixture
def tools(words_only: Engine) -> dict[str, Tool]:
    """The built-in tools, by name."""
    return {tool.name: tool for tool in memory_tools(words_only.notes, words_only.memory)}


async def call(tool: Tool, run: Run, **arguments: Any) -> Outcome:
    checked = parse_arguments(tool, render(arguments).decode())
    assert isinstance(checked, dict), checked
    return await Executor({"function": FunctionRunner()}).run(tool, checked, run, timeout=10, max_output_bytes=10_000)


@pytest.mark.req("NOTE-02")
def test_the_notes_tool_has_the_names_that_others_know_it_by(tools: dict[str, Tool]) -> None:
    spec = tools["manage_long_term_memory"].spec

    properties = spec.parameters["properties"]
    assert list(properties) == ["operation", "content", "section_header"]
    assert set(properties["operation"]["enum"]) == {
        "read", "overwrite", "append", "prepend", "delete_section_by_header", "replace_section_by_header",
        "delete_all_notes",
    }  # fmt: skip
    assert properties["operation"]["default"] == "read"
    assert "required" not in spec.parameters or spec.parameters["required"] == []


@pytest.mark.req("NOTE-02")
async def test_a_model_edits_its_notes_by_section_and_reads_them(tools: dict[str, Tool]) -> None:
    notes = tools["manage_long_term_memory"]
    empty = await call(notes, ANN)

    await call(notes, run_of(key="1"), operation="append", content="# Drinks\n\ntea")
    await call(notes, run_of(key="2"), operation="append", content="# Tasks\n\n- call")
    changed = await call(
        notes, run_of(key="3"), operation="replace_section_by_header", section_header="Drinks", content="coffee"
    )

    assert empty.text == "(nothing has been noted yet)"
    assert changed.text == "Done. The notes are at version 3 and have 33 characters."
    assert (await call(notes, ANN, operation="read")).text == "# Drinks\n\ncoffee\n\n# Tasks\n\n- call"


@pytest.mark.req("NOTE-02", "SAFE-02")
async def test_notes_are_those_of_the_run_and_no_argument_names_another(tools: dict[str, Tool]) -> None:
    notes = tools["manage_long_term_memory"]
    await call(notes, ANN, operation="overwrite", content="ann's")

    refusal = parse_arguments(notes, '{"user": "ann"}')

    assert isinstance(refusal, ArgumentRefusal)
    assert "the tool has no argument `user`" in refusal.text
    for other in (run_of("bob"), run_of(of="sales")):
        assert (await call(notes, other)).text == "(nothing has been noted yet)"


@pytest.mark.req("NOTE-02", "EXEC-02")
@pytest.mark.parametrize(
    ("run", "arguments", "said"),
    [
        (ANN, {"operation": "append"}, "append requires content"),
        (ANN, {"operation": "read", "content": "x"}, "read does not take content"),
        (ANN, {"operation": "delete_section_by_header", "section_header": "Nowhere"}, "Nowhere"),
        (ANN, {"operation": "overwrite", "content": "x" * 70_000}, "the notes would be too large"),
        (run_of(None), {}, "the conversation has no user"),
    ],
)
async def test_what_cannot_be_noted_is_a_failure_that_the_model_reads(
    tools: dict[str, Tool], run: Run, arguments: dict[str, Any], said: str
) -> None:
    outcome = await call(tools["manage_long_term_memory"], run, **arguments)

    assert outcome.status == "failed"
    assert outcome.text.startswith("manage_long_term_memory failed: ")
    assert said in outcome.text


@pytest.mark.req("NOTE-02", "ENG-08")
def test_an_operation_that_there_is_not_is_refused_with_those_there_are(tools: dict[str, Tool]) -> None:
    refusal = parse_arguments(tools["manage_long_term_memory"], '{"operation": "burn"}')

    assert isinstance(refusal, ArgumentRefusal)
    assert "delete_all_notes" in refusal.text


@pytest.mark.req("MEM-02", "EXEC-05")
async def test_what_a_model_remembers_is_its_user_s_and_stored_once(words_only: Engine, tools: dict[str, Tool]) -> None:
    first = await call(tools["remember"], ANN, content="Ann drinks tea", importance=0.9)
    again = await call(tools["remember"], ANN, content="Ann drinks tea")

    [hit] = await words_only.memory.search(user("ann"), "tea")
    assert (first.text, again.status) == ("Remembered: Ann drinks tea", "done")
    assert (hit.memory.trust, hit.memory.importance, hit.memory.source) == ("agent", 0.9, str(TALK))
    assert (hit.memory.owner.agent, hit.memory.key) == ("support", "key-1")
    assert not await words_only.memory.search(user("bob"), "tea")


@pytest.mark.req("MEM-03", "SAFE-02")
async def test_a_model_recalls_what_its_user_its_agent_and_the_organization_have_and_nothing_else(
    words_only: Engine, tools: dict[str, Tool]
) -> None:
    memory = words_only.memory
    nothing = await call(tools["recall"], ANN, query="tea")
    await memory.remember(user("ann"), "Ann's tea is green\nand hot", author="Ann")
    await memory.remember(user("bob"), "Bob's tea is black")
    await memory.remember(agent("support"), "tea is sold out")
    await memory.remember(agent("sales"), "tea sells well")
    await memory.remember(organization(), "tea is shipped from Hamburg")
    today = f"{await words_only.database.now():%Y-%m-%d}"

    found = await call(tools["recall"], ANN, query="tea")
    one = await call(tools["recall"], ANN, query="tea", limit=1)
    nobody = await call(tools["recall"], run_of(None), query="tea")

    assert set(found.text.splitlines()) == {
        f"- [{today}, Ann] Ann's tea is green and hot",
        f"- [{today}] tea is sold out",
        f"- [{today}] tea is shipped from Hamburg",
    }
    assert len(one.text.splitlines()) == 1
    assert "Ann" not in nobody.text
    assert nothing.text == "Nothing is remembered yet."


@pytest.mark.req("EXEC-02", "ENG-08")
@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("remember", '{"content": ""}', "`content` is invalid, it must have at least 1 character"),
        ("remember", '{"content": "x", "importance": 7}', "`importance` is invalid, it must be at most 1 and is 7"),
        ("recall", '{"query": "x", "limit": 5000}', "`limit` is invalid, it must be at most 50 and is 5000"),
        ("recall", "{}", "the argument `query` is missing"),
    ],
)
def test_arguments_out_of_range_are_refused_with_their_range(
    tools: dict[str, Tool], name: str, raw: str, said: str
) -> None:
    refusal = parse_arguments(tools[name], raw)

    assert isinstance(refusal, ArgumentRefusal)
    assert said in refusal.text


@pytest.mark.req("NOTE-02", "EXEC-05")
async def test_a_note_that_is_made_again_after_a_crash_is_made_once(tools: dict[str, Tool]) -> None:
    notes = tools["manage_long_term_memory"]
    for _ in range(2):
        await call(notes, ANN, operation="append", content="tea")

    assert (await call(notes, ANN)).text == "tea"


@pytest.mark.req("EXEC-05")
def test_all_of_them_can_be_done_again(tools: dict[str, Tool]) -> None:
    assert all(tool.idempotent for tool in tools.values())


@pytest.mark.req("SAFE-03")
async def test_the_names_of_all_tools_of_the_engine_are_reserved(words_only: Engine) -> None:
    memory = memory_tools(words_only.notes, words_only.memory)
    skills = skill_tools(words_only.catalogs, words_only.finding, words_only.rules, room=1000, counter=ESTIMATE)

    code = code_tools(words_only.scripts, timeout=1)

    knowledge = knowledge_tools(words_only.knowledge, None)

    assert {tool.name for tool in (*memory, *knowledge, *skills, *code, *own_tools(words_only))} == RESERVED
    with pytest.raises(InvalidInput, match="the name is reserved for a tool of the engine"):
        await words_only.tools.put("recall", description="", parameters={}, kind="java", reference="A")
