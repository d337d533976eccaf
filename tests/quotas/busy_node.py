"""A node whose callers call a tool through the gateway as often as they can, and that tells how many calls it admits.

    python -m tests.quotas.busy_node URL FOLDER GATE CLIENTS SECONDS

It begins when the file GATE is there. It tells the sum of its admitted calls ten times a second, so that it can be
killed at any time.
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from holdfast import App
from holdfast.access.principals import Principal
from holdfast.core.config import Config, load_config
from holdfast.core.errors import RateLimited
from holdfast.engine import open_engine
from holdfast.gateway.gateways import Gateways

OFTEN = 0.1  # seconds between two words
REST = 0.02  # seconds that a refused client waits


async def track(parcel: str) -> str:
    """Where a parcel is."""
    return parcel


def say(text: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def call(config: Config, gate: Path, clients: int, seconds: float) -> None:
    """Open the node, and call."""
    app = App()
    app.tool(idempotent=True, access="read")(track)
    admitted = 0
    async with open_engine(config=config) as engine, engine.serving(app):
        tenant = await engine.database.tenant()
        gateway = Gateways(engine, app).of(tenant)
        caller = Principal(tenant, "ann", frozenset({"read", "write", "admin"}))
        await gateway.tools(caller)
        say("ready")
        while not gate.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.005)
        end = perf_counter() + seconds

        async def client() -> None:
            nonlocal admitted
            while perf_counter() < end:
                try:
                    await gateway.call(caller, "track", {"parcel": "7"})
                except RateLimited:
                    await asyncio.sleep(REST)
                else:
                    admitted += 1

        async def tell() -> None:
            while True:
                await asyncio.sleep(OFTEN)
                say(f"admitted {admitted}")

        telling = asyncio.create_task(tell())
        await asyncio.gather(*(client() for _ in range(clients)))
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling
        say(f"admitted {admitted}\nended")


def main() -> None:
    """Run a node."""
    url, folder, gate, clients, seconds = sys.argv[1:]
    flags = {"database.url": url, "data": Path(folder), "memory.embedding.fetch": False}
    config = load_config(flags, environ={}, cwd=Path(folder))
    asyncio.run(call(config, Path(gate), int(clients), float(seconds)))


if __name__ == "__main__":
    main()
