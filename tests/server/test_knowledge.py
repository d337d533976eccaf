"""Documents over HTTP: added as they arrive, ingested in the background, read, changed and removed."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from holdfast.agents.definitions import Agent
from holdfast.core.config import Config
from holdfast.engine import Engine
from holdfast.memory import agent
from tests.memory.without_models import without_models
from tests.server.conftest import make_key
from tests.server.wire import PATIENCE, Reply, Site

pytestmark = pytest.mark.req("KNOW-01", "KNOW-05")

HANDBOOK = """# Travel

## Approval

Managers approve every trip before it is booked.

## Hotels

A night costs at most 150 euros.
"""
MEMBER = ("read", "write")


@pytest.fixture
def config(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of an engine that finds by words alone, and takes files of a megabyte."""
    config = without_models(config, tmp_path, monkeypatch)
    knowledge = config.memory.knowledge.model_copy(update={"max_file_mb": 1})
    server = config.server.model_copy(update={"max_body_bytes": 100_000})
    memory = config.memory.model_copy(update={"knowledge": knowledge})
    return config.model_copy(update={"server": server, "memory": memory})


@pytest.fixture
async def bobs(engine: Engine) -> str:
    """The key of a user who administers nothing."""
    return await make_key(engine, "bob", scopes=MEMBER)


async def add(
    site: Site, key: str, content: bytes = HANDBOOK.encode(), *, kind: str = "text/markdown", **query: Any
) -> Reply:
    given = urlencode({"name": "handbook.md", "wait": "true", **query})
    return await site.ask("POST", f"/api/knowledge?{given}", key=key, body=content, headers={"Content-Type": kind})


async def get(site: Site, key: str, path: str = "", **query: Any) -> Reply:
    return await site.ask("GET", f"/api/knowledge{path}?{urlencode(query)}", key=key)


def document_of(reply: Reply) -> dict[str, Any]:
    assert reply.status in (200, 202), reply
    return reply.json()["document"]


async def audited(engine: Engine) -> list[tuple[str, str, Mapping[str, Any]]]:
    return [(each.action, each.target, each.details) for each in await engine.audit.list(limit=10)]


async def test_a_file_is_added_as_it_arrives_and_is_the_same_file_the_next_time(site: Site, key: str) -> None:
    metadata = json.dumps({"year": 2026})

    added = await add(site, key, collection="hr", title="The handbook", source="intranet", metadata=metadata)
    again = await add(site, key, collection="hr", title="The handbook", source="intranet", metadata=metadata)
    listed = await get(site, key, collection="hr")

    document = document_of(added)
    assert added.status == 200
    assert (document["name"], document["collection"], document["title"]) == ("handbook.md", "hr", "The handbook")
    assert (document["status"], document["version"], document["metadata"]) == ("ready", 1, {"year": 2026})
    assert document["owner"]["scope"] == "organization"
    assert document["size"] == len(HANDBOOK)
    assert (again.status, document_of(again)["version"]) == (200, 1)
    assert again.json()["job"] is None
    assert [each["id"] for each in listed.json()["documents"]] == [document["id"]]


async def test_an_upload_is_answered_with_its_job_whose_progress_can_be_followed(site: Site, key: str) -> None:
    added = await add(site, key, wait="false")

    job = added.json()["job"]
    async with asyncio.timeout(PATIENCE):
        while job["state"] not in ("done", "failed"):
            reply = await site.ask("POST", "/api/knowledge/jobs/progress", key=key, json={"ids": [job["id"]]})
            [job] = reply.json()["jobs"]
    alone = await get(site, key, f"/jobs/{job['id']}")

    assert added.status == 202
    assert document_of(added)["status"] in ("pending", "running")
    assert (job["state"], job["name"], job["chunks"]) == ("done", "handbook.md", 1)
    assert alone.json() == job
    assert [each["id"] for each in (await get(site, key, "/jobs", state="done")).json()["jobs"]] == [job["id"]]


