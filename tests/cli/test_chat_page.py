"""docs/chat.md, run beside a server as a reader would."""

from pathlib import Path

import pytest

from tests.cli.page import Page
from tests.cli.program import Program


@pytest.mark.req("STM-05", "WS-01", "WS-02")
def test_every_example_of_the_page_works(served: Program, tmp_path: Path) -> None:
    page = Page("chat.md", served, tmp_path)

    asked, talked = page.run_all()

    assert page.languages == ["sh", "python"]
    assert "event: ready\n" in asked.stdout
    assert "event: done\n" in asked.stdout
    assert "Bonn" in asked.stdout
    assert "answer " in talked.stdout
    assert talked.stdout.strip().endswith("done")
