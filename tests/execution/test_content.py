"""Tools that give blocks, and tools that wait for their client."""

from typing import Any

import pytest

from holdfast import Embedded, Image, Link, ResourceContents, Run, Text
from holdfast.execution.executor import Executor
from holdfast.execution.function_runner import FunctionRunner
from holdfast.execution.outcomes import Outcome
from holdfast.mcp.inputs import Elicit
from holdfast.skills.client import InputRequired
from holdfast.skills.function_tools import tool_of
from tests.execution.backend import RUN

FORM: dict[str, Any] = {"type": "object", "properties": {}}


async def outcome_of(function: Any) -> Outcome:
    """How a call of a function ends."""
    executor = Executor({"function": FunctionRunner()})
    return await executor.run(tool_of(function), {}, RUN, timeout=5, max_output_bytes=10_000)


@pytest.mark.req("MCP-01")
async def test_blocks_are_kept_as_they_are_and_told_as_text() -> None:
    blocks = [
        Text("Here."),
        Image.of(b"png", "image/png"),
        Embedded(ResourceContents("shop://a", text="inside")),
        Embedded(ResourceContents("shop://b", "image/png", blob="cG5n")),
        Link("shop://c", "c"),
    ]

    def shown() -> list[Any]:
        """Show."""
        return blocks

    outcome = await outcome_of(shown)

    assert outcome.content == tuple(blocks)
    assert outcome.text.splitlines() == [
        "Here.",
        "[a picture: image/png, 3 bytes]",
        "inside",
        "[shop://b: image/png]",
        "[c: shop://c]",
    ]
    assert outcome.result == outcome.text


@pytest.mark.req("MCP-01")
async def test_a_list_that_is_not_of_blocks_alone_is_a_value() -> None:
    async def mixed() -> list[Any]:
        """Mix."""
        return ["plain", 7]

    outcome = await outcome_of(mixed)

    assert (outcome.content, outcome.result) == (None, ["plain", 7])


@pytest.mark.req("MCP-01")
async def test_that_a_tool_waits_for_its_client_goes_past_all_it_catches_and_ends_no_call() -> None:
    async def asks(run: Run) -> str:
        """Ask."""
        try:
            raise InputRequired({"sure": Elicit("Sure?", FORM)})
        except Exception:  # noqa: BLE001 - as careless programs do
            return "swallowed"

    with pytest.raises(InputRequired) as raised:
        await outcome_of(asks)

    assert raised.value.requests == {"sure": Elicit("Sure?", FORM)}
