"""docs/agents.md, run beside a server as a reader would."""

from pathlib import Path

import pytest

from tests.cli.page import Page
from tests.cli.program import Program


@pytest.mark.req("AGENT-01", "AGENT-02", "AGENT-06")
def test_every_example_of_the_page_works(served: Program, tmp_path: Path) -> None:
    page = Page("agents.md", served, tmp_path)

    (done,) = page.run_all()

    assert page.languages == ["python"]
    lines = done.stdout.splitlines()
    assert lines[0] == 'track gave: {"parcel":"AB-123","place":"Cologne"}'
    assert "1 tools" in done.stdout
