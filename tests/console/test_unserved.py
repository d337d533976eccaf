"""An agent of a former start that nobody serves now: the console opens another one, and says so where it is opened."""

import signal
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, expect

from tests.cli.program import MODULE, Program
from tests.console.browser import Watch, Windows
from tests.console.server import at_desk
from tests.processes import Process

pytestmark = pytest.mark.req("UI-01", "UI-05")


def test_an_agent_that_nobody_serves_is_never_opened_by_itself_and_says_so_where_it_is(
    browser: Browser, tmp_path: Path, fast_folder: Path
) -> None:
    data = fast_folder / uuid4().hex
    former = Program(tmp_path, data)
    (tmp_path / "former.py").write_text('import holdfast\n\napp = holdfast.App()\napp.agent("alone")\n')
    first = Process([*MODULE, "up", "former.py", "--port", "0", "--json"], former.environment, tmp_path)
    try:
        first.wait_for('"url"')
        first.send(signal.SIGINT)
        first.wait()
    finally:
        first.end()
    with at_desk(tmp_path, data) as desk:
        windows = Windows(browser, desk.url, Watch())
        page = windows()
        page.goto("/chat/alone")  # it is the one that this browser talked to last
        expect(page.get_by_role("note").filter(has_text="No process serves alone.")).to_be_visible()
        page.goto("/")
        page.get_by_role("link", name="Talk to an agent").click()

        expect(page.get_by_role("textbox", name="Message to")).to_be_visible()
        chosen = page.get_by_role("combobox", name="Agent").input_value()
        page.goto("/chat/alone")
        expect(page.get_by_text("connected", exact=True)).to_be_visible()
        field = page.get_by_role("textbox", name="Message to")
        field.fill("Hello?")
        field.press("Enter")
        expect(page.get_by_text("Queued until a process serves alone.")).to_be_visible()
        windows.close()

    assert chosen == "default"  # of those that are served
