import json
from typing import Any

import pytest

from holdfast.engine import Engine
from holdfast.server.routes.sources import MAX_BODY_BYTES
from tests.server.conftest import make_key
from tests.server.wire import Reply, Site

pytestmark = pytest.mark.req("MCP-03")

ANSWER = {"responses": {"200": {"description": "so"}}}
PATHS = {
    "/orders": {
        "get": {"summary": "List orders", **ANSWER},
        "post": {"summary": "Place one", "tags": ["write"], **ANSWER},
    },
    "/orders/{id}": {"get": {"summary": "One order", "x-ai-enabled": True, **ANSWER}},
}


def document(paths: dict[str, Any] = PATHS, **more: Any) -> str:
    info, servers = {"title": "Shop", "version": "1.2"}, [{"url": "https://shop.example.com"}]
    return json.dumps({"openapi": "3.1.0", "info": info, "servers": servers, "paths": paths, **more})


async def add(site: Site, name: str = "shop", **body: Any) -> Reply:
    return await site.ask("POST", "/api/sources", json={"name": name, "document": document(), **body})


async def test_a_source_is_added_read_listed_and_removed(site: Site) -> None:
    made = await add(site, choice={"tags": ["write"]}, auth={"key": "shop-key"})
    shown = await site.ask("GET", "/api/sources/shop")
    listed = await site.ask("GET", "/api/sources")
    removed = await site.ask("DELETE", "/api/sources/shop")

    assert (made.status, made.json()["added"]) == (201, ["get_orders_by_id", "post_orders"])
    assert [each["operation"] for each in made.json()["skipped"]] == ["GET /orders"]
    source = shown.json()["source"]
    assert (source["title"], source["tools"], source["skipped"], source["version"]) == ("Shop", 2, 1, 1)
    assert (source["backend"]["auth"], source["missing_secrets"]) == ({"key": "shop-key"}, ["shop-key"])
    assert [tool["operation"] for tool in shown.json()["tools"]] == ["GET /orders/{id}", "POST /orders"]
    assert listed.json()["sources"] == [source]
    assert removed.json() == {"tools": ["get_orders_by_id", "post_orders"]}
    assert (await site.ask("GET", "/api/sources/shop")).status == 404


async def test_a_reload_tells_the_difference_and_a_rehearsal_changes_nothing(site: Site) -> None:
    await add(site, pin="follow")
    smaller = document({"/orders/{id}": {"get": {"summary": "An order", "x-ai-enabled": True, **ANSWER}}})

    rehearsed = await site.ask("POST", "/api/sources/shop/reload", json={"document": smaller, "dry_run": True})
    before = (await site.ask("GET", "/api/sources/shop")).json()["source"]["version"]
    done = await site.ask("POST", "/api/sources/shop/reload", json={"document": smaller})
    unknown = await site.ask("POST", "/api/sources/shop/reload", json={})

    for reply, written in ((rehearsed, False), (done, True)):
        told = reply.json()
        assert (reply.status, told["written"]) == (200, written)
        assert told["changed"] == [{"name": "get_orders_by_id", "what": ["description"]}]
    assert before == 1
    assert (unknown.status, unknown.code) == (400, "invalid_input")


async def test_a_change_is_made_under_the_version_that_it_is_of(site: Site) -> None:
    await add(site, timeout=5, headers={"X-Team": "blue"})

    changed = await site.ask("PUT", "/api/sources/shop", json={"version": 1, "auth": {"key": "a"}, "timeout": None})
    late = await site.ask("PUT", "/api/sources/shop", json={"version": 1, "auth": {"key": "b"}})
    without = await site.ask("PUT", "/api/sources/shop", json={"version": 2, "choice": {"everything": True}})
    chosen = await site.ask(
        "PUT", "/api/sources/shop", json={"version": 2, "choice": {"everything": True}, "document": document()}
    )

    backend = changed.json()["source"]["backend"]
    assert (backend["auth"], backend["headers"], backend.get("timeout")) == ({"key": "a"}, {"X-Team": "blue"}, None)
    assert (late.status, late.code) == (409, "conflict")
    assert (without.status, without.code) == (400, "invalid_input")
    assert chosen.json()["added"] == ["get_orders", "post_orders"]


