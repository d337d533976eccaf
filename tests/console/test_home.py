"""The first visit, the home screen, and what is around every screen."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.cli.program import MODULE, Program
from tests.console.browser import Chromium, Watch, Windows, overflow, settled, ways
from tests.console.server import Desk
from tests.console.wire import wired
from tests.processes import Process

pytestmark = pytest.mark.req("UI-01")

SCREENS = {"Home": "/", "Chat": "/chat", "Sessions": "/sessions", "Memory": "/memory", "Connections": "/connections"}


@pytest.fixture
def fresh(chromium: Chromium, tmp_path: Path, fast_folder: Path) -> Iterator[Desk]:
    """`holdfast up`, as somebody starts it who has nothing yet."""
    program = Program(tmp_path, fast_folder / uuid4().hex)
    process = Process([*MODULE, "up", "--port", "0", "--json"], program.environment, tmp_path)
    try:
        process.wait_for('"url"')
        yield Desk(program, process)
    finally:
        process.end()


def block(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def at(page: Page, screen: str) -> None:
    """Wait until a screen is there, with all that it asked for."""
    expect(page.get_by_role("heading", name=screen, exact=True, level=1)).to_be_visible()
    settled(page)


@pytest.mark.req("ENG-01", "SAFE-03")
def test_from_nothing_to_an_answer_and_to_a_key(
    fresh: Desk, open_page: Windows, page_watch: Watch, shoot: Callable[[Page, str], None]
) -> None:
    page = open_page(base_url=fresh.url)
    page.goto("/")
    steps = block(page, "First steps")
    expect(steps.get_by_text("0 of 6 done")).to_be_visible()

    steps.get_by_role("link", name="Talk to an agent").click()
    field = page.get_by_role("textbox", name="Message to default")
    field.fill("I live in Bonn, and I prefer tea. Please remember that.")
    field.press("Enter")
    expect(page.get_by_role("article").get_by_role("button", name=re.compile(r"\d+ steps? ·"))).to_be_visible()
    page.get_by_role("link", name="Sessions").click()
    at(page, "Sessions")
    page.get_by_role("link", name="Home").click()

    expect(steps.get_by_role("listitem").filter(has_text="Talk to an agent")).to_contain_text("Done:")
    expect(steps.get_by_role("listitem").filter(has_text="Browse your sessions")).to_contain_text("Done:")
    expect(block(page, "Health").get_by_role("listitem").filter(has_text="Database")).to_contain_text("healthy")
    expect(block(page, "Health")).to_contain_text("HOLDFAST_LLM__MODEL")
    expect(block(page, "Recent errors")).to_contain_text("No failed runs.")
    expect(block(page, "Addresses")).to_contain_text(f"{fresh.url}/mcp")
    expect(page.get_by_role("button", name="Sign out")).to_have_count(0)
    shoot(page, "home")

    # The first key ends access without one; a link lets the page in again, where it was.
    page_watch.allow(r"401 \(Unauthorized\)")
    assert fresh.program("keys", "create", "--label", "first").code == 0
    page.goto("/memory")  # a link in the page may be gone by now: home reads again by itself
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_role("textbox", name="Sign-in link").fill(fresh.program("keys", "link", "--json").json["url"])
    page.get_by_role("button", name="Sign in").click()
    at(page, "Memory")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def test_what_failed_last_is_listed_and_leads_to_where_it_happened(page: Page, desk: Desk) -> None:
    with pytest.raises(AssertionError, match="model_failed"):
        desk.api("POST", "/api/chat", {"message": "This goes wrong", "agent_id": "desk", "session_id": uuid4().hex})

    page.goto("/")
    failure = block(page, "Recent errors").get_by_role("listitem").first
    expect(failure).to_contain_text("No such thing.")
    expect(failure).to_contain_text("desk")
    failure.get_by_role("link").click()

    page.wait_for_url(re.compile(r"/sessions/[0-9a-f-]+\?.*run="))
    expect(page.get_by_role("main")).to_contain_text("This goes wrong")


def test_what_fails_in_one_block_leaves_the_others_as_they_are(page: Page, page_watch: Watch) -> None:
    page_watch.allow("500")
    page.route("**/api/runs*state=failed*", lambda route: route.fulfill(status=500, json={"what": "it is broken"}))

    page.goto("/")

    expect(block(page, "Recent errors").get_by_role("alert")).to_contain_text("It is broken.")
    expect(block(page, "Health")).to_contain_text("Database")
    expect(block(page, "First steps").get_by_role("listitem")).to_have_count(6)


def test_a_server_that_stops_is_told_of_and_the_page_goes_on_when_it_is_back(
    desk: Desk, open_page: Windows, page_watch: Watch
) -> None:
    page_watch.allow("ERR_")
    with wired(desk.url) as wire:
        page = open_page(base_url=wire.url)
        page.goto("/")
        at(page, "Home")
        expect(block(page, "Health")).to_contain_text("Database")
        search = page.context.new_page()
        asked: list[str] = []
        search.on("request", lambda request: asked.append(request.method))
        search.goto("/memory?q=tea")
        at(search, "Memory")

        wire.cut()
        for tab in (page, search):
            tab.evaluate("() => dispatchEvent(new Event('visibilitychange'))")  # as when somebody comes back to it
        expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
        expect(block(page, "Health")).to_contain_text("Database")  # as it was
        expect(search.get_by_text("The server cannot be reached.")).to_be_visible()
        with search.expect_response("**/api/memories/owners*"):  # what is shown is read again
            wire.mend()
            expect(page.get_by_text("The server is reachable again.")).to_be_visible()  # which is said in passing

        expect(page.get_by_text("The server cannot be reached.")).to_have_count(0)
        assert asked.count("POST") == 1  # to be found counts as a use, and nobody searched again


def test_what_is_shown_can_be_copied_as_a_command(page: Page, desk: Desk) -> None:
    page.context.grant_permissions(["clipboard-read"])
    page.goto("/")
    at(page, "Home")

    page.get_by_role("button", name="Copy as …").click()
    page.get_by_role("button", name="Copy as Command line").click()

    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == "holdfast doctor"
    shown = ways(page)
    assert shown["curl"] == f"curl -sS {desk.url}/readyz"
    assert "await engine.parts()" in shown["python"]


def test_every_screen_is_reached_by_a_key_and_its_heading_is_read_out(page: Page) -> None:
    page.goto("/")
    at(page, "Home")

    for key, screen in {"c": "Chat", "s": "Sessions", "m": "Memory", "h": "Home"}.items():
        page.keyboard.press(key)
        heading = page.get_by_role("heading", name=screen, exact=True, level=1)
        expect(heading).to_be_focused()
        expect(page).to_have_title(f"{screen} · Holdfast")
        expect(page.get_by_role("link", name=screen, exact=True)).to_have_attribute("aria-current", "page")


def test_the_keys_are_listed_and_single_letters_can_be_switched_off(page: Page) -> None:
    page.goto("/")
    at(page, "Home")

    page.keyboard.press("?")
    help = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(help).to_contain_text("next row")
    help.get_by_role("checkbox", name="Enable single-letter shortcuts").uncheck()
    help.get_by_role("button", name="Close").click()
    expect(help).to_be_hidden()
    page.keyboard.press("c")
    page.keyboard.press("?")
    expect(help).to_be_visible()
    page.keyboard.press("Escape")

    expect(help).to_be_hidden()
    assert page.url.endswith("/")


def test_light_and_dark_follow_the_system_until_they_are_chosen(page: Page) -> None:
    shown = page.locator("html")
    page.emulate_media(color_scheme="dark")
    page.goto("/")

    expect(shown).to_have_attribute("data-theme", "dark")
    page.emulate_media(color_scheme="light")
    expect(shown).to_have_attribute("data-theme", "light")
    page.get_by_role("combobox", name="Theme").select_option("Dark")
    page.reload()

    expect(shown).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("width", [360, 3840])
def test_no_screen_is_wider_than_the_window(open_page: Windows, width: int) -> None:
    page = open_page(width=width)

    outside: dict[str, int] = {}
    rails: set[float] = set()
    for screen, path in SCREENS.items():
        page.goto(path)
        at(page, screen)
        outside[screen] = overflow(page)
        rails.add((page.get_by_role("navigation", name="Screens").bounding_box() or {"height": 0.0})["height"])

    assert outside == dict.fromkeys(SCREENS, 0)
    assert len(rails) == 1  # the name of a screen stays on one line, also where one is


def test_on_a_narrow_screen_everything_is_within_reach(
    open_page: Windows, serious: Callable[[Page], list[str]]
) -> None:
    page = open_page(width=360, theme="dark")
    page.goto("/memory")
    at(page, "Memory")

    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Shortcuts", exact=True).click()
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Home", exact=True).click()
    at(page, "Home")

    assert serious(page) == []


def test_home_keeps_nobody_out(page: Page, serious: Callable[[Page], list[str]]) -> None:
    page.goto("/")
    at(page, "Home")

    plain = serious(page)
    page.get_by_role("button", name="Copy as …").click()
    with_menu = serious(page)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    with_help = serious(page)

    assert (plain, with_menu, with_help) == ([], [], [])
