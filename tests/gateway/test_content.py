import asyncio
import base64

import pytest

from holdfast import App
from holdfast.gateway.gateway import Gateway
from tests.agents.stage import PATIENCE, Player
from tests.gateway.shop import PIXEL, ask, caller, shop

IMAGE = {"type": "image", "data": base64.b64encode(PIXEL).decode(), "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "shop://orders/A-1", "name": "A-1"}
TOLD = "[a picture: image/png, 4 bytes]\n[A-1: shop://orders/A-1]"


@pytest.fixture
def app() -> App:
    """The shop, with an agent that shows pictures."""
    app = shop()
    app.agent("painter", instructions="You show.", tools=["picture"], memory=False)
    return app


@pytest.mark.req("MCP-01")
async def test_blocks_that_a_tool_gives_reach_clients_and_agents_read_what_is_told_of_them(
    gateway: Gateway, model: Player
) -> None:
    ann = await caller(gateway)
    model.says({"calls": [{"name": "picture", "arguments": {"order": "A-1"}}]}, "There it is.")

    shown = await ask(gateway, ann, "tools/call", {"name": "picture", "arguments": {"order": "A-1"}})
    async with asyncio.timeout(PATIENCE):
        answered = await gateway.call(ann, "ask_agent", {"agent": "painter", "message": "show me A-1"})

    assert (shown["content"], shown["isError"]) == ([IMAGE, LINK], False)
    assert answered.status == "done"
    assert TOLD in [message.content for message in model.requests[-1].messages]
