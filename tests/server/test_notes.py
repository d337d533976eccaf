from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.engine import Engine
from tests.server.conftest import make_key
from tests.server.wire import Reply, Site

NOTES = "/api/notes?agent_id=support"
START = "# Drinks\n\ntea\n"


async def put(site: Site, key: str, body: Mapping[str, Any], address: str = NOTES) -> Reply:
    return await site.ask("PUT", address, key=key, json=body)


@pytest.mark.req("NOTE-01", "NOTE-02")
async def test_the_caller_s_notes_are_edited_and_read(site: Site, key: str) -> None:
    empty = await site.ask("GET", NOTES, key=key)
    made = await put(site, key, {"operation": "append", "content": START})
    changed = await put(
        site, key, {"operation": "replace_section_by_header", "section_header": "Drinks", "content": "coffee"}
    )
    read = await site.ask("GET", NOTES, key=key)

    assert empty.json() == {"user": "ann", "agent": "support", "notes": "", "version": 0, "updated_at": None}
    assert (made.status, made.json()["version"]) == (200, 1)
    assert changed.json()["notes"] == "# Drinks\n\ncoffee\n"
    assert read.json() == changed.json()


@pytest.mark.req("NOTE-03")
async def test_a_stale_version_is_a_conflict_that_carries_the_current_one(site: Site, key: str) -> None:
    await put(site, key, {"operation": "append", "content": START})

    refused = await put(site, key, {"operation": "delete_all_notes", "version": 0})

    assert (refused.status, refused.code) == (409, "conflict")
    assert refused.json()["details"] == {"expected": 0, "current": 1}


@pytest.mark.req("NOTE-03")
async def test_a_revision_is_listed_and_brought_back(site: Site, key: str) -> None:
    await put(site, key, {"operation": "append", "content": START})
    await put(site, key, {"operation": "delete_all_notes"})

    restored = await site.ask(
        "POST", "/api/notes/restore?agent_id=support", key=key, json={"revision": 1, "version": 2}
    )
    listed = await site.ask("GET", "/api/notes/revisions?agent_id=support&limit=2&before=3", key=key)

    assert (restored.json()["notes"], restored.json()["version"]) == (START, 3)
    found = listed.json()["revisions"]
    assert [(kept["version"], kept["operation"]) for kept in found] == [(2, "delete_all_notes"), (1, "append")]


@pytest.mark.req("NOTE-01", "SAFE-03")
async def test_an_administrator_may_name_another_user(engine: Engine, site: Site, key: str) -> None:
    bobs = await make_key(engine, "bob", scopes=["read", "write"])

    made = await put(site, key, {"operation": "append", "content": "calls"}, f"{NOTES}&user=bob")

    assert made.json()["user"] == "bob"
    assert (await site.ask("GET", NOTES, key=bobs)).json() == made.json()
    assert (await site.ask("GET", NOTES, key=key)).json()["version"] == 0


@pytest.mark.req("NOTE-01", "SAFE-03")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/notes", None),
        ("PUT", "/api/notes", {"operation": "append", "content": "x"}),
        ("GET", "/api/notes/revisions", None),
        ("POST", "/api/notes/restore", {"revision": 1}),
    ],
)
async def test_nobody_else_may(engine: Engine, site: Site, key: str, method: str, path: str, body: Any) -> None:
    bobs = await make_key(engine, "bob", scopes=["read", "write"])
    await put(site, key, {"operation": "append", "content": START})

    refused = await site.ask(method, f"{path}?agent_id=support&user=ann", key=bobs, json=body)

    assert (refused.status, refused.code) == (403, "forbidden")
    assert (await engine.notes.read(user="ann", agent="support")).notes == START
    assert (await site.ask("GET", f"{NOTES}&user=bob", key=bobs)).status == 200


@pytest.mark.req("SAFE-03")
async def test_a_key_that_only_reads_edits_nothing(engine: Engine, site: Site) -> None:
    reader = await make_key(engine, scopes=["read"])

    refused = await put(site, reader, {"operation": "append", "content": "x"})

    assert (refused.status, refused.code) == (403, "forbidden")
    assert (await site.ask("GET", NOTES, key=reader)).json()["version"] == 0


@pytest.mark.req("NOTE-02", "ENG-08")
@pytest.mark.parametrize(
    ("address", "body", "status", "said"),
    [
        (NOTES, {"operation": "append"}, 400, "append requires content"),
        (NOTES, {"operation": "burn"}, 400, "burn"),
        (NOTES, {"content": "x"}, 400, "operation"),
        (NOTES, {"operation": "append", "content": "x", "version": -1}, 400, "version"),
        (NOTES, {"operation": "append", "content": "x" * 70_000}, 413, "the limit is 65536"),
        (NOTES, {"operation": "delete_section_by_header", "section_header": "Food"}, 404, "# Drinks"),
        ("/api/notes", {"operation": "read"}, 400, "agent_id"),
        ("/api/notes?agent_id=", {"operation": "read"}, 400, "agent_id"),
        (f"{NOTES}&user=", {"operation": "read"}, 400, "user"),
        (f"/api/notes?agent_id={'x' * 2001}", {"operation": "append", "content": "x"}, 413, "the limit is 2000"),
    ],
)
async def test_a_request_that_cannot_be_met_says_why(
    site: Site, key: str, address: str, body: dict[str, Any], status: int, said: str
) -> None:
    await put(site, key, {"operation": "append", "content": START})

    refused = await put(site, key, body, address)

    assert refused.status == status
    assert said in refused.json()["detail"]
    assert (await site.ask("GET", NOTES, key=key)).json()["notes"] == START
