"""MCP servers as sources: their tools, prompts and resources through the gateway."""

import asyncio
from typing import Any

import pytest

from holdfast.skills.request import McpServer
from tests.execution.mcp.federation import own
from tests.server.mcp_wire import ask, call
from tests.server.wire import Site

pytestmark = pytest.mark.req("MCP-05")


async def test_tools_of_a_server_are_listed_and_called_under_the_name_of_its_source(site: Site, url: str) -> None:
    report = await (await own(site)).sources.add("first", kind="mcp", url=url)

    listed = {tool["name"]: tool for tool in (await ask(site, "tools/list")).json()["result"]["tools"]}
    result = (await call(site, "first_test_simple_text")).json()["result"]

    assert report.source.title == "Holdfast"
    assert {"first_test_simple_text", "first_test_image_content"} <= listed.keys()
    assert "test_simple_text" not in listed
    assert result["content"] == [{"type": "text", "text": "This is a simple text response for testing."}]


async def test_images_and_failures_are_passed_on_unchanged(site: Site, url: str) -> None:
    await (await own(site)).sources.add("first", kind="mcp", url=url)

    image = (await call(site, "first_test_image_content")).json()["result"]
    failure = (await call(site, "first_test_error_handling")).json()["result"]

    assert (image["content"][0]["type"], image["content"][0]["mimeType"]) == ("image", "image/png")
    assert failure["isError"] is True
    assert "test_error_handling failed" in failure["content"][0]["text"]


async def test_a_question_of_a_server_is_asked_and_its_answer_brings_the_result(site: Site, url: str) -> None:
    await (await own(site)).sources.add("first", kind="mcp", url=url)
    params: dict[str, Any] = {"name": "first_test_input_required_result_elicitation", "arguments": {}}

    asked = (await ask(site, "tools/call", params)).json()["result"]
    answers = {"user_name": {"action": "accept", "content": {"name": "Ann"}}}
    more = {"inputResponses": answers, "requestState": asked["requestState"]}
    result = (await ask(site, "tools/call", {**params, **more})).json()["result"]

    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["user_name"]["method"] == "elicitation/create"
    assert result["content"][0]["text"] == "Hello, Ann!"


async def test_resources_have_addresses_of_their_source_and_links_to_them_too(site: Site, url: str) -> None:
    await (await own(site)).sources.add("my_first", kind="mcp", url=url)

    listed = [each["uri"] for each in (await ask(site, "resources/list")).json()["result"]["resources"]]
    read = (await ask(site, "resources/read", {"uri": "my-first+test://static-text"})).json()["result"]
    embedded = (await call(site, "my_first_test_embedded_resource")).json()["result"]["content"][0]["resource"]

    assert "my-first+test://static-text" in listed
    assert read["contents"][0]["uri"] == "my-first+test://static-text"
    assert embedded["uri"] == "my-first+test://embedded-resource"


async def test_prompts_and_their_completions_come_from_the_server(site: Site, url: str) -> None:
    await (await own(site)).sources.add("first", kind="mcp", url=url)

    names = [each["name"] for each in (await ask(site, "prompts/list")).json()["result"]["prompts"]]
    params = {"name": "first_test_prompt_with_arguments", "arguments": {"arg1": "one", "arg2": "two"}}
    got = (await ask(site, "prompts/get", params)).json()["result"]

    assert "first_test_prompt_with_arguments" in names
    assert "one" in got["messages"][0]["content"]["text"]


async def test_a_server_may_ask_the_models_of_clients_only_if_its_source_allows_it(site: Site, url: str) -> None:
    engine = await own(site)
    await engine.sources.add("first", kind="mcp", url=url)
    await engine.sources.add("second", kind="mcp", url=url, mcp=McpServer(sampling=True))
    able: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}}

    refused = await ask(site, "tools/call", {"name": "first_test_missing_capability", "arguments": {}}, **able)
    asked = await ask(site, "tools/call", {"name": "second_test_missing_capability", "arguments": {}}, **able)

    assert refused.json()["error"]["code"] == -32021
    assert asked.json()["result"]["resultType"] == "input_required"


@pytest.mark.req("SKILL-05")
async def test_a_tool_that_appears_at_a_server_is_listed_within_seconds(site: Site, url: str, upstream: Site) -> None:
    engine = await own(site)
    await engine.sources.add("first", kind="mcp", url=url, pin="follow")
    for patience in (10, 5):  # the first time, the gateway may not listen yet
        before = await names(site)
        await call(upstream, "test_trigger_tool_change")
        async with asyncio.timeout(patience):
            while await names(site) == before:  # noqa: ASYNC110 - the list is all that a client sees
                await asyncio.sleep(0.05)


async def names(site: Site) -> set[str]:
    """The names of the tools that are listed."""
    return {tool["name"] for tool in (await ask(site, "tools/list")).json()["result"]["tools"]}
