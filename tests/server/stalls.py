"""How long a server in a process of its own keeps everybody waiting.

What is measured is CPU time of the server's process between two turns of its event loop: a busy machine changes it
little, and time that another thread holds the interpreter's lock counts.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.core.config import Config
from tests.processes import Process, Processes
from tests.server.wire import Reply, connect

PROGRAM = """
import asyncio
import time
from typing import Any

from holdfast import App
from holdfast.core.config import load_config
from holdfast.engine import open_engine
from holdfast.server.app import OPERATIONS
from holdfast.server.port import bind
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.serving import run, serve

own = ApiOperations("test")
app = App("shop")

@app.service("shop.example/market/count/1.0")
async def count(items: list[int | str]) -> int:
    'Count them.'
    return len(items)

@app.tool(idempotent=True)
async def echo(value: Any = None) -> Any:
    'The same.'
    return value

app.agent("support", tools=[echo], memory=False)

class Stalls:
    def __init__(self):
        self.worst = 0.0
        self.last = time.process_time()
        self.tick()

    def tick(self):
        now = time.process_time()
        self.worst, self.last = max(self.worst, now - self.last), now
        asyncio.get_running_loop().call_later(0.002, self.tick)

@own.declare("GET", "/stall", needs="nobody")
async def stall(call: ApiCall) -> float:
    'The longest since it was asked for the last time, in seconds.'
    worst, stalls.worst = stalls.worst, 0.0
    return worst

async def main():
    global stalls
    async with open_engine(config=config) as engine:
        tenant = engine.tenant(await engine.tenants.id_of("default"))
        async with tenant.serving(app):
            stalls = Stalls()
            await serve(engine, listener, config, ready, operations=(*OPERATIONS, *own), app=app)

def ready(file):
    print("ready", file.url, flush=True)

config = load_config()
listener = bind(config)
run(main())
"""


@dataclass(frozen=True, slots=True)
class StallServer:
    """A server whose longest stall can be asked for."""

    process: Process
    port: int

    async def stall(self) -> float:
        """The longest stall since the last question, in seconds of CPU time."""
        return (await self.ask("GET", "/stall")).json()

    async def ask(self, method: str, path: str, **request: Any) -> Reply:
        """The answer to one request, on a connection of its own."""
        async with connect(self.port) as wire:
            return await wire.ask(method, path, **request)

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[list[float]]:
        """How long `/healthz` takes meanwhile, asked again and again on a connection of its own."""
        delays: list[float] = []

        async def ask() -> None:
            async with connect(self.port) as wire:
                while True:
                    began = time.perf_counter()
                    await wire.ask("GET", "/healthz")
                    delays.append(time.perf_counter() - began)
                    await asyncio.sleep(0.005)

        asking = asyncio.create_task(ask())
        try:
            yield delays
        finally:
            asking.cancel()
            await asyncio.wait([asking])


def start_stall_server(processes: Processes, config: Config, **settings: str) -> StallServer:
    """Start a server without embedding models."""
    assert config.database.url is not None
    root = Path(__file__).parents[2]
    environment = {
        "HOLDFAST_DATABASE_URL": config.database.url.get_secret_value(),
        "HOLDFAST_DATA": str(config.data),
        "HOLDFAST_SERVER__PORT": "0",
        "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",
        "XDG_CACHE_HOME": str(config.data.parent / "cache"),
        "PYTHONPATH": f"{root}:{root / 'src'}",
        **settings,
    }
    process = processes.start("-c", PROGRAM, environment=environment)
    process.wait_for("ready")
    found = re.search(r":(\d+)\n", process.stdout)
    assert found is not None
    return StallServer(process, int(found[1]))
