"""Tools as they are registered: by hand, by sources, by plain SQL; what they may be, and who may change them."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.core.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from holdfast.engine import Engine
from holdfast.skills.declarations import Declarations
from holdfast.skills.function_tools import tool_of
from holdfast.skills.history import ChangeHistory
from holdfast.skills.request import (
    AuthScheme,
    Backend,
    BodyField,
    GraphqlOperation,
    RequestBody,
    RequestParameter,
    RequestTemplate,
)
from holdfast.skills.skills import Skills
from holdfast.skills.sources.source import ImportedTool
from holdfast.skills.tool import Tool
from holdfast.skills.tools import Diff, Tools
from tests.logins import tenant_login

pytestmark = pytest.mark.req("SKILL-01")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "parcel": {"type": "string", "description": "Its number.", "pattern": "^[0-9]+$"},
        "limit": {"type": "integer", "default": 5},
        "mark": {"$ref": "#/$defs/mark"},
        "note": {"default": None},
    },
    "required": ["parcel"],
    "$defs": {"mark": {"enum": ["a", None]}},
    "additionalProperties": False,
}
GRAPHQL = RequestTemplate("POST", "https://shop.example/graphql", graphql=GraphqlOperation("{ orders { id } }"))
REQUEST = RequestTemplate(
    "POST",
    "https://shop.example/parcels/{parcel}",
    (RequestParameter("parcel", "parcel", "path", "simple"),),
    RequestBody("application/json", fields=(BodyField("limit", "limit"),)),
    ((AuthScheme("key", "header", "X-Key"),),),
)


async def put(tools: Tools, name: str = "track", **given: Any) -> Any:
    """Store a tool of which only what matters is said."""
    whole: dict[str, Any] = {"description": "", "parameters": {}, "kind": "function", "reference": "shop:track"}
    return await tools.put(name, **{**whole, **given})


def imported(name: str, *, operation: str | None = None, description: str = "", **given: Any) -> ImportedTool:
    """A tool as an importer gives it."""
    tool = Tool(name, description, SCHEMA, "rest", request=REQUEST, **given)
    return ImportedTool(tool, operation or f"POST /{name}", name.title(), {"summary": description})


@pytest.fixture
async def source(words_only: Engine) -> UUID:
    """A source that is called shop."""
    return await add_source(words_only, "shop")


async def add_source(engine: Engine, name: str) -> UUID:
    id = uuid4()
    await engine.database.run(
        "insert into tool_source (host_id, source_id, name, kind, settings, pin)"
        " values ($1, $2, $3, 'openapi', $4, holdfast.destination_hash($4))",
        id, name, {"backend": {"base_url": "https://shop.example", "auth": {"key": "shop-key"}}},
    )  # fmt: skip
    return id


async def track(parcel: str) -> str:
    """Where a parcel is."""
    return parcel


@pytest.mark.req("SKILL-03")
async def test_a_tool_is_stored_as_it_was_given(tools: Tools) -> None:
    stored = await tools.put(
        "track", description="Where a parcel is.", parameters=SCHEMA, kind="rest", request=REQUEST, access="write",
        mode="event", idempotent=True, approve=True, timeout=7.5, label="3", display_name="Track it", app_name="shop",
        permissions={"default": "read"}, by="ann",
    )  # fmt: skip

    assert stored == await tools.get("track")
    assert stored.tool == Tool(
        "track", "Where a parcel is.", SCHEMA, "rest", "write", "event", True, True, 7.5, request=REQUEST, id=stored.id,
        version=1,
    )  # fmt: skip
    assert list(stored.tool.parameters["properties"]) == ["parcel", "limit", "mark", "note"]
    assert (stored.label, stored.display_name, stored.app_name, stored.origin, stored.source) == (
        "3", "Track it", "shop", "db", None,
    )  # fmt: skip
    assert (stored.permissions, stored.active, stored.calls, stored.latency_ms, stored.updated_by) == (
        {"default": "read"}, True, 0, None, "ann",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "reference"),
    [
        ({"kind": "function", "reference": "shop.tools:track"}, "shop.tools:track"),
        ({"kind": "java", "reference": "com.shop.Track"}, "com.shop.Track"),
        ({"kind": "python", "script": "print(1)", "reference": ""}, ""),
        ({"kind": "rest", "method": "get", "endpoint": "http://shop.example/{id}", "reference": ""}, ""),
        ({"kind": "graphql", "request": GRAPHQL, "reference": ""}, ""),
    ],
)
@pytest.mark.req("EXEC-01")
async def test_each_kind_says_what_runs_it(tools: Tools, given: dict[str, Any], reference: str) -> None:
    stored = await put(tools, **given)

    assert (stored.tool.kind, stored.tool.reference) == (given["kind"], reference)
    if given["kind"] == "rest":
        assert stored.tool.request == RequestTemplate("GET", "http://shop.example/{id}")


@pytest.mark.req("SKILL-03")
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"kind": "cobol"}, "its kind 'cobol' is unknown"),
        ({"access": "all"}, "its access 'all' is unknown"),
        ({"mode": "later"}, "its mode 'later' is unknown"),
        ({"timeout": 0}, "its timeout 0 is invalid"),
        ({"timeout": float("nan")}, "its timeout nan is invalid"),
        ({"timeout": True}, "its timeout True is invalid"),
        ({"idempotent": "yes"}, "`idempotent` is not a boolean"),
        ({"description": "x" * 20_001}, "its description has 20001 characters"),
        ({"description": None}, "its description is not a string"),
        ({"label": "x" * 21}, "its label has 21 characters"),
        ({"display_name": "x" * 201}, "its display name has 201 characters"),
        ({"reference": ""}, "a function tool requires a reference"),
        ({"reference": "track"}, "its reference 'track' is not the name of a function"),
        ({"kind": "java", "reference": ""}, "a java tool requires a reference"),
        ({"kind": "bash"}, "a bash tool requires a script"),
        ({"kind": "mcp_server"}, "not registered one by one"),
        ({"kind": "rest"}, "a rest tool requires a method and an endpoint"),
        ({"kind": "rest", "method": "GET"}, "a rest tool requires a method and an endpoint"),
        ({"kind": "rest", "method": "FETCH", "endpoint": "https://a.example"}, "the HTTP method 'FETCH' is unknown"),
        ({"kind": "rest", "method": "GET", "endpoint": "ftp://a.example"}, "is not an HTTP URL"),
        ({"kind": "rest", "method": "GET", "endpoint": "/parcels"}, "is not an HTTP URL"),
        ({"kind": "rest", "method": "GET", "endpoint": "https://a b"}, "is not an HTTP URL"),
        ({"kind": "rest", "method": "GET", "endpoint": f"https://a/{'x' * 1024}"}, "more than 1024 characters"),
        ({"parameters": []}, "the JSON Schema of its arguments is not an object"),
        ({"parameters": {"type": "array"}}, "is invalid"),
        ({"parameters": {"properties": {"a": {"type": "text"}}}}, "the JSON Schema of its arguments is invalid"),
        ({"parameters": {"properties": {"a": {"$ref": "https://a.example/s"}}}}, "is invalid"),
        ({"permissions": {"default": "all"}}, "the value 'all' of `default` is unknown"),
        ({"permissions": {"agent": {}}}, "the key `agent` is unknown"),
    ],
)
async def test_a_tool_that_nobody_could_call_is_refused_with_the_reason(
    tools: Tools, wrong: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await put(tools, **wrong)

    assert why in str(refused.value)
    assert refused.value.next
    assert await tools.list() == []


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 65, "a.b", "a\n", "a\0", None])
async def test_a_name_that_models_do_not_take_is_refused(tools: Tools, name: Any) -> None:
    with pytest.raises(InvalidInput, match="models do not accept this name"):
        await put(tools, name)


@pytest.mark.req("ENG-05")
async def test_a_tool_is_changed_in_the_version_that_was_read(tools: Tools, history: ChangeHistory) -> None:
    first = await put(tools, parameters=SCHEMA, permissions={"default": "none"})

    same = await put(tools, parameters=SCHEMA, version=1, by="bob")
    changed = await put(tools, parameters={}, version=1)

    assert (same.version, same.updated_by, changed.version, changed.id) == (1, "", 2, first.id)
    assert changed.tool.parameters == {"type": "object", "properties": {}}
    assert changed.permissions == {"default": "none"}
    assert [change.operation for change in await history.of("tool", "track")] == ["changed", "created"]
    with pytest.raises(AlreadyExists, match="Pass its version, 2"):
        await put(tools)
    with pytest.raises(Conflict) as stale:
        await put(tools, description="Other.", version=1)
    with pytest.raises(NotFound):
        await put(tools, "other", version=1)
    assert (stale.value.expected, stale.value.current) == (1, 2)


async def test_of_two_changes_at_once_one_is_a_conflict(tools: Tools) -> None:
    made = await asyncio.gather(*(put(tools, description=f"{n}") for n in range(6)), return_exceptions=True)
    done = await asyncio.gather(
        *(put(tools, description=f"new {n}", version=1) for n in range(6)), return_exceptions=True
    )

    assert sorted(type(each).__name__ for each in made) == ["AlreadyExists"] * 5 + ["ToolEntry"]
    assert sorted(type(each).__name__ for each in done) == ["Conflict"] * 5 + ["ToolEntry"]


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("text", ["a\0b", "\ud83d", "\U0010fffe0000", "'; drop table tool_t; --", "ä漢字🎉"])
async def test_hostile_text_comes_back_as_it_went_in(tools: Tools, text: str) -> None:
    stored = await put(tools, description=text, display_name=text, app_name=text, by=text)
    again = await put(tools, description=text, display_name=text, app_name=text, version=1)

    assert (stored.tool.description, stored.display_name, stored.app_name, stored.updated_by) == (text,) * 4
    assert again.version == 1


@pytest.mark.req("ENG-08", "SKILL-03")
async def test_what_a_schema_says_that_the_database_cannot_hold_is_replaced(tools: Tools) -> None:
    stored = await put(tools, parameters={"properties": {"a\0": {"description": "b\ud83dc", "enum": ["\0"]}}})

    assert stored.tool.parameters["properties"] == {"a\ufffd": {"description": "b\ufffdc", "enum": ["\ufffd"]}}


async def test_a_tool_as_it_is_now_is_read_by_its_id_and_parsed_once(tools: Tools, words_only: Engine) -> None:
    first = await put(tools, parameters=SCHEMA)

    one, other = await tools.current(first.id), await tools.current(first.id)
    await put(tools, description="New.", parameters=SCHEMA, version=1)
    changed = await tools.current(first.id)
    await words_only.database.run(
        "update tool_param_t set description = 'By SQL.' where host_id = $1 and name = 'parcel'"
    )
    by_sql = await tools.current(first.id)

    assert one is other
    assert changed is not None
    assert by_sql is not None
    assert (changed.description, changed.version) == ("New.", 2)
    assert by_sql.parameters["properties"]["parcel"]["description"] == "By SQL."
    assert await tools.current(uuid4()) is None


async def test_tools_are_found_by_their_names(tools: Tools) -> None:
    await put(tools, "one")
    await put(tools, "two", active=False)

    found = await tools.by_names(["one", "two", "three", "a\0b"])

    assert sorted(found) == ["one", "two"]
    with pytest.raises(NotFound, match="there is no tool 'three'"):
        await tools.get("three")


async def test_tools_are_listed_by_name_and_by_what_they_are(tools: Tools, skills: Skills, source: UUID) -> None:
    await put(tools, "b")
    await put(tools, "d", kind="java", active=False)
    await tools.store_all(source, [imported("a"), imported("c")])
    await skills.put("returns", instructions="")
    await skills.link("returns", "c")

    async def names(**which: Any) -> list[str]:
        return [each.tool.name for each in await tools.list(**which)]

    assert await names() == ["a", "b", "c", "d"]
    assert await names(limit=2) + await names(limit=2, after="b") == ["a", "b", "c", "d"]
    assert await names(source="shop") == ["a", "c"]
    assert await names(kind="java") == ["d"]
    assert await names(active=True) == ["a", "b", "c"]
    assert await names(skill="returns") == ["c"]
    assert await names(source="none") == await names(skill="no\0ne") == []
    with pytest.raises(InvalidInput, match="the kind 'cobol' is unknown"):
        await names(kind="cobol")
    with pytest.raises(InvalidInput, match="the limit 1001 is out of range"):
        await names(limit=1001)


async def test_a_removed_tool_takes_its_links_with_it(tools: Tools, skills: Skills, history: ChangeHistory) -> None:
    await put(tools, parameters=SCHEMA)
    await skills.put("returns", instructions="")
    await skills.link("returns", "track")

    with pytest.raises(Conflict):
        await tools.remove("track", version=2)
    await tools.remove("track", version=1, by="ann")

    assert await skills.tools_of("returns") == []
    assert {(change.kind, change.operation, change.by) for change in await history.of(limit=2)} == {
        ("tool", "removed", "ann"), ("skill_tool", "removed", "ann"),
    }  # fmt: skip
    with pytest.raises(NotFound):
        await tools.remove("track")


@pytest.mark.req("SKILL-07")
async def test_tools_of_every_origin_are_activated_and_permitted(
    tools: Tools, words_only: Engine, source: UUID
) -> None:
    await put(tools, "stored")
    await words_only.definitions.put("guest", instructions="")
    await tools.store_all(source, [imported("brought")])
    await Declarations(words_only.database).declare("shop", [tool_of(track)])

    for name in ("stored", "brought", "track"):
        asleep = await tools.activate(name, False, by="ann")
        permitted = await tools.permit(name, {"agents": {"guest": "none"}}, version=2)

        assert (asleep.active, asleep.version, asleep.updated_by) == (False, 2, "ann")
        assert (permitted.permissions, permitted.version) == ({"agents": {"guest": "none"}}, 3)
        with pytest.raises(Conflict):
            await tools.activate(name, True, version=1)
    with pytest.raises(NotFound):
        await tools.activate("none", True)
    with pytest.raises(InvalidInput, match="permissions"):
        await tools.permit("stored", {"default": "all"})


async def test_tools_of_programs_and_sources_are_theirs_to_change(
    tools: Tools, words_only: Engine, source: UUID
) -> None:
    await tools.store_all(source, [imported("brought")])
    await Declarations(words_only.database).declare("shop", [tool_of(track)])

    for work in (put(tools, "brought", version=1), tools.remove("brought")):
        with pytest.raises(AlreadyExists, match="comes from the source shop"):
            await work
    for work in (put(tools, "track"), tools.remove("track", version=1)):
        with pytest.raises(AlreadyExists, match="an app declares the tool track"):
            await work


@pytest.mark.req("MCP-03")
async def test_what_a_source_has_becomes_tools(tools: Tools, source: UUID, words_only: Engine) -> None:
    diff = await tools.store_all(source, [imported("track", description="Where it is."), imported("cancel")], by="ann")

    entry = await tools.get("track")
    assert diff == Diff(added=("cancel", "track"))
    assert (entry.origin, entry.source, entry.operation, entry.display_name) == (
        "source",
        "shop",
        "POST /track",
        "Track",
    )
    assert (entry.tool.request, entry.tool.parameters, entry.updated_by) == (REQUEST, SCHEMA, "ann")
    assert entry.tool.backend == Backend("shop", "https://shop.example", {"key": "shop-key"})
    assert await words_only.database.value(
        "select openapi_schema from tools where host_id = $1 and name = 'track'"
    ) == {"summary": "Where it is."}


@pytest.mark.req("MCP-03")
async def test_only_what_changed_in_a_source_is_written(tools: Tools, source: UUID, history: ChangeHistory) -> None:
    await tools.store_all(source, [imported("same"), imported("other"), imported("gone")])
    await tools.activate("other", False)
    await tools.permit("other", {"default": "read"})
    before = await history.of()

    nothing = await tools.store_all(source, [imported("same"), imported("other"), imported("gone")])
    diff = await tools.store_all(source, [imported("new"), imported("other", description="New."), imported("same")])

    assert nothing == Diff(unchanged=("gone", "other", "same"))
    assert not nothing
    assert diff == Diff(added=("new",), changed=("other",), removed=("gone",), unchanged=("same",))
    assert len(await history.of()) == len(before) + 3
    assert (await tools.get("same")).version == 1
    kept = await tools.get("other")
    assert (kept.version, kept.active, kept.permissions, kept.tool.description) == (
        4,
        False,
        {"default": "read"},
        "New.",
    )


async def test_a_name_that_somebody_has_is_led_by_the_sources(tools: Tools, words_only: Engine, source: UUID) -> None:
    long = "x" * 64
    other = await add_source(words_only, "other")
    for name in ("track", "shop_cancel", "cancel", long):
        await put(tools, name)

    await tools.store_all(source, [imported("track"), imported("cancel"), imported(long), imported("shop_track")])
    await tools.store_all(other, [imported("track")])

    names = {each.operation: each.tool.name for each in await tools.list(source="shop")}
    assert names["POST /shop_track"] == "shop_track"
    assert len(set(names.values())) == 4
    assert all(name.startswith("shop_") and len(name) <= 64 for name in names.values())
    assert names["POST /track"] != "shop_track"
    assert [each.tool.name for each in await tools.list(source="other")] == ["other_track"]


async def test_a_tool_keeps_its_name_as_long_as_the_source_has_its_operation(tools: Tools, source: UUID) -> None:
    await put(tools, "track")
    await tools.store_all(source, [imported("track", operation="GET /parcels")])
    await tools.remove("track")

    diff = await tools.store_all(source, [imported("follow", operation="GET /parcels"), imported("shop_track")])

    names = {each.operation: each.tool.name for each in await tools.list(source="shop")}
    assert diff.added
    assert names["GET /parcels"] == "shop_track"
    assert names["POST /shop_track"] == "shop_shop_track"


async def test_a_tool_that_a_skill_works_with_is_deactivated_rather_than_removed(
    tools: Tools, skills: Skills, source: UUID
) -> None:
    await skills.put("returns", instructions="")
    await tools.store_all(source, [imported("linked"), imported("asleep"), imported("free")])
    await tools.activate("asleep", False)
    for name in ("linked", "asleep"):
        await skills.link("returns", name)

    gone = await tools.store_all(source, [])
    still = await tools.store_all(source, [])
    asleep = await tools.get("linked")
    back = await tools.store_all(source, [imported("linked"), imported("asleep")])

    assert (gone, still) == (Diff(removed=("free",), deactivated=("linked",)), Diff())
    assert not asleep.active
    assert back == Diff(changed=("linked",), unchanged=("asleep",))
    assert (await tools.get("linked")).active
    assert not (await tools.get("asleep")).active


async def test_two_tools_of_one_name_or_operation_are_refused(tools: Tools, source: UUID) -> None:
    for twins in (
        [imported("track"), imported("track", operation="GET /other")],
        [imported("track"), imported("other", operation="POST /track")],
    ):
        with pytest.raises(InvalidInput, match="two of them have the"):
            await tools.store_all(source, twins)


async def test_a_transaction_that_fails_leaves_nothing_of_a_source(tools: Tools, words_only: Engine) -> None:
    id = uuid4()

    async def fail() -> None:
        async with words_only.database.transaction() as tx:
            await tx.run(
                "insert into tool_source (host_id, source_id, name, kind) values ($1, $2, 'shop', 'openapi')", id
            )
            assert await tools.store_all(id, [imported("track")], tx=tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await tools.list() == []


@pytest.mark.req("MCP-03")
async def test_fifteen_hundred_tools_are_stored_at_once(tools: Tools, source: UUID, words_only: Engine) -> None:
    many = [imported(f"operation_{n}", description=f"Does {n}.") for n in range(1500)]

    first = await tools.store_all(source, many)
    second = await tools.store_all(source, [*many[1:], imported("operation_new")])

    assert len(first.added) == 1500
    assert (second.added, second.removed, len(second.unchanged)) == (("operation_new",), ("operation_0",), 1499)
    assert await words_only.database.value("select count(*) from tool_param_t where host_id = $1") == 1500 * 4
    assert await words_only.database.value("select max(revision) from registry_change where host_id = $1") == 3


async def test_tenants_have_tools_of_their_own(tools: Tools, acme: Engine) -> None:
    theirs = Tools(acme.database)
    ours = await put(tools, description="Ours.")

    await put(theirs, description="Theirs.")

    assert (await tools.get("track")).tool.description == "Ours."
    assert await theirs.current(ours.id) is None
    assert [each.tool.description for each in await theirs.list()] == ["Theirs."]


async def test_a_tool_that_came_by_plain_sql_is_one_like_any_other(tools: Tools, words_only: Engine) -> None:
    id = UUID(int=7)
    await words_only.database.run(
        "insert into tool_t (host_id, tool_id, name, description, implementation_type, api_endpoint, api_method) "
        "values ($1, $2, 'track', 'Where a parcel is.', 'rest', 'https://shop.example/{parcel}', 'get')",
        id,
    )
    await words_only.database.run(
        "insert into tool_param_t (host_id, param_id, tool_id, name, param_type, validation_schema, order_index) "
        """values ($1, $2, $3, 'parcel', 'string', '{"minLength": 3}', 1), ($1, $4, $3, 'odd', 'number', '7', 2)""",
        uuid4(), id, uuid4(),
    )  # fmt: skip
    await words_only.database.run("update tool_t set request = '[7]' where host_id = $1")

    entry = await tools.get("track")
    changed = await tools.activate("track", False)

    assert (entry.id, entry.label, entry.origin, entry.active, entry.version) == (id, "1.0.0", "db", True, 1)
    assert entry.tool.request == RequestTemplate("GET", "https://shop.example/{parcel}")
    assert entry.tool.parameters == {
        "type": "object", "properties": {"parcel": {"type": "string", "minLength": 3}}, "required": ["parcel"],
    }  # fmt: skip
    assert (changed.version, changed.tool.parameters) == (2, entry.tool.parameters)


SCHEMAS: list[dict[str, Any]] = [
    SCHEMA,
    {},
    {"properties": {"a": True, "b": False, "c": {"type": ["integer", "null"], "description": "", "default": 0}}},
    {"properties": {"a" * 256: {"type": "string"}, "b": {}}, "required": ["a" * 256, "b", "none"], "minProperties": 1},
]


@pytest.mark.req("SKILL-07")
@pytest.mark.parametrize("schema", SCHEMAS)
async def test_plain_sql_reads_tools_under_the_specs_names(words_only: Engine, schema: dict[str, Any]) -> None:
    async with tenant_login(words_only, "ann") as login:
        tools = Tools(login.engine.database)
        entry = await put(tools, description="Where a parcel is.", parameters=schema, app_name="shop", active=False)
        await login.engine.database.run(
            "insert into tool_usage (host_id, tool_id, calls, failures, total_ms) values ($1, $2, 4, 1, 10)", entry.id
        )

        cursor = login.at_hand().execute("select * from tools")
        [row] = cursor.fetchall()
        told = dict(zip((column.name for column in cursor.description or ()), row, strict=True))

    assert list(told) == [
        "host_id", "id", "app_name", "name", "display_name", "description", "openapi_schema", "permissions",
        "is_active", "call_count", "avg_latency_ms", "created_at", "updated_at",
    ]  # fmt: skip
    assert (told["id"], told["name"], told["app_name"], told["is_active"]) == (entry.id, "track", "shop", False)
    assert (told["call_count"], told["avg_latency_ms"]) == (4, 2.5)
    assert told["openapi_schema"] == {
        "name": "track", "description": "Where a parcel is.", "parameters": entry.tool.parameters,
    }  # fmt: skip


@pytest.mark.req("SKILL-07")
async def test_a_tool_tells_how_often_it_was_called(tools: Tools, words_only: Engine) -> None:
    entry = await put(tools)
    await words_only.database.run(
        "insert into tool_usage (host_id, tool_id, calls, failures, total_ms) values ($1, $2, 4, 1, 10)", entry.id
    )

    counted = await tools.get("track")

    assert counted == replace(entry, calls=4, failures=1, latency_ms=2.5)


async def test_what_is_left_out_of_a_change_stays_as_it_is(tools: Tools) -> None:
    run: dict[str, Any] = {"access": "read", "mode": "event", "idempotent": True, "approve": True, "timeout": 9.0}
    said: dict[str, Any] = {"label": "2.1", "display_name": "Track", "app_name": "shop", "active": False}
    await put(tools, **run, **said)

    changed = await tools.put("track", description="New.", parameters={}, kind="function", version=1)
    reset = await put(tools, mode=None, timeout=None, version=2)

    assert {name: getattr(changed.tool, name) for name in run} == run
    assert {name: getattr(changed, name) for name in said} == said
    assert (changed.tool.description, changed.tool.reference) == ("New.", "shop:track")
    assert (reset.tool.mode, reset.tool.timeout, reset.tool.approve) == (None, None, True)


@pytest.mark.req("SKILL-07")
async def test_permissions_are_for_agents_that_there_are_or_were(tools: Tools, words_only: Engine) -> None:
    await put(tools)
    await words_only.definitions.put("guest", instructions="")
    await tools.permit("track", {"agents": {"guest": "none"}})
    await words_only.definitions.remove("guest")

    with pytest.raises(NotFound, match="there is no agent 'gest'"):
        await tools.permit("track", {"agents": {"guest": "none", "gest": "none"}})
    with pytest.raises(NotFound, match="there is no agent 'gest'"):
        await put(tools, permissions={"agents": {"gest": "none"}}, version=2)
    permitted = await tools.permit("track", {"default": "read", "agents": {"guest": "none"}})

    assert permitted.permissions == {"default": "read", "agents": {"guest": "none"}}


@pytest.mark.req("MCP-03")
async def test_an_operation_that_comes_back_is_as_administrators_had_it(
    tools: Tools, words_only: Engine, source: UUID
) -> None:
    names = ("asleep", "capped", "named", "plain")
    await words_only.definitions.put("support", instructions="", tools=["named"])
    await tools.store_all(source, [imported(name) for name in names])
    await tools.activate("asleep", False)
    await tools.permit("capped", {"default": "none"})

    gone = await tools.store_all(source, [])
    back = await tools.store_all(source, [imported(name) for name in names])

    entries = {name: await tools.get(name) for name in names}
    assert (gone.removed, gone.deactivated) == (("plain",), ("capped", "named"))
    assert back.added == ("plain",)
    assert {name: entry.active for name, entry in entries.items()} == {name: name != "asleep" for name in names}
    assert entries["capped"].permissions == {"default": "none"}


async def test_a_tool_that_its_source_has_no_longer_can_be_removed(
    tools: Tools, words_only: Engine, source: UUID
) -> None:
    await tools.store_all(source, [imported("brought")])
    await tools.permit("brought", {"default": "read"})
    with pytest.raises(AlreadyExists, match="comes from the source shop"):
        await tools.remove("brought")
    await tools.store_all(source, [])

    await tools.remove("brought")

    assert await tools.list() == []


async def test_tools_of_a_source_that_is_not_active_are_not(tools: Tools, words_only: Engine, source: UUID) -> None:
    await tools.store_all(source, [imported("brought")])
    async with words_only.postgres.owner() as owner:
        await owner.script("update tool_source set active = false")

    entry = await tools.get("brought")

    assert not entry.active
    assert await tools.allowed(["brought"], agent="support") == {}


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
async def test_a_schema_in_which_alternatives_multiply_is_refused(tools: Tools, keyword: str) -> None:
    defs = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 3} for n in range(25)}
    schema = {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, "d25": {"type": "string"}}}

    with pytest.raises(InvalidInput, match="more than 10000 combinations"):
        await put(tools, parameters=schema)


@pytest.mark.req("ENG-08")
async def test_a_large_schema_is_checked_beside_the_event_loop(tools: Tools) -> None:
    properties = {f"p{n}": {"type": "integer", "default": n} for n in range(2000)}
    steps = 0

    async def others() -> None:
        nonlocal steps
        while True:
            steps += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await put(tools, parameters={"properties": properties})
    beside.cancel()

    assert steps > 10
