"""The chat, as a person uses it: answers as they are written, what is behind them, and a line that breaks."""

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import Locator, Page, WebSocket, WebSocketRoute, expect

from tests.console.browser import Watch, Windows, overflow, settled, ways
from tests.console.script import RECITED
from tests.console.server import Desk
from tests.console.wire import wired

pytestmark = pytest.mark.req("UI-01")

CUTS = 50
RECITAL = 60_000  # milliseconds that a recital may take, with all the cuts
STORED = "name => localStorage.getItem(name)"
STORE = "([name, id]) => localStorage.setItem(name, id)"


@pytest.fixture
def session() -> str:
    """A new session's id."""
    return str(uuid4())


def opened(page: Page, agent: str, session: str | None = None) -> Page:
    """The chat with an agent, connected, with what was said before."""
    page.goto(f"/chat/{agent}" if session is None else f"/chat/{agent}/{session}")
    return connected(page)


def connected(page: Page) -> Page:
    """The chat, when it is connected and shows what was said before: only what is new after that is read out."""
    expect(page.get_by_text("connected", exact=True)).to_be_visible()
    settled(page)
    return page


def say(page: Page, text: str) -> Locator:
    """Say something as a person does; the turn that it begins."""
    field = page.get_by_role("textbox", name="Message to")
    field.fill(text)
    field.press("Enter")
    return page.get_by_role("article").filter(has_text=text).last


def button(inside: Page | Locator, name: str) -> Locator:
    return inside.get_by_role("button", name=name, exact=True)


def told(page: Page) -> Locator:
    """What the conversation says that went wrong."""
    return page.get_by_role("region", name="Conversation with").get_by_role("alert")


def session_of(page: Page) -> str:
    """The session that the address names, once it does."""
    page.wait_for_url(re.compile(r"/chat/[^/]+/[^/?]+"))
    return re.split("[/?]", page.url.split("/chat/")[1])[1]


def begin(page: Page) -> str:
    """Begin a new session; its id."""
    before = session_of(page)
    room = page.get_by_role("region", name="Conversation with").element_handle()
    button(page, "New session").click()
    page.wait_for_url(lambda url: before not in url)
    room.wait_for_element_state("hidden")  # the address is another before the page is
    return session_of(connected(page))


def test_a_first_visitor_has_an_answer_without_any_key(page: Page) -> None:
    begin(opened(page, "default"))
    expect(page.get_by_text("Send a message to default")).to_be_visible()

    button(page, "What can you do?").click()
    page.keyboard.press("Enter")

    turn = page.get_by_role("article")
    expect(turn.get_by_role("button", name=re.compile(r"1 step · [\d,]+ tokens"))).to_be_visible()


def test_an_answer_is_seen_as_it_is_written_and_can_be_stopped_and_tried_again(page: Page, session: str) -> None:
    opened(page, "desk", session)

    turn = say(page, "Please count")
    expect(turn).to_contain_text("one two")
    expect(turn).not_to_contain_text("stopped")
    waiting = say(page, "Good day")
    expect(waiting).to_contain_text("Queued behind earlier messages.")
    button(page, "Stop").click()

    expect(turn).to_contain_text("stopped")
    expect(turn).to_contain_text("one two")
    button(turn, "Try again").click()
    expect(turn.get_by_text("one two")).to_have_count(2)
    button(page, "Stop").click()
    expect(button(turn, "Try again")).to_be_visible()


def test_what_failed_says_why_and_is_tried_again(page: Page, session: str) -> None:
    opened(page, "moody", session)

    turn = say(page, "Hello")
    expect(turn.get_by_role("alert")).to_contain_text("Not today.")
    button(turn, "Try again").click()

    expect(turn).to_contain_text("Now it works.")
    expect(button(turn, "Try again")).to_have_count(0)


