from typing import Any

import pytest

from tests.server.wire import Site

MODULE = "/static/chat-session.js"


@pytest.mark.parametrize("settings", [{"require_key": True}])
async def test_a_file_is_served_to_anybody_as_what_it_is(site: Site, settings: dict[str, Any]) -> None:
    reply = await site.ask("GET", MODULE)

    assert (reply.status, reply.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert b"export async function initializeSessionAsync" in reply.body


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}'])
async def test_a_browser_that_has_the_file_is_told_so(site: Site, form: str) -> None:
    tag = (await site.ask("GET", MODULE)).headers["etag"]

    same = await site.ask("GET", MODULE, headers={"If-None-Match": form.format(tag)})
    other = await site.ask("GET", MODULE, headers={"If-None-Match": '"other"'})

    assert (same.status, same.body, same.headers["etag"], same.headers["cache-control"]) == (304, b"", tag, "no-cache")
    assert (other.status, other.headers["cache-control"]) == (200, "no-cache")


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    "path",
    [
        "/static/",
        "/static/none.js",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/..%5capp.py",
        "/static//etc/passwd",
        "/static/%2fetc/passwd",
        "/static/chat-session.js/",
        "/static/chat-session.js%00",
    ],
)
async def test_what_is_no_such_file_is_not_found(site: Site, path: str) -> None:
    reply = await site.ask("GET", path)

    assert (reply.status, reply.code) == (404, "not_found")


async def test_a_file_is_only_read(site: Site) -> None:
    reply = await site.ask("PUT", MODULE)

    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("settings", [{"root_path": "/engine/one"}])
@pytest.mark.parametrize("prefix", ["", "/engine/one"])
async def test_a_file_is_found_under_a_root_path(site: Site, prefix: str, settings: dict[str, Any]) -> None:
    assert (await site.ask("GET", prefix + MODULE)).status == 200
