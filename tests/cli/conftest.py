from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.postgres.embedded import EmbeddedServer
from tests.cli.program import MODULE, Program
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
