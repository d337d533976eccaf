"""A worker in a process of its own, which gives back the text it is given: ours, procrastinate's or DBOS's.

    worker.py holdfast DATA
    worker.py procrastinate ADDRESS
    worker.py dbos ADDRESS

Says `ready`, and works until its standard input ends.
"""

import asyncio
import sys
from pathlib import Path

import uvloop
from peers import our_engine
from peers.task_queues import CONCURRENCY, MISSED, QUEUE, dbos_launched, procrastinate_app

from holdfast import App


async def ended() -> None:
    """Say that the worker works, and wait for the end."""
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


async def holdfast(data: str) -> None:
    """Ours."""
    app = App()

    @app.skill("echo")
    async def echo(text: str) -> str:  # pyright: ignore[reportUnusedFunction]
        return text

    async with our_engine(Path(data)) as engine, engine.worker(app, concurrency=CONCURRENCY):
        await ended()


async def procrastinate(address: str) -> None:
    """procrastinate's."""
    app = procrastinate_app(address)
    async with app.open_async():
        options = {"concurrency": CONCURRENCY, "listen_notify": True, "fetch_job_polling_interval": MISSED}
        working = asyncio.create_task(app.run_worker_async(queues=[QUEUE], install_signal_handlers=False, **options))
        await ended()
        working.cancel()
        await asyncio.wait([working])


async def dbos(address: str) -> None:
    """DBOS's."""
    launched = await asyncio.to_thread(dbos_launched, address)
    await ended()
    await asyncio.to_thread(launched.destroy)


if __name__ == "__main__":
    works = {"holdfast": holdfast, "procrastinate": procrastinate, "dbos": dbos}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(works[sys.argv[1]](sys.argv[2]))