async def test_an_upload_can_be_larger_than_other_bodies_up_to_the_limit_of_files(site: Site, key: str) -> None:
    large = b"A line of text.\n" * 20_000
    too_large = b"x" * 1_100_000

    added = await add(site, key, large, kind="text/plain", name="large.txt", wait="false")
    told = await add(site, key, too_large, kind="text/plain", name="too-large.txt")
    other = await site.ask("POST", "/api/knowledge/text", key=key, json={"text": large.decode(), "name": "x"})
    async with site.connect() as wire:
        head = "POST /api/knowledge?name=x HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
        await wire.send(f"{head}Authorization: Bearer {key}\r\n\r\n".encode())
        await wire.send(b"".join(b"10000\r\n" + b"x" * 65536 + b"\r\n" for _ in range(17)))
        untold = await wire.reply()

    assert added.status == 202
    assert (told.status, told.code) == (413, "too_large")
    assert (other.status, other.code) == (413, "too_large")
    assert (untold.status, untold.code) == (413, "too_large")
    names = [each["name"] for each in (await get(site, key)).json()["documents"]]
    assert names == ["large.txt"]


@pytest.mark.parametrize(
    ("kind", "query", "status"),
    [
        ("multipart/form-data; boundary=x", {}, 415),
        ("text/markdown", {"metadata": "[1]"}, 400),
        ("text/markdown", {"metadata": "{"}, 400),
        ("text/markdown", {"scope": "agent"}, 400),
        ("text/markdown", {"scope": "organization", "owner": "x"}, 400),
        ("text/markdown", {"name": ""}, 400),
        ("application/x-www-form-urlencoded", {}, 200),
    ],
)
async def test_what_is_no_upload_is_refused_with_the_reason(
    site: Site, key: str, kind: str, query: dict[str, Any], status: int
) -> None:
    reply = await add(site, key, kind=kind, **query)

    assert reply.status == status, reply
    assert status == 200 or reply.json()["what"]


async def test_a_file_that_cannot_be_ingested_is_an_error_with_the_reason_and_can_be_retried(
    site: Site, key: str
) -> None:
    failed = await add(site, key, b"%PDF-1.7 broken", kind="application/pdf", name="broken.pdf")
    [document] = (await get(site, key, status="failed")).json()["documents"]
    [job] = (await get(site, key, "/jobs", state="failed")).json()["jobs"]
    retried = await site.ask("POST", f"/api/knowledge/jobs/{job['id']}/retry", key=key)
    done = await site.ask("POST", f"/api/knowledge/jobs/{'0' * 32}/retry", key=key)

    assert (failed.status, failed.code) == (400, "invalid_input")
    assert document["error"]
    assert document["error"] == job["error"]
    assert (retried.status, retried.json()["id"]) == (200, job["id"])
    assert done.status == 404


@pytest.mark.req("KNOW-02")
async def test_a_document_is_read_by_section_chunk_and_characters(site: Site, key: str) -> None:
    body = {"text": HANDBOOK, "name": "handbook", "wait": True}
    added = await site.ask("POST", "/api/knowledge/text", key=key, json=body)
    id = document_of(added)["id"]

    whole = (await get(site, key, f"/{id}/text")).json()
    section = (await get(site, key, f"/{id}/text", section="hotels")).json()
    part = (await get(site, key, f"/{id}/text", start=2, limit=6)).json()
    outline = (await get(site, key, f"/{id}/outline")).json()
    chunks = (await get(site, key, f"/{id}/chunks")).json()
    missing = await get(site, key, f"/{id}/text", page=3)

    assert whole["text"].strip() == HANDBOOK.strip()
    assert section["text"].strip() == "## Hotels\n\nA night costs at most 150 euros."
    assert (part["text"], part["next"]) == ("Travel", 8)
    assert [each["path"] for each in outline["sections"]] == [["Travel"], ["Travel", "Approval"], ["Travel", "Hotels"]]
    assert [each["index"] for each in chunks["chunks"]] == [0]
    assert chunks["cursor"] is None
    assert (missing.status, missing.code) == (404, "not_found")


