"""The screen Connections: a person agrees at another site, comes back, and disconnects, by keyboard alone."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.cli.program import MODULE, Program
from tests.console.browser import Chromium, Watch, Windows
from tests.console.server import Desk
from tests.processes import Process

pytestmark = pytest.mark.req("UI-01", "MCP-06")


class Login(BaseHTTPRequestHandler):
    """An authorization server of another site, at which everybody agrees at once."""

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""

    def do_GET(self) -> None:
        issuer = f"http://localhost:{self.server.server_port}"  # type: ignore[attr-defined]
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if "redirect_uri" in asked:
            back = urlencode({"code": "c0de", "state": asked["state"], "iss": issuer})
            page = f'<a id="agree" href="{asked["redirect_uri"]}?{back.replace("&", "&amp;")}">Agree</a>'
            self._answer("text/html", page)
            return
        names = {"token": "token_endpoint", "authorize": "authorization_endpoint", "revoke": "revocation_endpoint"}
        endpoints = {endpoint: f"{issuer}/{name}" for name, endpoint in names.items()}
        self._answer("application/json", json.dumps({"issuer": issuer, **endpoints}))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer("application/json", json.dumps({"access_token": "t0ken", "token_type": "Bearer"}))

    def _answer(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The address of the authorization server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Login)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def guarded(
    chromium: Chromium, tmp_path_factory: pytest.TempPathFactory, fast_folder: Path, issuer: str
) -> Iterator[Desk]:
    """A server that needs a key, with a source that needs consent."""
    folder = tmp_path_factory.mktemp("connections")
    program = Program(folder, fast_folder / uuid4().hex)
    program.environment["HOLDFAST_EXECUTION__ALLOW_PRIVATE"] = "127.0.0.1,localhost"
    process = Process([*MODULE, "up", "--port", "0", "--json", "--require-key"], program.environment, folder)
    try:
        process.wait_for('"url"')
        desk = Desk(program, process)
        document: dict[str, Any] = {
            "openapi": "3.1.0",
            "info": {"title": "Calendar", "version": "1"},
            "paths": {"/days": {"get": {}}},
        }
        (folder / "calendar.json").write_text(json.dumps(document), "utf-8")
        options = ("--identity", "user", "--issuer", issuer, "--client-id", "holdfast", "--scope", "days")
        added = program("sources", "add", "calendar", "calendar.json", "--all", "--base-url", issuer, *options)
        assert added.code == 0, added.stderr
        yield desk
    finally:
        process.end()


def test_a_person_connects_at_another_site_and_disconnects(
    guarded: Desk,
    open_page: Windows,
    page_watch: Watch,
    issuer: str,
    serious: Callable[[Page], list[str]],
    shoot: Callable[[Page, str], None],
) -> None:
    page_watch.allow(r"401 \(Unauthorized\)", re.escape(issuer))
    page = open_page(base_url=guarded.url)
    link = guarded.program("keys", "link", "--user", "ann", "--json").json["url"]
    page.goto(f"{link}&to=/connections%3Fsource%3Dcalendar")
    page.get_by_role("button", name="Sign in").click()
    item = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="calendar"))
    expect(item).to_have_attribute("aria-current", "true")
    expect(item).to_contain_text("not connected")
    assert serious(page) == []
    shoot(page, "connections")

    item.get_by_role("button", name="Connect").press("Enter")
    page.get_by_role("link", name="Agree").click()
    expect(page.get_by_text("Continue only if you are ann")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Connect").press("Enter")

    expect(page).to_have_url(re.compile(r"/connections\?source=calendar$"))
    expect(item.get_by_text("connected", exact=True)).to_be_visible()
    expect(item).to_contain_text("It may: days.")
    item.get_by_role("button", name="Disconnect").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Disconnect").press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(item.get_by_text("not connected")).to_be_visible()
    page.keyboard.press("h")
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="Connections", level=1)).to_be_visible()


def test_the_command_line_lists_connects_and_disconnects(guarded: Desk, issuer: str) -> None:
    run = guarded.program

    listed = run("connections", "ls", "--json")
    begun = run("connections", "connect", "calendar", "--no-wait", "--json")
    missing = run("connections", "disconnect", "calendar", "--json")
    unknown = run("connections", "connect", "nothing", "--json")

    (known,) = listed.json
    assert (known["source"], known["state"]) == ("calendar", "not_connected")
    assert begun.json["url"].startswith(f"{issuer}/authorize?response_type=code&client_id=holdfast")
    assert (missing.code, missing.error["code"]) == (3, "not_found")
    assert (unknown.code, unknown.error["code"]) == (3, "not_found")
