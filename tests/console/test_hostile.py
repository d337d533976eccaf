import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.console.bait import Bait, lay
from tests.console.browser import PATIENCE, Chromium, Watch, settled
from tests.console.corpus import CORPUS, HEAVY, IMAGE, MARKUP
from tests.console.server import Desk, at_desk

pytestmark = [pytest.mark.req("UI-01")]

ADDRESSES = (
    "/?{bait}#{bait}",
    "/chat/{bait}/{bait}",
    "/chat/desk/{bait}?run={bait}",
    "/sessions?q={bait}&agent={bait}&user={bait}",
    "/sessions/{bait}?at={bait}",
    "/sessions/javascript:alert(1)?__proto__[polluted]=1&constructor.prototype.polluted=1",
    "/memory?q={bait}&scope={bait}&name={bait}",
    "/memory/{bait}?name={bait}",
    "/memory/..%2f..%2fapi%2fme",
)
# What there would be in a page that took the bait; requests, dialogs and reports of the policy are seen by the watch.
TAKEN = """() => {
  const found = [...document.querySelectorAll(".hostile, iframe, object, embed, img, video, audio, base, main style")];
  const loose = [...document.links].filter((link) => {
    const isOurs = link.origin === location.origin && link.textContent !== "press";
    const isNamed = ["http:", "https:", "mailto:"].includes(link.protocol);
    return !isOurs && !(isNamed && link.target === "_blank" && link.relList.contains("noopener"));
  });
  const handlers = [...document.querySelectorAll("*")].filter((element) =>
    element.getAttributeNames().some((name) => name.startsWith("on")));
  const polluted = {}.polluted === undefined ? [] : ["Object.prototype is polluted"];
  return [...found, ...loose, ...handlers].map((element) => element.outerHTML.slice(0, 500)).concat(polluted);
}"""


@pytest.fixture(scope="module")
def desk(chromium: Chromium, tmp_path_factory: pytest.TempPathFactory, fast_folder: Path) -> Iterator[Desk]:
    """A server of these tests' own: nobody else wants what is laid out there."""
    with at_desk(tmp_path_factory.mktemp("desk"), fast_folder / uuid4().hex) as desk:
        yield desk


@pytest.fixture(scope="module")
def bait(desk: Desk) -> Bait:
    return lay(desk)


def test_answers_and_messages_of_the_past_are_text(page: Page, bait: Bait) -> None:
    page.goto(f"/chat/desk/{quote(bait.session)}")
    talk = page.get_by_role("region", name="Conversation with desk")
    earlier = page.get_by_role("button", name="Show earlier messages")
    expect(talk.get_by_text("Good morning.").first).to_be_visible()
    settled(page)  # an answer may be there before what was said before it
    for _ in CORPUS:
        if not earlier.count():
            break
        earlier.click()
        expect(page.get_by_text("Show earlier messages").and_(page.locator(":disabled"))).to_have_count(0)

    assert page.evaluate(TAKEN) == []
    said = talk.text_content() or ""
    assert "\n\n".join(CORPUS) in said
    # Once by the person, and once by the agent, of whom Markdown is read: but for what that says of signs, as it is.
    plain = [text for text in MARKUP if text.startswith("<") and "&" not in text]
    assert [text for text in plain if said.count(text) < 2] == []


def test_an_answer_is_text_while_it_is_written_and_so_is_what_was_done_for_it(page: Page, bait: Bait) -> None:
    page.goto("/chat/desk")
    field = page.get_by_label("Message to desk")
    field.fill("bait: act")
    field.press("Enter")

    expect(page.get_by_text("https://evil.example/z.png").first).to_be_visible()
    assert page.evaluate(TAKEN) == []
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    assert page.evaluate(TAKEN) == []
    expect(page.get_by_text(IMAGE).first).to_be_visible()


def test_what_waits_for_a_person_is_shown_as_it_is(page: Page, bait: Bait) -> None:
    page.goto(f"/chat/desk/{quote(bait.waiting)}")

    expect(page.get_by_label("Arguments")).to_contain_text(rf"\u202e{IMAGE}")
    assert page.evaluate(TAKEN) == []


