"""A server is killed in the middle of a call through its gateway: the call is unknown, and a person decides."""

import asyncio
import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.core.settings import ExecutionSettings
from holdfast.engine import Engine
from holdfast.execution.sweeper import ExecutionSweeper
from tests.clock import Clock
from tests.processes import Process, Processes

pytestmark = [pytest.mark.acceptance, pytest.mark.req("EXEC-05", "EXEC-02")]

PROGRAMS = Path(__file__).parent / "programs"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}

StartNode = Callable[[str], tuple[Process, int]]
Command = Callable[..., Any]


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    """The environment of every process: the test's database, and the programs."""
    return {
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_DATA": str(tmp_path / "data"),
        "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",
        "PYTHONPATH": str(PROGRAMS),
    }


@pytest.fixture
def start_node(processes: Processes, environment: dict[str, str]) -> StartNode:
    """Starts `holdfast up gate:app`, and waits until it answers; its port."""

    def start(name: str) -> tuple[Process, int]:
        process = processes.holdfast("up", "gate:app", "--port", "0", "--json", environment=environment)
        process.wait_for('"url"')
        found = re.search(r'"url":\s*"http://127\.0\.0\.1:(\d+)"', process.stdout)
        assert found, name
        return process, int(found[1])

    return start


@pytest.fixture
def command(processes: Processes, environment: dict[str, str]) -> Command:
    """Runs a command, and returns its JSON."""

    def run(*words: str) -> Any:
        process = processes.holdfast(*words, "--json", environment=environment)
        assert process.wait() == 0, process.stderr
        return json.loads(process.stdout)

    return run


async def call(port: int, tool: str, **arguments: str) -> dict[str, Any]:
    """Call a tool over MCP."""
    params = {"name": tool, "arguments": arguments, "_meta": META}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    url = f"http://127.0.0.1:{port}/mcp"
    async with aiohttp.ClientSession() as session, session.post(url, json=body, headers=headers) as answer:
        return await answer.json()


async def test_a_call_whose_server_is_killed_is_unknown_after_the_restart_and_a_person_decides(
    engine: Engine, clock: Clock, start_node: StartNode, command: Command, tmp_path: Path
) -> None:
    killed, port = await asyncio.to_thread(start_node, "first")
    await call(port, "mirror", text="before")
    calling = asyncio.create_task(call(port, "charge", bill="7", ready=str(tmp_path / "never")))
    await asyncio.to_thread(killed.wait_for, "charging 7")

    await asyncio.to_thread(killed.kill)
    await asyncio.wait([calling])
    await clock.set(await engine.database.now() + timedelta(minutes=5))
    _, again = await asyncio.to_thread(start_node, "second")
    await ExecutionSweeper(engine.postgres, ExecutionSettings()).lapse()  # each process does so now and then
    rows = await asyncio.to_thread(command, "tools", "calls", "--status", "unknown")
    await asyncio.to_thread(command, "tools", "decide", rows[0]["id"], "failed")
    await call(again, "charge", bill="8", ready=str(PROGRAMS))

    assert calling.exception() is not None
    assert [(row["tool"], row["arguments"]["bill"]) for row in rows] == [("charge", "7")]
    assert (await engine.executions.get(rows[0]["id"])).status == "failed"
