"""The screen of sessions, as a person uses it: find a conversation, go along its events, look at its state, fork it."""

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.browser import Theme, Watch, Windows, overflow, settled, ways
from tests.console.server import Desk

pytestmark = pytest.mark.req("UI-01")

MANY = 50_000
MOST_ROWS = 60
COPIED = ("seq", "context", "content", "payload", "state", "key", "version", "revision", "deleted", "created_at")


class Talk:
    """A conversation that a test has made."""

    def __init__(self, desk: Desk, **given: object) -> None:
        self._desk = desk
        made = desk.api("POST", "/api/conversations", {"session_id": f"web {uuid4().hex[:8]}", **given})
        self.id: str = made["id"]
        self.session: str = made["session_id"]
        self.address = f"/sessions/{self.id}"

    def say(self, content: str, *, context: str = "text:user:local", **given: object) -> dict[str, Any]:
        """Append a node."""
        body = {"content": content, "context": context, **given}
        return self._desk.api("POST", f"/api/conversations/{self.id}/nodes", body)

    def read(self, of: str) -> Any:
        """What the API has of it."""
        return self._desk.api("GET", f"/api/conversations/{self.id}{of}")


@pytest.fixture
def talk(desk: Desk) -> Talk:
    """A conversation of four events, of which the last was edited, and of whose state each step changed something."""
    return about_a_parcel(desk, "clerk")


def about_a_parcel(desk: Desk, agent: str) -> Talk:
    """The same, with an agent of this name, which is nobody's."""
    talk = Talk(desk, agent=agent, state={"plan": "free", "step": 0})
    speaks = f"text:agent:{agent}"
    call = {"id": "1", "name": "track", "arguments": {"parcel": "AB-1"}}
    result = {"tool_call_id": "1", "tool_name": "track", "result": {"place": "Bonn"}}
    talk.say("Where is my parcel?\nI wait.")
    talk.say("Let me look.", context=speaks, payload={"tool_calls": [call]}, state={"step": 1, "cart": [1]})
    talk.say("", context="text:agent:tool", payload=result)
    last = talk.say("It is in Bonn.", context=speaks, state={"step": 2}, delete_state=["plan"])
    desk.api("PATCH", f"/api/conversations/{talk.id}/state", {"state": {"place": "Cologne", "user:theme": "dark"}})
    desk.api("PATCH", f"/api/nodes/{last['id']}", {"content": "It is in Cologne.", "version": 1})
    return talk


@pytest.fixture(scope="session")
def long_talk(desk: Desk) -> Talk:
    """A conversation of fifty thousand events."""
    talk = Talk(desk)
    for first in range(1, MANY, 1000):
        nodes = [{"content": f"This is event {seq}."} for seq in range(first, first + 1000)]
        desk.api("POST", f"/api/conversations/{talk.id}/nodes/batch", {"nodes": nodes})
    return talk


def events(page: Page) -> Locator:
    """The list of events."""
    return page.get_by_role("list", name="Events")


def row(page: Page, seq: int) -> Locator:
    """An event in the list."""
    return events(page).locator(f'[role=listitem][aria-posinset="{seq + 1}"]')


def slider(page: Page) -> Locator:
    """The line of time."""
    return page.get_by_role("slider")


def chosen(page: Page) -> Locator:
    """What stands beside the events."""
    return page.get_by_role("region", name="Details")


