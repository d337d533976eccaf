"""The page about MCP clients: its examples, run as a reader would who copies them."""

from pathlib import Path

import pytest

from tests.cli.page import Page
from tests.cli.program import Program


@pytest.mark.req("MCP-01", "MCP-03", "MCP-06")
def test_every_example_of_the_page_works(neighbour: Program, tmp_path: Path) -> None:
    page = Page("mcp.md", neighbour, tmp_path)

    back_end, offered = page.run_all()

    assert page.languages == ["sh", "python"]
    assert '"name": "Ann"' in back_end.stdout
    assert "true\nget_customers_by_id was not called" in back_end.stdout
    assert offered.stdout.splitlines() == ["Why is order 7 paid back?", "paid back tea: it was cold"]
