"""The server that a browser opens: `holdfast up desk.py` in a process of its own."""

import json
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from holdfast.core.errors import Unavailable
from holdfast.embeddings.store import Store
from tests.cli.program import MODULE, Program
from tests.console.script import write_scripts
from tests.embeddings.models import ENGLISH
from tests.processes import Process

APP = Path(__file__).parent / "desk.py"
PATIENCE = 60  # seconds


class Desk:
    """A running server; `program` calls the command line beside it."""

    def __init__(self, program: Program, process: Process) -> None:
        self.program = program
        self.process = process
        self.url: str = json.loads(next(line for line in process.stdout.splitlines() if '"url"' in line))["url"]

    def api(self, method: str, path: str, body: object = None, *, key: str | None = None) -> Any:
        """What the API answers, as JSON; an error is an AssertionError with what it said."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(self.url + path, data, headers, method=method), timeout=PATIENCE) as answer:
                text = answer.read()
        except HTTPError as error:
            with error:
                raise AssertionError(f"{method} {path}: {error.code}: {error.read().decode()}") from None
        return json.loads(text) if text else None


@contextmanager
def at_desk(folder: Path, data: Path, *options: str, meaning: bool = False) -> Generator[Desk]:
    """Run `holdfast up desk.py` with these options, on a data folder that is not there yet.

    `meaning`: it finds by meaning where the model is to be had; a test that needs that asks for the fixture `models`.
    """
    shutil.copy(APP, folder / "desk.py")
    write_scripts(folder)
    program = Program(folder, data)
    if meaning:
        store = Store()
        with suppress(Unavailable):
            store.fetch(ENGLISH)
        program.environment["HOLDFAST_MEMORY__EMBEDDING__FOLDER"] = str(store.cache)
    command = [*MODULE, "up", "desk.py", "--port", "0", "--json", *options]
    process = Process(command, program.environment, folder)
    try:
        process.wait_for('"url"')
        yield Desk(program, process)
    finally:
        process.end()
