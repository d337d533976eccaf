"""Inspector's command line as a client, in both eras."""

from pathlib import Path

import pytest

from tests.conformance.mcp.peers import Peers


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_inspector_lists_calls_and_reads(peers: Peers, url: str, tmp_path: Path, era: str) -> None:
    door = (tmp_path, url, "--transport", "http", "--protocol-era", era)
    call = ("--tool-name", "test_custom_headers", "--tool-arg", "region=north")

    listed = await peers.inspector(*door, "--method", "tools/list", "--strict")
    called = await peers.inspector(*door, "--method", "tools/call", *call)
    read = await peers.inspector(*door, "--method", "resources/read", "--uri", "test://static-text")

    assert {"test_simple_text", "search_tools"} <= {tool["name"] for tool in listed["result"]["tools"]}
    assert called["result"]["content"][0]["text"] == "north: "
    assert read["result"]["contents"][0]["text"] == "This is the content of the static text resource."
