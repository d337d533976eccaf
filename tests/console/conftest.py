"""A browser, a server to open in it, and pages that are watched.

Tests are plain functions on Playwright's sync API; they wait by locators and `expect`, which hold under the page's
strict policy.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console import browser as browsers
from tests.console.browser import PATIENCE, Chromium, Watch, Windows
from tests.console.server import Desk, at_desk

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """The browser of this test process."""
    with browsers.running() as chromium:
        yield chromium


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Browser]:
    """The browser, for this test."""
    with chromium.turn() as browser:
        yield browser


@pytest.fixture(scope="session")
def desk(chromium: Chromium, tmp_path_factory: pytest.TempPathFactory, fast_folder: Path) -> Iterator[Desk]:
    """A running server that all tests of this process share: leave in it what harms no other."""
    with at_desk(tmp_path_factory.mktemp("desk"), fast_folder / uuid4().hex, meaning=True) as desk:
        yield desk


@pytest.fixture
def page_watch() -> Watch:
    """What the test's pages did wrong; a test may allow some of it."""
    return Watch()


@pytest.fixture
def open_page(browser: Browser, desk: Desk, page_watch: Watch) -> Iterator[Windows]:
    """Opens watched pages; the test fails at its end if any did what none may."""
    windows = Windows(browser, desk.url, page_watch)
    yield windows
    windows.close()
    assert not page_watch.complaints, "\n".join(["a page did what none may:", *page_watch.complaints])


@pytest.fixture
def page(open_page: Windows) -> Page:
    """A watched page of 1280 by 800 pixels."""
    return open_page()


@pytest.fixture
def serious() -> Callable[[Page], list[str]]:
    """What axe finds on a page that is serious or worse."""
    return browsers.serious


@pytest.fixture
def shoot(request: pytest.FixtureRequest) -> Callable[[Page, str], None]:
    """Saves what a page shows, light and dark, where pytest was given --screenshots=FOLDER."""
    folder: str | None = request.config.getoption("--screenshots")
    return partial(browsers.shoot, folder=Path(folder) if folder else None)
