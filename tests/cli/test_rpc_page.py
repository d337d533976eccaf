"""The page about JSON-RPC: its program, served, and its calls, made as a reader would who copies them."""

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.page import DOCS, Page
from tests.cli.program import MODULE, Program
from tests.processes import Process


@pytest.fixture
def served(tmp_path: Path, fast_folder: Path) -> Iterator[Program]:
    """The program of the page, while a server has it."""
    program = Program(tmp_path, fast_folder / uuid4().hex)
    found = re.search(r"^```python\n(.*?)^```$", (DOCS / "rpc.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    (program.folder / "shop.py").write_text(found[1])
    server = Process([*MODULE, "up", "shop.py", "--port", "0", "--json"], program.environment, program.folder)
    try:
        server.wait_for('"url"')
        yield program
    finally:
        server.end()


@pytest.mark.req("RPC-01", "RPC-03")
def test_every_example_of_the_page_works(served: Program, tmp_path: Path) -> None:
    page = Page("rpc.md", served, tmp_path)

    declared, called = page.run_all()

    assert page.languages == ["python", "sh"]
    assert declared.stdout == ""
    assert "the argument `amount` is invalid" in called.stdout
    assert called.stdout.count("shop.example/market/") == 2