@pytest.mark.req("KNOW-02")
async def test_passages_are_found_with_what_resolves_to_their_characters(site: Site, key: str) -> None:
    id = document_of(await add(site, key, collection="hr"))["id"]
    await add(site, key, b"Cats sleep a lot.", kind="text/plain", name="cats.txt", collection="pets")

    async def search(**given: Any) -> list[dict[str, Any]]:
        body = {"query": "Who approves trips?", **given}
        reply = await site.ask("POST", "/api/knowledge/search", key=key, json=body)
        assert reply.status == 200, reply
        return reply.json()["hits"]

    [hit] = await search(collections=["hr"], explain=True)
    text = (await get(site, key, f"/{id}/text", start=hit["start"], end=hit["end"])).json()["text"]

    assert (hit["document"], hit["name"]) == (id, "handbook.md")
    assert hit["citation"] == f"handbook.md, characters {hit['start']}-{hit['end']}"
    assert "Managers approve" in hit["text"]
    assert hit["text"].strip() == text.strip()
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=1e-6)
    assert {hit["name"] for hit in await search(collections=["pets"])} <= {"cats.txt"}
    assert await search(collections=[]) == []
    assert await search(owners=[{"scope": "user"}]) == []


async def test_a_document_is_changed_and_removed_with_every_trace(site: Site, key: str, engine: Engine) -> None:
    id = document_of(await add(site, key))["id"]

    changed = await site.ask(
        "PATCH", f"/api/knowledge/{id}", key=key, json={"title": "New", "collection": "hr", "metadata": {"a": 1}}
    )
    nothing = await site.ask("PATCH", f"/api/knowledge/{id}", key=key, json={})
    collections = (await get(site, key, "/collections")).json()["collections"]
    removed = await site.ask("DELETE", f"/api/knowledge/{id}", key=key)
    gone = await get(site, key, f"/{id}")

    assert [changed.json()[name] for name in ("title", "collection", "metadata")] == ["New", "hr", {"a": 1}]
    assert nothing.status == 400
    assert collections == [{"name": "hr", "documents": 1, "chunks": 1}]
    assert (removed.status, gone.status) == (204, 404)
    assert await engine.database.value("select count(*) from chunk where tenant_id = $1") == 0


async def test_an_owners_documents_are_exported_and_erased(site: Site, key: str) -> None:
    await add(site, key)
    await add(site, key, scope="user", name="diary.md")

    exported = await get(site, key, "/export", scope="user")
    erased = await site.ask("POST", "/api/knowledge/erase", key=key, json={"owner": {"scope": "user"}})

    lines = [json.loads(line) for line in exported.body.splitlines()]
    assert exported.headers["content-type"].startswith("application/x-ndjson")
    assert lines[1]["document"]["name"] == "diary.md"
    assert lines[2]["chunk"]["text"].startswith("# Travel")
    assert erased.json() == {"documents": 1, "chunks": 1}
    assert [each["name"] for each in (await get(site, key)).json()["documents"]] == ["handbook.md"]


@pytest.mark.req("SAFE-02")
async def test_a_user_reads_the_organizations_documents_and_changes_only_their_own(
    site: Site, key: str, bobs: str
) -> None:
    shared = document_of(await add(site, key))["id"]
    anns = document_of(await add(site, key, scope="user", name="ann.md"))["id"]
    bobs_own = document_of(await add(site, bobs, scope="user", name="bob.md"))["id"]

    listed = [each["name"] for each in (await get(site, bobs)).json()["documents"]]
    refused = await add(site, bobs, b"mine", name="handbook.md")
    removed = await site.ask("DELETE", f"/api/knowledge/{shared}", key=bobs)
    hidden = await get(site, bobs, f"/{anns}/text")

    assert listed == ["bob.md", "handbook.md"]
    assert (await get(site, bobs, f"/{shared}")).status == 200
    assert (refused.status, removed.status, hidden.status) == (403, 403, 404)
    assert "scope 'admin'" in refused.json()["why"]
    assert (await site.ask("DELETE", f"/api/knowledge/{bobs_own}", key=bobs)).status == 204