async def test_a_name_is_taken_once(site: Site) -> None:
    await add(site)

    again = await add(site)

    assert (again.status, again.code) == (409, "already_exists")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"document": "{"}, "line 1"),
        ({"document": '{"openapi": "3.1.0", "paths": 7}'}, "`paths`"),
        ({"document": None}, "no document"),
        ({"name": "my shop"}, "my shop"),
        ({"base_url": "nowhere"}, "nowhere"),
        ({"auth": {"key": "so secret!"}}, "an invalid name of a secret"),
        ({"choice": {"some": True}}, "some"),
        ({"timeout": -1}, "timeout"),
    ],
)
async def test_what_cannot_be_a_source_is_refused_and_says_why(site: Site, body: dict[str, Any], said: str) -> None:
    reply = await add(site, **body)

    assert (reply.status, reply.code) == (400, "invalid_input")
    assert said in json.dumps(reply.json(), ensure_ascii=False)
    assert (await site.ask("GET", "/api/sources")).json() == {"sources": []}


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/api.json", "http://169.254.169.254/latest", "http://[::1]:1/"])
async def test_the_server_fetches_nothing_from_private_addresses(site: Site, url: str) -> None:
    reply = await add(site, document=None, url=url)

    assert (reply.status, reply.code) == (403, "forbidden")
    assert "allow_private" in reply.json()["next"]


@pytest.mark.req("ENG-08")
async def test_a_large_document_is_taken_and_one_that_is_too_large_is_not(site: Site) -> None:
    large = document(info={"title": "Shop", "version": "1", "description": "x" * 12_000_000})

    async with site.connect() as wire:
        made = await wire.ask("POST", "/api/sources", json={"name": "large", "document": large})
        again = await wire.ask("POST", "/api/sources/large/reload", json={"document": large})
        elsewhere = await wire.ask("POST", "/api/notes", json={"document": large})
        refused = await wire.ask(
            "POST", "/api/sources", headers={"Content-Type": "application/json"}, body=b" " * (MAX_BODY_BYTES + 1)
        )
        usable = await wire.ask("GET", "/api/sources")

    assert (made.status, again.status) == (201, 200)
    assert (elsewhere.status, refused.status) == (413, 413)
    assert [source["name"] for source in usable.json()["sources"]] == ["large"]


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("settings", [{"root_path": "/x"}])
async def test_a_large_document_is_taken_below_a_root_path_too(site: Site) -> None:
    large = document(info={"title": "Shop", "version": "1", "description": "x" * 9_000_000})

    made = await site.ask("POST", "/x/api/sources", json={"name": "large", "document": large})

    assert made.status == 201


@pytest.mark.req("SAFE-03", "ENG-04")
async def test_sources_are_for_who_administers_the_tenant(site: Site, engine: Engine) -> None:
    await engine.tenants.create("acme")
    await add(site)
    reader = await make_key(engine, "bob", scopes=["read", "write"])
    stranger = await make_key(engine, "eve", tenant="acme")

    statuses = [
        (await site.ask(method, path, key=reader, json=body)).status
        for method, path, body in (
            ("GET", "/api/sources", None),
            ("POST", "/api/sources", {"name": "other", "document": document()}),
            ("GET", "/api/sources/shop", None),
            ("PUT", "/api/sources/shop", {"version": 1}),
            ("DELETE", "/api/sources/shop", None),
            ("POST", "/api/sources/shop/reload", {"document": document({})}),
        )
    ]

    assert statuses == [403] * 6
    assert (await site.ask("GET", "/api/sources", key=stranger)).json() == {"sources": []}
    assert (await site.ask("DELETE", "/api/sources/shop", key=stranger)).status == 404