def test_a_search_finds_events_and_opens_them_with_the_words_marked(page: Page, desk: Desk) -> None:
    word = uuid4().hex
    first, second = Talk(desk), Talk(desk)
    first.say("مرحبا بكم " * 20)
    first.say(f"I said {word.upper()} once.")
    second.say(f"And I said <b>{word}</b>.")
    page.goto("/sessions")

    expect(page.get_by_role("searchbox")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type(word)
    found = page.get_by_role("list", name=f"Events with “{word}”")
    expect(found.get_by_role("link")).to_have_count(2)
    expect(found.get_by_role("heading")).to_have_text([re.compile(second.session), re.compile(first.session)])
    found.get_by_role("link").last.click()

    expect(page).to_have_url(re.compile(rf"/sessions/{first.id}\?q={word}&at=2$"))
    expect(found.locator("mark")).to_have_text([word, word.upper()])
    expect(chosen(page).locator("mark")).to_have_text(word.upper())
    expect(row(page, 2)).to_have_attribute("aria-current", "true")
    expect(row(page, 1).get_by_text("مرحبا")).to_have_css("direction", "rtl")  # so that what is cut is its end
    page.keyboard.press("k")
    expect(chosen(page).get_by_text(f"And I said <b>{word}</b>.")).to_be_visible()


def test_what_is_not_found_is_said(page: Page) -> None:
    page.goto(f"/sessions?q={uuid4().hex}")

    expect(page.get_by_role("heading", name="No results")).to_be_visible()


def test_the_list_has_every_session_of_an_agent_as_one_scrolls_and_keys_go_through_it(page: Page, desk: Desk) -> None:
    agent = f"crowd {uuid4().hex[:8]}"
    talks = [Talk(desk, agent=agent) for _ in range(60)]
    for talk in talks:
        talk.say("I was here last.\nAnd more.")
    Talk(desk, agent=agent)  # in which nobody has said anything, as whoever opens a chat leaves one behind
    page.goto(f"/sessions?agent={agent}")
    sessions = page.get_by_role("list", name="Sessions")

    expect(sessions.get_by_role("listitem").first).to_contain_text(re.compile("I was here last.*1 event", re.DOTALL))
    expect(page.get_by_label("Agent")).to_have_value(agent)
    sessions.hover()
    seen: set[str] = set()
    for _ in range(100):
        expect(sessions.get_by_text("Loading more")).to_have_count(0)
        links = sessions.get_by_role("link")
        seen |= {str(address) for address in links.evaluate_all("links => links.map(link => link.pathname)")}
        if len(seen) == len(talks):
            break
        page.mouse.wheel(0, 400)
    assert seen == {talk.address for talk in talks}
    page.mouse.wheel(0, -100_000)
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(talks[-1].id))
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(talks[-2].id))


def test_the_slider_and_keys_go_along_the_events_and_the_address_knows_where_one_is(page: Page, talk: Talk) -> None:
    asked: list[str] = []
    page.goto(talk.address)
    expect(slider(page)).to_have_attribute("aria-valuetext", "Event 4 of 4")
    expect(page.get_by_role("region", name="Current state")).to_be_visible()
    page.clock.set_fixed_time(time.time() + 3600)
    page.on("request", lambda request: asked.append(request.url))

    slider(page).press("Home")
    expect(chosen(page).get_by_role("heading", name="Start")).to_be_visible()
    slider(page).press("ArrowRight")
    expect(chosen(page).get_by_text("Where is my parcel?")).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?at=1$"))
    events(page).focus()
    page.keyboard.press("j")
    expect(chosen(page).get_by_role("heading", name="Calls track")).to_be_visible()
    page.get_by_role("spinbutton").fill("3")
    expect(
        chosen(page).get_by_text('"place": "Bonn"').or_(chosen(page).get_by_text('{"place":"Bonn"}'))
    ).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?at=3$"))
    assert not [url for url in asked if "/nodes" in url or "/state" in url]  # it is all there, however old it is

    page.reload()
    expect(row(page, 3)).to_have_attribute("aria-current", "true")
    expect(slider(page)).to_have_value("3")


def test_a_session_is_found_by_its_own_name_too(page: Page, talk: Talk) -> None:
    page.goto(f"/sessions/{talk.session}?at=1")

    expect(chosen(page).get_by_text("Where is my parcel?")).to_be_visible()


def test_the_state_of_every_step_is_what_a_fork_there_has(page: Page, desk: Desk, talk: Talk) -> None:
    changes = talk.read("/state/changes")["changes"]
    page.goto(talk.address)
    kept = page.get_by_role("region", name="State after this event")
    changed = page.get_by_role("region", name="State changes")

    for seq in range(5):
        row(page, seq).get_by_role("link").click()
        expect(page).to_have_url(re.compile(rf"\?at={seq}$"))
        fork = desk.api("POST", f"/api/conversations/{talk.id}/fork", {"at": seq})
        state = desk.api("GET", f"/api/conversations/{fork['id']}/state")["state"]
        own = {name: entry["value"] for name, entry in state.items() if not name.startswith(("user:", "app:"))}
        touched = {name for change in changes if change["seq"] == seq for name in (*change["set"], *change["deleted"])}
        expect(kept.locator("dt")).to_have_text([*sorted(own), *(["user:theme"] if seq == 4 else [])])
        expect(kept.locator("dd").first).to_have_text(_written(own[min(own)]))
        expect(changed.locator("dt")).to_have_text([re.compile(f"^{name} ") for name in sorted(touched)])

    expect(changed.locator("dt").filter(has_text="removed")).to_have_text(re.compile("plan"))
    expect(changed.locator("dt").filter(has_text="added")).to_have_text([re.compile("place"), re.compile("user:theme")])
    expect(changed.locator("dd").filter(has_text="→")).to_have_text(re.compile("1.*2"))


