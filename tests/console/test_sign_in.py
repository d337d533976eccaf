"""Signing in where a key is needed; all of it under a path, behind proxies that strip it and such that do not."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser import Chromium, Theme, Watch, Windows, come_back
from tests.console.proxy import proxied
from tests.console.server import Desk, at_desk

pytestmark = pytest.mark.req("UI-01", "SAFE-03")

PREFIX = "/x"
UNAUTHORIZED = 401
FEW = 12  # requests that a screen has on its way when its access ends


@pytest.fixture(scope="module")
def guarded(chromium: Chromium, tmp_path_factory: pytest.TempPathFactory, fast_folder: Path) -> Iterator[Desk]:
    """A server under a path that lets nobody in without a key."""
    options = ("--require-key", "--root-path", PREFIX)
    with at_desk(tmp_path_factory.mktemp("guarded"), fast_folder / uuid4().hex, *options) as desk:
        yield desk


@pytest.fixture(scope="module")
def stripped(guarded: Desk) -> Iterator[str]:
    """Its address behind a proxy that takes the path off."""
    with proxied(urlsplit(guarded.url).port or 0, PREFIX, strips=True) as address:
        yield address


@pytest.fixture(scope="module")
def base(guarded: Desk) -> Iterator[str]:
    """Its address behind a proxy that leaves the path as it is."""
    with proxied(urlsplit(guarded.url).port or 0, PREFIX, strips=False) as address:
        yield address


@pytest.fixture(autouse=True)
def refusals(page_watch: Watch) -> None:
    """That it refuses who is not signed in is no failure here."""
    page_watch.allow(r"401 \(Unauthorized\)")


def made_link(guarded: Desk, *options: str) -> str:
    """The text in a new link."""
    return guarded.program("keys", "link", "--json", *options).json["url"].partition("link=")[2]


def signed_in(page: Page, guarded: Desk, base: str, *options: str) -> Page:
    """The page, after somebody came in by a link."""
    page.goto(f"{base}/login?link={made_link(guarded, *options)}")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    return page


def is_signed_out(page: Page) -> None:
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("navigation")).to_have_count(0)


@pytest.mark.parametrize("behind", ["stripped", "base"])
def test_behind_a_proxy_every_screen_works_for_whoever_came_in(
    guarded: Desk, open_page: Windows, request: pytest.FixtureRequest, behind: str
) -> None:
    base: str = request.getfixturevalue(behind)
    page = signed_in(open_page(base_url=base), guarded, base)
    assert page.url == f"{base}/"

    for screen in ("Sessions", "Memory", "Chat"):
        page.get_by_role("link", name=screen, exact=True).click()
        expect(page.get_by_role("heading", name=screen, exact=True, level=1)).to_be_visible()
        assert page.url.startswith(f"{base}/{screen.lower()}")
    page.goto(f"{base}/chat/desk/{uuid4()}")
    field = page.get_by_role("textbox", name="Message to desk")
    field.fill("Good day")
    field.press("Enter")

    expect(page.get_by_role("article")).to_contain_text("Good morning.")
    (cookie,) = page.context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite"), cookie.get("path")) == (True, "Strict", PREFIX)


def test_a_link_lets_somebody_in(guarded: Desk, open_page: Windows) -> None:
    page = open_page(base_url=guarded.url)

    page.goto(guarded.program("keys", "link", "--json").json["url"])
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    assert page.url == f"{guarded.url}{PREFIX}/"


def test_whoever_signs_in_is_where_they_wanted_to_be(
    guarded: Desk, base: str, open_page: Windows, shoot: Callable[[Page, str], None]
) -> None:
    page = open_page(base_url=base)
    page.goto(f"{base}/sessions?q=green%20tea")
    is_signed_out(page)
    shoot(page, "sign-in")

    page.get_by_role("textbox", name="Sign-in link").fill(f"http://elsewhere.example/login?link={made_link(guarded)}")
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("heading", name="Sessions", level=1)).to_be_visible()
    assert re.fullmatch(rf"{re.escape(base)}/sessions\?q=green(%20|\+)tea", page.url)


def test_a_link_that_was_used_says_what_to_do_and_another_works(guarded: Desk, base: str, open_page: Windows) -> None:
    used = f"{base}/login?link={made_link(guarded)}&to=/memory"
    page = open_page(base_url=base)
    page.goto(used)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Memory", level=1)).to_be_visible()

    page.goto(used)
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("alert")).to_contain_text("It was already used, or it has expired.")
    expect(page.get_by_role("main")).to_contain_text("holdfast keys link")
    page.get_by_role("textbox").fill(made_link(guarded))
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("heading", name="Memory", level=1)).to_be_visible()


def test_signing_out_in_one_tab_ends_the_others(guarded: Desk, base: str, open_page: Windows) -> None:
    first = signed_in(open_page(base_url=base), guarded, base)
    second = first.context.new_page()
    second.goto(f"{base}/memory")
    expect(second.get_by_role("heading", name="Memory", level=1)).to_be_visible()

    first.get_by_role("button", name="Sign out").click()

    is_signed_out(first)
    is_signed_out(second)
    first.go_back()
    is_signed_out(first)


def test_a_session_that_ends_in_mid_use_brings_the_sign_in_once(guarded: Desk, base: str, open_page: Windows) -> None:
    page = signed_in(open_page(base_url=base), guarded, base)
    page.get_by_role("link", name="Sessions", exact=True).click()
    expect(page.get_by_role("heading", name="Sessions", level=1)).to_be_visible()
    statuses: list[int] = []
    page.on("response", lambda answer: statuses.append(answer.status))
    for key in guarded.program("keys", "ls", "--json").json:
        if key["kind"] == "session":
            assert guarded.program("keys", "revoke", key["id"]).code == 0

    come_back(page)  # or it has noticed already, since it reads again by itself

    is_signed_out(page)
    assert statuses.count(UNAUTHORIZED) <= FEW
    expect(page.get_by_role("alert")).to_have_count(0)
    assert page.url.startswith(f"{base}/sessions")


def test_nothing_of_one_person_is_shown_to_the_next(guarded: Desk, base: str, open_page: Windows) -> None:
    own = ("--scope", "read", "--scope", "write")
    page = signed_in(open_page(base_url=base), guarded, base, "--user", "ann", *own)
    page.goto(f"{base}/chat/desk/{uuid4()}")
    field = page.get_by_role("textbox", name="Message to desk")
    field.fill("My secret is the cello.")
    field.press("Enter")
    expect(page.get_by_role("article")).to_contain_text("Good morning.")
    page.get_by_role("link", name="Sessions", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("cello")

    # Somebody else signs in in another tab: they share the cookie, and so this tab is theirs from now on.
    other = page.context.new_page()
    signed_in(other, guarded, base, "--user", "bob", *own)

    expect(page.get_by_role("navigation")).to_contain_text("bob")
    expect(page.get_by_role("main")).not_to_contain_text("cello")
    page.get_by_role("link", name="Chat", exact=True).click()
    expect(page.get_by_role("heading", name="Chat", level=1)).to_be_visible()
    expect(page.get_by_role("main")).not_to_contain_text("cello")


def test_who_may_only_read_is_told_so_in_the_chat_and_reads_what_was_said(
    guarded: Desk, base: str, open_page: Windows, page_watch: Watch
) -> None:
    page_watch.allow("WebSocket connection to .* failed", "403", "404")
    cora, session = ("--user", "cora", "--scope", "read"), str(uuid4())
    key = guarded.program("keys", "create", "--json", *cora, "--scope", "write").json["text"]
    guarded.api("POST", "/api/chat", {"message": "I play it", "session_id": session, "agent_id": "desk"}, key=key)
    page = signed_in(open_page(base_url=base), guarded, base, *cora)

    page.goto(f"{base}/chat/desk")
    expect(page.get_by_role("alert")).to_contain_text("The scope 'write' is required")
    page.goto(f"{base}/chat/desk/{session}")

    expect(page.get_by_role("alert")).to_contain_text("You have read-only access.")
    expect(page.get_by_role("article")).to_contain_text("Good morning.")
    expect(page.get_by_role("textbox", name="Message to desk")).to_be_disabled()


@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (1280, "light")])
def test_signing_in_keeps_nobody_out(
    base: str, open_page: Windows, serious: Callable[[Page], list[str]], width: int, theme: Theme
) -> None:
    page = open_page(base_url=base, width=width, theme=theme)

    found: list[str] = []
    for path in ("/chat", "/login", "/login?link=hf_x"):
        page.goto(base + path)
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        found += serious(page)

    assert found == []
