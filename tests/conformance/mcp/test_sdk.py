"""The official SDK as a client, in both eras and over every transport: what it is told is what there is."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.subscriptions import ServerEvent, ToolsListChanged

from holdfast.core.config import Config
from holdfast.mcp.protocol import LEGACY, MODERN
from tests.conformance.mcp import everything

ROOT = Path(__file__).parents[3]
PERSON = {"username": "ann", "email": "ann@example.com"}


@dataclass
class Seen:
    """What a client was told and asked while it went through all of it."""

    version: str = ""
    tools: set[str] = field(default_factory=set[str])
    blocks: list[str] = field(default_factory=list[str])
    failed: bool = False
    progress: list[float] = field(default_factory=list[float])
    logs: list[Any] = field(default_factory=list[Any])
    asked: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])
    resources: dict[str, str] = field(default_factory=dict[str, str])
    templates: list[str] = field(default_factory=list[str])
    prompts: set[str] = field(default_factory=set[str])
    prompted: str = ""
    completed: list[str] = field(default_factory=list[str])


@dataclass
class Guest:
    """A person with a model, and the client in front of them."""

    mode: str
    seen: Seen = field(default_factory=Seen)

    def client(self, server: Any) -> Client:
        """Their client of a server."""
        return Client(
            server,
            mode=self.mode,
            log_level="info" if self.mode == MODERN else None,
            elicitation_callback=self._fill_in,
            sampling_callback=self._think,
            logging_callback=self._log,
        )

    async def go_through(self, client: Client) -> Seen:
        """See all that the program has."""
        seen = self.seen
        seen.version = client.protocol_version
        seen.tools = {tool.name for tool in (await client.list_tools()).tools}
        seen.blocks = [block.type for block in (await client.call_tool("test_multiple_content_types")).content]
        seen.failed = bool((await client.call_tool("test_error_handling")).is_error)
        await client.call_tool("test_tool_with_progress", progress_callback=self._count)
        await client.call_tool("test_logging_tool")
        for name, arguments in (("test_elicitation", {"message": "Who?"}), ("test_sampling", {"prompt": "Why?"})):
            seen.said.append(_text((await client.call_tool(name, arguments)).content[0]))
        for uri in ("test://static-text", "test://template/7/data"):
            [held] = (await client.read_resource(uri)).contents
            seen.resources[uri] = held.text if isinstance(held, types.TextResourceContents) else held.blob
        seen.templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        seen.prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        given = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        seen.prompted = _text(given.messages[0].content)
        prompt = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        seen.completed = (await client.complete(prompt, {"name": "arg1", "value": "teste"})).completion.values
        return seen

    async def _fill_in(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.seen.asked.append(params.message)
        return types.ElicitResult(action="accept", content={**PERSON})

    async def _think(self, context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.seen.asked.append(_text(params.messages[0].content))
        answer = types.TextContent(type="text", text="Because.")
        return types.CreateMessageResult(role="assistant", content=answer, model="mine")

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.seen.logs.append(params.data)

    async def _count(self, progress: float, total: float | None, message: str | None) -> None:
        self.seen.progress.append(progress)


@pytest.fixture
def local(config: Config) -> StdioServerParameters:
    """The program as a server of standard input and output, on the test's database."""
    assert config.database.url is not None
    environment = {
        "HOLDFAST_DATABASE_URL": config.database.url.get_secret_value(),
        "HOLDFAST_DATA": str(config.data),
        "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",
        "XDG_CACHE_HOME": str(config.data),
        "PATH": os.environ["PATH"],
    }
    words = ["-m", "holdfast.cli.main", "mcp", f"{everything.__name__}:app"]
    return StdioServerParameters(command=sys.executable, args=words, env=environment, cwd=ROOT)


@pytest.fixture
def door(request: pytest.FixtureRequest) -> Any:
    """What a client is given to reach the server over a transport."""
    doors: dict[str, Callable[[], Any]] = {
        "http": lambda: request.getfixturevalue("url"),
        "sse": lambda: sse_client(f"{request.getfixturevalue('url')}/sse"),
        "stdio": lambda: request.getfixturevalue("local"),
    }
    return doors[request.param]()


def _text(block: Any) -> str:
    block = block[0] if isinstance(block, list) else block  # pyright: ignore[reportUnknownVariableType]
    assert isinstance(block, types.TextContent), block
    return block.text


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    ("door", "mode", "version"),
    [
        ("http", MODERN, MODERN),
        ("http", "auto", MODERN),
        ("http", "legacy", LEGACY[0]),
        ("sse", "legacy", LEGACY[0]),
        ("stdio", MODERN, MODERN),
        ("stdio", "legacy", LEGACY[0]),
    ],
    indirect=["door"],
)
async def test_the_sdks_client_sees_all_that_there_is(door: Any, mode: str, version: str) -> None:
    guest = Guest(mode)

    async with guest.client(door) as client:
        seen = await guest.go_through(client)

    assert seen.version == version
    assert {"test_simple_text", "search_tools", "recall"} <= seen.tools
    assert seen.blocks == ["text", "image", "resource"]
    assert seen.failed
    assert seen.progress == [0, 50, 100]
    assert len(seen.logs) == (0 if mode == "auto" else 3)  # it has not said that it wants them
    assert seen.asked == ["Who?", "Why?"]
    assert "ann@example.com" in seen.said[0]
    assert seen.said[1] == "LLM response: Because."
    assert seen.resources["test://static-text"] == "This is the content of the static text resource."
    assert '"id": "7"' in seen.resources["test://template/7/data"]
    assert "test://template/{id}/data" in seen.templates
    assert "test_simple_prompt" in seen.prompts
    assert seen.prompted == "Prompt with arguments: arg1='one', arg2='two'"
    assert seen.completed == ["tested"]


@pytest.mark.req("MCP-01")
async def test_the_sdks_client_hears_that_the_list_of_tools_has_changed(url: str) -> None:
    async with Client(url, mode=MODERN) as client, client.listen(tools_list_changed=True) as changes:
        before = {tool.name for tool in (await client.list_tools()).tools}
        await client.call_tool("test_trigger_tool_change")
        event = await _next(aiter(changes))
        after = {tool.name for tool in (await client.list_tools()).tools}

    assert event == ToolsListChanged()
    assert before - after == {everything.TOGGLED}


async def _next(events: AsyncIterator[ServerEvent]) -> ServerEvent:
    async with asyncio.timeout(5):
        return await anext(events)
