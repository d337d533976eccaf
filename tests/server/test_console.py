import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.server.files import POLICY, SCREENS, Console
from holdfast.server.problems import WrongMethod
from tests.server import asgi
from tests.server.wire import Site

pytestmark = pytest.mark.req("UI-01")

BUILT = """<!doctype html>
<html><head><meta name="holdfast-root" content="" /><link rel="icon" href="./icon.svg" />
<script type="module" crossorigin src="./assets/index-1.js"></script>
<link rel="stylesheet" crossorigin href="./assets/index-1.css"></head><body><div id="root"></div></body></html>
"""


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder with a page as the build writes it."""
    (tmp_path / "index.html").write_text(BUILT)
    return tmp_path


@pytest.mark.parametrize("settings", [{"require_key": True}])
async def test_every_screen_and_whatever_is_below_it_is_the_same_page_for_anybody(
    site: Site, settings: dict[str, Any]
) -> None:
    below = ["/chat/desk/web-42", "/sessions/1/2/3?at=7&q=tea", "/memory/%2e%2e/x", "/chat/%00", "/chat//"]

    pages = [await site.ask("GET", path) for path in (*SCREENS, *below)]

    assert {page.status for page in pages} == {200}
    assert len({page.body for page in pages}) == 1
    assert {page.headers["content-type"] for page in pages} == {"text/html; charset=utf-8"}


@pytest.mark.parametrize("path", ["/chats", "/chat.html", "/Chat", "/index.html", "/home", "//chat", "/assets/x.js"])
async def test_what_is_no_screen_is_not_found(site: Site, path: str) -> None:
    reply = await site.ask("GET", path)

    assert (reply.status, reply.code) == (404, "not_found")


async def test_the_page_is_sent_with_a_policy_that_lets_nothing_else_in(site: Site) -> None:
    headers = (await site.ask("GET", "/")).headers

    assert headers["content-security-policy"] == POLICY
    assert {directive.strip() for directive in POLICY.split(";")} == {
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    }
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-cache", "nosniff")
    assert (headers["referrer-policy"], headers["cross-origin-resource-policy"]) == ("same-origin", "same-origin")


async def test_a_page_is_only_read(site: Site) -> None:
    head = await asgi.ask(Console(""), "HEAD")

    assert (head.status, head.headers["content-security-policy"]) == (200, POLICY)
    reply = await site.ask("POST", "/chat/desk")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


async def test_the_page_finds_its_files_and_the_api_under_the_root_path(built: Path) -> None:
    page = (await asgi.ask(Console("/engine/one", built), "GET")).body.decode()

    assert re.findall(r'(?:src|href)="([^"]+)"', page) == [
        "/engine/one/static/console/icon.svg",
        "/engine/one/static/console/assets/index-1.js",
        "/engine/one/static/console/assets/index-1.css",
    ]
    assert '<meta name="holdfast-root" content="/engine/one" />' in page


async def test_a_root_path_is_no_way_to_write_into_the_page(built: Path) -> None:
    page = (await asgi.ask(Console('/"><script>alert(1)</script>', built), "GET")).body.decode()

    assert page.count("<script") == 1


async def test_a_package_without_a_console_says_so(tmp_path: Path) -> None:
    page = await asgi.ask(Console("/x", tmp_path), "GET")

    assert (page.status, page.headers["content-security-policy"]) == (200, POLICY)
    assert b"make run" in page.body
    assert b'href="/x/readyz"' in page.body
    with pytest.raises(WrongMethod):
        await asgi.ask(Console("/x", tmp_path), "DELETE")
