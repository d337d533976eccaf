"""A node of its own process, whose clients call a tool through the gateway as often as they can.

    python -m tests.quotas.busy_node URL FOLDER GATES CLIENTS STEP…

A step is one of:

- `seconds:30`: call for so long; refused clients call again soon
- `calls:300`: call until so many calls were admitted
- `refused`: call until every client was refused
- `hold:3`: begin so many calls, which do not end
- `kill`: end this process with SIGKILL, at once

Before any other step, such as step 2, it waits until there is the file `2` in the folder GATES. It writes a byte to the
file `admitted` in FOLDER for every admitted call, so that they can be counted even if it is killed.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from holdfast import App
from holdfast.access.principals import Principal
from holdfast.core.config import load_config
from holdfast.core.errors import RateLimited
from holdfast.engine import Engine, open_engine
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways

REST = 0.02  # seconds that a refused client waits


async def track(parcel: str) -> str:
    """Where a parcel is."""
    return parcel


def say(text: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class BusyNode:
    """Clients of a gateway."""

    def __init__(self, engine: Engine, gateway: Gateway, caller: Principal, clients: int, count: int) -> None:
        self._engine = engine
        self._gateway = gateway
        self._caller = caller
        self._clients = clients
        self._count = count  # the file of admitted calls
        self._admitted = 0

    async def do(self, step: str) -> None:
        """Do a step."""
        what, _, amount = step.partition(":")
        if what == "seconds":
            end = perf_counter() + float(amount)
            await self._all(lambda: perf_counter() < end)
        elif what == "calls":
            await self._all(lambda: self._admitted < int(amount))
        elif what == "refused":
            await self._all(None)
        elif what == "hold":
            for _ in range(int(amount)):
                await self._engine.quotas.admit(("ann", None, None, "track"))
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    async def _all(self, goes_on: Callable[[], bool] | None) -> None:
        await asyncio.gather(*(self._client(goes_on) for _ in range(self._clients)))

    async def _client(self, goes_on: Callable[[], bool] | None) -> None:
        """Call as long as `goes_on` says; without it, until a call is refused."""
        while goes_on is None or goes_on():
            try:
                await self._gateway.call(self._caller, "track", {"parcel": "7"})
            except RateLimited:
                if goes_on is None:
                    return
                await asyncio.sleep(REST)
            else:
                self._admitted += 1
                os.write(self._count, b".")


async def run(url: str, folder: Path, gates: Path, clients: int, steps: list[str]) -> None:
    """Open the node, and do the steps."""
    app = App()
    app.tool(idempotent=True, access="read")(track)
    flags = {"database.url": url, "data": folder, "memory.embedding.fetch": False}
    config = load_config(flags, environ={}, cwd=folder)
    count = os.open(folder / "admitted", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    async with open_engine(config=config) as engine, engine.serving(app):
        tenant = await engine.database.tenant()
        gateway = Gateways(engine, app).of(tenant)
        caller = Principal(tenant, "ann", frozenset({"read", "write", "admin"}))
        await gateway.tools(caller)
        node = BusyNode(engine, gateway, caller, clients, count)
        for number, step in enumerate(steps, 1):
            if step != "kill":
                say(f"ready for {number}")
                while not (gates / str(number)).exists():  # noqa: ASYNC110 - another process makes it
                    await asyncio.sleep(0.005)
            await node.do(step)
        say("ended")


def main() -> None:
    """Run a node."""
    url, folder, gates, clients, *steps = sys.argv[1:]
    asyncio.run(run(url, Path(folder), Path(gates), int(clients), steps))


if __name__ == "__main__":
    main()