@pytest.mark.req("AGENT-07")
def test_a_message_that_failed_can_be_edited_and_sent_again(page: Page, session: str) -> None:
    opened(page, "moody", session)

    turn = say(page, "Hello")
    expect(turn.get_by_role("alert")).to_contain_text("Not today.")
    button(turn, "Edit").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Message").fill("Good evening")
    button(dialog, "Send again").click()

    edited = page.get_by_role("article")
    expect(edited).to_contain_text("Now it works.")
    expect(edited).to_contain_text("Good evening")
    expect(button(edited, "Delete")).to_have_count(0)


@pytest.mark.req("AGENT-07")
def test_a_message_that_failed_can_be_deleted_and_the_next_is_answered(page: Page, session: str) -> None:
    opened(page, "desk", session)
    turn = say(page, "Something is wrong")
    expect(turn.get_by_role("alert")).to_contain_text("No such thing.")

    button(turn, "Delete").click()
    expect(turn).to_have_count(0)
    following = say(page, "Good day")

    expect(following).to_contain_text("Good morning.")


def test_thoughts_actions_and_observations_are_cards_and_the_context_is_metered(
    page: Page,
    desk: Desk,
    session: str,
    open_page: Windows,
    serious: Callable[[Page], list[str]],
    shoot: Callable[[Page, str], None],
) -> None:
    desk.api("PUT", "/api/sessions/active?agent_id=desk", {"session_id": session})
    opened(page, "desk", session)
    say(page, "I live in Bonn and send many a parcel.")
    expect(page.get_by_role("article").get_by_text("It is in Cologne.")).to_be_visible()

    turn = say(page, "Where is the parcel AB-1?")

    cards = turn.get_by_role("list", name="Steps of the agent").get_by_role("listitem")
    expect(cards).to_have_count(2)
    expect(cards.nth(0)).to_contain_text("ThoughtLet me look.")
    expect(cards.nth(1)).to_contain_text('Action track { "parcel": "AB-1" }Observation')
    expect(cards.nth(1)).to_contain_text('"place": "Cologne"')
    expect(turn).to_contain_text("2 steps · 2,536 tokens")
    behind = page.get_by_role("complementary", name="Run details")
    expect(behind.get_by_role("meter", name="Context")).to_have_attribute(
        "aria-valuetext", re.compile(r"[\d,]+ of [\d,]+ tokens")
    )
    behind.get_by_label("Step").select_option("1")
    recalled = behind.get_by_role("region", name="Recalled memories").get_by_role("listitem")
    expect(recalled.filter(has_text="I live in Bonn").first).to_contain_text(re.compile(r"score 0\.\d{3}"))
    expect(recalled.get_by_role("link").first).to_have_attribute("href", re.compile("/memory/[0-9a-f-]{36}"))
    assert serious(page) == []
    shoot(page, "chat")
    written = say(page, "Show some markdown")
    expect(written.get_by_role("link", name="the rules")).to_have_attribute("rel", "noopener noreferrer")
    expect(written).to_contain_text("1 step · ")
    _fits(open_page(width=360, height=740), page.url, serious)


def _fits(phone: Page, url: str, serious: Callable[[Page], list[str]]) -> None:
    """All can be done on a narrow screen, too."""
    phone.goto(url)
    expect(phone.get_by_role("cell", name="9.90")).to_be_visible()
    expect(phone.get_by_role("complementary")).to_be_hidden()
    assert overflow(phone) == 0
    column = phone.get_by_role("columnheader", name="column 0", exact=True).bounding_box()
    assert column is not None
    assert column["width"] > 50  # a wide table is scrolled, and its words are not broken
    button(phone, "Details").first.click()
    expect(phone.get_by_role("complementary")).to_be_visible()
    assert overflow(phone) == 0
    assert serious(phone) == []


