from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidInput
from holdfast.core.text import dumps, loads
from holdfast.skills.parameters import LONGEST_NAME, ParameterRow, normalize, parameters_of, schema_of, storable

pytestmark = pytest.mark.req("SKILL-03")

TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"]
TEXTS = st.text(st.characters() | st.sampled_from("\0\ud800\udfff\ufffd\U0010fffe\U0001f600"), max_size=12)
NAMES = TEXTS | st.sampled_from(["", "type", "properties", "required", "$ref", "default", "x" * 300, "a.b[0]", "größe"])
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False, width=32)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
SAID_TYPES = st.sampled_from([*TYPES, "any", "file", 7, None]) | st.lists(st.sampled_from(TYPES), max_size=3)


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas with any of the keywords, right or wrong, and schemas of the kind of `inner` within."""
    some, named = st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": SAID_TYPES,
        "default": VALUES,
        "description": TEXTS | st.none() | st.integers(),
        "title": TEXTS,
        "enum": st.lists(VALUES, max_size=3),
        "const": VALUES,
        "examples": st.lists(VALUES, max_size=2),
        "format": st.sampled_from(["date-time", "uuid", "email", "uri", "byte"]),
        "pattern": TEXTS,
        **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"], NUMBERS),
        **dict.fromkeys(["minLength", "maxItems", "minProperties"], st.integers(0, 9)),
        **dict.fromkeys(["uniqueItems", "deprecated", "readOnly", "nullable"], st.booleans()),
        **dict.fromkeys(["items", "additionalProperties", "not", "if", "then", "else", "contains"], inner),
        **dict.fromkeys(["anyOf", "oneOf", "allOf", "prefixItems"], some),
        **dict.fromkeys(["patternProperties", "$defs", "dependentSchemas"], named),
        "properties": named,
        "required": st.lists(NAMES, max_size=3),
        "$ref": st.sampled_from(["#", "#/$defs/a", "https://example.com/x"]),
        "x-extension": VALUES,
    }
    said = [st.tuples(st.just(keyword), value) for keyword, value in keywords.items()]
    return st.lists(st.one_of(said), max_size=5).map(dict[str, Any])


NESTED = st.booleans() | schemas(st.booleans() | schemas(st.booleans()))


@st.composite
def roots(draw: st.DrawFn) -> dict[str, Any] | bool:
    """Schemas of arguments."""
    if draw(st.integers(0, 20)) == 0:
        return True
    schema = draw(schemas(NESTED))
    kind = draw(st.sampled_from(["object", None, ["object", "null"], ["string", "object"]]))
    properties = draw(st.dictionaries(NAMES, NESTED, max_size=6))
    known = st.sampled_from(list(properties) or ["nobody"])
    return {
        **{key: value for key, value in schema.items() if key != "type"},
        **({} if kind is None else {"type": kind}),
        **({"properties": properties} if properties or draw(st.booleans()) else {}),
        "required": draw(st.lists(known | NAMES, max_size=5)),
    }


@given(roots())
def test_rows_and_the_rest_give_the_schema_back(schema: dict[str, Any] | bool) -> None:
    rows, rest = parameters_of(schema)

    told = schema_of(rows, rest)

    assert told == normalize(schema) == normalize(told) == storable(told)
    assert [row.name for row in rows] == [name for name in told["properties"] if len(name) <= LONGEST_NAME]
    assert parameters_of(told) == (rows, rest)


@given(roots())
def test_what_a_database_keeps_of_them_gives_the_schema_back(schema: dict[str, Any] | bool) -> None:
    rows, rest = parameters_of(schema)

    stored = [
        ParameterRow(
            row.name,
            row.param_type,
            row.required,
            None if row.default_value is None else _kept(row.default_value),
            row.description,
            None if row.validation_schema is None else _kept(row.validation_schema),
            row.order_index,
        )
        for row in reversed(rows)
    ]

    assert schema_of(stored, _kept(rest)) == normalize(schema)


def _kept(value: Any) -> Any:
    """A value as jsonb gives it back: with its keys in another order, and not a character that it cannot hold."""
    text = dumps(value)
    assert r"\u0000" not in text
    text.encode()
    return _reversed(loads(text))


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(each) for key, each in reversed(cast(dict[str, Any], value).items())}
    return [_reversed(each) for each in cast(list[Any], value)] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("schema", "row"),
    [
        ({"type": "string", "description": "who"}, ParameterRow("x", "string", False, None, "who", None)),
        ({"type": "integer", "default": 3}, ParameterRow("x", "number", False, 3, None, {"type": "integer"})),
        ({"type": "number", "maximum": 1}, ParameterRow("x", "number", False, None, None, {"maximum": 1})),
        ({"type": "boolean", "default": False}, ParameterRow("x", "boolean", False, False)),
        ({"type": "string", "default": None}, ParameterRow("x", "string", False, None, None, {"default": None})),
        (
            {"type": ["string", "null"]},
            ParameterRow("x", "string", False, None, None, {"type": ["string", "null"]}),
        ),
        (
            {"type": ["string", "integer"]},
            ParameterRow("x", "any", False, None, None, {"type": ["string", "integer"]}),
        ),
        ({"type": "null"}, ParameterRow("x", "any", False, None, None, {"type": "null"})),
        ({"type": "any"}, ParameterRow("x", "any", False, None, None, {"type": "any"})),
        ({"$ref": "#/$defs/a"}, ParameterRow("x", "any", False, None, None, {"$ref": "#/$defs/a"})),
        ({}, ParameterRow("x", "any", False)),
        (True, ParameterRow("x", "any", False, None, None, True)),
        (False, ParameterRow("x", "any", False, None, None, False)),
    ],
)
def test_columns_say_what_they_can_and_the_validation_schema_the_rest(schema: Any, row: ParameterRow) -> None:
    rows, rest = parameters_of({"type": "object", "properties": {"x": schema}})

    assert (rows, rest) == ([row], {})


def test_what_the_schema_says_beside_its_properties_is_the_rest() -> None:
    schema = {
        "type": "object",
        "properties": {"b": {"type": "string"}, "a": {"type": "array"}},
        "required": ["ghost", "a", "b", "a"],
        "additionalProperties": False,
        "$defs": {"d": {"type": "string"}},
    }

    rows, rest = parameters_of(schema)

    assert [(row.name, row.required, row.order_index) for row in rows] == [("b", True, 0), ("a", True, 1)]
    assert rest == {"required": ["ghost"], "additionalProperties": False, "$defs": {"d": {"type": "string"}}}
    assert schema_of(rows, rest)["required"] == ["b", "a", "ghost"]


def test_an_argument_whose_name_is_too_long_for_a_row_is_told_all_the_same() -> None:
    schema = {"type": "object", "properties": {"n" * 256: {"type": "string"}}, "required": ["n" * 256]}

    rows, rest = parameters_of(schema)

    assert rows == []
    assert schema_of(rows, rest) == schema


def test_rows_that_somebody_wrote_by_hand_are_a_schema() -> None:
    rows = [
        ParameterRow("city", "string", True, None, "where", None, 2),
        ParameterRow("days", "number", False, 3, None, {"type": "integer", "minimum": 1}, 1),
        ParameterRow("odd", "string", False, None, "told", True, 1),
    ]

    assert schema_of(rows, {}) == {
        "type": "object",
        "properties": {
            "days": {"type": "integer", "default": 3, "minimum": 1},
            "odd": {"type": "string", "description": "told"},
            "city": {"type": "string", "description": "where"},
        },
        "required": ["city"],
    }


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (False, "it is not an object"),
        ([], "it is not an object"),
        ({"type": "string"}, 'its type is \'string\'. Use "type": "object"'),
        ({"type": ["string", "null"]}, "its type is"),
        ({"properties": []}, "its `properties` is not an object"),
        ({"properties": {"x": "string"}}, "`properties.x` is not a schema"),
        ({"required": True}, "its `required` is not a list of names"),
        ({"required": [1]}, "its `required` is not a list of names"),
    ],
)
def test_what_is_no_schema_of_arguments_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match="the schema of the tool's arguments is invalid") as refused:
        parameters_of(schema)

    assert said in str(refused.value)


@pytest.mark.req("ENG-08")
def test_a_schema_without_end_is_refused() -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"x": schema}

    with pytest.raises(InvalidInput, match="more than 128 levels"):
        parameters_of(schema)
