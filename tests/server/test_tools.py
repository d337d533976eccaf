from typing import Any

import pytest

from holdfast.engine import Engine
from tests.server.conftest import make_key
from tests.server.wire import Site

pytestmark = pytest.mark.req("SKILL-01")

TRACK: dict[str, Any] = {
    "description": "Where a parcel is.",
    "kind": "rest",
    "method": "get",
    "endpoint": "https://parcels.example/parcels/{parcel}",
    "parameters": {
        "type": "object",
        "properties": {"parcel": {"type": "string"}, "days": {"type": "integer", "default": 7}},
        "required": ["parcel"],
    },
    "access": "read",
    "idempotent": True,
}


@pytest.fixture
async def engine(words_only: Engine) -> Engine:
    """An engine without a model: what is found is found by words."""
    return words_only


async def put(site: Site, name: str, **more: Any) -> Any:
    reply = await site.ask("PUT", f"/api/tools/{name}", json={**TRACK, **more})
    assert reply.status == 200, reply
    return reply.json()


@pytest.mark.req("SKILL-03")
async def test_a_tool_is_registered_changed_under_its_version_and_removed(site: Site) -> None:
    made = await put(site, "track")
    changed = await put(site, "track", description="Where a parcel is now.", version=1)
    again = await site.ask("PUT", "/api/tools/track", json=TRACK)
    late = await site.ask("PUT", "/api/tools/track", json={**TRACK, "approve": True, "version": 1})
    shown = (await site.ask("GET", "/api/tools/track")).json()
    stale = await site.ask("DELETE", "/api/tools/track?version=1")
    removed = await site.ask("DELETE", "/api/tools/track?version=2")

    assert (made["version"], made["parameters"]) == (1, TRACK["parameters"])
    assert (changed["version"], shown) == (2, changed)
    assert (shown["request"]["method"], shown["request"]["url"]) == ("GET", TRACK["endpoint"])
    assert (shown["origin"], shown["updated_by"], shown["calls"], shown["latency_ms"]) == ("db", "local", 0, None)
    assert (again.status, again.code) == (409, "already_exists")
    assert [reply.code for reply in (late, stale)] == ["conflict"] * 2
    assert removed.status == 204
    assert (await site.ask("GET", "/api/tools/track")).status == 404


async def test_tools_are_listed_page_by_page_and_by_what_they_are(site: Site) -> None:
    for name in ("c", "a", "b"):
        await put(site, name)
    await put(site, "run", kind="function", reference="shop:run")

    page = (await site.ask("GET", "/api/tools?limit=3")).json()
    rest = (await site.ask("GET", f"/api/tools?limit=3&after={page['cursor']}")).json()
    functions = (await site.ask("GET", "/api/tools?kind=function")).json()
    of_a_source = (await site.ask("GET", "/api/tools?source=parcels")).json()

    assert [tool["name"] for tool in page["tools"]] == ["a", "b", "c"]
    assert ([tool["name"] for tool in rest["tools"]], rest["cursor"]) == (["run"], None)
    assert [(tool["name"], tool["kind"]) for tool in functions["tools"]] == [("run", "function")]
    assert of_a_source["tools"] == []


@pytest.mark.req("SKILL-04")
async def test_tools_are_found_by_what_they_do(site: Site) -> None:
    await put(site, "track")
    await put(site, "refund", description="Give the money of an order back.")
    await put(site, "gone", description="The money.", active=False)

    found = (await site.ask("GET", "/api/tools?query=money%20back")).json()
    narrow = (await site.ask("GET", "/api/tools?query=money%20back&kind=function")).json()
    empty = await site.ask("GET", "/api/tools?query=%20")

    assert [tool["name"] for tool in found["tools"]] == ["refund"]
    assert found["tools"][0]["score"] > 0
    assert found["reduced"]
    assert narrow["tools"] == []
    assert (empty.status, empty.code) == (400, "invalid_input")