def test_a_call_that_needs_a_person_is_approved_or_denied(page: Page, session: str) -> None:
    opened(page, "desk", session)

    first = say(page, "Please refund it")
    asked = first.get_by_role("group", name="Approve or deny refund")
    expect(asked).to_be_visible()
    expect(first).to_contain_text('"euros": 5')
    page.reload()  # and what waits is asked again
    button(asked, "Approve").click()

    expect(first).to_contain_text("approved by local")
    expect(first).to_contain_text("5.00 euros for AB-1")
    expect(first).to_contain_text("That is settled.")
    second = say(page, "And refund it once more")
    asked = second.get_by_role("group", name="Approve or deny refund")
    asked.get_by_role("textbox").fill("Once is enough.")
    button(asked, "Deny").click()
    expect(second).to_contain_text("denied by local")
    expect(second).to_contain_text("They said: Once is enough.")


@pytest.mark.req("STM-04")
def test_a_session_is_found_again_after_a_reload_and_in_another_browser(
    page: Page, open_page: Windows, desk: Desk
) -> None:
    begun = begin(opened(page, "desk"))
    say(page, "Good morning, desk")
    expect(page.get_by_role("article").get_by_text("Good morning.", exact=True)).to_be_visible()

    page.reload()
    expect(page.get_by_role("article").get_by_text("Good morning.", exact=True)).to_be_visible()
    other = open_page()
    other.goto("/")
    other.evaluate(STORE, ["chatSession_local_desk", "long-gone"])
    opened(other, "desk")

    expect(other.get_by_role("article").get_by_text("Good morning.", exact=True)).to_be_visible()
    assert UUID(begun).version == 4
    assert [session_of(page), session_of(other)] == [begun, begun]
    assert desk.api("GET", "/api/sessions/active?agent_id=desk")["session_id"] == begun
    for each in (page, other):
        assert each.evaluate(STORED, "chatSession_local_desk") == begun
    say(other, "Heard by both")
    expect(page.get_by_role("article").filter(has_text="Heard by both")).to_contain_text("Good morning.")


@pytest.mark.req("STM-04")
def test_a_link_opens_another_session_of_ones_own_and_says_so(page: Page, desk: Desk, session: str) -> None:
    desk.api("POST", "/api/chat", {"message": "An old one", "session_id": session, "agent_id": "desk"})
    opened(page, "desk")
    active = session_of(page)

    opened(page, "desk", session)

    expect(page.get_by_role("article").get_by_text("An old one")).to_be_visible()
    note = page.get_by_role("note")
    expect(note).to_contain_text("This is not your active session with desk.")
    assert desk.api("GET", "/api/sessions/active?agent_id=desk")["session_id"] == active != session
    button(note, "Make this session active").click()
    expect(note).to_have_count(0)
    assert desk.api("GET", "/api/sessions/active?agent_id=desk")["session_id"] == session
    assert page.evaluate(STORED, "chatSession_local_desk") == session


@pytest.mark.req("STM-04")
def test_the_chat_leads_to_the_session_that_another_device_has_gone_on_to(page: Page, desk: Desk) -> None:
    opened(page, "desk")
    before = session_of(page)

    for way in (["Chat"], ["Home", "Chat"]):
        chosen = str(uuid4())
        desk.api("PUT", "/api/sessions/active?agent_id=desk", {"session_id": chosen})
        for screen in way:
            page.get_by_role("link", name=screen, exact=True).click()

        page.wait_for_url(f"**/chat/desk/{chosen}")
        assert page.evaluate(STORED, "chatSession_local_desk") == chosen != before
        expect(page.get_by_text("connected", exact=True)).to_be_visible()
        expect(page.get_by_role("note")).to_have_count(0)


