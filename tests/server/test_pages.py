"""Lists whose pages end by their bytes, and go on where they ended."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine
from holdfast.memory import user
from holdfast.server import pages
from holdfast.server.pages import page_of, page_of_items
from tests.memory.without_models import without_models
from tests.server.wire import Site

pytestmark = pytest.mark.req("SAFE-06")

LARGE = "x" * 1500
SMALL = 4000  # bytes of a page here

Fill = Callable[[Site, Engine], Awaitable[tuple[str, str, str, list[Any]]]]


@pytest.fixture
def config(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of an engine that finds by words alone."""
    return without_models(config, tmp_path, monkeypatch)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that are full after a few rows."""
    monkeypatch.setattr(pages, "MAX_PAGE_BYTES", SMALL)
    monkeypatch.setattr(pages, "FIRST", 2)
    monkeypatch.setattr(pages, "SMALL", 100)


async def numbers(most: int, start: int | None) -> list[int]:
    """The numbers from 1 to 100, behind one of them."""
    return list(range((start or 0) + 1, 101))[:most]


@pytest.mark.parametrize("limit", [1, 15, 16, 17, 50, 99, 100])
async def test_pages_by_number_give_every_item_once(limit: int) -> None:
    items: list[int] = []
    place: int | None = None

    while True:
        page, place = await page_of_items(numbers, lambda number: number, limit=limit, start=place)
        items += page
        assert len(page) == limit or place is None
        if place is None:
            break

    assert items == list(range(1, 101))


async def test_a_page_ends_with_the_item_that_fills_it(small: None) -> None:
    read: list[int] = []

    async def large(most: int, start: int | None) -> list[str]:
        found = [LARGE + str(number) for number in range((start or 0) + 1, 101)][:most]
        read.append(len(found))
        return found

    page, place = await page_of_items(large, lambda text: int(text.removeprefix(LARGE)), limit=50)

    assert [text.removeprefix(LARGE) for text in page] == ["1", "2", "3", "4"]
    assert place == 4
    assert max(read) <= 3


async def test_small_rows_are_read_in_ever_larger_steps() -> None:
    read: list[int] = []

    async def small_rows(most: int, start: int | None) -> list[int]:
        read.append(most - 1)
        return await numbers(most, start)

    page, _ = await page_of_items(small_rows, lambda number: number, limit=100)

    assert page == list(range(1, 101))
    assert read == [16, 32, 52]


async def test_an_empty_page_with_a_cursor_ends_it() -> None:
    async def nothing(most: int, start: str | None) -> tuple[list[int], str | None]:
        return [], "behind"

    assert await page_of(nothing, limit=50) == ([], "behind")


async def fill_nodes(site: Site, engine: Engine) -> tuple[str, str, str, list[Any]]:
    talk = await engine.conversations.create()
    nodes = [await engine.conversations.append(talk.id, LARGE, context="text:user:ann") for _ in range(7)]
    return f"/api/conversations/{talk.id}/nodes?since=0&", "nodes", "since", [str(node.id) for node in nodes]


async def fill_nodes_backwards(site: Site, engine: Engine) -> tuple[str, str, str, list[Any]]:
    path, name, _, ids = await fill_nodes(site, engine)
    return path.replace("since=0&", ""), name, "before", ids


async def fill_revisions(site: Site, engine: Engine) -> tuple[str, str, str, list[Any]]:
    talk = await engine.conversations.create()
    node = await engine.conversations.append(talk.id, LARGE, context="text:user:ann")
    for version in range(1, 7):
        await engine.conversations.edit(node.id, f"{LARGE} {version}", version=version)
    return f"/api/nodes/{node.id}/revisions?", "revisions", "since", list(range(1, 8))


async def fill_subtree(site: Site, engine: Engine) -> tuple[str, str, str, list[Any]]:
    talk = await engine.conversations.create()
    top = await engine.conversations.append(talk.id, LARGE, context="text:user:ann")
    below = [
        await engine.conversations.append(talk.id, LARGE, context="text:user:ann", parent=top.id) for _ in range(6)
    ]
    return f"/api/nodes/{top.id}/subtree?", "nodes", "after", [str(node.id) for node in (top, *below)]


async def fill_history(site: Site, engine: Engine) -> tuple[str, str, str, list[Any]]:
    memory = await engine.memory.remember(user("local"), LARGE)
    for version in range(1, 7):
        await engine.memory.edit(memory.id, content=f"{LARGE} {version}", version=version)
    return f"/api/memories/{memory.id}/history?", "revisions", "before", [7, 6, 5, 4, 3, 2, 1]


async def fill_memories(site: Site, engine: Engine) -> tuple[str, str, str, list[Any]]:
    made = [await engine.memory.remember(user("local"), f"{number} {LARGE}") for number in range(7)]
    return "/api/memories?", "memories", "cursor", [str(memory.id) for memory in reversed(made)]


async def fill_conversations(site: Site, engine: Engine) -> tuple[str, str, str, list[Any]]:
    made = [await engine.conversations.create(app=LARGE[:900] + str(number)) for number in range(12)]
    return "/api/conversations?", "conversations", "cursor", [str(talk.id) for talk in reversed(made)]


async def fill_commands(site: Site, engine: Engine) -> tuple[str, str, str, list[Any]]:
    made = [await engine.commands.submit("count", {"text": LARGE}) for _ in range(7)]
    return "/api/commands?", "commands", "before", made[::-1]


@pytest.mark.parametrize(
    "fill",
    [
        fill_nodes,
        fill_nodes_backwards,
        fill_revisions,
        fill_subtree,
        fill_history,
        fill_memories,
        fill_conversations,
        fill_commands,
    ],
    ids=lambda fill: fill.__name__.removeprefix("fill_"),
)
async def test_a_list_of_large_rows_ends_early_and_goes_on(small: None, site: Site, engine: Engine, fill: Fill) -> None:
    path, name, goes_on, expected = await fill(site, engine)
    found: list[Any] = []
    cursor, sizes = "", list[int]()

    while True:
        reply = await site.ask("GET", f"{path}{'' if goes_on == 'after' else 'limit=100'}{cursor}")
        assert reply.status == 200, reply
        sizes.append(len(reply.body))
        page = reply.json()
        ids = [row.get("id", row.get("correlation_id")) or row["version"] for row in page[name]]
        found = [*ids, *found] if goes_on == "before" and name == "nodes" else [*found, *ids]
        if page["cursor"] is None:
            break
        path = path.replace("since=0&", "")
        cursor = f"&{goes_on}={page['cursor']}"

    assert list(map(str, found)) == list(map(str, expected))
    assert len(sizes) > 1
    assert max(sizes) < 3 * SMALL


async def test_dead_letters_and_executions_say_where_the_next_page_begins(site: Site) -> None:
    for path, name in (("/api/dead-letters", "dead_letters"), ("/api/executions", "executions")):
        reply = await site.ask("GET", path)

        assert json.loads(reply.body) == {name: [], "cursor": None}


async def test_messages_for_a_model_are_the_newest_that_fit_a_page(small: None, site: Site, engine: Engine) -> None:
    talk = await engine.conversations.create()
    for number in range(7):
        await engine.conversations.append(talk.id, f"{number} {LARGE}", context=f"text:agent:{number}")

    reply = await site.ask("GET", f"/api/conversations/{talk.id}/messages?limit=100&reader=6")

    text = "".join(message["content"] for message in reply.json()["messages"])
    assert len(reply.body) < 3 * SMALL
    assert f"6 {LARGE}" in text
    assert f"0 {LARGE}" not in text


async def test_a_search_says_how_many_hits_its_answer_does_not_hold(small: None, site: Site, engine: Engine) -> None:
    for number in range(7):
        await engine.memory.remember(user("local"), f"tea {number}", metadata={"large": LARGE})

    for path, count in (("/api/memories/search", 7), ("/api/memories/context", 5)):
        reply = await site.ask("POST", path, json={"query": "tea"})

        assert reply.json()["omitted"] == count - len(reply.json()["hits"]) > 0
        assert len(reply.body) < 3 * SMALL
