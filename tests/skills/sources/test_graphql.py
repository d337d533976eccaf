"""Tools of GraphQL schemas: names, arguments, selections, and documents that mean harm."""

import json
import time
import tracemalloc
from typing import Any

import graphql
import pytest

from holdfast.core.errors import HoldfastError, InvalidInput, TooLarge
from holdfast.skills.request import Backend
from holdfast.skills.sources.graphql import import_graphql, importer, is_sdl
from holdfast.skills.sources.graphql.chosen_selection import check_selection
from holdfast.skills.sources.graphql.default_selection import DefaultSelections
from holdfast.skills.sources.graphql.rules import SelectionRules, check_rules
from holdfast.skills.sources.graphql.sdl import read_sdl
from holdfast.skills.sources.importers import import_tools
from holdfast.skills.sources.source import MAX_OPERATIONS, Choice, ImportedDocument, ImportedTool
from tests.execution.graphql_shop import SDL

pytestmark = pytest.mark.req("MCP-04")

EVERYTHING = Choice(everything=True)
ENDPOINT = "https://shop.example/graphql/"
ODD_SCHEMAS: list[dict[str, Any]] = [
    {},
    {"types": 1, "queryType": 1},
    {"queryType": {"name": "Q"}, "types": [{"kind": "OBJECT", "name": "Q", "fields": [{"name": "a"}, 1, {}]}]},
    {
        "queryType": {"name": "Q"},
        "types": [
            {"kind": "OBJECT", "name": "Q", "fields": [{"name": "a } mutation { b", "type": {"name": "Int"}}]},
            {"kind": "OBJECT", "name": "x } y", "fields": []},
        ],
    },
]


def imported(sdl: str, choice: Choice = EVERYTHING, **rules: Any) -> ImportedDocument:
    return import_graphql(sdl, choice, ENDPOINT, SelectionRules(**rules))


def tool_of(sdl: str, name: str, **rules: Any) -> ImportedTool:
    return next(each for each in imported(sdl, **rules).tools if each.tool.name == name)


def text_of(each: ImportedTool) -> str:
    assert each.tool.request is not None
    assert each.tool.request.graphql is not None
    return each.tool.request.graphql.document


def selection_of(sdl: str, name: str, **rules: Any) -> str:
    each = tool_of(sdl, name, **rules)
    assert each.tool.request is not None
    assert each.tool.request.graphql is not None
    return each.tool.request.graphql.selection


def faults(sdl: str, found: ImportedDocument) -> list[str]:
    """What graphql-core finds wrong with the operations of tools."""
    schema = graphql.build_schema(sdl)
    return [str(error) for each in found.tools for error in graphql.validate(schema, graphql.parse(text_of(each)))]


def test_an_operation_becomes_a_tool_whose_arguments_are_variables() -> None:
    each = tool_of(SDL, "createOrder")

    tool = each.tool
    assert (tool.kind, tool.description, each.operation) == ("graphql", "Create an order.", "mutation createOrder")
    assert tool.request is not None
    assert (tool.request.method, tool.request.url) == ("POST", ENDPOINT)
    assert text_of(each).startswith("mutation createOrder($input: OrderInput!) { createOrder(input: $input) { order {")
    assert tool.parameters["required"] == ["input"]
    assert tool.parameters["properties"]["input"] == {"$ref": "#/$defs/OrderInput"}


def test_input_types_are_definitions_and_may_refer_to_themselves() -> None:
    definitions = tool_of(SDL, "createOrder").tool.parameters["$defs"]

    assert definitions["OrderInput"]["required"] == ["title"]
    assert definitions["OrderInput"]["additionalProperties"] is False
    assert definitions["OrderInput"]["properties"]["state"] == {
        "anyOf": [{"$ref": "#/$defs/State"}, {"type": "null"}],
        "default": "NEW",
    }
    assert definitions["State"] == {"type": "string", "enum": ["NEW", "PAID"]}
    assert definitions["LineInput"]["required"] == ["name"]
    assert definitions["LineInput"]["properties"]["parts"] == {
        "type": ["array", "null"],
        "items": {"$ref": "#/$defs/LineInput"},
    }


def test_scalars_with_known_names_have_their_schemas() -> None:
    arguments = tool_of(SDL, "echo").tool.parameters["properties"]

    assert arguments["at"] == {"type": ["string", "null"], "format": "date-time"}
    assert arguments["any"] == {}
    assert arguments["text"] == {"type": ["string", "null"]}


