"""Two gateways on one database, one killed under load: every session of an older MCP client goes on at the other."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.processes import Process, Processes
from tests.server.old_client import OldClient, calling, parsed, request, text_of
from tests.server.wire import Reply

pytestmark = [pytest.mark.acceptance, pytest.mark.req("MCP-08")]

PROGRAMS = Path(__file__).parent / "programs"
CLIENTS = 20
CALLS = 10  # of each client
AWAY = (OSError, asyncio.IncompleteReadError, ValueError)  # the last of a stream that breaks off

StartNode = Callable[[str], tuple[Process, int]]


@pytest.fixture
def start_node(processes: Processes, database_url: str, tmp_path: Path) -> StartNode:
    """Starts `holdfast up gate:app` on the test's database, and waits until it answers; its port."""

    def start(name: str) -> tuple[Process, int]:
        environment = {
            "HOLDFAST_DATABASE_URL": database_url,
            "HOLDFAST_DATA": str(tmp_path / name),
            "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",
            "PYTHONPATH": str(PROGRAMS),
        }
        process = processes.holdfast("up", "gate:app", "--port", "0", "--json", environment=environment)
        process.wait_for('"url"')
        found = re.search(r'"url":\s*"http://127\.0\.0\.1:(\d+)"', process.stdout)
        assert found
        return process, int(found[1])

    return start


class Caller:
    """A client that goes to the next node when one does not answer, and keeps what it was told."""

    def __init__(self, client: OldClient, ports: Sequence[int]) -> None:
        self._client = client
        self._ports = ports
        self.moved = 0
        self.told: list[str] = []

    async def post(self, message: object) -> Reply:
        """The answer of whichever node answers."""
        while True:
            try:
                return await self._client.post(message)
            except AWAY:
                self._client = self._client.at(self._ports[self.moved % len(self._ports)])
                self.moved += 1

    async def call(self, text: str) -> None:
        """Call a tool, at once or in steps, and keep what it gives."""
        in_steps = len(self.told) % 2
        reply = await self.post(calling("spell" if in_steps else "mirror", id=text, token=text, text=text))
        assert reply.status == 200, reply
        if reply.headers["content-type"] == "application/json":
            message = json.loads(reply.body)
        else:
            *steps, message = [event.message for event in parsed(reply) if event.data]
            assert {step["params"]["progressToken"] for step in steps} == {text}
        assert message["id"] == text
        self.told.append(text_of(message))


async def test_every_session_goes_on_when_the_node_that_began_it_is_killed(start_node: StartNode) -> None:
    (killed, first), (_, second) = await asyncio.gather(*(asyncio.to_thread(start_node, name) for name in "ab"))
    begun = [await OldClient(first if number % 2 else second).begin() for number in range(CLIENTS)]
    callers = [Caller(client, (second, first) if client.port == first else (first, second)) for client in begun]
    under_way = asyncio.Event()

    async def work(name: str, caller: Caller) -> list[str]:
        wanted = [f"{name}-{number}" for number in range(CALLS)]
        for text in wanted:
            await caller.call(text)
            if sum(len(each.told) for each in callers) > CLIENTS * CALLS // 4:
                under_way.set()
        return wanted

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        working = [group.create_task(work(f"client{n}", caller)) for n, caller in enumerate(callers)]
        await under_way.wait()
        await asyncio.to_thread(killed.kill)
    pings = [await caller.post(request("ping")) for caller in callers]

    assert [caller.told for caller in callers] == [task.result() for task in working]
    assert sum(caller.moved > 0 for caller in callers) == CLIENTS // 2
    assert [reply.json() for reply in pings] == [{"jsonrpc": "2.0", "id": 7, "result": {}}] * CLIENTS
