from typing import Any

import pytest

from holdfast import App
from holdfast.core.errors import InvalidInput
from holdfast.gateway.gateway import Gateway
from holdfast.mcp.protocol import INVALID_PARAMS, McpError
from tests.gateway.shop import MEMBER, ask, caller

PROMPT = {"type": "ref/prompt", "name": "complain"}
ORDERS = {"type": "ref/resource", "uri": "shop://orders/{order}"}


async def completed(
    gateway: Gateway, ref: Any, name: Any, typed: Any, known: dict[str, str] | None = None, **who: Any
) -> list[str]:
    """What an argument could be."""
    params = {"ref": ref, "argument": {"name": name, "value": typed}, "context": {"arguments": known or {}}}
    return (await ask(gateway, await caller(gateway, **who), "completion/complete", params))["completion"]["values"]


@pytest.mark.req("MCP-01")
async def test_arguments_of_prompts_and_of_addresses_are_completed(gateway: Gateway) -> None:
    assert await completed(gateway, PROMPT, "city", "Ber") == ["Berlin", "Bern"]
    assert await completed(gateway, PROMPT, "city", "Ber", {"order": "B-1", "other": "x"}) == ["Berlin"]
    assert await completed(gateway, PROMPT, "order", "A") == []
    assert await completed(gateway, ORDERS, "order", "a-") == ["A-1", "A-2"]


@pytest.mark.req("MCP-01")
async def test_the_engines_own_addresses_are_completed_by_what_the_caller_sees(gateway: Gateway) -> None:
    await gateway.engine.conversations.create(user="ann", agent="support", session_id="s-1")
    skills = {"type": "ref/resource", "uri": "holdfast://skills/{name}"}
    notes = {"type": "ref/resource", "uri": "holdfast://notes/{agent}"}
    talks = {"type": "ref/resource", "uri": "holdfast://conversations/{session_id}"}

    assert await completed(gateway, skills, "name", "re") == ["returns"]
    assert await completed(gateway, skills, "name", "re", scopes=MEMBER) == []
    assert await completed(gateway, skills, "name", "", agent="clerk") == []
    assert await completed(gateway, notes, "agent", "") == ["clerk", "support"]
    assert await completed(gateway, notes, "agent", "", agent="clerk") == ["clerk"]
    assert await completed(gateway, talks, "session_id", "s") == ["s-1"]
    assert await completed(gateway, talks, "session_id", "s", user="bob") == []


@pytest.mark.req("MCP-01")
async def test_no_more_than_a_hundred_values_are_told_and_how_many_there_are(gateway: Gateway, app: App) -> None:
    def numbers(typed: str) -> list[str]:
        return [f"{typed}{n}" for n in range(150)]

    @app.prompt(complete={"number": numbers})
    def count(number: str) -> str:
        """Count."""
        return number

    params = {"ref": {"type": "ref/prompt", "name": "count"}, "argument": {"name": "number", "value": "n"}}
    completion = (await ask(gateway, await caller(gateway), "completion/complete", params))["completion"]

    assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (100, 150, True)


@pytest.mark.req("MCP-01")
async def test_what_cannot_be_completed_is_refused(gateway: Gateway) -> None:
    wrong: list[tuple[Any, Any, Any]] = [
        ({"type": "ref/prompt", "name": "nothing"}, "city", ""),
        ({"type": "ref/resource", "uri": "shop://orders/A-1"}, "order", ""),
        ({"type": "ref/other"}, "city", ""),
        ({}, "city", ""),
        ("complain", "city", ""),
        (PROMPT, "colour", ""),
        (PROMPT, "city", 7),
        (PROMPT, None, ""),
    ]

    for ref, name, typed in wrong:
        with pytest.raises(McpError) as refused:
            await completed(gateway, ref, name, typed)
        assert refused.value.code == INVALID_PARAMS


@pytest.mark.req("MCP-01")
def test_a_completer_that_takes_what_nobody_gives_is_refused() -> None:
    def needy(typed: str, weather: str) -> list[str]:
        return [typed, weather]

    def visit(city: str) -> str:
        """Visit a city."""
        return city

    with pytest.raises(InvalidInput, match="takes weather"):
        App().prompt(complete={"city": needy})(visit)
