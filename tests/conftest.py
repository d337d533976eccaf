"""What all tests stand on: a real PostgreSQL, a database per test, a clock that moves, processes that can be killed."""

import asyncio
import gc
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import settings

from holdfast.core.config import Config, load_config
from holdfast.embeddings import onnx
from holdfast.embeddings.store import ModelFiles
from holdfast.engine import Engine, open_engine
from holdfast.postgres.database import OwnerConnection, open_owner
from holdfast.postgres.embedded import DATABASE, EmbeddedServer
from holdfast.postgres.migrate import migrate
from holdfast.postgres.options import Options
from tests.clock import Clock
from tests.embeddings.models import models
from tests.kafka.broker import Broker, broker_or_skip
from tests.oauth.keycloak import Keycloak, keycloak_or_skip
from tests.processes import Processes
from tests.remote import RemoteServer, remote_server
from tests.verdicts import share_verdicts

__all__ = ["models"]

pytest_plugins = ("tests.figures_plugin", "tests.requirements_plugin", "tests.times_plugin")

# Tests that are run in the background of a shell ignore Ctrl-C, and by nohup that the terminal is gone; the programs
# that they start and interrupt must not.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

settings.register_profile("holdfast", deadline=None)  # a busy machine is no failure
settings.load_profile("holdfast")

GIGABYTE = 1024**3
TEMPLATE = "migrated_template"
Tenancy = Literal["connection", "transaction"]

_numbers = itertools.count(1)
_finished: list[str] = []  # databases that nobody uses any more


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", metavar="FOLDER", help="save what the console's screens show, for the docs")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected: all that is made then stays, and to look through it takes long."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin the longest tests first: one that began last would be waited for."""

    def minutes(item: pytest.Item) -> float:
        mark = item.get_closest_marker("soak")
        return 0.0 if mark is None else float(mark.kwargs.get("minutes", 0.0))

    items.sort(key=minutes, reverse=True)


@pytest.fixture(scope="session")
def fast_folder() -> Iterator[Path]:
    """A folder in shared memory where there is one: a test's database costs a tenth of a second there."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-test-", dir=shared if shared.is_dir() else None))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server(fast_folder: Path) -> Iterator[EmbeddedServer]:
    """The PostgreSQL of this test process, with a migrated database to clone."""
    # Each database that is made or dropped has PostgreSQL look through its whole cache.
    with EmbeddedServer(fast_folder / "server", memory=GIGABYTE) as server:
        asyncio.run(make_template(server, TEMPLATE))
        yield server


@pytest.fixture(scope="session", autouse=True)
def loaded_models() -> Iterator[None]:
    """Load each embedding model once per test process: it takes 0.25 s, and thousands of engines open."""
    loaded: dict[tuple[Path, int, int], onnx.OnnxModel] = {}
    load = onnx.OnnxModel

    def loaded_once(files: ModelFiles) -> onnx.OnnxModel:
        found = files.onnx.stat()
        key = (files.onnx, found.st_mtime_ns, found.st_size)
        if key not in loaded:
            loaded[key] = load(files)
        return loaded[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx, "OnnxModel", loaded_once)
        yield


@pytest.fixture(scope="session")
def template() -> str:
    """The database that those of tests are copies of; a module whose tests need more in it has one of its own."""
    return TEMPLATE


@pytest.fixture
async def empty_database_url(server: EmbeddedServer) -> AsyncIterator[str]:
    """The owner's address of a database with nothing in it."""
    async with clone_database(server, "template1") as url:
        yield url


@pytest.fixture
async def database_url(server: EmbeddedServer, template: str) -> AsyncIterator[str]:
    """The owner's address of a migrated database of the test's own."""
    async with clone_database(server, template) as url:
        yield url


@pytest.fixture(scope="session")
def remote(fast_folder: Path) -> Iterator[RemoteServer]:
    """A server that is not ours: reached over TCP, by password, without superuser."""
    with remote_server(fast_folder) as server:
        yield server


@pytest.fixture
def remote_url(remote: RemoteServer) -> str:
    """The owner's address of an empty database there."""
    return remote.make_database(f"test_{next(_numbers)}")


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[OwnerConnection]:
    """The owner of the test's database."""
    async with open_owner(database_url, Options()) as owner:
        yield owner


@pytest.fixture(scope="session")
def kafka() -> Iterator[Broker]:
    """The Kafka of this test process; without one, the tests that need it are skipped."""
    yield from broker_or_skip()


@pytest.fixture
def broker(kafka: Broker) -> Iterator[Broker]:
    """A running Kafka, put right again after a test that killed or paused it."""
    yield kafka
    kafka.revive()


@pytest.fixture(scope="session")
def keycloak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    """The Keycloak of this test run; without one, the tests that need it are skipped."""
    here = tmp_path_factory.getbasetemp()
    # The processes of pytest-xdist have folders in the folder of the run.
    yield from keycloak_or_skip(here.parent if "PYTEST_XDIST_WORKER" in os.environ else here)


@pytest.fixture
def tenancy() -> Tenancy:
    """How statements say for whom they ask; parametrise it to run a test in both modes."""
    return "connection"


@pytest.fixture
def config(database_url: str, tmp_path: Path, tenancy: Tenancy) -> Config:
    """Settings of an engine on the test's database; nothing is read from the machine's environment."""
    flags = {
        "database.url": database_url,
        "database.tenancy": tenancy,
        "data": tmp_path / "data",
        "memory.embedding.fetch": False,  # models are there, or the tests that need them are skipped
    }
    return load_config(flags, environ={}, cwd=tmp_path)


@pytest.fixture
async def engine(config: Config) -> AsyncIterator[Engine]:
    """An open engine."""
    async with open_engine(config=config) as engine:
        yield engine


@pytest.fixture
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that are opened from here on have no model."""
    share_verdicts(tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
async def words_only(config: Config, no_models: None) -> AsyncIterator[Engine]:
    """An open engine that has no model, and finds by words alone."""
    async with open_engine(config=config) as engine:
        yield engine


@pytest.fixture
def clock(engine: Engine) -> Clock:
    """The database's clock, which a test can move."""
    return Clock(engine)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Real processes; none outlives the test."""
    processes = Processes(tmp_path)
    yield processes
    processes.end_all()


async def make_template(server: EmbeddedServer, name: str, script: str = "select") -> None:
    """Make a migrated database to copy, with what the script puts into it."""
    async with _administrator(server) as administrator:
        await administrator.script(f"create database {name}")
    async with open_owner(_address(server, name), Options()) as owner:
        await migrate(owner)
        await owner.script(script)


async def drop_database(server: EmbeddedServer, name: str) -> None:
    """Drop a database, whoever uses it."""
    async with _administrator(server) as administrator:
        await administrator.script(f"drop database {name} with (force)")


@asynccontextmanager
async def clone_database(server: EmbeddedServer, template: str) -> AsyncGenerator[str]:
    """The owner's address of a copy of a database, which is dropped before the next one is made."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    async with _administrator(server) as administrator:
        while _finished:
            await administrator.script(f"drop database {_finished.pop()} with (force)")
        # Copying files takes half the work of logging their pages, which is what PostgreSQL would choose.
        await administrator.script(f"create database {name} template {template} strategy file_copy")
    yield _address(server, name)
    _finished.append(name)


def _administrator(server: EmbeddedServer):
    return open_owner(_address(server, "postgres"), Options())


def _address(server: EmbeddedServer, database: str) -> str:
    return server.url.replace(f"/{DATABASE}?", f"/{database}?")
