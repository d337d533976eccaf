import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.postgres.embedded import EmbeddedServer
from tests.cli.desk import at_desk
from tests.cli.program import MODULE, Program
from tests.cli.terminal import Terminal
from tests.processes import Process, servers_on, wait_until_gone

Place = Callable[[], Path]


@pytest.fixture
def holdfast(tmp_path: Path) -> Program:
    """The program on a data folder that is not there yet."""
    return Program(tmp_path)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory, fast_folder: Path) -> Place:
    """Makes data folders with a migrated database: they are copies of one, as a former run left it."""
    first = Program(tmp_path_factory.mktemp("home"), fast_folder / uuid4().hex)
    assert first("db", "migrate").code == 0
    wait_until_gone(*servers_on(first.data))

    def copy() -> Path:
        data = fast_folder / uuid4().hex
        subprocess.run(["cp", "-a", first.data, data], check=True)
        return data

    return copy


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, place: Place) -> Iterator[Program]:
    """The program on a migrated database of this module; no server runs."""
    program = Program(tmp_path_factory.mktemp("home"), place())
    with EmbeddedServer(program.data):
        yield program


@contextmanager
def serving(program: Program, *app: str) -> Generator[None]:
    """While `holdfast up` runs for the program."""
    server = Process([*MODULE, "up", *app, "--port", "0", "--json"], program.environment, program.folder)
    try:
        server.wait_for('"url"')
        yield
    finally:
        server.end()


@pytest.fixture(scope="module")
def neighbour(tmp_path_factory: pytest.TempPathFactory, place: Place) -> Iterator[Program]:
    """The program, while a server runs that may call this machine."""
    program = Program(tmp_path_factory.mktemp("home"), place())
    program.environment["HOLDFAST_EXECUTION__ALLOW_PRIVATE"] = "127.0.0.1"
    with serving(program):
        yield program


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, place: Place) -> Iterator[Program]:
    """The program on a database of this module, while a server runs on it."""
    program = Program(tmp_path_factory.mktemp("home"), place())
    with serving(program):
        yield program


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, place: Place) -> Iterator[Program]:
    """The program on a database of this module, while `holdfast up desk.py` runs on it."""
    program = at_desk(tmp_path_factory.mktemp("home"), place())
    with serving(program, "desk.py"):
        yield program


@pytest.fixture
def at_terminal() -> Iterator[Callable[..., Terminal]]:
    """Starts the program at a terminal, and ends it with the test."""
    started: list[Terminal] = []

    def start(program: Program, *words: str, kind: str = "dumb", **more: str) -> Terminal:
        started.append(Terminal([*MODULE, *words], {**program.environment, **more}, program.folder, kind=kind))
        return started[-1]

    yield start
    for terminal in started:
        terminal.end()
