import asyncio
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.core.config import Config
from holdfast.postgres.folder import DataFolder
from holdfast.server.server_file import ServerFile
from tests.processes import Process, Processes
from tests.server.wire import PATIENCE, connect

PROGRAM = """
import asyncio
from pathlib import Path

from holdfast.core.config import load_config
from holdfast.engine import open_engine
from holdfast.server.app import OPERATIONS
from holdfast.server.port import bind
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.serving import run, serve

own = ApiOperations("test")

@own.declare("GET", "/held", needs="nobody")
async def held(call: ApiCall) -> str:
    'Answer when there is the file that releases it.'
    print("begun", flush=True)
    while not Path("released").exists():
        await asyncio.sleep(0.02)
    return "done"

async def main():
    async with open_engine(config=config) as engine:
        await serve(engine, listener, config, ready, operations=(*OPERATIONS, *own))

def ready(file):
    print("ready", file.url, flush=True)

config = load_config()
listener = bind(config)
run(main())
print("ended", flush=True)
"""

Start = Callable[..., tuple[Process, int]]


@pytest.fixture
def start(processes: Processes, config: Config) -> Start:
    """Starts a server in a process of its own, and gives it and its port."""

    def start(*, grace: float) -> tuple[Process, int]:
        assert config.database.url is not None
        environment = {
            "HOLDFAST_DATABASE_URL": config.database.url.get_secret_value(),
            "HOLDFAST_DATA": str(config.data),
            "HOLDFAST_SERVER__PORT": "0",
            "HOLDFAST_SERVER__SHUTDOWN_GRACE": str(grace),
            "PYTHONPATH": f"{Path(__file__).parents[2]}:{Path(__file__).parents[2] / 'src'}",
        }
        process = processes.start("-c", PROGRAM, environment=environment)
        process.wait_for("ready")
        found = re.search(r":(\d+)\n", process.stdout)
        assert found is not None
        return process, int(found[1])

    return start


async def refused(port: int) -> bool:
    """Whether nobody listens any more; asked until it is so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                async with connect(port):
                    await asyncio.sleep(0.02)
            except OSError:
                return True


async def test_a_running_request_ends_and_a_new_one_is_refused(start: Start, config: Config, tmp_path: Path) -> None:
    process, port = start(grace=60)
    async with connect(port) as busy, connect(port) as idle:
        assert (await idle.ask("GET", "/healthz")).status == 200
        running = asyncio.create_task(busy.ask("GET", "/held"))
        await asyncio.to_thread(process.wait_for, "begun")

        process.send(signal.SIGTERM)

        assert await refused(port)
        late = await idle.ask("GET", "/readyz")
        assert (late.status, late.code) == (503, "shutting_down")
        assert late.headers["connection"] == "close"
        assert await idle.ended()
        (tmp_path / "released").touch()
        done = await running
        assert (done.status, done.json()) == (200, "done")
        assert done.headers["connection"] == "close"
    assert await asyncio.to_thread(process.wait) == 0
    assert "ended" in process.stdout
    assert not DataFolder(config.data).server_file.exists()


async def test_a_request_that_outlasts_the_grace_is_ended_with_an_error(start: Start) -> None:
    process, port = start(grace=0.3)
    async with connect(port) as busy:
        running = asyncio.create_task(busy.ask("GET", "/held"))
        await asyncio.to_thread(process.wait_for, "begun")

        process.send(signal.SIGTERM)

        cut = await running
        assert (cut.status, cut.code) == (503, "shutting_down")
    assert await asyncio.to_thread(process.wait) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_second_signal_ends_everything_at_once(start: Start, number: signal.Signals) -> None:
    process, port = start(grace=60)
    async with connect(port) as busy:
        running = asyncio.create_task(busy.ask("GET", "/held"))
        await asyncio.to_thread(process.wait_for, "begun")

        process.send(number)
        assert await refused(port)
        process.send(number)

        assert (await running).code == "shutting_down"
    assert await asyncio.to_thread(process.wait, timeout=30) == 0  # which is less than it would wait


async def test_a_killed_server_is_not_taken_for_a_running_one(start: Start, config: Config) -> None:
    process, _ = start(grace=1)
    running = await asyncio.to_thread(ServerFile.read, config.data)

    process.kill()

    assert running is not None
    assert running.pid == process.pid
    assert DataFolder(config.data).server_file.exists()
    assert ServerFile.read(config.data) is None


async def test_callers_who_do_not_read_their_answers_keep_nobody_from_stopping_it(start: Start) -> None:
    process, port = start(grace=0.5)
    async with connect(port) as deaf:
        request = b"GET /" + b"a" * 30_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(2):  # more than the buffers between us take
                for _ in range(1000):
                    await deaf.send(request)

        process.send(signal.SIGINT)
        ended = await asyncio.to_thread(process.wait, timeout=20)

    assert ended == 0, process.stderr
    assert "Traceback" not in process.stderr