def test_a_fork_has_all_up_to_its_event_byte_for_byte_and_is_opened(page: Page, desk: Desk, talk: Talk) -> None:
    page.goto(f"{talk.address}?at=3")
    expect(slider(page)).to_have_value("3")

    page.get_by_role("button", name="Fork here").click()

    expect(page.get_by_role("status").get_by_text("Forked at event 3")).to_be_visible()
    expect(page).not_to_have_url(re.compile(talk.id))
    expect(page.get_by_role("link", name="another, at event 3")).to_have_attribute("href", re.compile(talk.id))
    expect(events(page).get_by_role("listitem")).to_have_count(4)
    fork = page.url.split("/sessions/")[1].split("?")[0]
    assert _copied(desk, fork) == [node for node in _copied(desk, talk.id) if node["seq"] <= 3]


def test_an_export_is_what_the_api_exports(page: Page, desk: Desk, talk: Talk) -> None:
    page.goto(talk.address)

    with page.expect_download() as download:
        page.get_by_role("link", name="Export").click()

    assert download.value.suggested_filename == f"{talk.session.replace(' ', '-')}.jsonl"
    assert download.value.path().read_text("utf-8") == _exported(desk, talk.id)


def test_an_edited_event_says_what_it_was(page: Page, talk: Talk) -> None:
    page.goto(f"{talk.address}?at=4")

    expect(chosen(page).get_by_text("edited")).to_be_visible()
    chosen(page).get_by_text("Earlier versions", exact=True).click()

    expect(chosen(page).get_by_text("It is in Bonn.")).to_be_visible()


def test_a_run_is_told_step_by_step_with_what_was_sent_and_why(page: Page, desk: Desk) -> None:
    session = uuid4().hex
    asked = {"message": "Where is my parcel?", "session_id": session, "agent_id": "desk"}
    talk = desk.api("POST", "/api/chat", asked)
    sent = desk.api("GET", f"/api/runs/{talk['run_id']}")["steps"][0]["sent"]
    page.goto(f"/sessions/{talk['conversation_id']}")

    page.get_by_role("table", name="Runs").get_by_role("link", name="desk").click()

    expect(page).to_have_url(re.compile(f"run={talk['run_id']}"))
    first = page.get_by_role("region", name="Step 1")
    parts = first.get_by_role("table", name=f"Sent: {sent['tokens']:,} tokens").locator("tbody tr")
    expect(parts).to_have_text([re.compile(f"{part['name']}.*{re.escape(part['reason'])}") for part in sent["parts"]])
    expect(first.get_by_role("heading", name="track done")).to_be_visible()
    expect(page.get_by_role("region", name="Step 2").get_by_text("It is in Cologne.")).to_be_visible()
    page.get_by_role("link", name="event 1", exact=True).click()
    expect(chosen(page).get_by_text("Where is my parcel?")).to_be_visible()


