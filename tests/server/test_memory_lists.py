"""Memories without a question: who has some, and what one owner has."""

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from holdfast.core.config import Config
from holdfast.core.ids import identity_id
from holdfast.engine import Engine
from holdfast.memory import agent, organization, session, user
from tests.clock import Clock
from tests.memory.without_models import without_models
from tests.server.conftest import make_key
from tests.server.wire import Reply, Site

pytestmark = pytest.mark.req("UI-01")

SHARED = [("organization", None), ("agent", "support")]


@pytest.fixture
def config(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of an engine that finds by words alone."""
    return without_models(config, tmp_path, monkeypatch)


@pytest.fixture
async def bobs(engine: Engine) -> str:
    """The key of a user who administers nothing."""
    return await make_key(engine, "bob", scopes=("read", "write"))


@pytest.fixture
async def filled(engine: Engine) -> Engine:
    """An engine in which everybody remembers something, and some things are over."""
    for name, owner in {"bobs 1": "bob", "anns": "ann", "bobs 2": "bob", "bobs 3": "bob"}.items():
        await engine.conversations.create(user=owner, session_id=name)
    for name, owner in {"bobs 1": "bob", "anns": "ann", "bobs 2": "bob", "nobodys": None}.items():
        await engine.memory.remember(session(name, agent="support", user=owner), f"tea in {name}")
    for name in ("ann", "bob"):
        await engine.memory.remember_many(user(name, agent="support"), [f"{name} likes tea", f"{name} is here"])
    await engine.memory.remember(agent("support"), "tea is asked for")
    await engine.memory.remember(organization(), "tea is free")
    (gone, _) = await engine.memory.list(user("bob"))
    await engine.memory.bury(gone.id)
    return engine


async def asked(site: Site, key: str, path: str = "", **query: Any) -> Reply:
    return await site.ask("GET", f"/api/memories{path}?{urlencode(query)}", key=key)


async def paged(site: Site, key: str, path: str, items: str, **query: Any) -> list[dict[str, Any]]:
    """What all pages have."""
    page = (await asked(site, key, path, **query)).json()
    found: list[dict[str, Any]] = page[items]
    while page["cursor"] is not None:
        page = (await asked(site, key, path, **query, cursor=page["cursor"])).json()
        assert len(page[items]) <= query["limit"]
        found += page[items]
    return found


def names(owners: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(owner["scope"], owner["name"]) for owner in owners]


@pytest.mark.req("SAFE-02", "SAFE-03")
async def test_an_admin_sees_all_who_have_memories_and_others_see_what_they_may_read(
    filled: Engine, site: Site, key: str, bobs: str
) -> None:
    # Called by the id that another's name makes, it would be taken for that one.
    stolen = identity_id(await filled.tenants.id_of("default"), "session", "anns")
    await filled.conversations.create(user="bob", session_id=str(stolen))
    await filled.tenants.create("acme")
    eve = await make_key(filled, "bob", tenant="acme")

    everyone = (await asked(site, key, "/owners")).json()
    hers = (await asked(site, bobs, "/owners")).json()
    elsewhere = (await asked(site, eve, "/owners")).json()

    *shared, one, other, s1, s2, s3, s4 = names(everyone["owners"])
    assert shared == SHARED
    assert {one, other} == {("user", "ann"), ("user", "bob")}
    assert [s1, s2, s3, s4] == [("session", name) for name in ("nobodys", "bobs 2", "anns", "bobs 1")]
    assert names(hers["owners"]) == [*SHARED, ("user", "bob"), ("session", "bobs 2"), ("session", "bobs 1")]
    assert (everyone["cursor"], hers["cursor"]) == (None, None)
    assert elsewhere == {"owners": [], "cursor": None}


@pytest.mark.parametrize("scope", ["organization", "agent", "user", "session"])
async def test_an_owner_goes_by_the_name_that_a_search_takes_and_has_so_many_that_are_not_over(
    filled: Engine, site: Site, bobs: str, scope: str
) -> None:
    found = (await asked(site, bobs, "/owners", scope=scope)).json()["owners"][0]
    owner = {name: found[name] for name in ("scope", "name")}

    hits = await site.ask("POST", "/api/memories/search", key=bobs, json={"query": "tea", "owner": owner})
    listed = await asked(site, bobs, **{name: value for name, value in owner.items() if value is not None})

    memories = listed.json()["memories"]
    assert found["scope"] == scope
    assert found["count"] == len(memories) == 1
    assert [hit["memory"]["id"] for hit in hits.json()["hits"]] == [memory["id"] for memory in memories]
    assert found["newest"] >= memories[0]["created_at"]
    assert (found["agent"], found["user"]) == (("support", "bob") if scope == "session" else (None, None))


@pytest.mark.parametrize("limit", [1, 2, 3, 20])
async def test_owners_are_listed_page_by_page_without_a_gap_and_none_twice(
    filled: Engine, site: Site, key: str, bobs: str, limit: int
) -> None:
    for caller, count in ((key, 8), (bobs, 5)):
        whole = (await asked(site, caller, "/owners")).json()["owners"]
        sessions = await paged(site, caller, "/owners", "owners", limit=limit, scope="session")

        assert len(whole) == count
        assert await paged(site, caller, "/owners", "owners", limit=limit) == whole
        assert sessions == [owner for owner in whole if owner["scope"] == "session"]


async def test_an_owner_s_memories_are_listed_page_by_page_the_newest_first(
    engine: Engine, site: Site, key: str
) -> None:
    texts = [f"parcel {number}" for number in range(5)]
    for number, text in enumerate(texts):
        await engine.memory.remember(user("ann", agent=["support", "billing"][number % 2]), text)

    whole = (await asked(site, key, name="ann")).json()
    parts = await paged(site, key, "", "memories", name="ann", limit=2)
    support = (await asked(site, key, name="ann", agent="support")).json()

    assert [memory["content"] for memory in whole["memories"]] == texts[::-1]
    assert (parts, whole["cursor"]) == (whole["memories"], None)
    assert [memory["content"] for memory in support["memories"]] == ["parcel 4", "parcel 2", "parcel 0"]
    assert {memory["owner"]["agent"] for memory in support["memories"]} == {"support"}
    assert (await asked(site, key, name="nobody")).json() == {"memories": [], "cursor": None}


async def test_what_is_over_is_listed_where_it_is_asked_for(engine: Engine, site: Site, key: str, clock: Clock) -> None:
    memory = engine.memory
    buried, old, _ = [await memory.remember(user("ann"), text) for text in ("buried", "old", "kept")]
    await memory.remember(user("ann"), "expired", ttl=60)
    await memory.bury(buried.id)
    new = await memory.supersede(old.id, "new")
    await clock.advance(timedelta(minutes=2))

    current = (await asked(site, key, name="ann")).json()["memories"]
    everything = (await asked(site, key, name="ann", also_past=True)).json()["memories"]
    counted = (await asked(site, key, "/owners", scope="user")).json()["owners"]

    assert [each["content"] for each in current] == ["new", "kept"]
    assert [each["content"] for each in everything] == ["new", "expired", "kept", "old", "buried"]
    assert everything[3]["superseded_by"] == str(new.id)
    assert [(owner["name"], owner["count"]) for owner in counted] == [("ann", len(current))]


@pytest.mark.req("SAFE-02", "SAFE-03")
async def test_another_s_memories_are_not_listed(filled: Engine, site: Site, bobs: str) -> None:
    await filled.tenants.create("acme")
    eve = await make_key(filled, "ann", tenant="acme")

    users = [await asked(site, bobs, name=name) for name in ("ann", "nobody")]
    sessions = [await asked(site, bobs, scope="session", name=name) for name in ("anns", "unknown")]
    elsewhere = [await asked(site, eve, name="ann"), await asked(site, eve, scope="organization")]

    assert [(reply.status, reply.code) for reply in users] == [(403, "forbidden")] * 2
    assert [(reply.status, reply.code) for reply in sessions] == [(404, "not_found")] * 2
    assert [reply.json()["memories"] for reply in elsewhere] == [[], []]


async def test_what_cannot_be_listed_is_a_clear_problem(filled: Engine, site: Site, key: str) -> None:
    of_sessions = (await asked(site, key, "/owners", scope="session", limit=1)).json()["cursor"]
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("", {"cursor": "x"}),
        ("", {"scope": "everybody"}),
        ("", {"scope": "agent"}),
        ("", {"limit": 0}),
        ("/owners", {"cursor": "x"}),
        ("/owners", {"cursor": of_sessions, "scope": "user"}),
        ("/owners", {"scope": "everybody"}),
        ("/owners", {"limit": 1000}),
    ]

    replies = [await asked(site, key, path, **query) for path, query in wrong]

    assert [(reply.status, reply.code) for reply in replies] == [(400, "invalid_input")] * len(wrong)
