import base64
from typing import Any
from urllib.parse import quote

import pytest

from holdfast.engine import Engine
from tests.server.conftest import make_key
from tests.server.wire import Site

pytestmark = pytest.mark.req("SKILL-01")

RETURNS: dict[str, Any] = {
    "description": "How to take goods back.",
    "instructions": "# Returns\nLook at the order first.",
}
PAGE = """---
name: returns
description: How to take goods back.
license: MIT
metadata:
  holdfast:
    version: 1.2.0
    requires:
    - orders
    tools:
    - name: refund
      access: execute
---
# Returns
Look at the order first.
"""


@pytest.fixture
async def engine(words_only: Engine) -> Engine:
    """An engine without a model: what is found is found by words."""
    return words_only


async def put(site: Site, name: str, **more: Any) -> Any:
    reply = await site.ask("PUT", f"/api/skills/{quote(name)}", json={**RETURNS, **more})
    assert reply.status == 200, reply
    return reply.json()


async def put_tool(site: Site, name: str = "refund") -> None:
    await site.engine.tools.put(
        name, description="Pay.", parameters={"type": "object"}, kind="function", reference=f"shop:{name}"
    )


def coded(content: str | bytes, **more: Any) -> dict[str, Any]:
    data = content.encode() if isinstance(content, str) else content
    return {"content": base64.b64encode(data).decode(), **more}


async def test_a_skill_is_stored_changed_under_its_version_and_removed(site: Site) -> None:
    made = await put(site, "returns")
    changed = await put(site, "returns", label="1.1.0", version=1)
    same = await put(site, "returns", label="1.1.0", version=2)
    again = await site.ask("PUT", "/api/skills/returns", json=RETURNS)
    late = await site.ask("PUT", "/api/skills/returns", json={**RETURNS, "version": 1})
    off = await site.ask("PUT", "/api/skills/returns/active", json={"active": False, "version": 2})
    stale = await site.ask("DELETE", "/api/skills/returns?version=2")
    removed = await site.ask("DELETE", "/api/skills/returns?version=3")

    assert (made["version"], made["instructions"], made["updated_by"]) == (1, RETURNS["instructions"], "local")
    assert (changed["version"], changed["label"], same["version"]) == (2, "1.1.0", 2)
    assert [reply.code for reply in (again, late, stale)] == ["already_exists", "conflict", "conflict"]
    assert (off.json()["active"], off.json()["version"]) == (False, 3)
    assert removed.status == 204
    assert (await site.ask("GET", "/api/skills/returns")).status == 404


async def test_skills_are_listed_page_by_page(site: Site) -> None:
    for name in ("c", "a", "b"):
        await put(site, name)

    page = (await site.ask("GET", "/api/skills?limit=2")).json()
    rest = (await site.ask("GET", f"/api/skills?limit=2&after={page['cursor']}")).json()

    assert [skill["name"] for skill in page["skills"]] == ["a", "b"]
    assert ([skill["name"] for skill in rest["skills"]], rest["cursor"]) == (["c"], None)


@pytest.mark.req("SKILL-04")
async def test_skills_are_found_by_what_they_are_about(site: Site) -> None:
    await put(site, "returns")
    await put(site, "parcels", description="Where parcels are.")

    found = (await site.ask("GET", "/api/skills?query=take%20goods%20back")).json()

    assert [skill["name"] for skill in found["skills"]] == ["returns"]
    assert found["skills"][0]["score"] > 0
    assert found["reduced"]