def test_fifty_thousand_events_are_gone_through_with_few_rows_and_nothing_jumps(page: Page, long_talk: Talk) -> None:
    page.goto(long_talk.address)
    rows = events(page).get_by_role("listitem")
    expect(row(page, 1)).to_contain_text("This is event 1.")
    most = rows.count()

    slider(page).press("End")
    expect(row(page, MANY)).to_contain_text(f"This is event {MANY}.")
    most = max(most, rows.count())
    page.get_by_role("spinbutton").fill(str(MANY // 2))
    expect(row(page, MANY // 2)).to_contain_text(f"This is event {MANY // 2}.")
    expect(page).to_have_url(re.compile(rf"\?at={MANY // 2}$"))
    events(page).hover()
    for _ in range(20):
        page.mouse.wheel(0, 1500)
        most = max(most, rows.count())
    assert most < MOST_ROWS
    shown = rows.nth(8)
    shown.click(trial=True)  # which waits until it is still
    expect(shown).to_contain_text("This is event")
    before = shown.bounding_box(), shown.inner_text()
    long_talk.say("This is new.")

    expect(page.get_by_role("button", name="1 new event")).to_be_visible()
    assert (shown.bounding_box(), shown.inner_text()) == before
    page.get_by_role("button", name="1 new event").click()
    expect(chosen(page).get_by_text("This is new.")).to_be_visible()


def test_where_there_is_nothing_it_says_what_to_do(page: Page, page_watch: Watch, talk: Talk) -> None:
    page_watch.allow("404")

    page.goto(f"/sessions?user={uuid4().hex}")
    expect(page.get_by_role("heading", name="No matching sessions")).to_be_visible()
    page.get_by_role("link", name="Show sessions of all agents and users").click()
    expect(page.get_by_role("list", name="Sessions")).to_be_visible()
    page.goto(f"/sessions/{uuid4()}")

    expect(page.get_by_role("alert").filter(has_text="There is no")).to_be_visible()
    page.get_by_role("link", name="Show all sessions").click()
    expect(page).to_have_url(re.compile("/sessions$"))


def test_what_is_removed_while_one_looks_is_gone(page: Page, desk: Desk, page_watch: Watch, talk: Talk) -> None:
    page_watch.allow("404")
    page.goto(f"{talk.address}?at=1")
    expect(page.get_by_role("button", name="Fork here")).to_be_visible()

    desk.api("DELETE", f"/api/conversations/{talk.id}")

    expect(page.get_by_role("alert").filter(has_text="There is no").first).to_be_visible()
    expect(page.get_by_role("button", name="Fork here")).to_have_count(0)


def test_the_ways_to_say_it_elsewhere_work(page: Page, desk: Desk, talk: Talk) -> None:
    word = f'it\'s {uuid4().hex} "$HOME"'
    talk.say(word)
    views = {"/sessions": talk.session, f"/sessions?q={word}": word, f"{talk.address}?at=5": word}

    programs: list[str] = []
    for view, told in views.items():
        page.goto(view)
        expect(page.get_by_role("listitem").first).to_be_visible()
        settled(page)
        said = ways(page)
        assert told in desk.program(*shlex.split(said["cli"])[1:]).stdout, said
        assert told.replace('"', '\\"') in _run(desk, "sh", "-c", said["curl"]), said
        programs.append(f"{said['python']}\nprint('and then')\n")

    done = _run(desk, sys.executable, "-c", "".join(programs))  # one process: each takes a while to start
    assert [told in text for told, text in zip(views.values(), done.split("and then"), strict=False)] == [True] * 3


def test_the_screen_is_fit_for_everyone(open_page: Windows, talk: Talk, serious: Callable[[Page], list[str]]) -> None:
    asked, answered = "Where is my parcel?", "It is in Cologne."
    views = {"/sessions": asked, talk.address: asked, f"{talk.address}?at=4": answered}
    sizes: list[tuple[int, Theme]] = [(360, "light"), (1280, "dark"), (3840, "light")]

    for width, theme in sizes:
        page = open_page(width=width, theme=theme)
        for view, shown in views.items():
            page.goto(view)
            expect(page.get_by_role("main").get_by_text(shown).first).to_be_attached()
            settled(page)
            assert overflow(page) <= 0
            if width == 360 or (width == 1280 and view != "/sessions"):  # there the list stands beside the others
                assert serious(page) == []


def test_the_list_stands_beside_what_was_chosen(page: Page, desk: Desk, shoot: Callable[[Page, str], None]) -> None:
    for opening in ("Do you send to Norway?", "I would like a refund.", "Can I change my address?"):
        Talk(desk, agent="reception").say(opening)
    talk = about_a_parcel(desk, "reception")
    Talk(desk, agent="reception").say("Good morning. Are you open today?")

    page.goto(f"{talk.address}?agent=reception&at=4")

    sessions = page.get_by_role("list", name="Sessions").get_by_role("listitem")
    expect(sessions.filter(has_text="4 events")).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("region", name="State after this event").locator("dt")).to_have_count(4)
    shoot(page, "sessions")


def _copied(desk: Desk, id: str) -> list[dict[str, Any]]:
    """The nodes of a conversation, without what tells copies apart."""
    lines = [json.loads(line) for line in _exported(desk, id).splitlines()]
    return [{name: line["node"][name] for name in COPIED} for line in lines if "node" in line]


def _exported(desk: Desk, id: str) -> str:
    with urlopen(f"{desk.url}/api/conversations/{id}/export") as answer:
        return answer.read().decode()


def _run(desk: Desk, *command: str) -> str:
    done = subprocess.run(
        command, env=desk.program.environment, cwd=desk.program.folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