def test_an_argument_with_a_default_is_optional_and_its_variable_may_be_missing() -> None:
    each = tool_of(SDL, "search")

    assert each.tool.parameters["required"] == ["text"]
    assert "$limit: Int)" in text_of(each)


def test_the_operations_of_tools_are_valid() -> None:
    for depth in (1, 2, 3, 5):
        assert faults(SDL, imported(SDL, depth=depth, fields=1000)) == []


def test_a_schema_is_read_alike_from_an_introspection() -> None:
    answer = {"data": graphql.introspection_from_schema(graphql.build_schema(SDL))}

    kind, found = import_tools(json.dumps(answer).encode(), None, EVERYTHING, Backend(base_url=ENDPOINT))

    own = imported(SDL)
    assert kind == "graphql"
    assert [text_of(each) for each in found.tools] == [text_of(each) for each in own.tools]
    assert [each.tool.parameters for each in found.tools] == [each.tool.parameters for each in own.tools]


def test_selections_have_a_depth_and_leave_out_what_needs_arguments_and_what_is_deprecated() -> None:
    assert selection_of(SDL, "order", depth=1) == "{ id title state }"
    assert selection_of(SDL, "order") == (
        "{ id title state customer { id name total } related { id title state } "
        "comments(first: 5) { pageInfo { hasNextPage endCursor } edges { cursor node { id text } } } }"
    )


def test_selections_of_unions_tell_the_members_apart() -> None:
    assert selection_of(SDL, "search", depth=1) == (
        "{ __typename ... on Customer { id name total } ... on Product { id name total_Product: total } }"
    )


def test_a_selection_is_bounded_in_fields_and_characters() -> None:
    fields = "\n".join(f"f{number}: String" for number in range(500))
    sdl = f"type Query {{ wide: Wide }} type Wide {{ {fields} again: Wide }}"

    few, short = tool_of(sdl, "wide", fields=10), tool_of(sdl, "wide", fields=1000, characters=100)

    assert len(selection_of(sdl, "wide", fields=10).split()) == 12
    assert len(selection_of(sdl, "wide", fields=1000, characters=100)) <= 100
    assert "there are too many" in few.notes[0]
    assert short.notes == few.notes


def test_types_that_reach_one_another_on_countless_ways_make_no_large_selections() -> None:
    names = range(60)
    types = " ".join(f"type T{n} {{ id: ID {' '.join(f't{m}: T{m}' for m in names)} }}" for n in names)
    sdl = f"type Query {{ {' '.join(f'q{n}: T{n}' for n in names)} }} {types}"
    start = time.process_time()

    found = imported(sdl, depth=20)

    assert time.process_time() - start < 10
    assert max(len(text_of(each)) for each in found.tools) < 5000
    assert faults(sdl, found) == []


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (Choice(operations=("order",)), ["order"]),
        (Choice(operations=("query order", "mutation createOrder")), ["order", "createOrder"]),
        (Choice(tags=("mutation",)), ["createOrder"]),
        (Choice(paths=("or*",)), ["order", "orders"]),
        (Choice(), []),
    ],
)
def test_operations_are_chosen_by_name_by_kind_or_by_pattern(choice: Choice, names: list[str]) -> None:
    assert [each.tool.name for each in imported(SDL, choice).tools] == names


def test_a_name_that_a_query_and_a_mutation_share_gets_their_kind() -> None:
    long = "a" * 70
    sdl = f"type Query {{ a: Int b: Int use_skill: Int {long}: Int }} type Mutation {{ a: Int }}"

    names = [each.tool.name for each in imported(sdl).tools]

    assert names[:3] == ["query_a", "b", "query_use_skill"]
    assert names[4] == "mutation_a"
    assert len(names[3]) == 64


def test_no_two_tools_have_the_same_name_whatever_the_schema_calls_its_fields() -> None:
    sdl = (
        f"type Query {{ a: Int query_a: Int query_recall: Int recall: Int {'b' * 70}: Int }} type Mutation {{ a: Int }}"
    )
    twice = {"name": "a", "type": {"name": "Int"}}
    root = {"queryType": {"name": "Q"}, "types": [{"kind": "OBJECT", "name": "Q", "fields": [twice, twice]}]}

    names = [each.tool.name for each in imported(sdl).tools]
    found = import_graphql({"__schema": root}, EVERYTHING, ENDPOINT)

    assert len({*names}) == len(names) == 6
    assert {"query_a", "query_recall", "mutation_a"} < {*names}
    assert [each.tool.name for each in found.tools] == ["a"]
    assert [each.reason for each in found.skipped] == ["the schema has this operation twice"]


