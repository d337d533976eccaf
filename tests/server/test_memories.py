import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.core.config import Config
from holdfast.core.ids import identity_id
from holdfast.engine import Engine
from holdfast.memory import Owner, agent, import_export, organization, session, user
from tests.clock import Clock
from tests.memory.without_models import without_models
from tests.server.conftest import make_key
from tests.server.wire import Reply, Site

LINES = {"Content-Type": "application/x-ndjson"}
MEMBER = ("read", "write")
OF_ONE_REQUEST = ("date", "x-request-id")


@pytest.fixture
def config(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of an engine that finds by words alone."""
    return without_models(config, tmp_path, monkeypatch)


@pytest.fixture
async def bobs(engine: Engine) -> str:
    """The key of a user who administers nothing."""
    return await make_key(engine, "bob", scopes=MEMBER)


async def post(site: Site, key: str, path: str, body: Any) -> Reply:
    return await site.ask("POST", f"/api/memories{path}", key=key, json=body)


async def remember(site: Site, key: str, *texts: str, **owner: str) -> list[dict[str, Any]]:
    reply = await post(site, key, "", {"owner": owner, "memories": [{"content": text} for text in texts]})
    assert reply.status == 201, reply
    return reply.json()["memories"]


def contents(reply: Reply) -> list[str]:
    assert reply.status == 200, reply
    return [hit["memory"]["content"] for hit in reply.json()["hits"]]


@pytest.mark.req("MEM-02", "MEM-06")
async def test_memories_are_stored_with_all_that_is_said_of_them_and_found_at_once(site: Site, bobs: str) -> None:
    draft = {
        "content": "prefers tea",
        "type": "preference",
        "importance": 0.8,
        "ttl": 3600,
        "trust": "agent",
        "metadata": {"topic": "drink"},
        "source": "node 7",
        "key": "drink",
        "conversation": "web-42",
        "seq": 7,
        "author": "Bob",
        "at": "2026-03-01T08:00:00Z",
    }

    made = await post(site, bobs, "", {"memories": [draft, {"content": "hates rain"}]})
    found = await post(site, bobs, "/search", {"query": "tea", "where": {"topic": "drink"}})

    memory = made.json()["memories"][0]
    expires_at = memory["expires_at"]
    assert made.status == 201
    assert memory["owner"] == {"scope": "user", "name": "bob", "agent": None, "user": None, "conversation": None}
    assert expires_at > memory["created_at"]
    assert {name: memory[name] for name in draft if name != "ttl"} == {
        name: value for name, value in draft.items() if name != "ttl"
    }
    assert contents(found) == ["prefers tea"]
    assert (await site.ask("GET", f"/api/memories/{memory['id']}", key=bobs)).json()["content"] == "prefers tea"


@pytest.mark.req("MEM-12", "EMB-02")
async def test_a_search_says_that_it_went_by_words_and_what_each_score_is_made_of(site: Site, bobs: str) -> None:
    await remember(site, bobs, "likes tea", "likes rain")

    found = (await post(site, bobs, "/search", {"query": "tea", "explain": True})).json()

    assert "words only" in found["reduced"]
    for hit in found["hits"]:
        assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=1e-6)


@pytest.mark.req("MEM-03")
async def test_the_context_has_all_four_scopes_in_one_ranking(engine: Engine, site: Site, bobs: str, key: str) -> None:
    await engine.conversations.create(user="bob", session_id="web-42")
    await remember(site, bobs, "tea in the session", scope="session", name="web-42")
    await remember(site, bobs, "tea of the user")
    await remember(site, key, "tea of the agent", scope="agent", name="support")
    await remember(site, key, "tea of all", scope="organization")
    await remember(site, key, "tea of ann")

    asked = {"query": "tea", "session": "web-42", "agent": "support"}
    found = await post(site, bobs, "/context", asked)
    fewer = await post(site, bobs, "/context", {**asked, "user": None, "limits": {"session": 0}})

    assert sorted(contents(found)) == ["tea in the session", "tea of all", "tea of the agent", "tea of the user"]
    assert sorted(contents(fewer)) == ["tea of all", "tea of the agent"]
    assert found.json()["reduced"]


@pytest.mark.req("MEM-09", "MEM-10")
async def test_a_memory_is_edited_superseded_pinned_buried_and_forgotten(site: Site, bobs: str) -> None:
    (memory,) = await remember(site, bobs, "likes tea")
    at = f"/api/memories/{memory['id']}"

    edited = await site.ask("PATCH", at, key=bobs, json={"importance": 0.6, "version": 1})
    stale = await site.ask("PATCH", at, key=bobs, json={"content": "x", "version": 1})
    pinned = await site.ask("POST", f"{at}/pin", key=bobs, json={})
    new = await site.ask("POST", f"{at}/supersede", key=bobs, json={"content": "likes coffee", "version": 3})
    buried = await site.ask("POST", f"/api/memories/{new.json()['id']}/bury", key=bobs, json={"buried": True})
    history = await site.ask("GET", f"{at}/history", key=bobs)
    nothing = await post(site, bobs, "/search", {"query": "likes"})
    forgotten = await site.ask("DELETE", at, key=bobs)

    assert (edited.json()["importance"], edited.json()["version"]) == (0.6, 2)
    assert (stale.status, stale.json()["details"]) == (409, {"expected": 1, "current": 2})
    assert pinned.json()["pinned"]
    assert (new.status, new.json()["content"]) == (201, "likes coffee")
    assert buried.json()["buried"]
    assert [kept["operation"] for kept in history.json()["revisions"]] == ["supersede", "pin", "edit", "remember"]
    assert contents(nothing) == []
    assert (forgotten.status, forgotten.body) == (204, b"")
    assert (await site.ask("GET", at, key=bobs)).status == 404


@pytest.mark.req("MEM-09")
async def test_of_those_who_change_the_same_version_at_once_one_does(site: Site, bobs: str) -> None:
    (memory,) = await remember(site, bobs, "likes tea")
    at = f"/api/memories/{memory['id']}"

    replies = await asyncio.gather(
        *(site.ask("PATCH", at, key=bobs, json={"content": f"likes tea {n}", "version": 1}) for n in range(8))
    )

    done = [reply for reply in replies if reply.status == 200]
    refused = [reply for reply in replies if reply.status == 409]
    assert (len(done), len(refused)) == (1, 7)
    assert done[0].json()["version"] == 2
    assert [reply.json()["details"] for reply in refused] == [{"expected": 1, "current": 2}] * 7
    assert (await site.ask("GET", at, key=bobs)).json()["content"] == done[0].json()["content"]


@pytest.mark.req("MEM-12")
async def test_why_a_memory_was_not_returned_is_told(site: Site, bobs: str) -> None:
    (tea,) = await remember(site, bobs, "likes tea")
    (rain,) = await remember(site, bobs, "hates rain")
    await site.ask("POST", f"/api/memories/{rain['id']}/bury", key=bobs, json={})

    returned = await post(site, bobs, "/why-not", {"id": tea["id"], "query": "tea"})
    hidden = await post(site, bobs, "/why-not", {"id": rain["id"], "query": "rain"})

    assert (returned.json()["reason"], returned.json()["rank"]) == ("returned", 1)
    assert hidden.json()["reason"] == "buried"


ON_ONE: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("GET", "/history", None),
    ("GET", "/chain", None),
    ("PATCH", "", {"importance": 0.1}),
    ("DELETE", "", None),
    ("POST", "/supersede", {"content": "x"}),
    ("POST", "/pin", {}),
    ("POST", "/bury", {}),
]


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("owner", [user("ann"), session("anns"), session("nobodys")], ids=lambda owner: owner.name)
@pytest.mark.parametrize(("method", "path", "body"), [*ON_ONE, ("POST", "why-not", {"query": "tea"})])
async def test_what_is_another_s_is_answered_as_what_does_not_exist(
    engine: Engine, site: Site, bobs: str, owner: Owner, method: str, path: str, body: Any
) -> None:
    await engine.conversations.create(user="ann", session_id="anns")
    there = await engine.memory.remember(owner, "likes tea")
    gone = await engine.memory.remember(owner, "liked rain")
    await engine.memory.forget(gone.id)

    async def answer(id: object) -> tuple[int, dict[str, str], str]:
        if path == "why-not":
            reply = await post(site, bobs, "/why-not", {"id": str(id), **body})
        else:
            reply = await site.ask(method, f"/api/memories/{id}{path}", key=bobs, json=body)
        headers = {name: value for name, value in reply.headers.items() if name not in OF_ONE_REQUEST}
        told = reply.body.decode().replace(str(id), "ID").replace(reply.json()["request_id"], "REQUEST")
        return reply.status, headers, told

    assert await answer(there.id) == await answer(gone.id) == await answer(uuid4())
    assert (await answer(there.id))[0] == 404
    assert (await engine.memory.get(there.id)).version == 1


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("", {"owner": {"name": "ann"}, "memories": [{"content": "x"}]}),
        ("", {"owner": {"scope": "agent", "name": "support"}, "memories": [{"content": "x"}]}),
        ("", {"owner": {"scope": "organization"}, "memories": [{"content": "x"}]}),
        ("", {"memories": [{"content": "x", "trust": "system"}]}),
        ("/search", {"owner": {"name": "ann"}, "query": "x"}),
        ("/context", {"user": "ann", "query": "x"}),
        ("/sweep", {}),
    ],
)
async def test_who_administers_nothing_is_held_to_what_is_their_own(
    site: Site, key: str, bobs: str, path: str, body: Any
) -> None:
    refused = await post(site, bobs, path, body)

    assert (refused.status, refused.code) == (403, "forbidden")
    assert (await post(site, key, path, body)).status in (200, 201)


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("PATCH", "", {"content": "obeys Bob"}), ("POST", "/supersede", {"content": "obeys Bob"})],
)
async def test_nobody_puts_words_in_the_mouth_of_the_system(
    engine: Engine, site: Site, key: str, bobs: str, method: str, path: str, body: Any
) -> None:
    memory = await engine.memory.remember(user("bob"), "obeys nobody", trust="system")
    at = f"/api/memories/{memory.id}{path}"

    refused = await site.ask(method, at, key=bobs, json=body)
    kept = await engine.memory.get(memory.id)
    done = await site.ask(method, at, key=key, json=body)

    assert (refused.status, refused.code) == (403, "forbidden")
    assert (kept.content, kept.version, kept.superseded_by) == ("obeys nobody", 1, None)
    assert (done.status, done.json()["trust"]) == (201 if path else 200, "system")


@pytest.mark.req("SAFE-03")
async def test_what_is_not_a_word_of_the_system_s_memory_its_user_may_change(
    engine: Engine, site: Site, bobs: str
) -> None:
    memory = await engine.memory.remember(user("bob"), "obeys nobody", trust="system")
    at = f"/api/memories/{memory.id}"

    less = await site.ask("PATCH", at, key=bobs, json={"importance": 0.5})
    lowered = await site.ask("PATCH", at, key=bobs, json={"trust": "user"})
    own = await site.ask("PATCH", at, key=bobs, json={"content": "obeys Bob"})

    assert [less.status, lowered.status, own.status] == [200] * 3
    assert (own.json()["trust"], own.json()["content"]) == ("user", "obeys Bob")


@pytest.mark.req("SAFE-03")
async def test_what_an_agent_and_the_organization_know_everybody_reads_and_few_change(
    engine: Engine, site: Site, bobs: str
) -> None:
    for owner in (agent("support"), organization()):
        memory = await engine.memory.remember(owner, "tea is at four")
        named = {"scope": owner.scope, **({"name": owner.name} if owner.name else {})}

        assert contents(await post(site, bobs, "/search", {"owner": named, "query": "tea"})) == ["tea is at four"]
        for method, path, body in ON_ONE:
            reply = await site.ask(method, f"/api/memories/{memory.id}{path}", key=bobs, json=body)
            assert reply.status == (200 if method == "GET" else 403), reply


@pytest.mark.req("SAFE-03")
async def test_nobody_reaches_a_session_by_calling_their_own_by_its_derived_id(
    engine: Engine, site: Site, bobs: str
) -> None:
    await engine.conversations.create(user="ann", session_id="anns")
    await engine.memory.remember(session("anns"), "likes tea")
    derived = str(identity_id(await engine.tenants.id_of("default"), "session", "anns"))
    await engine.conversations.create(user="bob", session_id=derived)

    found = await post(site, bobs, "/search", {"owner": {"scope": "session", "name": derived}, "query": "tea"})

    assert contents(found) == []  # it is a session of his own


@pytest.mark.req("SAFE-03")
async def test_who_acts_as_a_user_reaches_that_user_s_memories(engine: Engine, site: Site, bobs: str) -> None:
    await remember(site, bobs, "likes tea")
    backend = await make_key(engine, "backend", scopes=["read", "write", "act-as"])

    found = await site.ask(
        "POST", "/api/memories/search", key=backend, json={"query": "tea"}, headers={"Holdfast-User": "bob"}
    )

    assert contents(found) == ["likes tea"]


@pytest.mark.req("MEM-14")
async def test_memories_go_out_and_in_again_as_lines(engine: Engine, site: Site, key: str, bobs: str) -> None:
    await remember(site, bobs, "likes tea", "hates rain")
    await engine.memory.remember(user("ann"), "likes coffee")

    own = await site.ask("GET", "/api/memories/export", key=bobs)
    every = await site.ask("GET", "/api/memories/export?all=true", key=key)
    again = await site.ask("POST", "/api/memories/import", key=bobs, body=own.body, headers=LINES)
    anns = await site.ask("POST", "/api/memories/import?scope=user&name=ann", key=key, body=own.body, headers=LINES)

    assert own.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line).get("content") for line in own.body.splitlines()] == [None, "likes tea", "hates rain"]
    assert len(every.body.splitlines()) == 4
    assert again.json() == {"added": 0, "folded": 2, "expired": 0}
    assert anns.json() == {"added": 2, "folded": 0, "expired": 0}


@pytest.mark.req("MEM-14")
async def test_an_export_goes_on_while_others_write(site: Site, bobs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_export, "PAGE", 5)
    there = await remember(site, bobs, *(f"tea {number}" for number in range(60)))

    async def write() -> None:
        for number in range(10):
            await remember(site, bobs, f"coffee {number}")
            await site.ask("DELETE", f"/api/memories/{there[6 * number]['id']}", key=bobs)

    exports, _ = await asyncio.gather(
        asyncio.gather(*(site.ask("GET", "/api/memories/export", key=bobs) for _ in range(5))), write()
    )

    steady = {memory["id"] for number, memory in enumerate(there) if number % 6}
    for reply in exports:
        ids = [json.loads(line)["id"] for line in reply.body.splitlines()[1:]]
        assert len(ids) == len(set(ids))
        assert steady <= set(ids)


@pytest.mark.req("SAFE-03")
async def test_to_name_another_user_is_forbidden_whether_there_is_one_or_not(
    engine: Engine, site: Site, bobs: str
) -> None:
    await engine.memory.remember(user("ann"), "likes tea")

    answers = [
        (
            await post(site, bobs, "/search", {"owner": {"name": name}, "query": "tea"}),
            await post(site, bobs, "/context", {"user": name, "query": "tea"}),
            await site.ask("GET", f"/api/memories/export?name={name}", key=bobs),
        )
        for name in ("ann", "nobody")
    ]

    for there, nowhere in zip(*answers, strict=True):
        assert (there.status, there.json()["what"]) == (403, "the scope 'admin' is required")
        assert there.json()["what"] == nowhere.json()["what"]


@pytest.mark.req("MEM-14", "SAFE-03")
async def test_nobody_imports_or_exports_what_is_another_s(engine: Engine, site: Site, key: str, bobs: str) -> None:
    await engine.memory.remember(user("ann"), "likes tea")
    anns = await site.ask("GET", "/api/memories/export?name=ann", key=key)

    refused = [
        await site.ask("GET", "/api/memories/export?name=ann", key=bobs),
        await site.ask("GET", "/api/memories/export?all=true", key=bobs),
        await site.ask("POST", "/api/memories/import?scope=user&name=ann", key=bobs, body=anns.body, headers=LINES),
        await site.ask("POST", "/api/memories/import?scope=organization", key=bobs, body=anns.body, headers=LINES),
    ]
    own = await site.ask("POST", "/api/memories/import", key=bobs, body=anns.body, headers=LINES)

    assert [reply.status for reply in refused] == [403] * 4
    assert own.json()["added"] == 1
    (hit,) = await engine.memory.search(user("bob"), "tea")
    assert str(hit.memory.id) not in anns.body.decode()


@pytest.mark.req("MEM-14")
async def test_the_number_of_a_broken_line_is_that_of_the_whole_file(site: Site, bobs: str) -> None:
    header = b'{"format": "holdfast.memories", "version": 1}\n'

    refused = await site.ask("POST", "/api/memories/import?line=500", key=bobs, body=header + b"{}\n", headers=LINES)
    wrong = await site.ask("POST", "/api/memories/import", key=bobs, json={})

    assert (refused.status, refused.json()["details"]) == (400, {"line": 501})
    assert wrong.status == 415


@pytest.mark.req("MEM-10")
async def test_a_sweep_says_what_it_would_delete_and_then_does(
    engine: Engine, site: Site, key: str, clock: Clock
) -> None:
    memory = await engine.memory.remember(user("ann"), "is in Rome", ttl=60)
    await clock.advance(timedelta(minutes=2))

    would = await post(site, key, "/sweep", {})
    did = await post(site, key, "/sweep", {"dry_run": False})
    left = await post(site, key, "/sweep", {})

    assert would.json() == {
        "dry_run": True,
        "total": 1,
        "counts": [{"scope": "user", "reason": "expired", "memories": 1}],
        "ids": [str(memory.id)],
    }
    assert (did.json()["total"], left.json()["total"]) == (1, 0)


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("", {"memories": []}),
        ("", {"memories": [{"content": ""}]}),
        ("", {"memories": [{"content": " "}]}),
        ("", {"memories": [{"content": "x", "importance": 2}]}),
        ("", {"memories": [{"content": "x", "ttl": -1}]}),
        ("", {"memories": [{"content": "x", "ttl": 1e300}]}),
        ("", {"memories": [{"content": "x", "metadata": [1]}]}),
        ("", {"memories": [{"content": "x", "seq": 2**70, "conversation": "c"}]}),
        ("", {"memories": [{"content": "x"}], "owner": {"scope": "everybody"}}),
        ("", {"memories": [{"content": "x"}], "owner": {"scope": "session"}}),
        ("", {"memories": [{"content": "x"}], "owner": {"scope": "organization", "name": "x"}}),
        ("/search", {"query": ""}),
        ("/search", {"query": "x", "limit": 10_000}),
        ("/search", {"query": "x", "since": "yesterday"}),
        ("/search", {"query": "x", "id": str(UUID(int=1))}),
        ("/why-not", {"query": "x", "id": str(UUID(int=1)), "explain": True}),
        ("/why-not", {"query": "x"}),
        ("/context", {"query": "x", "limits": {"everybody": 1}}),
    ],
)
async def test_bad_input_is_a_clear_problem(site: Site, key: str, path: str, body: Any) -> None:
    reply = await post(site, key, path, body)

    assert (reply.status, reply.code) == (400, "invalid_input"), reply


@pytest.mark.req("SAFE-06")
async def test_more_text_than_a_request_can_index_is_refused(site: Site, bobs: str) -> None:
    text = "中" * 20_000

    refused = await post(site, bobs, "", {"memories": [{"content": f"{number} {text}"} for number in range(17)]})

    assert (refused.status, refused.code) == (413, "too_large")
    assert "at most 1,000,000" in refused.json()["detail"]


@pytest.mark.req("SAFE-06")
async def test_blank_lines_of_an_import_are_skipped(site: Site, key: str) -> None:
    header = b'{"format": "holdfast.memories", "version": 1}'

    reply = await site.ask("POST", "/api/memories/import", key=key, headers=LINES, body=header + b"\n\r\n" * 1000)

    assert reply.json() == {"added": 0, "folded": 0, "expired": 0}
