import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.engine import open_engine
from tests.cli.program import MODULE, Program
from tests.processes import Process

pytestmark = pytest.mark.req("EDA-05", "UI-02")

SHOP = Path(__file__).parents[1] / "acceptance" / "programs" / "shop.py"
PATIENCE = 30
STUBBORN = """
import asyncio
import threading

import holdfast

app = holdfast.App()


def begin():
    print("it has begun", flush=True)


@app.skill("deaf")
async def deaf():
    begin()
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


@app.skill("pool")
async def pool():
    begin()
    await asyncio.to_thread(threading.Event().wait)


@app.skill("plain")
def plain():
    begin()
    threading.Event().wait()
"""

Start = Callable[..., Process]


@pytest.fixture
def shop(prepared: Program) -> Program:
    """The program in a folder that has an app."""
    shutil.copy(SHOP, prepared.folder / "shop.py")
    return prepared


@pytest.fixture
def start(shop: Program) -> Iterator[Start]:
    """Starts `holdfast worker`, and ends it with the test."""
    started: list[Process] = []

    def start(*words: str) -> Process:
        started.append(Process([*MODULE, "worker", *words], shop.environment, shop.folder))
        return started[-1]

    yield start
    for process in started:
        process.end()


@pytest.mark.req("ENG-07")
def test_an_app_that_is_not_there_is_told_before_anything_starts(shop: Program) -> None:
    done = shop("worker", "nowhere:app", "--data", "elsewhere")

    assert (done.code, done.stdout) == (2, "")
    assert "there is no module nowhere" in done.stderr
    assert not (shop.folder / "elsewhere").exists()


@pytest.mark.req("ENG-07")
def test_a_tenant_that_is_not_there_stops_the_start(shop: Program) -> None:
    done = shop("worker", "shop:app", "--tenant", "nobody", "--json")

    assert (done.code, done.stdout, done.error["code"]) == (3, "", "not_found")


async def test_a_worker_tells_what_it_serves_and_does_it(shop: Program, start: Start) -> None:
    worker = start("shop:app", "--json", "--concurrency", "3")
    worker.wait_for("}\n")

    async with open_engine(data=shop.data) as engine:
        result = await engine.commands.invoke("translate", {"text": "hello"}, timeout=PATIENCE)
    worker.send(signal.SIGTERM)
    code = worker.wait()

    assert json.loads(worker.stdout.partition("\n")[0]) == {
        "skills": ["blocking", "print", "report", "translate"],
        "tools": [],
        "concurrency": 3,
        "tenant": "default",
    }
    assert (result, code, worker.stderr) == ("HELLO", 0, "")


@pytest.mark.req("EDA-06")
def test_a_worker_without_an_app_serves_the_tools_that_it_declares(start: Start) -> None:
    worker = start("--tools", "source:github", "--tools", "billing_*")

    worker.wait_for("Ctrl-C stops it.")

    assert "up to 10 commands at once: tools billing_*, tools source:github." in worker.stderr


@pytest.mark.req("EDA-06")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "the worker has nothing to do"),
        (("shop:app", "--tools", "kind:java"), "cannot serve tools of the kind 'java'"),
        (("--tools", "sources:github"), "'sources:github' names no tools"),
    ],
)
def test_a_worker_that_would_serve_nothing_does_not_start(shop: Program, words: tuple[str, ...], told: str) -> None:
    done = shop("worker", *words)

    assert done.code == 2
    assert told in done.stderr


@pytest.mark.req("EDA-04")
@pytest.mark.parametrize("grace", ["60", "0"])
async def test_a_worker_that_is_asked_to_end_lets_work_end_or_gives_it_back(
    shop: Program, start: Start, tmp_path: Path, grace: str
) -> None:
    worker, ready = start("shop:app", "--grace", grace), tmp_path / "ready"
    async with open_engine(data=shop.data) as engine:
        id = await engine.commands.submit("report", {"ready": str(ready)})
        worker.wait_for("report attempt 1")

        worker.send(signal.SIGINT)
        if grace == "60":
            ready.touch()
        code = worker.wait()

        command = await engine.commands.get(id)
        await engine.commands.cancel(id)
    assert code == 0
    assert "Stopped." in worker.stderr
    assert (command.state, command.attempts) == (("done", 1) if grace == "60" else ("queued", 0))


@pytest.mark.req("EDA-04")
@pytest.mark.parametrize(
    ("skill", "grace", "signals"),
    [
        ("deaf", "0", [signal.SIGTERM]),
        ("deaf", "600", [signal.SIGTERM, signal.SIGINT]),
        ("pool", "0", [signal.SIGTERM]),
        ("plain", "0", [signal.SIGHUP]),
    ],
)
async def test_a_skill_that_never_ends_does_not_hold_the_worker(
    shop: Program, start: Start, skill: str, grace: str, signals: list[signal.Signals]
) -> None:
    (shop.folder / "stubborn.py").write_text(STUBBORN)
    worker = start("stubborn:app", "--grace", grace)
    async with open_engine(data=shop.data) as engine:
        id = await engine.commands.submit(skill)
        worker.wait_for("it has begun")

        for number in signals:
            worker.send(number)
        code = worker.wait(timeout=PATIENCE)

        command = await engine.commands.get(id)
        await engine.commands.cancel(id)
    assert (code, command.state, command.attempts) == (0, "queued", 0)
    assert "Stopped." in worker.stderr


async def test_a_second_signal_ends_it_at_once(shop: Program, start: Start, tmp_path: Path) -> None:
    worker = start("shop:app", "--grace", "600")
    async with open_engine(data=shop.data) as engine:
        id = await engine.commands.submit("report", {"ready": str(tmp_path / "never")})
        worker.wait_for("report attempt 1")

        worker.send(signal.SIGTERM)
        worker.send(signal.SIGINT)
        code = worker.wait()

        command = await engine.commands.cancel(id)
    assert code == 0
    assert command.attempts == 0