def test_an_operation_with_an_argument_called_fields_keeps_it() -> None:
    each = tool_of("type Query { a(fields: Int): A } type A { id: ID }", "a")

    assert each.tool.parameters["properties"]["fields"]["type"] == ["integer", "null"]
    assert "fields_selection" in each.tool.parameters["properties"]


def test_a_deprecated_operation_says_so() -> None:
    assert tool_of(SDL, "old").tool.description == "Deprecated: Use order.\n\nThe query old"


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("a: Missing", "the schema has no type `Missing`"),
        ("a(b: Missing!): Int", "the schema has no input type `Missing`"),
        ("a(file: Upload!): Int", "it takes a file (`Upload`), which cannot be sent"),
        ("a: Empty", "`Empty` has no fields that can be asked for without arguments"),
    ],
)
def test_an_operation_that_cannot_be_called_is_skipped_with_the_reason(field: str, reason: str) -> None:
    found = imported(f"scalar Upload type Empty {{ x(y: Int!): Int }} type Query {{ {field} b: Int }}")

    assert [each.tool.name for each in found.tools] == ["b"]
    assert [(each.operation, each.reason) for each in found.skipped] == [("query a", reason)]


def test_a_selection_of_the_settings_that_does_not_fit_leaves_out_its_operation() -> None:
    found = imported(SDL, operations={"query order": "{ nam }", "nobody": "{ id }"})

    reasons = {each.operation: each.reason for each in found.skipped}
    assert "`Order` has no field `nam`" in reasons["query order"]
    assert reasons["nobody"] == "it has a selection, but the schema has no such operation"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ('# Comment\n"""A "description"."""\ntype Query { a: Int }', True),
        ('schema @link(url: "x") { query: Q }', True),
        ("\ufeffdirective @a on FIELD", True),
        ("extend type Query { a: Int }", True),
        ("openapi: 3.1.0", False),
        ("type: object", False),
        ('{"type": "x"}', False),
        ('"openapi": 3.1.0', False),
        ("", False),
    ],
)
def test_sdl_is_told_from_json_and_yaml(text: str, is_one: bool) -> None:
    assert is_sdl(text) is is_one


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("type Query { a: }", "line 1, column 17"),
        ("type Query { a(b: I = " + "[" * 100_000, "nested too deeply"),
        ("type Query { a: " + "[" * 100_000, "nested too deeply"),
        ("type Query @a(b: {" + "b: {" * 100_000, "nested too deeply"),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused_with_the_place(text: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_sdl(text)

    assert why in refused.value.why


def test_a_schema_without_the_address_of_its_service_is_refused() -> None:
    with pytest.raises(InvalidInput, match="does not have the address") as refused:
        import_tools(SDL.encode(), None, EVERYTHING, Backend())

    assert "--graphql" in refused.value.next


@pytest.mark.parametrize("schema", ODD_SCHEMAS)
def test_an_introspection_that_is_not_one_gives_no_tools(schema: dict[str, Any]) -> None:
    found = import_graphql({"__schema": schema}, EVERYTHING, ENDPOINT)

    assert found.tools == ()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ("{ nam }", "`Order` has no field `nam`"),
        ("{ id } query b { id }", "more than one selection"),
        ("id } query b { id", "more than one selection"),
        ("query { id }", "`Order` has no field `query`"),
        ("{ id", "cannot be parsed"),
        ("{ }", "asks for nothing"),
        ("{ id @skip(if: true) }", "it has a directive"),
        ("{ ...Everything }", "it has a named fragment"),
        ("{ price(currency: [{a: $money}]) }", "is a variable"),
        ("{ price }", "lacks arguments"),
        ('{ price(currency: "EUR", more: 1) }', "has no argument `more`"),
        ('{ price(currency: "EUR", currency: "USD") }', "twice"),
        ("{ customer }", "is an object"),
        ("{ id { x } }", "has no fields"),
        ("{ ... on Product { id } }", "can be no `Product`"),
        ("{ __schema { types { name } } }", "`Order` has no field `__schema`"),
        ("{ " + "related { " * 20 + "id" + " }" * 21, "deeper than 8 levels"),
        ("{" * 4000, "cannot be parsed"),
        ("{ a " * 2400, "cannot be parsed"),
        (" ".join(f"a{number}: id" for number in range(600)), "more than 500 fields"),
        ("id " * 4000, "12,000 characters"),
    ],
)
def test_a_wrong_selection_is_refused(fields: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_selection(fields, "Order", read_sdl(SDL).outputs, deepest=8)

    assert why in refused.value.why


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("id title", "{ id title }"),
        ('{ cost: price(currency: "a\\"b") }', '{ cost: price(currency: "a\\"b") }'),
        ("{ comments { edges { cursor } } }", "{ comments(first: 5) { edges { cursor } } }"),
        (
            "{ comments(first: 1) { edges { cursor } } __typename }",
            "{ comments(first: 1) { edges { cursor } } __typename }",
        ),
        ("{ ... on Node { id } ... { title } }", "{ ... on Node { id } ... on Order { title } }"),
    ],
)
def test_a_selection_is_printed_anew(fields: str, text: str) -> None:
    assert check_selection(fields, "Order", read_sdl(SDL).outputs, deepest=8) == text


