"""docs/identity.md, run beside a server as a reader would."""

from pathlib import Path

import pytest

from tests.cli.page import Page
from tests.cli.program import Program


@pytest.mark.req("MCP-06")
def test_the_back_end_of_the_page_verifies_who_calls(neighbour: Program, tmp_path: Path) -> None:
    page = Page("identity.md", neighbour, tmp_path)

    (done,) = page.run_all()

    assert page.languages == ["sh"]
    assert "who are you?" in done.stdout
    assert '"orders of": "local"' in done.stdout or '"orders of":"local"' in done.stdout
    assert "aud         orders" in done.stdout