async def test_a_skill_works_with_tools_needs_others_and_is_given_to_agents(site: Site) -> None:
    await put(site, "returns")
    await put(site, "orders")
    await put_tool(site)
    await site.ask("PUT", "/api/agents/support", json={"instructions": "You help."})

    link = await site.ask(
        "PUT", "/api/skills/returns/tools/refund", json={"access": "execute", "config": {"timeout": 5}, "version": 0}
    )
    need = await site.ask("PUT", "/api/skills/returns/needs/orders", json={"required": False})
    given = await site.ask(
        "PUT", "/api/agents/support/skills/returns", json={"priority": 3, "config": {"approve": True}}
    )
    shown = (await site.ask("GET", "/api/skills/returns")).json()
    has = (await site.ask("GET", "/api/agents/support/skills")).json()
    late = await site.ask("PUT", "/api/skills/returns/tools/refund", json={"access": "read", "version": 0})

    assert (link.json()["access"], link.json()["config"], link.json()["version"]) == ("execute", {"timeout": 5}, 1)
    assert (need.json()["on"], need.json()["required"]) == ("orders", False)
    assert given.json()["priority"] == 3
    assert (shown["tools"], shown["needs"], shown["agents"]) == ([link.json()], [need.json()], [given.json()])
    assert has["skills"] == shown["agents"]
    assert (late.status, late.code) == (409, "conflict")


async def test_links_are_taken_away(site: Site) -> None:
    await put(site, "returns")
    await put(site, "orders")
    await put_tool(site)
    await site.ask("PUT", "/api/agents/support", json={"instructions": "You help."})
    paths = [
        "/api/skills/returns/tools/refund",
        "/api/skills/returns/needs/orders",
        "/api/agents/support/skills/returns",
    ]

    made = [(await site.ask("PUT", path, json={})).status for path in paths]
    gone = [(await site.ask("DELETE", path)).status for path in paths]
    again = [(await site.ask("DELETE", path)).code for path in paths]
    shown = (await site.ask("GET", "/api/skills/returns")).json()

    assert (made, gone, again) == ([200] * 3, [204] * 3, ["not_found"] * 3)
    assert (shown["tools"], shown["needs"], shown["agents"]) == ([], [], [])


async def test_a_circle_is_refused_and_named_and_what_others_need_stays(site: Site) -> None:
    for name in ("a", "b", "c"):
        await put(site, name)
    for name, other in (("a", "b"), ("b", "c")):
        await site.ask("PUT", f"/api/skills/{name}/needs/{other}", json={})

    circle = await site.ask("PUT", "/api/skills/c/needs/a", json={})
    needed = await site.ask("DELETE", "/api/skills/c")

    assert (circle.status, circle.code) == (400, "invalid_input")
    assert "c needs a, a needs b, b needs c" in circle.json()["detail"]
    assert (needed.status, needed.code) == (400, "invalid_input")
    assert "b needs it" in needed.json()["detail"]


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/skills/none/tools/refund", {}),
        ("/api/skills/returns/tools/none", {}),
        ("/api/skills/returns/needs/none", {}),
        ("/api/agents/none/skills/returns", {}),
        ("/api/agents/support/skills/none", {}),
        ("/api/skills/child", {**RETURNS, "parent": "none"}),
    ],
)
async def test_what_is_not_there_is_linked_to_nothing(site: Site, path: str, body: Any) -> None:
    await put(site, "returns")
    await put_tool(site)
    await site.ask("PUT", "/api/agents/support", json={"instructions": "You help."})

    reply = await site.ask("PUT", path, json=body)

    assert (reply.status, reply.code) == (404, "not_found")
    assert "none" in reply.json()["detail"]


