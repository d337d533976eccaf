import re
import shlex
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.browser import PATIENCE, Watch, Windows, come_back, overflow, tick, ways
from tests.console.server import Desk

pytestmark = pytest.mark.req("UI-01")

TRIP = [
    ("Ann", "I finally booked the trip to Lisbon."),
    ("Ben", "Great! When do you leave?"),
    ("Ann", "On 7 May, for a week."),
    ("Ben", "Shall I water your plants?"),
]
ROUNDING = 0.0001
CUT = 10  # hits of a search that asks for no number


def remember(desk: Desk, user: str, *texts: str | dict[str, Any]) -> list[str]:
    """The ids of these memories of a user."""
    drafts = [{"content": text} if isinstance(text, str) else text for text in texts]
    body = {"owner": {"scope": "user", "name": user}, "memories": drafts}
    return [memory["id"] for memory in desk.api("POST", "/api/memories", body)["memories"]]


def number(cell: str) -> float:
    return float(cell.replace("\u2212", "-"))


def search(page: Page, question: str) -> Locator:
    """Ask a question as a person would; the hits."""
    field = page.get_by_role("searchbox")
    expect(field).to_be_visible()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    field.press_sequentially(question)
    field.press("Enter")
    return page.get_by_role("main").get_by_role("list").filter(has=page.get_by_role("img", name=re.compile(r"^0\.")))


def article(page: Page) -> Locator:
    return page.get_by_role("article", name="Memory")