@pytest.mark.req("SAFE-02")
async def test_who_acts_for_an_agent_sees_its_collections_alone(site: Site, key: str, engine: Engine) -> None:
    await engine.definitions.declare([Agent("support", knowledge=("hr",)), Agent("mute")])
    tenant = await engine.tenants.id_of("default")
    support, mute = [(await engine.keys.create(tenant, "ann", agent=name)).text for name in ("support", "mute")]
    open_one = document_of(await add(site, key, collection="hr"))["id"]
    closed = document_of(await add(site, key, collection="secret"))["id"]

    async def found(of: str) -> list[str]:
        body = {"query": "approve trips"}
        reply = await site.ask("POST", "/api/knowledge/search", key=of, json=body)
        return [hit["document"] for hit in reply.json()["hits"]]

    assert [each["id"] for each in (await get(site, support)).json()["documents"]] == [open_one]
    assert (await get(site, support, f"/{closed}")).status == 404
    assert await found(support) == [open_one]
    assert await found(mute) == []
    assert (await get(site, mute)).json()["documents"] == []
    assert (await add(site, support, collection="secret", scope="user")).status == 403
    assert (await add(site, support, collection="hr", scope="user")).status == 200


@pytest.mark.req("SAFE-02")
async def test_who_acts_for_an_agent_does_not_reach_other_documents_by_memories_or_the_graph(
    site: Site, key: str, engine: Engine
) -> None:
    await engine.definitions.declare(
        [Agent("support", knowledge=("hr",)), Agent("free", knowledge=True), Agent("other")]
    )
    tenant = await engine.tenants.id_of("default")
    support, free = [(await engine.keys.create(tenant, "ann", agent=name)).text for name in ("support", "free")]
    await engine.knowledge.add(text="Anna Smith works for Acme Corporation.", name="a.md", collection="secret")
    await engine.knowledge.add(text="Bob Jones works for Initech Corporation.", name="b.md", owner=agent("other"))
    [secret, *_] = await engine.graph.search("Anna Smith")
    [others, *_] = await engine.graph.search("Bob Jones", owners=[agent("other")])

    async def status(of: str, path: str) -> int:
        return (await site.ask("GET", f"/api/graph/{path}", key=of)).status

    async def found(of: str, owner: Mapping[str, str]) -> int:
        body = {"query": "works for", "owner": owner}
        return len((await site.ask("POST", "/api/memories/search", key=of, json=body)).json()["hits"])

    async def context(of: str) -> list[str]:
        reply = await site.ask("POST", "/api/memories/context", key=of, json={"query": "works for", "agent": "other"})
        return [hit["memory"]["owner"]["scope"] for hit in reply.json()["hits"]]

    for path in (
        f"entities/{secret.entity.id}",
        f"entities/{secret.entity.id}/neighbours",
        "entities?query=Anna",
        "duplicates",
        "paths?source=Anna+Smith&target=Acme+Corporation",
    ):
        assert (await status(support, path), await status(free, path)) == (403, 200), path
    assert await status(free, f"entities/{others.entity.id}") == 404
    assert await status(free, "entities?query=Bob&scope=agent&name=other") == 404
    assert await status(key, f"entities/{others.entity.id}") == 200
    others_documents = {"scope": "agent", "name": "other"}
    assert [await found(of, others_documents) for of in (key, free, support)] == [1, 0, 0]
    assert await found(free, {"scope": "organization"}) == 1
    assert "agent" in await context(key)
    assert "agent" not in await context(free)


async def test_what_changes_documents_is_in_the_audit(site: Site, key: str, engine: Engine) -> None:
    id = document_of(await add(site, key, collection="hr"))["id"]
    await site.ask("DELETE", f"/api/knowledge/{id}", key=key)
    await get(site, key, "/export")

    actions = await audited(engine)
    assert ("add_document", "handbook.md", {"collection": "hr", "scope": "organization"}) in actions
    assert ("remove_document", id, {"name": "handbook.md"}) in actions
    assert ("export_knowledge", "", {"scope": "organization"}) in actions


async def test_a_name_can_have_any_character(site: Site, key: str) -> None:
    name = "docs/a b/ä%2F&?.md"

    id = document_of(await add(site, key, name=name))["id"]

    found = await site.ask("GET", f"/api/knowledge?name={quote(name, safe='')}", key=key)
    assert [each["id"] for each in found.json()["documents"]] == [id]
