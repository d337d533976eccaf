"""Tools that call GraphQL services: what is sent, what comes back, and what callers choose of it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.core.config import Config
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.engine import Engine, open_engine
from holdfast.execution.executions import Execution
from holdfast.skills.request import GraphqlOperation, RequestTemplate
from holdfast.skills.sources.graphql.rules import SelectionRules
from holdfast.skills.sources.source import Choice
from tests.execution.backend import with_calls_to_this_machine
from tests.execution.graphql_shop import SDL, Shop

pytestmark = [pytest.mark.req("MCP-04"), pytest.mark.req("EXEC-01")]

EVERYTHING = Choice(everything=True)
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
HOSTILE = '"}) { order { id } } } mutation { createOrder(input: {title: "x"}) { order { id } } } #'


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    """A GraphQL service."""
    service = Shop()
    async with service.serving():
        yield service


@pytest.fixture
def config(config: Config) -> Config:
    """The settings of an engine that may call services on this machine."""
    return with_calls_to_this_machine(config)


@pytest.fixture
async def engine(config: Config, no_models: None) -> AsyncIterator[Engine]:
    """An engine that finds by words alone."""
    async with open_engine(config=config) as engine:
        yield engine


async def call(engine: Engine, tool: str, **arguments: Any) -> Execution:
    return await engine.executions.call(tool, arguments, user="ann")


@pytest.mark.req("SKILL-05")
async def test_a_service_describes_itself_and_its_operations_are_tools(engine: Engine, shop: Shop) -> None:
    await engine.secrets.set("shop-key", "s3cret-0123456789", hosts=["127.0.0.1"], by="ann")

    report = await engine.sources.add(
        "shop",
        kind="graphql",
        url=shop.endpoint,
        choice=EVERYTHING,
        headers={"Authorization": "Bearer {{secret:shop-key}}"},
    )
    found = await call(engine, "order", id="7")

    assert report.added == ("broken", "createOrder", "echo", "old", "order", "orders", "search")
    assert [(each.operation, each.reason) for each in report.skipped] == [
        ("subscription orderChanged", "subscriptions are not supported: they do not end with one answer")
    ]
    assert {asked.headers["Authorization"] for asked in shop.asked} == {"Bearer s3cret-0123456789"}
    assert found.status == "done"
    assert found.result["title"] == "Order 7"
    assert found.result["customer"] == {"id": "5", "name": "Ann"} | {"total": None}


async def test_queries_read_and_mutations_execute(engine: Engine, shop: Shop) -> None:
    await add(engine, shop)

    tools = {name: (await engine.tools.get(name)).tool for name in ("order", "createOrder")}

    assert (tools["order"].access, tools["order"].idempotent) == ("read", True)
    assert (tools["createOrder"].access, tools["createOrder"].idempotent) == ("execute", False)


async def test_arguments_are_variables_whatever_they_contain(engine: Engine, shop: Shop) -> None:
    await add(engine, shop)

    nested = {"not": {"and": [{"text": HOSTILE}]}}
    first = await call(engine, "echo", text=HOSTILE, filter=nested)
    second = await call(engine, "echo", any={"a": [1, None]}, at="2026-01-01T00:00:00Z")

    assert json.loads(first.result) == {"text": HOSTILE, "filter": nested}
    assert json.loads(second.result) == {"any": {"a": [1, None]}, "at": "2026-01-01T00:00:00Z"}
    assert shop.calls[0]["query"] == shop.calls[1]["query"]


async def test_the_defaults_of_a_service_are_not_sent(engine: Engine, shop: Shop) -> None:
    await add(engine, shop)

    created = await call(engine, "createOrder", input={"title": "tea", "lines": [{"name": "cup"}]})
    cleared = await call(engine, "createOrder", input={"title": "tea", "note": None})
    await call(engine, "search", text="tea")

    assert shop.calls[0]["variables"] == {"input": {"title": "tea", "lines": [{"name": "cup"}]}}
    assert json.loads(created.result["order"]["title"])["lines"] == [{"name": "cup", "count": 1}]
    assert json.loads(cleared.result["order"]["title"])["note"] is None
    assert shop.calls[2]["variables"] == {"text": "tea"}


async def test_a_connection_gets_the_size_of_a_page_unless_the_caller_says_it(engine: Engine, shop: Shop) -> None:
    await add(engine, shop)

    found = await call(engine, "orders")
    last = await call(engine, "orders", last=1, first=None)

    assert [each["id"] for each in found.result["nodes"]] == ["0", "1"]
    assert "pageInfo" in found.result
    assert len(last.result["nodes"]) == 1
    assert [each["variables"] for each in shop.calls] == [{"first": 20}, {"last": 1, "first": None}]


async def test_the_members_of_a_union_are_told_apart(engine: Engine, shop: Shop) -> None:
    await add(engine, shop, selection=SelectionRules(depth=1))

    found = await call(engine, "search", text="a")

    assert found.result == [
        {"__typename": "Customer", "id": "1", "name": "ann", "total": 7},
        {"__typename": "Product", "id": "1", "name": "tea", "total_Product": "7"},
    ]


async def test_errors_beside_data_are_a_result_and_errors_alone_a_failure(engine: Engine, shop: Shop) -> None:
    await add(engine, shop)

    partial = await call(engine, "broken", id="7")
    failed = await call(engine, "createOrder", input={"title": "none"})
    missing = await call(engine, "order", id="0")

    assert partial.status == "done"
    assert partial.result["data"]["title"] == "Order 7"
    assert partial.result["errors"] == [{"message": "no customer of 7", "path": ["broken", "customer"]}]
    assert failed.status == "failed"
    assert "sold out" in (failed.error or "")
    assert (missing.status, missing.result) == ("done", None)


async def test_a_caller_chooses_fields_of_the_result(engine: Engine, shop: Shop) -> None:
    await add(engine, shop)

    found = await call(
        engine, "order", id="7", fields='{ id cost: price(currency: "EUR") comments { edges { node { text } } } }'
    )
    bare = await call(engine, "search", text="a", fields="... on Customer { name }")

    assert found.result == {"id": "7", "cost": 5.0, "comments": {"edges": [{"node": {"text": "good"}}] * 2}}
    assert bare.result == [{"name": "ann"}, {}]
    assert shop.calls[0]["variables"] == {"id": "7"}


async def test_a_wrong_choice_is_refused_before_anything_is_sent(engine: Engine, shop: Shop) -> None:
    await add(engine, shop)

    refused = [
        await call(engine, "order", id="7", fields=fields)
        for fields in ("{ nam }", "{ id } mutation { createOrder }", "{ price(currency: $money) }")
    ]

    assert [each.status for each in refused] == ["failed"] * 3
    assert "`Order` has no field `nam`" in (refused[0].error or "")
    assert shop.asked == []


async def test_a_refusal_of_a_choice_lists_the_fields_that_there_are(engine: Engine, shop: Shop) -> None:
    await add(engine, shop)

    refused = await call(engine, "order", id="7", fields="{ customer { nam } }")

    assert "Fields of `Customer`: id, name, orders { … }, total." in (refused.error or "")


async def test_choices_follow_a_reload(engine: Engine, shop: Shop) -> None:
    await add(engine, shop, pin="follow")
    await call(engine, "order", id="7", fields="id")

    await engine.sources.reload("shop", document=SDL.replace("title: String!\n", "heading: String\n").encode())
    refused = await call(engine, "order", id="7", fields="title")

    assert "`Order` has no field `title`" in (refused.error or "")


async def test_settings_say_what_an_operation_asks_for(engine: Engine, shop: Shop) -> None:
    rules = SelectionRules(operations={"order": "{ title comments { edges { node { id } } } }"})
    added = await add(engine, shop, selection=rules)

    found = await call(engine, "order", id="7")
    await engine.sources.change("shop", version=added.version, selection=SelectionRules(depth=1), document=SDL.encode())
    shallow = await call(engine, "order", id="7")

    assert found.result == {"title": "Order 7", "comments": {"edges": [{"node": {"id": "0"}}, {"node": {"id": "1"}}]}}
    assert shallow.result == {"id": "7", "title": "Order 7", "state": "NEW"}


async def test_an_answer_that_is_not_graphql_is_an_error_and_an_http_error_has_advice(
    engine: Engine, shop: Shop
) -> None:
    await add(engine, shop)

    shop.will_answer("/graphql", text="<html>")
    odd = await call(engine, "order", id="7")
    shop.will_answer("/graphql", status=401, text="who are you?")
    closed = await call(engine, "order", id="7")

    assert "did not answer with GraphQL" in (odd.error or "")
    assert "credentials" in (closed.error or "")


async def test_a_service_that_does_not_describe_itself_needs_its_schema(engine: Engine, shop: Shop) -> None:
    shop.introspects = False

    with pytest.raises(InvalidInput, match="introspection is off"):
        await engine.sources.add("shop", kind="graphql", url=shop.endpoint, choice=EVERYTHING)
    report = await engine.sources.add("shop", document=SDL.encode(), base_url=shop.endpoint, choice=EVERYTHING)

    assert (report.source.kind, len(report.added)) == ("graphql", 7)


async def test_a_schema_given_by_hand_is_not_replaced_by_what_the_service_says(engine: Engine, shop: Shop) -> None:
    sdl = b"type Query { echo: String }"
    given: dict[str, Any] = {"kind": "graphql", "choice": EVERYTHING, "reload_seconds": 1, "pin": "follow"}
    checks = "select seconds, due_at from source_check where host_id = $1"

    added = await engine.sources.add("shop", document=sdl, url=shop.endpoint, base_url=shop.endpoint, **given)
    at_once = await engine.database.one(checks)
    await engine.source_checks.ask("shop")
    asked_for = await engine.database.one(checks)
    asked = await engine.sources.reload("shop")
    after = await engine.database.one(checks)
    again = await engine.sources.reload("shop", document=sdl)

    assert [dict(row or {}) for row in (at_once, asked_for)] == [{"seconds": 0, "due_at": None}] * 2
    assert (added.source.reload_seconds, asked.source.reload_seconds, again.source.reload_seconds) == (0, 1, 0)
    assert len(asked.added) == 6
    assert after is not None
    assert after["seconds"] == 1
    assert again.removed == asked.added


@pytest.mark.req("SAFE-03")
async def test_a_service_at_a_new_address_is_refused_before_it_gets_secrets(engine: Engine, shop: Shop) -> None:
    await engine.secrets.set("shop-key", "s3cret-0123456789", by="ann")
    headers = {"Authorization": "Bearer {{secret:shop-key}}"}
    await engine.sources.add("shop", kind="graphql", url=shop.endpoint, choice=EVERYTHING, headers=headers)
    other = Shop()

    async with other.serving():
        for change in (
            engine.sources.reload("shop", url=other.endpoint),
            engine.sources.reload("shop", url=other.endpoint, dry_run=True),
            engine.sources.change("shop", version=1, url=other.endpoint),
        ):
            with pytest.raises(InvalidInput, match="a new address of its service"):
                await change
        asked = len(other.asked)
        moved = await engine.sources.reload("shop", url=other.endpoint, accept_address=True)

    assert asked == 0
    assert moved.source.location == other.endpoint
    assert other.asked[0].headers["Authorization"] == "Bearer s3cret-0123456789"


async def test_a_service_that_moves_is_asked_at_its_new_address(engine: Engine, shop: Shop) -> None:
    await engine.sources.add("shop", kind="graphql", url=shop.endpoint, choice=EVERYTHING)
    other = Shop()

    async with other.serving():
        moved = await engine.sources.change("shop", version=1, base_url=other.endpoint)
        found = await call(engine, "order", id="7")

    assert moved.source.location == other.endpoint
    assert (found.status, len(other.asked)) == ("done", 2)


async def test_a_change_never_replaces_a_schema_given_by_hand(engine: Engine, shop: Shop) -> None:
    schema = b"type Query { order(id: ID!): Order } type Order { title: String }"
    await engine.sources.add("shop", kind="graphql", document=schema, url=shop.endpoint, choice=EVERYTHING)
    other = Shop()

    async with other.serving():
        for change in (
            engine.sources.change("shop", version=1, choice=Choice(tags=("query",))),
            engine.sources.change("shop", version=1, base_url=other.endpoint),
        ):
            with pytest.raises(InvalidInput, match="cannot be changed without its document"):
                await change
        changed = await engine.sources.change("shop", version=1, timeout=5.0)
        moved = await engine.sources.change("shop", version=2, base_url=other.endpoint, document=schema)

    assert (shop.asked, other.asked) == ([], [])
    assert changed.source.version == 2
    assert moved.changed


async def test_a_reload_asks_the_service_again_and_finds_nothing_new(engine: Engine, shop: Shop) -> None:
    await engine.sources.add("shop", kind="graphql", url=shop.endpoint, choice=EVERYTHING)

    report = await engine.sources.reload("shop")

    assert (report.written, len(report.unchanged)) == (False, 7)


async def test_one_operation_is_registered_without_a_source(engine: Engine, shop: Shop) -> None:
    document = "query order($id: ID!) { order(id: $id) { title } }"
    request = RequestTemplate("POST", shop.endpoint, graphql=GraphqlOperation(document))
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}

    await engine.tools.put("title", description="A title.", parameters=schema, kind="graphql", request=request)
    found = await call(engine, "title", id="7")

    assert found.result == {"title": "Order 7"}


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (None, "requires an operation"),
        (GraphqlOperation("query {"), "its operation is invalid: Syntax Error"),
        (GraphqlOperation("subscription { a }"), "subscriptions are not supported"),
        (GraphqlOperation("query a { a } query b { b }"), "the text has 2 operations"),
        (GraphqlOperation("query { a { b } }", type="A", fields="fields"), "by a schema that it does not have"),
    ],
)
async def test_an_operation_that_cannot_run_is_not_registered(
    engine: Engine, operation: GraphqlOperation | None, why: str
) -> None:
    request = RequestTemplate("POST", "https://shop.example/graphql", graphql=operation)

    with pytest.raises(HoldfastError, match="cannot be stored") as refused:
        await engine.tools.put("title", description="", parameters=NOTHING, kind="graphql", request=request)

    assert why in refused.value.why


async def add(engine: Engine, shop: Shop, *, selection: SelectionRules | None = None, **more: Any) -> Any:
    """Import everything from the schema in a file."""
    report = await engine.sources.add(
        "shop", document=SDL.encode(), base_url=shop.endpoint, choice=EVERYTHING, selection=selection, **more
    )
    return report.source
