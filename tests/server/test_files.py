import gzip
from pathlib import Path
from typing import Any

import pytest

from holdfast.server.files import Files
from tests.server import asgi
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


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A folder as the build leaves it."""
    assets = tmp_path / "console" / "assets"
    assets.mkdir(parents=True)
    (assets / "index-1.js").write_text("export const words = 'words';\n" * 100)
    (assets / "dot-1.png").write_bytes(bytes(1000))
    (tmp_path / "console" / "icon.svg").write_text("<svg/>")
    return Files(tmp_path)


@pytest.mark.req("UI-01")
async def test_what_is_named_by_its_content_is_kept_for_good(files: Files) -> None:
    asset = await asgi.ask(files, "GET", "console/assets/index-1.js")
    icon = await asgi.ask(files, "GET", "console/icon.svg")

    assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert icon.headers["cache-control"] == "no-cache"


@pytest.mark.req("UI-01")
async def test_text_is_packed_for_browsers_that_unpack_it(files: Files) -> None:
    plain = await asgi.ask(files, "GET", "console/assets/index-1.js")
    packed = await asgi.ask(files, "GET", "console/assets/index-1.js", headers={"Accept-Encoding": "br, gzip"})
    again = await asgi.ask(files, "GET", "console/assets/index-1.js", headers={"If-None-Match": packed.headers["etag"]})

    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 10
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "accept-encoding")
    assert packed.headers["content-length"] == str(len(packed.body))
    assert "content-encoding" not in plain.headers
    assert (again.status, again.body) == (304, b"")


@pytest.mark.req("UI-01")
async def test_what_is_packed_already_is_sent_as_it_is(files: Files) -> None:
    dot = await asgi.ask(files, "GET", "console/assets/dot-1.png", headers={"Accept-Encoding": "gzip"})

    assert (dot.headers["content-type"], dot.body) == ("image/png", bytes(1000))
    assert "content-encoding" not in dot.headers


async def test_only_the_headers_of_a_file_can_be_asked_for(site: Site) -> None:
    async with site.connect() as wire:
        await wire.send(f"HEAD {MODULE} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        head = await wire.reply_without_body()

        assert (head.status, head.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
        assert await wire.ended()