@pytest.mark.parametrize(
    "rules",
    [
        SelectionRules(depth=0),
        SelectionRules(depth=21),
        SelectionRules(fields=100_000),
        SelectionRules(operations={"order": " "}),
    ],
)
def test_rules_out_of_range_are_refused(rules: SelectionRules) -> None:
    with pytest.raises(HoldfastError, match="cannot be stored"):
        check_rules(rules)


def test_first_is_sent_only_where_it_is_the_size_of_a_page() -> None:
    sdl = """
    type Query { shop: Shop }
    type Shop {
      id: ID!
      names(first: String, last: String): Name
      letters(first: [Int!]): [Name!]!
      some(first: Int): [Name!]!
      orders(first: String): Orders
      parcels: Orders
      returns(first: Int!): Orders
    }
    type Name { text: String }
    type Orders { nodes: [Name] pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! }
    """
    request = tool_of(sdl, "shop").tool.request
    schema = read_sdl(sdl)

    assert request is not None
    assert request.graphql is not None
    selection = request.graphql.selection
    chosen = check_selection(
        "{ orders { nodes { text } } returns { nodes { text } } }", "Shop", schema.outputs, deepest=8
    )

    assert graphql.validate(graphql.build_schema(sdl), graphql.parse(request.graphql.document)) == []
    assert "names { text }" in selection
    assert "letters { text }" in selection
    assert "some(first: 5) { text }" in selection
    assert "returns(first: 5)" in selection
    assert "orders" not in selection, "nobody can say how many of them"
    assert "parcels" not in selection
    assert chosen == "{ orders { nodes { text } } returns(first: 5) { nodes { text } } }"


def test_only_the_items_of_a_connection_are_as_deep_as_it() -> None:
    sdl = """
    type Query { thing: Thing things(first: Int): Things }
    type Thing { id: ID! cursor: String node: Thing }
    type Things { edges: [Edge] pageInfo: PageInfo! }
    type Edge { cursor: String node: Thing edge: Edge }
    type PageInfo { more: Boolean! }
    """

    found = [tool_of(sdl, name, fields=1000, characters=50_000, depth=2).tool.request for name in ("thing", "things")]
    selections = [request.graphql.selection for request in found if request is not None and request.graphql is not None]

    assert selections == [
        "{ id cursor node { id cursor } }",
        "{ pageInfo { more } edges { cursor node { id cursor node { id cursor } } edge { cursor } } }",
    ]


def test_an_operation_whose_types_are_nested_too_deeply_fails_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    real = DefaultSelections.of

    def deep(self: DefaultSelections, type: str) -> Any:
        if type == "Deep":
            raise RecursionError
        return real(self, type)

    monkeypatch.setattr(DefaultSelections, "of", deep)
    found = imported("type Query { deep: Deep flat: Flat } type Deep { id: ID } type Flat { id: ID }")

    assert [each.tool.name for each in found.tools] == ["flat"]
    assert [(each.operation, each.reason) for each in found.skipped] == [
        ("query deep", "its types are nested too deeply")
    ]


def test_a_comment_that_never_ends_takes_no_memory_for_each_of_its_characters() -> None:
    text = '"""' + "a" * 1_000_000
    tracemalloc.start()

    found = is_sdl(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert not found
    assert peak < 1_000_000


def test_a_schema_with_too_many_operations_is_refused_before_they_are_converted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importer, "_OperationImporter", None)
    fields = " ".join(f"f{number}: Int" for number in range(MAX_OPERATIONS + 1))

    with pytest.raises(TooLarge, match="50001 operations"):
        import_graphql(f"type Query {{ {fields} }}", EVERYTHING, "https://shop.example/graphql")