@pytest.mark.req("SKILL-06")
async def test_a_folder_comes_in_and_goes_out_as_it_was(site: Site) -> None:
    await put(site, "orders")
    await put_tool(site)
    files = {
        "SKILL.md": coded(PAGE),
        "scripts/check.py": coded("print(1)", executable=True),
        "a b/ü.bin": coded(b"\0\xff"),
    }

    created = await site.ask("POST", "/api/skills/import", json={"files": files})
    again = await site.ask("POST", "/api/skills/import", json={"files": files})
    shown = (await site.ask("GET", "/api/skills/returns")).json()
    out = (await site.ask("GET", "/api/skills/returns/export")).json()["files"]
    script = await site.ask("GET", "/api/skills/returns/files/scripts/check.py")
    picture = await site.ask("GET", f"/api/skills/returns/files/{quote('a b/ü.bin')}")
    missing = await site.ask("GET", "/api/skills/returns/files/scripts/none.py")

    assert created.json() == {"name": "returns", "change": "created", "version": 1}
    assert again.json()["change"] == "unchanged"
    assert (shown["label"], shown["front_matter"]) == ("1.2.0", {"license": "MIT"})
    assert [(link["tool"], link["access"]) for link in shown["tools"]] == [
        ("refund", "execute"),
        ("returns_check", "execute"),
    ]
    assert [need["on"] for need in shown["needs"]] == ["orders"]
    assert {"path": "scripts/check.py", "bytes": 8, "executable": True} in shown["files"]
    assert base64.b64decode(out["SKILL.md"]["content"]).decode() == PAGE
    assert (out["scripts/check.py"], out.keys()) == (files["scripts/check.py"], files.keys())
    assert (script.body, script.headers["content-type"]) == (b"print(1)", "application/octet-stream")
    assert script.headers["content-disposition"] == "attachment; filename*=UTF-8''check.py"
    assert picture.body == b"\0\xff"
    assert (missing.status, missing.code) == (404, "not_found")


@pytest.mark.req("SKILL-06")
async def test_a_folder_takes_the_place_of_a_skill_only_when_it_is_told_to(site: Site) -> None:
    await put(site, "returns", active=False)
    await put(site, "orders")
    await put(site, "old")
    await site.ask("PUT", "/api/skills/returns/needs/old", json={})
    await put_tool(site)
    body = {"files": {"SKILL.md": coded(PAGE)}}

    refused = await site.ask("POST", "/api/skills/import", json=body)
    before = (await site.ask("GET", "/api/skills/returns")).json()
    replaced = await site.ask("POST", "/api/skills/import", json={**body, "replace": True})
    after = (await site.ask("GET", "/api/skills/returns")).json()

    assert (refused.status, refused.code) == (409, "already_exists")
    assert (before["version"], before["tools"], [need["on"] for need in before["needs"]]) == (1, [], ["old"])
    assert replaced.json()["change"] == "changed"
    assert ([need["on"] for need in after["needs"]], after["active"]) == (["orders"], False)


@pytest.mark.req("SKILL-06", "ENG-07")
@pytest.mark.parametrize(
    ("files", "status", "said"),
    [
        ({}, 400, "SKILL.md"),
        ({"SKILL.md": coded("# no front matter")}, 400, "SKILL.md:1"),
        ({"SKILL.md": coded(PAGE), "../x": coded("")}, 400, "../x"),
        ({"SKILL.md": coded(PAGE)}, 404, "refund"),
        ({"SKILL.md": coded(PAGE.replace("- name: refund\n      access: execute", "  refund"))}, 400, "SKILL.md"),
    ],
    ids=["no page", "no front matter", "a path that leads out", "a tool that is not there", "no list of tools"],
)
async def test_a_folder_that_cannot_be_stored_leaves_nothing_behind(
    site: Site, files: Any, status: int, said: str
) -> None:
    await put(site, "orders")

    reply = await site.ask("POST", "/api/skills/import", json={"files": files})

    assert reply.status == status, reply
    assert said in reply.json()["detail"]
    assert (await site.ask("GET", "/api/skills/returns")).status == 404
    assert len((await site.ask("GET", "/api/registry/history")).json()["changes"]) == 1


