"""An MCP server, a process of its own, that changes a pinned tool while it is used through two nodes."""

import asyncio
import sys
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path

import pytest

from holdfast.core.ids import uuid7
from holdfast.skills.run import Run
from tests.execution.mcp import changing_server
from tests.server.mcp_wire import begin, call, legacy, post
from tests.server.test_source_reloads import listed, nodes, own
from tests.server.wire import Site

__all__ = ["nodes"]  # a fixture

pytestmark = pytest.mark.req("MCP-05", "MCP-07", "SKILL-05")

CURRENT = 10.0  # seconds within which each node knows of a change


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """Where the server is."""
    command = [sys.executable, str(Path(changing_server.__file__)), "0"]
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    async with asyncio.timeout(CURRENT):
        port = int(await server.stdout.readline())
    yield f"http://127.0.0.1:{port}/mcp"
    server.kill()
    await server.wait()


def upstream(tools: dict[str, str]) -> dict[str, str]:
    """Those of the tools that are the server's."""
    return {name: description for name, description in tools.items() if name.startswith("up_")}


async def until_listed(site: Site, names: list[str]) -> dict[str, str]:
    """The tools of a node, as soon as they are these."""
    async with asyncio.timeout(CURRENT):
        while sorted(found := upstream(await listed(site))) != names:  # noqa: ASYNC110 - the list tells
            await asyncio.sleep(0.05)
    return found


async def text_of(site: Site, name: str) -> str:
    """What a tool answers."""
    return (await call(site, name)).json()["result"]["content"][0]["text"]


async def until_heard(site: Site) -> None:
    """Wait until a node listens to the server."""
    async with asyncio.timeout(CURRENT):
        while (await text_of(site, "up_other")).endswith(" 0"):  # noqa: ASYNC110 - the server tells
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("seconds", [1, 3600], ids=["at an interval", "announced"])
async def test_a_tool_that_changes_mid_session_is_gone_everywhere_until_a_person_approves_what_it_says(
    nodes: tuple[Site, Site], url: str, seconds: float
) -> None:
    one, two = nodes
    engine = await own(one)
    everything = ["up_add", "up_other", "up_turn"]
    await engine.sources.add("up", kind="mcp", url=url, reload_seconds=seconds, by="ann")
    before = [await until_listed(site, everything) for site in nodes]
    if seconds > 1:
        await until_heard(one)

    await call(two, "up_turn")
    for site in nodes:
        await until_listed(site, ["up_other", "up_turn"])
    refused = [(await call(site, "up_add", {"a": "1"})).json() for site in nodes]
    others = [await text_of(site, "up_other") for site in nodes]
    found = await two.ask("GET", "/api/proposals?source=up")
    (proposal,) = found.json()["proposals"]
    body = {"decision": "approve", "tools": {"up_add": proposal["hash"]}}
    stale = await two.ask("POST", "/api/sources/up/proposals", json={**body, "tools": {"up_add": "0" * 64}})
    approved = await two.ask("POST", "/api/sources/up/proposals", json=body)
    after = [await until_listed(site, everything) for site in nodes]
    called = [await text_of(site, "up_add") for site in nodes]

    assert {each["up_add"] for each in before} == {changing_server.HARMLESS}
    assert ["up_add" in each["error"]["message"] for each in refused] == [True, True]
    assert all(text.startswith("other") for text in others)
    assert (proposal["tool"], proposal["change"], proposal["what"]) == ("up_add", "changed", ["description"])
    assert f"+{changing_server.POISONED}" in proposal["diff"]
    assert {"instructions", "private_data"} <= {each["code"] for each in proposal["warnings"]}
    assert stale.status == HTTPStatus.CONFLICT
    assert approved.json() == {"state": "approved", "tools": ["up_add"], "stored": ["up_add"]}
    assert {each["up_add"] for each in after} == {changing_server.POISONED}
    assert all(text.startswith("add") for text in called)


async def test_a_held_tool_is_called_by_no_way_that_knew_it_before(nodes: tuple[Site, Site], url: str) -> None:
    one, two = nodes
    engine = await own(one)
    await engine.sources.add("up", kind="mcp", url=url, reload_seconds=1, by="ann")
    for site in nodes:
        await until_listed(site, ["up_add", "up_other", "up_turn"])
    session = await begin(two)
    known = await post(two, session, legacy("tools/list"))
    tool = (await engine.tools.get("up_add")).tool
    turn = Run("ann", "support", None, None, uuid7(), "1", "k")
    before = await post(two, session, legacy("tools/call", {"name": "up_add", "arguments": {"a": "1"}}))

    await call(two, "up_turn")
    for site in nodes:
        await until_listed(site, ["up_other", "up_turn"])
    there = {"name": "up_add", "arguments": {"a": "1"}}
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "up_add", "params": {"a": "1"}}
    replies = [
        await call(two, "up_add", {"a": "1"}),
        await call(two, "call_tool", there),
        await call(two, "search_tools", {"query": changing_server.HARMLESS}),
        await post(two, session, legacy("tools/call", there)),
        await post(two, session, legacy("tools/list")),
        await two.ask("POST", "/rpc", json=rpc),
        await two.ask("POST", "/api/tools/up_add/call", json={"arguments": {"a": "1"}}),
    ]
    why = (await two.ask("POST", "/api/gateway/explain", json={"tool": "up_add"})).json()
    of_agent = await engine.executor.run(tool, {"a": "1"}, turn, timeout=5, max_output_bytes=1000)
    of_worker = await engine.executor.result(tool, {"a": "1"}, turn, timeout=5)

    assert "up_add" in known.body.decode()
    assert '"add ' in before.body.decode()
    assert [each for each in replies if '"add ' in each.body.decode()] == []
    assert [changing_server.POISONED in each.body.decode() for each in replies] == len(replies) * [False]
    assert [changing_server.HARMLESS in replies[place].body.decode() for place in (2, 4)] == [False, False]
    assert (of_agent.status, "an admin has not approved it yet" in of_agent.text) == ("failed", True)
    assert (of_worker.failed, "an admin has not approved it yet" in str(of_worker)) == (True, True)
    assert why["verdict"] == "refused"
    assert why["next"] == "Read the change, and approve it: `holdfast sources proposals up`"