def test_a_long_session_begins_with_its_end_and_shows_what_was_before_when_asked(
    page: Page, desk: Desk, session: str
) -> None:
    talk = desk.api("POST", "/api/conversations", {"agent": "desk", "session_id": session})["id"]
    said = [{"content": f"line {n:03}", "context": "text:agent:desk"} for n in range(130)]
    desk.api("POST", f"/api/conversations/{talk}/nodes/batch", {"nodes": said})

    opened(page, "desk", session)

    expect(page.get_by_role("article").get_by_text("line 129")).to_be_in_viewport()
    expect(page.get_by_role("article").get_by_text("line 069")).to_have_count(0)
    before = button(page, "Show earlier messages")
    before.click()
    expect(page.get_by_role("article").get_by_text("line 010")).to_have_count(1)
    expect(page.get_by_role("article").get_by_text("line 129")).to_have_count(1)
    before.click()
    expect(page.get_by_role("article").get_by_text("line 000")).to_have_count(1)
    expect(before).to_have_count(0)


def test_why_a_session_cannot_be_talked_in_is_said(page: Page, desk: Desk, session: str, page_watch: Watch) -> None:
    page_watch.allow("WebSocket connection to .* failed", "status of 404")
    desk.api("POST", "/api/conversations", {"agent": "desk", "session_id": session, "user": "ann"})

    page.goto(f"/chat/desk/{session}")  # another user's id is a session of one's own
    expect(page.get_by_text("connected", exact=True)).to_be_visible()
    page.goto(f"/chat/nobody/{uuid4()}")
    expect(told(page)).to_contain_text("There is no agent nobody.")

    page.get_by_role("combobox", name="Agent").select_option("desk")
    expect(page.get_by_text("connected", exact=True)).to_be_visible()

    elsewhere = str(uuid4())
    desk.api("POST", "/api/conversations", {"agent": "moody", "session_id": elsewhere})
    page.goto(f"/chat/desk/{elsewhere}")
    expect(told(page)).to_contain_text("This session is with moody.")
    expect(page.get_by_role("note")).to_have_count(0)
    page.get_by_role("link", name="Continue with moody").click()
    page.wait_for_url(f"**/chat/moody/{elsewhere}")
    expect(page.get_by_text("connected", exact=True)).to_be_visible()


def test_a_message_that_is_refused_says_why_and_is_not_lost(page: Page, session: str) -> None:
    page.route_web_socket("**/ws/**", _impatient)
    opened(page, "desk", session)
    turn = say(page, "Please count")
    expect(turn).to_contain_text("one two")

    letter = say(page, "And now this")

    expect(letter).to_contain_text("not sent")
    expect(letter.get_by_role("alert")).to_contain_text("The agent is still answering an earlier message")
    button(letter, "Edit and resend").click()
    expect(page.get_by_role("textbox", name="Message to")).to_have_value("And now this")
    expect(letter).to_have_count(0)
    button(page, "Stop").click()
    expect(turn).to_contain_text("stopped")


def _impatient(route: WebSocketRoute) -> None:
    """Have the server refuse what it would let wait."""
    server = route.connect_to_server()
    route.on_message(lambda text: server.send(json.dumps({**json.loads(text), "busy": "reject"})))


def test_a_conversation_that_was_removed_says_so_and_begins_anew_when_asked(
    page: Page, desk: Desk, session: str, page_watch: Watch
) -> None:
    page_watch.allow("status of 404")  # of what was behind its answer
    opened(page, "desk", session)
    say(page, "Forget this")
    expect(page.get_by_role("article").get_by_text("Good morning.", exact=True)).to_be_visible()
    talk = desk.api("GET", f"/api/conversations/by-session?session_id={session}")["id"]

    desk.api("DELETE", f"/api/conversations/{talk}")
    say(page, "And this is new")
    expect(told(page)).to_contain_text("There is no conversation")
    button(told(page), "Try again").click()

    turn = page.get_by_role("article")
    expect(turn).to_have_count(1)
    expect(turn).to_contain_text("And this is new")
    expect(turn.get_by_text("Good morning.", exact=True)).to_be_visible()


