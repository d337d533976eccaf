import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

from holdfast.adapters import engine_thread
from holdfast.adapters.engine_thread import EngineAddress, SharedEngine, parse_address
from holdfast.core.config import Config
from holdfast.core.errors import HoldfastError, InvalidInput, NotFound, ShuttingDown, Unavailable
from holdfast.engine import Engine, open_engine
from tests.processes import Processes, servers_on, wait_until_gone

pytestmark = pytest.mark.req("ADK-01", "STM-01")

PROGRAM = """
import sys
from holdfast.adapters.engine_thread import SharedEngine

print(SharedEngine.of(sys.argv[1]).run_sync(lambda engine: engine.tenants.id_of("default")))
"""


@pytest.fixture(autouse=True)
def settings_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An engine opened by address reads the settings: they name a folder of the test's own."""
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "data"))


@pytest.fixture
def hosted(database_url: str) -> Iterator[SharedEngine]:
    hosted = SharedEngine.of(database_url)
    yield hosted
    hosted.close_sync()


async def now(engine: Engine) -> datetime:
    return await engine.database.now()


async def loop_of(_: Engine) -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def tenant_of(engine: Engine) -> object:
    return await engine.database.tenant()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("holdfast://", EngineAddress()),
        ("holdfast:", EngineAddress()),
        ("holdfast:///", EngineAddress()),
        ("holdfast://?tenant=acme", EngineAddress(tenant="acme")),
        ("holdfast:///srv/data", EngineAddress(data=Path("/srv/data"))),
        ("holdfast:///srv/my%20data?tenant=acme", EngineAddress(data=Path("/srv/my data"), tenant="acme")),
        ("holdfast://ann:p%40ss@host:5433/db", EngineAddress("postgresql://ann:p%40ss@host:5433/db")),
        (
            "holdfast://host/db?sslmode=require&tenant=acme",
            EngineAddress("postgresql://host/db?sslmode=require", tenant="acme"),
        ),
        ("holdfast://ann@/db?host=/run/socket", EngineAddress("postgresql://ann@/db?host=/run/socket")),
        ("postgresql://host/db?options=-c%20a%3Db", EngineAddress("postgresql://host/db?options=-c%20a%3Db")),
        ("postgres://host/db?tenant=acme", EngineAddress("postgresql://host/db", tenant="acme")),
    ],
)
def test_an_address_says_which_database_and_whose_rows(text: str, address: EngineAddress) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mysql://host/db",
        "holdfast:data",
        "holdfast:///data?host=x",
        "holdfast:///data#x",
        "holdfast://h/d?x",
        "//h",
    ],
)
def test_an_address_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="Write it like"):
        parse_address(text)


def test_a_refused_address_is_not_shown_for_it_may_hold_a_password() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_address("mysql://ann:hunter2@host/db")

    assert "hunter2" not in str(refused.value)


async def test_on_the_loop_of_the_engine_the_work_runs_at_once(engine: Engine) -> None:
    assert await SharedEngine.of(engine).run(loop_of) is asyncio.get_running_loop()


async def test_another_loop_and_a_plain_thread_hand_the_work_to_the_loop_of_the_engine(engine: Engine) -> None:
    hosted = SharedEngine.of(engine)

    loops = [
        await asyncio.to_thread(hosted.run_sync, loop_of),
        await asyncio.to_thread(lambda: asyncio.run(hosted.run(loop_of))),
    ]

    assert loops == [engine.loop, engine.loop]


async def test_what_waits_on_the_loop_of_the_engine_is_refused_and_does_not_hang(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="would deadlock"):
        SharedEngine.of(engine).run_sync(now)


async def test_a_loop_that_has_ended_is_said_and_does_not_hang(config: Config) -> None:
    def opened_and_left() -> Engine:
        async def leave() -> Engine:
            async with open_engine(config=config) as engine:
                return engine

        return asyncio.run(leave())

    hosted = SharedEngine.of(await asyncio.to_thread(opened_and_left))

    with pytest.raises(Unavailable, match="is not running"):
        await hosted.run(now)


