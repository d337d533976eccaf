from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.postgres.embedded import EmbeddedServer
from tests.cli.desk import at_desk
from tests.cli.program import MODULE, Program
from tests.cli.terminal import Terminal
from tests.processes import Process


@pytest.fixture
def holdfast(tmp_path: Path) -> Program:
    """The program on a data folder that is not there yet."""
    return Program(tmp_path)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, fast_folder: Path) -> Iterator[Program]:
    """The program on a migrated database of this module; no server runs."""
    program = Program(tmp_path_factory.mktemp("home"), fast_folder / uuid4().hex)
    with EmbeddedServer(program.data):
        assert program("db", "migrate").code == 0
        yield program


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, fast_folder: Path) -> Iterator[Program]:
    """The program on a database of this module, while a server runs on it."""
    program = Program(tmp_path_factory.mktemp("home"), fast_folder / uuid4().hex)
    server = Process([*MODULE, "up", "--port", "0", "--json"], program.environment, program.folder)
    try:
        server.wait_for('"url"')
        yield program
    finally:
        server.end()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, fast_folder: Path) -> Iterator[Program]:
    """The program on a database of this module, while `holdfast up desk.py` runs on it."""
    program = at_desk(tmp_path_factory.mktemp("home"), fast_folder / uuid4().hex)
    server = Process([*MODULE, "up", "desk.py", "--port", "0", "--json"], program.environment, program.folder)
    try:
        server.wait_for('"url"')
        yield program
    finally:
        server.end()


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