def test_what_is_too_long_or_too_deep_stops_nobody(page: Page, bait: Bait) -> None:
    page.goto(f"/chat/desk/{quote(bait.heavy_session)}")

    expect(page.get_by_text("wordword").first).to_be_visible()
    page.get_by_label("Message to desk").fill("still here")

    assert page.evaluate(TAKEN) == []


@pytest.mark.parametrize("which", ["talk", "heavy"])
def test_every_event_of_a_session_is_text(page: Page, bait: Bait, which: str) -> None:
    texts = CORPUS if which == "talk" else HEAVY
    page.goto(f"/sessions/{getattr(bait, which)}?at=1")
    chosen = page.get_by_role("region", name="Details")

    for seq in range(1, len(texts) + 1):
        expect(chosen.get_by_role("heading", name=f"{seq} · ")).to_be_visible()
        assert page.evaluate(TAKEN) == [], texts[seq - 1][:100]
        page.keyboard.press("j")


def test_what_is_written_from_the_right_begins_there_in_lists(page: Page, bait: Bait) -> None:
    arabic = next(text for text in CORPUS if text.startswith("شركة"))

    page.goto(f"/sessions/{bait.talk}?at={CORPUS.index(arabic) + 2}")

    # Or else it is its beginning that is cut off.
    expect(page.get_by_role("list", name="Events").get_by_text(arabic)).to_have_css("direction", "rtl")


def test_names_are_text(page: Page, bait: Bait) -> None:
    page.goto("/sessions")
    expect(page.get_by_role("list", name="Sessions").get_by_text(IMAGE).first).to_be_visible()
    assert page.evaluate(TAKEN) == []

    page.goto(f"/memory?scope=user&name={quote(bait.owner)}")
    expect(page.get_by_role("navigation", name="Memory owners").get_by_text(IMAGE).first).to_be_visible()
    assert page.evaluate(TAKEN) == []

    for id in bait.named[::3]:
        page.goto(f"/sessions/{id}?at=1")
        expect(page.get_by_role("region", name="Details").get_by_role("heading", name="1 · ")).to_be_visible()
        assert page.evaluate(TAKEN) == []


def test_every_memory_is_text(page: Page, desk: Desk, bait: Bait) -> None:
    kept = desk.api("GET", "/api/memories?also_past=true&limit=200")["memories"]
    page.goto("/memory?past=true")
    rows = page.get_by_role("list", name="Memories of")
    last = rows.locator(f"a[href*='{kept[-1]['id']}']")
    rows.hover()

    deadline = time.monotonic() + PATIENCE / 1000
    while not last.count():  # each page of it comes when one is near the end of those before
        assert time.monotonic() < deadline
        assert page.evaluate(TAKEN) == []
        page.mouse.wheel(0, 500)
    assert page.evaluate(TAKEN) == []


def test_all_that_is_known_of_a_memory_is_text(page: Page, bait: Bait) -> None:
    edited, superseded = bait.memories[0], bait.memories[4]

    for address in (f"/memory/{edited}", f"/memory/{superseded}", f"/memory/{edited}?q={quote(IMAGE)}"):
        page.goto(address)
        expect(page.get_by_role("article").get_by_text(IMAGE).first).to_be_visible()
        settled(page)
        assert page.evaluate(TAKEN) == [], address


def test_no_address_is_a_way_in(page: Page, page_watch: Watch, bait: Bait) -> None:
    page_watch.allow("the server responded with a status of 4", "WebSocket connection to .* failed")

    for address in ADDRESSES:
        page.goto(address.format(bait=quote(IMAGE, safe="")))
        expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
        settled(page)
        assert page.evaluate(TAKEN) == [], address


def test_what_went_wrong_is_told_as_text(page: Page, bait: Bait) -> None:
    page.goto("/")

    expect(page.get_by_role("main").get_by_text(IMAGE).first).to_be_visible()
    assert page.evaluate(TAKEN) == []
