"""Tools of MCP servers by a worker: the same results as in the process of the caller."""

import asyncio
import json
import re
from typing import Any

import pytest

from holdfast import App
from holdfast.engine import open_engine
from tests.execution.house import SERVED
from tests.execution.mcp.federation import own
from tests.server.mcp_wire import call
from tests.server.wire import Site

pytestmark = pytest.mark.req("EDA-06", "MCP-05")

PATIENCE = 30
ACTS = ("simple_text", "image_content", "embedded_resource", "multiple_content_types", "error_handling")
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")  # of a call, in the message of a failure
COMMANDS = "select count(*) from command where tenant_id = $1 and state = 'done'"


async def test_a_worker_gives_what_a_server_gave_unchanged(
    site: Site, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.presence.FRESH", 0.0)
    engine = await own(site)
    await engine.sources.add("first", kind="mcp", url=url)

    async def results() -> list[Any]:
        found = [(await call(site, f"first_test_{act}")).json()["result"] for act in ACTS]
        return json.loads(ID.sub("id", json.dumps(found)))

    here = await results()
    async with open_engine(config=engine.config) as other, other.worker(App(), tools=["source:first"]):
        async with asyncio.timeout(PATIENCE):
            while not await engine.database.value(SERVED, "first_test_simple_text"):  # noqa: ASYNC110 - rows tell
                await asyncio.sleep(0.01)
        there = await results()

    assert there == here
    assert await engine.database.value(COMMANDS) == len(ACTS)