@pytest.mark.req("SKILL-07")
async def test_who_may_use_a_tool_and_whether_anybody_may_is_administered(site: Site) -> None:
    await put(site, "track")
    await site.engine.definitions.put("support", instructions="")

    capped = await site.ask(
        "PUT",
        "/api/tools/track/permissions",
        json={"permissions": {"default": "none", "agents": {"support": "read"}}, "version": 1},
    )
    off = await site.ask("PUT", "/api/tools/track/active", json={"active": False})
    kept = await put(site, "track", description="Changed.", version=3)
    unknown = await site.ask("PUT", "/api/tools/track/permissions", json={"permissions": {"default": "all"}})

    assert capped.json()["permissions"] == {"default": "none", "agents": {"support": "read"}}
    assert (off.json()["active"], off.json()["version"]) == (False, 3)
    assert kept["permissions"] == capped.json()["permissions"]
    assert (unknown.status, unknown.code) == (400, "invalid_input")
    assert "none, read, write, execute" in unknown.json()["next"]


@pytest.mark.req("SAFE-03", "ENG-04")
async def test_how_a_tool_is_run_and_who_may_use_it_is_for_admins_of_its_tenant(site: Site) -> None:
    await site.engine.tenants.create("acme")
    user, admin = await make_key(site.engine, "ann", scopes=["read", "write"]), await make_key(site.engine, "root")
    other = await make_key(site.engine, "root", tenant="acme")
    for name in ("track", "off"):
        await site.ask("PUT", f"/api/tools/{name}", key=admin, json={**TRACK, "active": name == "track"})

    listed = (await site.ask("GET", "/api/tools", key=user)).json()
    shown = await site.ask("GET", "/api/tools/track", key=user)

    assert [tool["name"] for tool in listed["tools"]] == ["track"]
    assert shown.json()["parameters"] == TRACK["parameters"]
    assert [shown.json()[field] for field in ("request", "reference", "permissions")] == [None] * 3
    assert b"parcels.example" not in shown.body
    assert (await site.ask("GET", "/api/tools/off", key=user)).status == 404
    assert (await site.ask("GET", "/api/tools/off", key=admin)).status == 200
    assert (await site.ask("GET", "/api/tools/track", key=other)).status == 404
    changes: list[tuple[str, str, Any]] = [
        ("PUT", "", TRACK),
        ("DELETE", "", None),
        ("PUT", "/permissions", {"permissions": {}}),
        ("PUT", "/active", {"active": False}),
    ]
    for method, path, body in changes:
        reply = await site.ask(method, f"/api/tools/track{path}", key=user, json=body)
        assert (reply.status, reply.code) == (403, "forbidden")


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("a b", {}, "letters, digits"),
        ("a" * 65, {}, "letters, digits"),
        ("track", {"endpoint": None}, "method and an endpoint"),
        ("track", {"endpoint": "ftp://parcels.example"}, "not an HTTP URL"),
        ("track", {"parameters": {"type": "object", "properties": {"a": {"type": "text"}}}}, "JSON Schema"),
        ("track", {"kind": "cobol"}, "kind"),
        ("track", {"kind": "function"}, "requires a reference"),
        ("track", {"timeout": 0}, "timeout"),
        ("track", {"label": "1" * 21}, "label"),
        ("track", {"permissions": {"agents": []}}, "permissions"),
        ("track", {"colour": "red"}, "colour"),
    ],
)
async def test_a_tool_that_nobody_could_call_is_refused(site: Site, name: str, change: Any, said: str) -> None:
    reply = await site.ask("PUT", f"/api/tools/{name.replace(' ', '%20')}", json={**TRACK, **change})

    assert (reply.status, reply.code) == (400, "invalid_input")
    assert said in reply.json()["detail"]


async def test_tools_of_a_program_are_changed_only_there_but_administered_here(desk: Site) -> None:
    changed = await desk.ask("PUT", "/api/tools/track", json={**TRACK, "version": 1})
    removed = await desk.ask("DELETE", "/api/tools/track")
    off = await desk.ask("PUT", "/api/tools/track/active", json={"active": False})

    assert (changed.code, removed.code) == ("already_exists", "already_exists")
    assert (off.json()["active"], off.json()["origin"]) == (False, "code")


@pytest.mark.req("EXEC-01")
async def test_a_tool_that_cannot_run_is_refused_with_the_reason_and_what_to_do(site: Site) -> None:
    body = {
        "description": "",
        "parameters": {"type": "object"},
        "kind": "java",
        "reference": "com.shop.Track",
    }

    reply = await site.ask("PUT", "/api/tools/track", json=body)

    told = reply.json()
    assert (reply.status, told["code"]) == (400, "invalid_input")
    assert told["why"] == "this installation has no runner for the kind java"
    assert "function, rest" in told["next"]
