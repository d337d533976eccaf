"""A real browser for the tests: Debian's Chromium, driven by Playwright, and a watch over all that its pages do."""

import asyncio
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, expect, sync_playwright

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "holdfast" / "server" / "static" / "console" / "index.html"
AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
PACKAGE = "chromium-headless-shell"  # the same browser without windows: to start it takes a quarter of the CPU time
PROGRAMS = (PACKAGE, "chromium", "chromium-browser", "google-chrome")
PATIENCE = 30_000  # milliseconds that a locator waits: two cores are shared with servers, databases and other tests
INSTALL_PATIENCE = 600  # seconds
TAIL = 4000
# A browser that calls home would not be our page's doing, and no test should wait for it.
QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-gpu",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
REPORTS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} kept out ${event.blockedURI} ${event.sample}`));
"""
SERIOUS = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, help, nodes }) => nodes.map(({ target, html }) => `${id}: ${help}: ${target.join(" ")}: ${html}`));
}"""

WAYS = {"cli": "Command line", "curl": "curl", "python": "Python"}

Theme = Literal["light", "dark"]


class Chromium:
    """A running browser of this test process."""

    def __init__(self, browser: Browser, loop: asyncio.AbstractEventLoop) -> None:
        self._browser = browser
        self._loop = loop

    @contextmanager
    def turn(self) -> Generator[Browser]:
        """Have the browser for one test: Playwright's event loop counts as running only so long."""
        asyncio._set_running_loop(self._loop)
        try:
            yield self._browser
        finally:
            asyncio._set_running_loop(None)


@contextmanager
def running() -> Generator[Chromium]:
    """Chromium; without it tests are skipped, which a CI does not accept."""
    if not BUILT.exists():
        _give_up("the console was not built. Run `python console/build.py`, or `make test`, which does that")
    program = _program()
    sandbox = os.geteuid() != 0  # it needs an account without privileges
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET, chromium_sandbox=sandbox)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        try:
            yield Chromium(browser, loop)
        finally:
            asyncio._set_running_loop(loop)
            browser.close()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a page may fetch from."""

    address: str

    def has(self, url: str) -> bool:
        """Whether an address is the page's own: of its server, or made by the page itself."""
        scheme, host, *_ = urlsplit(url.removeprefix("blob:"))
        return f"{scheme.replace('ws', 'http', 1)}://{host}" == self.address or url in ("about:blank", "about:srcdoc")


class Watch:
    """Collects what no page may do: errors, warnings, policy reports, dialogs, and requests to anyone else."""

    def __init__(self) -> None:
        self._seen: list[str] = []
        self._allowed: list[re.Pattern[str]] = []

    def allow(self, *patterns: str) -> None:
        """Let pass what any of these regular expressions is found in, also if it was seen already."""
        self._allowed += map(re.compile, patterns)

    @property
    def complaints(self) -> list[str]:
        """What was seen and not allowed, each once."""
        return [
            line for line in dict.fromkeys(self._seen) if not any(pattern.search(line) for pattern in self._allowed)
        ]

    def over(self, context: BrowserContext, origin: Origin) -> None:
        """Watch all pages of a context."""
        context.add_init_script(REPORTS)
        context.on("console", self._heard)
        context.on("weberror", lambda error: self._seen.append(f"uncaught: {error.error}"))
        context.on("dialog", self._asked)
        context.on("request", lambda request: self._sent(request.url, origin))
        context.on("requestfailed", self._failed)
        context.on("page", lambda page: page.on("websocket", lambda socket: self._sent(socket.url, origin)))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self._seen.append(f"console {message.type}: {message.text} ({message.location['url']})")

    def _asked(self, dialog: Dialog) -> None:
        self._seen.append(f"dialog {dialog.type}: {dialog.message}")
        dialog.dismiss()

    def _sent(self, url: str, origin: Origin) -> None:
        if not origin.has(url):
            self._seen.append(f"off origin: {url:.500}")

    def _failed(self, request: Request) -> None:
        # What a page no longer waits for when it is left is no failure.
        if request.failure != "net::ERR_ABORTED":
            self._seen.append(f"request failed: {request.method} {request.url}: {request.failure}")


class Windows:
    """Opens pages, each in a context of its own, as another browser would be."""

    def __init__(self, browser: Browser, base_url: str, watch: Watch) -> None:
        self._browser = browser
        self._base_url = base_url
        self._watch = watch
        self._contexts: list[BrowserContext] = []

    def __call__(
        self, *, base_url: str | None = None, width: int = 1280, height: int = 800, theme: Theme = "light"
    ) -> Page:
        """A new page that has nothing open yet; `page.goto("/")` opens the console's first."""
        base = base_url or self._base_url
        context = self._browser.new_context(
            base_url=base, viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce"
        )
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE)
        scheme, host, *_ = urlsplit(base)
        self._watch.over(context, Origin(f"{scheme}://{host}"))
        return context.new_page()

    def close(self) -> None:
        """Close all that were opened."""
        for context in self._contexts:
            context.close()


def serious(page: Page) -> list[str]:
    """What axe finds on the page that is serious or worse, a line each."""
    if not AXE.exists():
        _give_up("axe was not fetched. Run `python console/build.py run test`, or `make check`, which does that")
    page.evaluate(AXE.read_text("utf-8"))
    found: list[str] = page.evaluate(SERIOUS)
    return found


def settled(page: Page) -> None:
    """Wait until all that the page asked for is there."""
    expect(page.get_by_role("status").filter(has_text=re.compile("^Loading "))).to_have_count(0)


def come_back(page: Page) -> None:
    """Have the page read again what it shows, as when somebody comes back to it after an hour."""
    page.clock.set_fixed_time(time.time() + 3600)
    page.evaluate("() => void dispatchEvent(new Event('visibilitychange'))")


def tick(page: Page, label: str) -> None:
    """Tick a box that is ticked once the address says so."""
    box = page.get_by_label(label)
    box.click()
    expect(box).to_be_checked()


def ways(page: Page) -> dict[str, str]:
    """What the page offers to copy: as a command line, as curl and as Python."""
    page.get_by_role("button", name="Copy as …").click()
    menu = page.get_by_role("group", name="Copy as a command")
    found = {way: menu.get_by_role("region", name=name).locator("pre").inner_text() for way, name in WAYS.items()}
    page.keyboard.press("Escape")
    return found


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    wider: int = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wider


def shoot(page: Page, name: str, folder: Path | None) -> None:
    """Save what the page shows, light and dark, where a folder is given."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    dark: bool = page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches")
    themes: tuple[Theme, Theme] = ("light", "dark")
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        page.screenshot(path=folder / f"{name}-{theme}.png", animations="disabled")
    page.emulate_media(color_scheme=themes[dark])


def _program() -> str:
    """Where Chromium is; a CI that can install it does so."""
    given = os.environ.get("HOLDFAST_TEST_CHROMIUM")
    found = given or _found()
    if found is None and os.environ.get("CI") and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        found = _found()
    if found is None:
        _give_up("no Chromium was found. Install it (apt-get install chromium), or set HOLDFAST_TEST_CHROMIUM to one")
    return found


def _found() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def _install() -> None:
    """Install Debian's, once for all test processes."""
    with (Path(tempfile.gettempdir()) / "holdfast-test-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _found():
            return
        install = ["apt-get", "install", "--yes", "--no-install-recommends", PACKAGE]
        if _run(*install).returncode != 0:  # the lists of packages may be missing, or old
            _run("apt-get", "update")
            done = _run(*install)
            if done.returncode != 0:
                sys.stderr.write((done.stdout + done.stderr)[-TAIL:])


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_PATIENCE, env=environment)


def _give_up(why: str) -> NoReturn:
    message = f"THE CONSOLE NOT TESTED: {why}."
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