def test_keys_alone_are_enough(page: Page, session: str) -> None:
    opened(page, "desk", session)
    page.get_by_role("heading", name="Chat", exact=True).focus()

    page.keyboard.press("/")
    page.keyboard.type("Good")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("day")
    page.keyboard.press("Enter")

    turn = page.get_by_role("article").filter(has_text="Good day")
    expect(turn).to_contain_text("Good morning.")
    expect(page.get_by_role("log")).to_have_text("desk says: Good morning.")
    page.get_by_role("heading", name="Chat", exact=True).focus()
    page.keyboard.press("j")
    expect(turn).to_be_focused()


def test_what_is_shown_is_copied_as_commands_that_work(page: Page, desk: Desk, session: str) -> None:
    opened(page, "desk", session)
    say(page, "Good morning, commands")
    expect(page.get_by_role("article").get_by_text("Good morning.", exact=True)).to_be_visible()

    read = ways(page)
    page.get_by_role("textbox", name="Message to").fill('It\'s "me" & $(you)')
    write = ways(page)

    assert "Good morning, commands" in desk.program(*shlex.split(read["cli"])[1:]).stdout
    assert "Good morning, commands" in _ran(read["curl"])
    assert json.loads(_ran(write["curl"]))["reply"] == "Good morning."
    expect(page.get_by_role("article").get_by_text('It\'s "me" & $(you)')).to_be_visible()
    assert desk.program(*shlex.split(write["cli"])[1:]).stdout.strip() == "Good morning."
    for way in (read, write):
        compile(way["python"], "copied", "exec")


def _ran(command: str) -> str:
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_socket_that_is_cut_again_and_again_in_mid_stream_loses_and_doubles_nothing(
    open_page: Windows, desk: Desk, session: str, page_watch: Watch
) -> None:
    page_watch.allow("WebSocket connection to .* failed")
    frames: list[dict[str, Any]] = []
    with wired(desk.url) as wire:
        page = open_page(base_url=wire.url)
        page.on("websocket", lambda opened: _record(opened, frames))
        opened(page, "desk", session)
        wire.tears = CUTS
        recitals = 0

        while wire.tears > 0:
            recitals += 1
            say(page, f"Recite number {recitals}")
            said = page.get_by_role("article").get_by_text(RECITED, exact=True)
            expect(said).to_have_count(recitals, timeout=RECITAL)
            expect(button(page, "Stop")).to_have_count(0)
        page.close()

    assert wire.torn == CUTS
    cursors = [frame["cursor"] for frame in frames if frame["kind"] not in ("ready", "sent", "refused", "pong")]
    assert len(cursors) == len(set(cursors))
    for run in {frame["run_id"] for frame in frames if frame["kind"] == "token"}:
        streamed = "".join(f.get("text", "") for f in frames if f["kind"] == "token" and f["run_id"] == run)
        assert RECITED.startswith(streamed)
    answers = [frame["text"] for frame in frames if frame["kind"] == "answer"]
    assert answers == [RECITED] * recitals


def _record(opened: WebSocket, frames: list[dict[str, Any]]) -> None:
    opened.on("framereceived", lambda payload: frames.append(json.loads(payload)))


def test_what_is_written_while_the_line_is_down_is_said_once_when_it_is_back(
    open_page: Windows, desk: Desk, session: str, page_watch: Watch
) -> None:
    page_watch.allow("WebSocket connection to .* failed", "net::ERR_")
    with wired(desk.url) as wire:
        page = open_page(base_url=wire.url)
        opened(page, "desk", session)

        wire.cut()
        expect(page.get_by_text("reconnecting …")).to_be_visible()
        letter = say(page, "Are you still there?")
        expect(letter).to_contain_text("sending")
        wire.mend()

        expect(page.get_by_role("article").get_by_text("Good morning.", exact=True)).to_be_visible(timeout=RECITAL)
        expect(page.get_by_role("article").get_by_text("Are you still there?")).to_have_count(1)
        page.close()
    talk = desk.api("GET", f"/api/conversations/by-session?session_id={session}")["id"]
    nodes = desk.api("GET", f"/api/conversations/{talk}/nodes")["nodes"]
    assert [node["content"] for node in nodes] == ["Are you still there?", "Good morning."]