async def test_what_the_work_raises_reaches_the_caller(engine: Engine) -> None:
    hosted = SharedEngine.of(engine, "nobody")

    with pytest.raises(NotFound):
        await asyncio.to_thread(hosted.run_sync, now)


async def test_a_caller_that_is_cancelled_goes_on_when_the_work_has_ended(engine: Engine) -> None:
    hosted = SharedEngine.of(engine)
    steps: list[str] = []
    begun = threading.Event()

    async def work(_: Engine) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await engine.database.now()
            steps.append("work ended")
            raise

    async def caller() -> None:
        running = asyncio.create_task(hosted.run(work))
        await asyncio.to_thread(begun.wait)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        steps.append("caller went on")

    async with asyncio.timeout(10):
        await asyncio.to_thread(lambda: asyncio.run(caller()))

    assert steps == ["work ended", "caller went on"]


def test_an_address_is_enough_for_code_without_a_loop(hosted: SharedEngine) -> None:
    first = hosted.run_sync(now)

    assert hosted.run_sync(now) >= first
    assert asyncio.run(hosted.run(now)) >= first


def test_all_who_give_one_address_share_an_engine_until_the_last_is_done(database_url: str) -> None:
    first, second = SharedEngine.of(database_url), SharedEngine.of(database_url)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(hosted.run_sync, loop_of) for hosted in [first, second] * 8]
        loops = {one.result() for one in asked}

    first.close_sync()
    first.close_sync()
    still = second.run_sync(loop_of)
    second.close_sync()

    assert loops == {still}
    assert still.is_closed()


def test_one_that_was_closed_opens_again_when_it_is_used_again(hosted: SharedEngine) -> None:
    before = hosted.run_sync(loop_of)
    hosted.close_sync()

    assert hosted.run_sync(loop_of) is not before


def test_the_tenant_comes_from_the_address_or_the_caller(hosted: SharedEngine, database_url: str) -> None:
    made = [hosted.run_sync(lambda engine, name=name: engine.tenants.create(name)).id for name in ("acme", "other")]
    address = f"{database_url}&tenant=acme"

    asked = [SharedEngine.of(address), SharedEngine.of(address, "other")]

    assert [one.run_sync(tenant_of) for one in asked] == made
    assert {one.run_sync(loop_of) for one in asked} == {hosted.run_sync(loop_of)}
    for one in asked:
        one.close_sync()


def test_an_engine_that_cannot_be_opened_says_why_and_is_tried_again(tmp_path: Path) -> None:
    hosted = SharedEngine.of(f"postgresql://nobody@/none?host={tmp_path}")

    for _ in range(2):
        with pytest.raises(HoldfastError, match="database cannot be reached"):
            hosted.run_sync(now)
    hosted.close_sync()


def test_work_that_is_under_way_when_the_engine_closes_is_told_so(hosted: SharedEngine) -> None:
    begun = threading.Event()

    async def wait(_: Engine) -> None:
        begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(hosted.run_sync, wait)
        begun.wait()
        hosted.close_sync()
        with pytest.raises(ShuttingDown):
            waiting.result(10)


def test_a_child_process_opens_an_engine_of_its_own(hosted: SharedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = hosted.run_sync(loop_of)
    hosts = dict(engine_thread._hosts)  # pyright: ignore[reportPrivateUsage]

    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: -1)
        after = hosted.run_sync(loop_of)
        hosted.close_sync()
    for host in hosts.values():
        host.stop()

    assert after is not before


@pytest.mark.acceptance
def test_a_program_that_closes_nothing_ends_cleanly_with_an_embedded_server(
    processes: Processes, tmp_path: Path
) -> None:
    program = processes.start("-c", PROGRAM, f"holdfast://{tmp_path}/embedded")

    assert (program.wait(), program.stderr) == (0, "")
    wait_until_gone(*servers_on(tmp_path / "embedded"))
