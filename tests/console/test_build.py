import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Response, expect

from tests.console.browser import BUILT, Windows, settled

pytestmark = [pytest.mark.req("UI-01"), pytest.mark.usefixtures("chromium")]  # which knows that it was built

FIRST_LOAD = 180_000  # bytes over the wire
WHOLE = 1_500_000  # bytes on the disk
ADDRESS = re.compile(r"""(?:(?:https?|wss?):)?//[\w-]+(?:\.[\w-]+)+[^\s"'`)]*""")
# Names of namespaces, and where a message tells to read on: nobody fetches them.
TOLD = ("http://www.w3.org/", "https://react.dev/errors/", "https://github.com/")
CHUNK = re.compile(r"[\w-]+\.(?:js|css)")


class Elements(HTMLParser):
    """The elements of a page, each with its attributes and the text that follows it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.found:
            tag, attributes, text = self.found[-1]
            self.found[-1] = tag, attributes, text + data.strip()


@pytest.fixture(scope="module")
def built() -> dict[str, Path]:
    """Every file that was built, by its path."""
    folder = BUILT.parent
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("path", ["/", "/chat", "/sessions", "/memory"])
def test_the_first_load_is_small_whichever_screen_is_opened_first(open_page: Windows, path: str) -> None:
    page = open_page()
    loaded: list[Response] = []
    page.on("response", lambda answer: loaded.append(answer))  # noqa: PLW0108 - Playwright marks what it calls

    page.goto(path)
    expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
    settled(page)

    sizes = {answer.url: answer.request.sizes()["responseBodySize"] for answer in loaded if _is_ours(answer)}
    assert any(url.endswith(".js") for url in sizes)
    assert sum(sizes.values()) <= FIRST_LOAD, sizes


def test_the_whole_build_is_small(built: dict[str, Path]) -> None:
    sizes = {name: path.stat().st_size for name, path in built.items()}

    assert sum(sizes.values()) <= WHOLE, sizes


def test_nothing_is_in_the_build_that_the_page_does_not_lead_to(built: dict[str, Path]) -> None:
    reached = {"index.html"}
    for name in (todo := ["index.html"]):
        mentioned = set(CHUNK.findall(built[name].read_text("utf-8")))
        new = {other for other in built if Path(other).name in mentioned} - reached
        reached |= new
        todo += new

    assert set(built) - reached == {"built-from.txt", "icon.svg"}


def test_nothing_is_inline_in_the_page() -> None:
    elements = Elements(BUILT.read_text("utf-8")).found

    scripts = [(attributes, text) for tag, attributes, text in elements if tag == "script"]
    assert scripts
    assert all(attributes.get("src", "") and not text for attributes, text in scripts)
    assert not any(tag in ("style", "base", "iframe") for tag, *_ in elements)
    assert not any(name.startswith("on") or name == "style" for _, attributes, _ in elements for name in attributes)


def test_no_file_of_the_build_leads_off_the_origin(built: dict[str, Path]) -> None:
    led = {
        f"{name}: {found}"
        for name, text in _texts(built)
        for found in ADDRESS.findall(text)
        if not found.startswith(TOLD) and ".example" not in found
    }

    assert not led


def test_the_build_has_no_map_to_its_sources(built: dict[str, Path]) -> None:
    assert not [name for name in built if name.endswith(".map")]
    assert not [name for name, text in _texts(built) if "sourceMappingURL" in text]


def _texts(built: dict[str, Path]) -> Iterator[tuple[str, str]]:
    return ((name, path.read_text("utf-8")) for name, path in built.items())


def _is_ours(answer: Response) -> bool:
    """Whether it is a part of the page, and no answer of the API."""
    return answer.request.resource_type not in ("fetch", "xhr")