def test_the_first_memory_is_added_and_found(page: Page, serious: Callable[[Page], list[str]]) -> None:
    page.goto("/memory?scope=user&name=ada")
    expect(page.get_by_role("heading", name="No memories yet")).to_be_visible()

    page.get_by_role("button", name="Add a memory").last.click()
    dialog = page.get_by_role("dialog", name="Add a memory")
    dialog.get_by_label("Content").fill("Ada plays the cello")
    dialog.get_by_label("Type").fill("hobby")
    assert serious(page) == []
    dialog.get_by_role("button", name="Add").click()

    expect(article(page)).to_contain_text("Ada plays the cello")
    expect(article(page)).to_contain_text("the user ada")
    assert UUID(page.url.partition("/memory/")[2].partition("?")[0])
    expect(search(page, "cello?")).to_contain_text("Ada plays the cello")
    expect(page.get_by_role("status").filter(has_text="1 result.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("cello?")


def test_the_parts_of_a_score_add_up_to_it(
    page: Page, desk: Desk, serious: Callable[[Page], list[str]], shoot: Callable[[Page, str], None]
) -> None:
    remember(
        desk,
        "ann",
        *(
            {"content": text, "author": author, "conversation": "trip", "seq": seq, "at": f"2026-03-02T09:0{seq}:00Z"}
            for seq, (author, text) in enumerate(TRIP)
        ),
        {"content": "Prefers tea over coffee", "type": "preference", "importance": 0.8},
    )
    question = "When does Ann travel?"
    asked = {"owner": {"name": "ann"}, "query": question, "explain": True}

    page.goto(f"/memory?scope=user&name=ann&q={quote(question)}")
    tick(page, "explain scores")

    tables = page.get_by_role("table", name="Parts of the score")
    hits = desk.api("POST", "/api/memories/search", asked)["hits"]
    expect(tables).to_have_count(len(hits))
    for table, hit in zip(tables.all(), hits, strict=True):
        rows = [row.get_by_role("cell").last.inner_text() for row in table.get_by_role("row").all()[1:]]
        names = [name.inner_text() for name in table.get_by_role("rowheader").all()]
        *parts, score = map(number, rows)
        assert round(sum(parts), 4) == score
        assert score == pytest.approx(hit["score"], abs=ROUNDING)
        assert dict(zip(names, parts, strict=False)) == pytest.approx(
            {name: value for name, value in hit["parts"].items() if name in names}, abs=2 * ROUNDING
        )
        assert all(abs(value) <= ROUNDING for name, value in hit["parts"].items() if name not in names)
    assert "neighbours" in tables.nth(1).inner_text()
    assert serious(page) == []
    shoot(page, "memory")


def test_a_long_history_is_read_page_by_page(page: Page, desk: Desk) -> None:
    (id,) = remember(desk, "cleo", "Cleo likes green tea")
    for turn in range(200):
        desk.api("POST", f"/api/memories/{id}/pin", {"pinned": turn % 2 == 0})
    page.goto(f"/memory/{id}")
    expect(article(page).get_by_text("Version 201, unpinned")).to_be_visible()
    expect(article(page).get_by_text("Version 1, remembered")).to_have_count(0)

    page.get_by_role("button", name="Show earlier versions").click()

    expect(article(page).get_by_text("Version 1, remembered")).to_be_visible()
    expect(page.get_by_role("button", name="Show earlier versions")).to_have_count(0)


def test_a_memory_is_pinned_corrected_buried_and_forgotten(
    page: Page, desk: Desk, serious: Callable[[Page], list[str]], shoot: Callable[[Page, str], None]
) -> None:
    (id,) = remember(desk, "bea", "Bea likes green tea")
    page.goto(f"/memory/{id}")

    page.get_by_role("button", name="Pin").click()
    page.get_by_role("button", name="Unpin").wait_for()
    page.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit memory")
    dialog.get_by_label("Content").fill("Bea likes black tea")
    dialog.get_by_label("Importance").fill("0.7")
    dialog.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Bury").click()

    expect(article(page).get_by_text("Version 4, buried")).to_be_visible()
    expect(article(page).get_by_role("deletion").filter(has_text="green")).to_be_visible()
    expect(article(page).get_by_role("insertion").filter(has_text="0.7")).to_be_visible()
    kept = desk.api("GET", f"/api/memories/{id}")
    assert (kept["content"], kept["importance"]) == ("Bea likes black tea", 0.7)
    assert (kept["pinned"], kept["buried"], kept["version"]) == (True, True, 4)
    assert serious(page) == []
    shoot(page, "memory-history")

    page.get_by_role("button", name="Forget").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Forget")).to_be_focused()
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget permanently").click()

    expect(page.get_by_text("Memory deleted.")).to_be_visible()
    expect(page).to_have_url(re.compile("name=bea"))
    expect(page.get_by_role("heading", name="No memories yet")).to_be_visible()
    with pytest.raises(AssertionError, match="404"):
        desk.api("GET", f"/api/memories/{id}")


def test_what_took_whose_place_is_told_from_each_of_them(page: Page, desk: Desk) -> None:
    (oslo,) = remember(desk, "cleo", "Cleo lives in Oslo")
    page.goto(f"/memory/{oslo}?q=lives")

    for place in ("Rome", "Paris"):
        page.get_by_role("button", name="Supersede", exact=True).click()
        page.get_by_label("New content").fill(f"Cleo lives in {place}")
        page.get_by_role("dialog").get_by_role("button", name="Supersede").click()
        expect(article(page).get_by_role("strong")).to_have_text(f"Cleo lives in {place}")

    chain = article(page).get_by_role("list").first.get_by_role("listitem")
    expect(chain).to_have_text([re.compile(place) for place in ("Oslo.*until", "Rome.*until", "Paris.*since")])
    article(page).get_by_role("link", name="Cleo lives in Oslo").click()
    expect(page).to_have_url(re.compile(oslo))
    expect(chain).to_have_count(3)
    expect(page.get_by_role("button", name="Supersede", exact=True)).to_have_count(0)
    expect(article(page).get_by_role("status")).to_contain_text("superseded")


def test_why_a_memory_is_not_among_what_answers_is_told(page: Page, desk: Desk) -> None:
    parcels = [f"Parcel {number} is on its way" for number in range(CUT + 2)]
    tea, oslo, *_ = remember(desk, "dora", "Dora likes tea", "Dora lives in Oslo", *parcels)
    desk.api("POST", f"/api/memories/{oslo}/supersede", {"content": "Dora lives in Rome"})
    page.goto("/memory?scope=user&name=dora")
    hits = search(page, "Where is the parcel?")
    expect(hits.get_by_role("listitem")).to_have_count(CUT)

    page.get_by_text("Why is a memory not here?").click()
    page.get_by_label("Type some words").fill(tea)
    page.get_by_role("button", name="Explain").click()

    reason = article(page).get_by_role("status")
    told = reason.filter(has_text="below the cut")
    answer = desk.api(
        "POST", "/api/memories/why-not", {"id": tea, "owner": {"name": "dora"}, "query": "Where is the parcel?"}
    )
    expect(told).to_contain_text(re.compile(rf"Rank {answer['rank']}, score .?\d\.\d{{4}}"))
    page.get_by_role("button", name="Show memories below the cut").click()
    missed = page.get_by_role("list", name="Below the cut")
    expect(missed).to_contain_text("Dora likes tea")
    expect(page.get_by_text("Below the cut: agents")).to_be_visible()

    page.goto(f"/memory/{oslo}")
    page.get_by_label("Query that should find it").fill("Where does Dora live?")
    page.get_by_role("button", name="Test", exact=True).click()

    expect(reason.filter(has_text="superseded")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"{oslo}.*q="))


def test_two_who_edit_one_memory_never_write_over_each_other_unseen(
    page: Page, open_page: Windows, page_watch: Watch, desk: Desk
) -> None:
    page_watch.allow("status of 409")
    (id,) = remember(desk, "edna", "Edna drives a van")
    other = open_page()
    for each in (page, other):
        each.goto(f"/memory/{id}")
        each.get_by_role("button", name="Edit").click()

    for each, text in ((page, "Edna drives a lorry"), (other, "Edna drives a bus")):
        each.get_by_label("Content").fill(text)
        each.get_by_role("button", name="Save").click()

    told = other.get_by_role("dialog").get_by_role("alert")
    expect(told).to_contain_text("Someone else changed this memory.")
    expect(told).to_contain_text("Edna drives a lorry")
    expect(other.get_by_label("Content")).to_have_value("Edna drives a bus")
    assert desk.api("GET", f"/api/memories/{id}")["content"] == "Edna drives a lorry"
    other.get_by_role("button", name="Overwrite").click()
    expect(article(other).get_by_text("Version 3, edited")).to_be_visible()
    assert desk.api("GET", f"/api/memories/{id}")["content"] == "Edna drives a bus"


def test_owners_stand_in_a_tree_with_how_much_they_have(page: Page, desk: Desk) -> None:
    remember(desk, "fay", "Fay sings", "Fay swims", "Fay skis")
    for scope, name in (("organization", None), ("agent", "fays"), ("session", "fay-1")):
        body = {"owner": {"scope": scope, "name": name}, "memories": [{"content": f"of the {scope}"}]}
        desk.api("POST", "/api/memories", body)
    page.goto("/memory")
    tree = page.get_by_role("navigation", name="Memory owners")

    expect(tree.get_by_role("heading")).to_have_text(["Organization", "Agents", "Users", "Sessions"])
    expect(tree.get_by_title("Memories of the user local", exact=True)).to_have_attribute("aria-current", "true")
    for title, name in (("Agents", "fays 1 memory"), ("Users", "fay 3 memories"), ("Sessions", "fay-1 1 memory")):
        expect(tree.get_by_role("group", name=title).get_by_role("link", name=name)).to_be_visible()

    tree.get_by_role("group", name="Organization").get_by_role("link").click()
    expect(page.get_by_role("list", name="Memories of the organization")).to_contain_text("of the organization")
    tree.get_by_role("link", name="fay 3 memories").click()
    expect(page.get_by_role("list", name="Memories of the user fay").get_by_role("listitem")).to_have_count(3)


def test_a_long_list_is_gone_through_by_keys_with_few_rows_in_the_page(page: Page, desk: Desk) -> None:
    ids = remember(desk, "gail", *(f"Note {number} of many" for number in range(120)))
    desk.api("POST", f"/api/memories/{ids[-1]}/bury", {})
    page.goto("/memory?scope=user&name=gail")
    rows = page.get_by_role("list", name="Memories of the user gail").get_by_role("listitem")
    expect(rows.first).to_contain_text("Note 118")

    tick(page, "include past memories")
    expect(rows.first).to_contain_text("buried")
    page.keyboard.press("Tab")
    for expected in ("Note 119", "Note 118", "Note 117"):
        page.keyboard.press("j")
        expect(article(page)).to_contain_text(expected)
    page.keyboard.press("k")
    expect(article(page)).to_contain_text("Note 118")
    assert rows.count() < 60

    page.get_by_role("list", name="Memories of the user gail").focus()
    end = rows.filter(has_text="Note 0 of many")
    deadline = time.monotonic() + PATIENCE / 1000
    while not end.is_visible():  # each page of it comes when one is at the end of those before
        assert time.monotonic() < deadline
        page.keyboard.press("End")
    assert rows.count() < 60


def test_where_a_memory_was_said_is_a_link_to_there(page: Page, desk: Desk) -> None:
    said = desk.api(
        "POST", "/api/chat", {"message": "My name is Hedda", "session_id": "hedda-1", "agent_id": "default"}
    )
    assert said
    found = desk.api("GET", "/api/memories?scope=session&name=hedda-1")["memories"]
    page.goto(f"/memory/{found[-1]['id']}")

    link = article(page).get_by_role("link", name="hedda-1, event")

    expect(link).to_have_attribute("href", re.compile(rf"/sessions/hedda-1\?at={found[-1]['seq']}$"))


def test_what_was_forgotten_elsewhere_is_not_shown_as_if_it_were_there(
    page: Page, desk: Desk, page_watch: Watch
) -> None:
    page_watch.allow("404")
    (id,) = remember(desk, "kim", "Kim sings")
    page.goto(f"/memory/{id}")
    expect(article(page)).to_be_visible()

    desk.api("DELETE", f"/api/memories/{id}")
    come_back(page)

    expect(page.get_by_role("alert").filter(has_text="There is no")).to_be_visible()
    expect(article(page)).to_have_count(0)


def test_all_of_it_works_on_a_telephone_in_the_dark(
    open_page: Windows, desk: Desk, serious: Callable[[Page], list[str]]
) -> None:
    (id,) = remember(desk, "ines", "Ines rides " + "a very long bicycle " * 40)
    page = open_page(width=360, height=640, theme="dark")

    page.goto("/memory")
    page.get_by_role("button", name="Memories of the user local").click()
    page.get_by_role("link", name="ines 1 memory").click()
    expect(page.get_by_role("navigation", name="Memory owners")).to_be_hidden()
    expect(page.get_by_role("searchbox", name="the user ines")).to_be_visible()
    expect(search(page, "bicycle").get_by_role("listitem")).to_have_count(1)
    tick(page, "explain scores")
    assert serious(page) == []
    assert overflow(page) == 0
    page.get_by_role("link", name="Ines rides").click()

    expect(article(page)).to_be_focused()
    assert page.url.partition("?")[0].endswith(id)
    assert overflow(page) == 0
    assert serious(page) == []
    page.get_by_role("link", name="Memories of the user ines").click()
    expect(page.get_by_role("searchbox")).to_be_visible()


def test_what_is_shown_is_copied_as_commands_that_answer_the_same(page: Page, desk: Desk) -> None:
    (id,) = remember(desk, "jo's", "Jo's words: $HOME `id`")
    shown = {
        "/memory?scope=user&name=jo%27s": "Jo's words: $HOME `id`",
        f"/memory/{id}?scope=user&name=jo%27s&q=Jo%27s+words%3F": "returned",
    }

    for address, answer in shown.items():
        page.goto(address)
        command = ways(page)["cli"]
        done = desk.program(*shlex.split(command)[1:])
        assert (done.code, answer in done.stdout) == (0, True), (command, done)
