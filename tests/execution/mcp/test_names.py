"""Names and addresses of several MCP servers that could be taken for each other."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.errors import AlreadyExists
from holdfast.skills.request import McpServer
from tests.execution.mcp.federation import own
from tests.execution.mcp.scripted import INITIALIZED, Message, ScriptedServer, reply, response
from tests.server.mcp_wire import ask
from tests.server.wire import Site

pytestmark = pytest.mark.req("MCP-05")


class Prompts(ScriptedServer):
    """A server with one prompt, which says the server's name."""

    def __init__(self, name: str, prompt: str) -> None:
        super().__init__()
        listed = {"name": prompt, "description": name}

        async def get(_: web.Request, message: Message) -> web.StreamResponse:
            said = {"role": "user", "content": {"type": "text", "text": name}}
            return reply(response(message["id"], {"messages": [said] if message["params"]["name"] == prompt else []}))

        self.will_return("initialize", {**INITIALIZED, "capabilities": {"tools": {}, "prompts": {}}})
        self.will_return("tools/list", {"tools": [{"name": "one", "inputSchema": {"type": "object"}}]})
        self.will_return("prompts/list", {"prompts": [listed]})
        self.handlers["prompts/get"] = get


@pytest.fixture
async def servers() -> AsyncIterator[list[str]]:
    """The addresses of two servers whose prompts have the same names here."""
    first, second = Prompts("crm", "eu_letter"), Prompts("crm_eu", "letter")
    async with first.serving(), second.serving():
        yield [f"{first.url}/mcp", f"{second.url}/mcp"]


@pytest.mark.parametrize(
    ("name", "prefix"), [("my-app", None), ("MY_APP", None), ("other", "my_app"), ("other", "My-App_")]
)
async def test_two_servers_cannot_have_the_same_beginning_of_addresses(
    site: Site, servers: list[str], name: str, prefix: str | None
) -> None:
    sources = (await own(site)).sources
    await sources.add("my_app", kind="mcp", url=servers[0])

    with pytest.raises(AlreadyExists, match="would begin like those of the source my_app"):
        await sources.add(name, kind="mcp", url=servers[1], mcp=McpServer(prefix=prefix))
    await sources.add("other", kind="mcp", url=servers[1])
    version = (await sources.get("other")).source.version
    with pytest.raises(AlreadyExists, match="would begin like"):
        await sources.change("other", version=version, mcp=McpServer(prefix="my-app"))

    assert [each.name for each in await sources.list()] == ["my_app", "other"]


async def test_a_prompt_is_the_one_that_is_listed(site: Site, servers: list[str]) -> None:
    sources = (await own(site)).sources
    await sources.add("crm", kind="mcp", url=servers[0])
    await sources.add("crm_eu", kind="mcp", url=servers[1])

    listed: list[Any] = (await ask(site, "prompts/list")).json()["result"]["prompts"]
    got = (await ask(site, "prompts/get", {"name": "crm_eu_letter"})).json()["result"]

    assert [each["description"] for each in listed] == ["crm"]
    assert got["messages"][0]["content"]["text"] == "crm"
