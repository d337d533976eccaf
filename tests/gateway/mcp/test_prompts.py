import base64
from typing import Any

import pytest

from holdfast import App, Run
from holdfast.core.errors import AlreadyExists, Broken, InvalidInput, TooLarge
from holdfast.gateway.gateway import Gateway
from holdfast.mcp.protocol import INVALID_PARAMS, McpError
from holdfast.skills.client import InputRequired
from tests.gateway.shop import PIXEL, Person, ask, caller


async def get(gateway: Gateway, name: Any, **arguments: Any) -> dict[str, Any]:
    """A prompt with what is filled in."""
    return await ask(gateway, await caller(gateway), "prompts/get", {"name": name, "arguments": arguments})


@pytest.mark.req("MCP-01")
async def test_prompts_are_listed_by_name_with_what_they_take(gateway: Gateway) -> None:
    listed = await ask(gateway, await caller(gateway), "prompts/list")

    assert listed == {
        "prompts": [
            {
                "name": "complain",
                "title": "Complain",
                "description": "Write a complaint.",
                "arguments": [
                    {"name": "order", "description": "what it is about.", "required": True},
                    {"name": "city", "required": False},
                ],
            },
            {"name": "greet", "description": "Greet somebody."},
        ]
    }


@pytest.mark.req("MCP-01")
async def test_a_prompt_is_a_text_or_messages_with_blocks(gateway: Gateway) -> None:
    complaint = await get(gateway, "complain", order="A-1")
    greeting = await get(gateway, "greet")

    text = {"type": "text", "text": "Complain about A-1 to the shop in Berlin."}
    assert complaint == {
        "description": "Write a complaint.",
        "messages": [{"role": "user", "content": text}],
    }
    image = {"type": "image", "data": base64.b64encode(PIXEL).decode(), "mimeType": "image/png"}
    assert greeting["messages"] == [
        {"role": "assistant", "content": {"type": "text", "text": "Who is there?"}},
        {"role": "user", "content": {"type": "text", "text": "ann."}},
        {"role": "user", "content": image},
    ]


@pytest.mark.req("MCP-01")
async def test_a_prompt_has_no_more_than_a_result_may_have(gateway: Gateway) -> None:
    with pytest.raises(TooLarge, match="the prompt complain is too large"):
        await get(gateway, "complain", order="x" * gateway.engine.config.gateway.max_result_bytes)


@pytest.mark.req("MCP-01")
async def test_a_prompt_that_is_not_filled_in_as_it_should_is_refused(gateway: Gateway) -> None:
    with pytest.raises(InvalidInput, match="requires the argument order"):
        await get(gateway, "complain")
    with pytest.raises(InvalidInput, match="has no argument 'colour'"):
        await get(gateway, "complain", order="A-1", colour="red")
    for name, arguments in (("nothing", {}), (7, {}), ("complain", {"order": 1})):
        with pytest.raises(McpError) as refused:
            await get(gateway, name, **arguments)
        assert refused.value.code == INVALID_PARAMS


@pytest.mark.req("MCP-01")
async def test_a_prompt_may_ask_its_client_and_gives_nothing_but_messages(gateway: Gateway, app: App) -> None:
    @app.prompt(name="tone.of-voice")
    async def tone(run: Run) -> str:
        """Ask."""
        return str((await run.client.elicit("tone", "Which?", {"type": "object", "properties": {}})).content["tone"])

    @app.prompt
    def number() -> int:
        """No message."""
        return 7

    ann = await caller(gateway)
    with pytest.raises(InputRequired):
        await ask(gateway, ann, "prompts/get", {"name": "tone.of-voice"}, client=Person())
    answered = await ask(
        gateway, ann, "prompts/get", {"name": "tone.of-voice"}, client=Person(tone={"tone": "friendly"})
    )
    assert answered["messages"][0]["content"]["text"] == "friendly"
    with pytest.raises(Broken):
        await get(gateway, "number")
    with pytest.raises(AlreadyExists):
        app.prompt(number)
    with pytest.raises(InvalidInput):
        app.prompt(name="two words")(number)