async def test_every_change_is_kept_with_who_made_it(site: Site) -> None:
    admin = await make_key(site.engine, "root")
    await put_tool(site)
    for method, path, body in [
        ("PUT", "/api/skills/returns", RETURNS),
        ("PUT", "/api/skills/returns", {**RETURNS, "label": "2", "version": 1}),
        ("PUT", "/api/skills/returns/tools/refund", {}),
        ("DELETE", "/api/skills/returns", None),
    ]:
        await site.ask(method, path, key=admin, json=body)

    changes = (await site.ask("GET", "/api/registry/history?name=returns", key=admin)).json()
    page = (await site.ask("GET", "/api/registry/history?kind=skill&name=returns&limit=2", key=admin)).json()
    rest = (await site.ask("GET", f"/api/registry/history?kind=skill&before={page['cursor']}", key=admin)).json()

    told = [(change["kind"], change["operation"], change["by"]) for change in changes["changes"]]
    assert {*told[:2]} == {("skill", "removed", "root"), ("skill_tool", "removed", "root")}
    assert told[2:] == [("skill_tool", "created", "root"), ("skill", "changed", "root"), ("skill", "created", "root")]
    assert (changes["changes"][3]["before"]["version"], changes["changes"][3]["after"]["version"]) == ("1.0.0", "2")
    assert [change["operation"] for change in page["changes"] + rest["changes"]] == ["removed", "changed", "created"]
    assert (await site.ask("GET", "/api/registry/history?before=x", key=admin)).status == 400


async def test_a_skill_may_be_called_anything(site: Site) -> None:
    name = "Rückgabe 100% / EU"
    twice = quote(name.replace("%", "%25").replace("/", "%2F"))

    made = await site.ask("PUT", f"/api/skills/{twice}", json=RETURNS)
    shown = await site.ask("GET", f"/api/skills/{twice}")

    assert made.json()["name"] == name
    assert shown.json() == made.json()


@pytest.mark.req("SAFE-03", "ENG-04")
async def test_what_agents_read_is_for_admins_of_their_tenant(site: Site) -> None:
    await site.engine.tenants.create("acme")
    user, admin = await make_key(site.engine, "ann", scopes=["read", "write"]), await make_key(site.engine, "root")
    other = await make_key(site.engine, "root", tenant="acme")
    for name in ("returns", "off"):
        await site.ask("PUT", f"/api/skills/{name}", key=admin, json={**RETURNS, "active": name == "returns"})

    listed = await site.ask("GET", "/api/skills", key=user)

    assert [skill["name"] for skill in listed.json()["skills"]] == ["returns"]
    assert b"Look at the order" not in listed.body
    assert (await site.ask("GET", "/api/skills/returns", key=other)).status == 404
    assert (await site.ask("GET", "/api/skills", key=other)).json()["skills"] == []
    changes: list[tuple[str, str, Any]] = [
        ("GET", "/api/skills/returns", None),
        ("PUT", "/api/skills/returns", RETURNS),
        ("DELETE", "/api/skills/returns", None),
        ("GET", "/api/skills/returns/export", None),
        ("GET", "/api/skills/returns/files/a", None),
        ("POST", "/api/skills/import", {"files": {}}),
        ("PUT", "/api/skills/returns/tools/a", {}),
        ("PUT", "/api/skills/returns/needs/a", {}),
        ("PUT", "/api/agents/a/skills/returns", {}),
        ("GET", "/api/agents/a/skills", None),
        ("GET", "/api/registry/history", None),
    ]
    for method, path, body in changes:
        reply = await site.ask(method, path, key=user, json=body)
        assert (reply.status, reply.code) == (403, "forbidden"), path


async def test_what_is_left_out_of_a_change_stays_as_it_is(site: Site) -> None:
    await put_tool(site)
    await site.engine.definitions.put("support", instructions="")
    await put(site, "returns", label="1.2.0", active=False)
    config = {"approve": True}
    await site.ask("PUT", "/api/skills/returns/tools/refund", json={"access": "read", "config": config})
    await site.ask("PUT", "/api/agents/support/skills/returns", json={"sequence": 3, "config": config})

    link = await site.ask("PUT", "/api/skills/returns/tools/refund", json={"access": "write"})
    given = await site.ask("PUT", "/api/agents/support/skills/returns", json={"priority": 3})
    changed = (await site.ask("PUT", "/api/skills/returns", json={"instructions": "New.", "version": 1})).json()

    assert (link.json()["access"], link.json()["config"]) == ("write", config)
    assert (given.json()["priority"], given.json()["sequence"], given.json()["config"]) == (3, 3, config)
    assert (changed["label"], changed["active"], changed["description"]) == ("1.2.0", False, RETURNS["description"])
