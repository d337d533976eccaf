import time
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidInput
from holdfast.skills.arguments import MAX_ARGUMENTS_BYTES, ArgumentRefusal, check, parse_arguments, unknown_tool
from holdfast.skills.function_tools import tool_of
from holdfast.skills.overlays import apply_configs
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool
from holdfast.skills.validators import MAX_CACHED, checker_of


@dataclass
class Address:
    street: str
    number: int


async def ship(parcel: str, to: Address | None = None, via: Literal["air", "sea"] = "sea", copies: int = 1) -> str:
    """Ship a parcel."""
    return f"{parcel} {to} {via} {copies}"


SHIP = tool_of(ship)


@pytest.mark.req("SKILL-03")
@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ('{"parcel": "a"}', {"parcel": "a", "to": None, "via": "sea", "copies": 1}),
        (' {"parcel": "\\ud83d", "copies": 2}\n', {"parcel": "\ud83d", "to": None, "via": "sea", "copies": 2}),
        (
            '{"parcel": "a", "to": {"street": "b", "number": 3}, "via": "air"}',
            {"parcel": "a", "to": {"street": "b", "number": 3}, "via": "air", "copies": 1},
        ),
    ],
)
def test_arguments_that_fit_stay_as_they_were_written_and_the_others_have_their_defaults(
    raw: str, arguments: dict[str, Any]
) -> None:
    assert parse_arguments(SHIP, raw) == arguments


@pytest.mark.req("SKILL-03")
def test_no_arguments_are_an_empty_object() -> None:
    assert parse_arguments(tool_of(lambda: None, name="job"), " ") == {}


@pytest.mark.req("SKILL-03", "ENG-08")
@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("", 'the argument `parcel` is missing. `parcel` takes {"type":"string"}.'),
        ("{", "ship was not called: its arguments cannot be parsed, the text is not valid JSON: "),
        ('{"parcel": NaN}', "its arguments cannot be parsed, the text is not valid JSON: "),
        ('["a"]', "ship was not called: its arguments are a list, not an object. Write one JSON object."),
        ('"a"', "its arguments are text, not an object"),
        ("null", "its arguments are null, not an object"),
        ("7", "its arguments are a number, not an object"),
        ("true", "its arguments are a boolean, not an object"),
        ('{"parcel": 7}', "the argument `parcel` is invalid, it must be text and is 7. `parcel` takes {"),
        ('{"parcel": "a", "copies": "7"}', 'the argument `copies` is invalid, it must be an integer and is "7".'),
        ('{"parcel": "a", "via": "rail"}', '`via` is invalid, it must be one of "air", "sea" and is "rail".'),
        ('{"parcel": "a", "to": {"street": "b"}}', '`to.number` is missing. `to.number` takes {"type":"integer"}.'),
        ('{"parcel": "a", "to": {"street": "b", "number": []}}', "`to.number` is invalid, it must be an integer"),
        ('{"parcel": "a", "colour": 1}', "the tool has no argument `colour`. Its arguments: parcel, to, via, copies."),
        ('{"parcel": "' + "a" * 10_000_000 + '"}', "the JSON text is too large: it has 10000014 bytes"),
        ('{"parcel": ' + "[" * 1000 + "]" * 1000 + "}", "the JSON value is nested too deep"),
        ('{"parcel": ' + "[" * 100_000, "its arguments cannot be parsed"),
        ("\ud83d", "its arguments cannot be parsed, the text is not valid JSON"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_with_the_rule_and_the_shape(raw: str, said: str) -> None:
    refusal = parse_arguments(SHIP, raw)

    assert isinstance(refusal, ArgumentRefusal)
    assert said in refusal.text
    assert len(refusal.text) < 500


@pytest.mark.req("SKILL-03", "ENG-08")
@pytest.mark.parametrize(
    "raw", ['{"x": 1}', '{"parcel": "p", "via": "x"}', '{"parcel": "p", "x": 1}', '{"parcel": {"x": 1}}']
)
def test_a_refusal_never_repeats_much_of_what_was_written(raw: str) -> None:
    refusal = parse_arguments(SHIP, raw.replace("x", "x" * 50_000))

    assert isinstance(refusal, ArgumentRefusal)
    assert refusal.text.count("x") <= 220
    assert unknown_tool("x" * 50_000, {"ship": SHIP}).text.count("x") <= 200


@pytest.mark.req("SKILL-03")
@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(repr))
def test_whatever_a_model_writes_is_arguments_or_a_refusal(raw: str) -> None:
    assert isinstance(parse_arguments(SHIP, raw), dict | ArgumentRefusal)


@pytest.mark.req("SKILL-03")
def test_an_unknown_tool_is_refused_with_those_that_are_known() -> None:
    assert unknown_tool("fly", ["ship", "pay"]).text == "there is no tool 'fly'. The tools are pay, ship."
    assert unknown_tool("fly", []).text == "there is no tool 'fly'. There are no tools."


@pytest.mark.req("SKILL-03", "ENG-08")
def test_of_many_tools_those_are_named_that_are_meant_or_some() -> None:
    known = [f"get_things_{number}" for number in range(500)]

    near, far = unknown_tool("get_thing_77", known).text, unknown_tool("fly", known).text

    assert "Some of the 500 tools are get_things_77, " in near
    assert len(far) < 1500


@pytest.mark.req("SKILL-03", "ENG-08")
def test_a_tool_of_a_skill_that_is_not_loaded_says_which_to_load() -> None:
    refusal = unknown_tool("fly", ["ship"], skill="birds")

    assert refusal.text == "the tool fly is not available yet. Load the skill birds with use_skill first."


@pytest.mark.req("SKILL-03")
async def test_a_function_takes_the_same_whoever_checks_its_arguments() -> None:
    async def at(when: datetime) -> str:
        """When it is."""
        return when.isoformat()

    declared = tool_of(at)
    of_a_row = replace(declared, function=None)
    of_others = replace(of_a_row, kind="rest")
    local = {"when": "2026-01-31T09:30:00"}
    run = Run(None, None, None, None, None, "1", "k")

    assert check(declared, local) == check(of_a_row, local) == local
    assert isinstance(check(of_others, local), ArgumentRefusal)
    assert isinstance(check(declared, {"when": "noon"}), ArgumentRefusal)
    assert declared.function is not None
    with pytest.raises(InvalidInput, match="the argument `when` is invalid, "):
        await declared.function.run(run, {"when": "noon"}, name="at")


NOTHING: dict[str, Any] = {}
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 3},
        "order": {
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "maxItems": 3,
                    "items": {"type": "object", "properties": {"price": {"type": "number", "maximum": 5}}},
                },
                "ship": {"$ref": "#/$defs/ship"},
            },
        },
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "id": {"type": "string", "format": "uuid"},
        "mail": {"type": "string", "format": "email"},
        "site": {"type": "string", "format": "uri"},
        "host": {"type": "string", "format": "hostname"},
        "code": {"type": "string", "pattern": "^(a+)+$"},
        "ahead": {"type": "string", "pattern": "^(?=.*[0-9]).+$"},
        "count": {"type": ["integer", "null"], "minimum": 1, "exclusiveMaximum": 10, "multipleOf": 2},
        "tags": {"type": "array", "uniqueItems": True, "minItems": 2},
        "note": {"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}]},
        "pay": {
            "oneOf": [
                {"properties": {"by": {"const": "card"}, "card": {"type": "string"}}, "required": ["by", "card"]},
                {"properties": {"by": {"const": "bill"}, "to": {"type": "string"}}, "required": ["by", "to"]},
            ]
        },
        "loose": {"type": "object", "additionalProperties": {"type": "integer"}},
        "strict": {"type": "object", "patternProperties": {"^x-": {}}, "additionalProperties": False},
        "never": False,
        "odd": {"not": {"const": 1}},
    },
    "required": ["name"],
    "$defs": {"ship": {"type": "object", "properties": {"via": {"enum": ["air", "sea"], "default": "sea"}}}},
}


def rest(schema: dict[str, Any]) -> Tool:
    """A tool that is no function, with arguments of a schema."""
    return Tool("order", "Order something.", schema, kind="rest")


@pytest.mark.req("SKILL-03", "ENG-08")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (NOTHING, 'the argument `name` is missing. `name` takes {"type":"string","maxLength":3}.'),
        ({"name": "long"}, 'the argument `name` is invalid, it must have at most 3 characters and is "long".'),
        ({"name": "x" * 41}, "must have at most 3 characters and is text of 41 characters."),
        ({"nam": "x"}, "the tool has no argument `nam`, the closest is `name`."),
        ({"order": {"items": [NOTHING, {"price": 7}]}}, "`order.items[1].price` is invalid, it must be at most 5"),
        ({"order": {"items": [NOTHING] * 4}}, "`order.items` is invalid, it must have at most 3 items and is a list"),
        ({"order": {"ship": {"via": "rail"}}}, '`order.ship.via` is invalid, it must be one of "air", "sea"'),
        ({"when": "2026-01-31"}, "`when` is invalid, it must be a date and time with an offset, such as 2026-"),
        ({"day": "31.1.2026"}, "`day` is invalid, it must be a date, such as 2026-01-31"),
        ({"id": "7"}, "`id` is invalid, it must be a UUID"),
        ({"mail": "ann"}, "`mail` is invalid, it must be an email address"),
        ({"site": "/x"}, "`site` is invalid, it must be an absolute URI"),
        ({"code": "b"}, "`code` is invalid, it must match the pattern ^(a+)+$"),
        ({"ahead": "b"}, "`ahead` is invalid, it must match the pattern ^(?=.*[0-9]).+$"),
        ({"count": 0}, "`count` is invalid, it must be at least 1 and is 0"),
        ({"count": 10}, "`count` is invalid, it must be less than 10 and is 10"),
        ({"count": 3}, "`count` is invalid, it must be a multiple of 2 and is 3"),
        ({"count": "3"}, '`count` is invalid, it must be an integer or null and is "3"'),
        ({"tags": [1, 1]}, "`tags` is invalid, it must not have duplicate items and is a list of length 2"),
        ({"tags": [1]}, "`tags` is invalid, it must have at least 2 items"),
        ({"note": "x"}, '`note` is invalid, it must have at least 2 characters and is "x"'),
        ({"note": {"a": 1}}, "`note` is invalid, it must be text or null and is an object of 1"),
        ({"pay": {"by": "bill"}}, "the argument `pay.to` is missing"),
        ({"pay": {"by": "cash"}}, "`pay` is invalid, it must match one of 2 alternatives and is an object of 1"),
        ({"loose": {"a": "x"}}, "`loose.a` is invalid, it must be an integer"),
        ({"strict": {"x-a": 1, "y": 1}}, "the tool has no argument `strict.y`."),
        ({"never": 1}, "the argument `never` is invalid, it must be omitted"),
        ({"odd": 1}, '`odd` is invalid, it must not match {"const":1} and is 1'),
    ],
)  # fmt: skip
def test_a_misfit_names_the_argument_the_rule_and_the_shape(given: dict[str, Any], said: str) -> None:
    refusal = check(rest(ORDER), given if {"name", "nam"} & given.keys() or not given else {"name": "x", **given})

    assert isinstance(refusal, ArgumentRefusal)
    assert refusal.text.startswith("order was not called: ")
    assert said in refusal.text


@pytest.mark.req("SKILL-03")
def test_what_fits_is_taken_and_defaults_are_filled_in_objects_that_are_there() -> None:
    given: dict[str, Any] = {
        "name": "x",
        "order": {"ship": {}},
        "host": "not a host",
        "strict": {"x-a": 1},
        "ahead": "a1",
    }

    checked = check(rest(ORDER), given)

    assert checked == {**given, "order": {"ship": {"via": "sea"}}}
    assert given["order"] == {"ship": {}}


@pytest.mark.req("SKILL-03")
def test_a_default_is_filled_before_it_is_asked_for_and_is_nobody_else_s() -> None:
    tool = rest({
        "properties": {
            "list": {"type": "array", "default": []},
            "wrong": {"type": "integer", "default": "ten"},
            "null": {"default": None},
            "self": {"$ref": "#"},
        },
        "required": ["list"],
    })  # fmt: skip

    first, second = check(tool, {}), check(tool, {"self": {}})

    assert first == {"list": [], "null": None}
    assert second == {"list": [], "null": None, "self": {"list": [], "null": None}}
    assert isinstance(first, dict)
    first["list"].append(1)
    assert check(tool, {}) == {"list": [], "null": None}


@pytest.mark.req("SKILL-03", "ENG-08")
def test_at_most_five_misfits_are_told() -> None:
    refusal = check(rest({"properties": {"l": {"items": {"type": "string"}}}}), {"l": list(range(100))})

    assert isinstance(refusal, ArgumentRefusal)
    assert refusal.text.count("is invalid, it must be text") == 5
    assert refusal.text.endswith('; and there are more errors. `l[0]` takes {"type":"string"}.')


@pytest.mark.req("SKILL-03")
@pytest.mark.parametrize(
    ("schema", "given", "taken"),
    [
        ({"properties": {"a": True}}, {"b": 1}, False),
        ({"properties": {"a": True}, "additionalProperties": True}, {"b": 1}, True),
        ({"properties": {"a": True}, "patternProperties": {"^b": True}}, {"b": 1}, True),
        ({"properties": {"a": True}, "allOf": [{"properties": {"b": True}}]}, {"b": 1}, True),
        ({"type": "object"}, {"b": 1}, True),
        ({"$schema": "https://example.com/own", "type": "object"}, {"b": 1}, True),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [True]}, {"b": 1}, True),
    ],
)
def test_an_argument_that_a_tool_does_not_name_is_refused_unless_its_schema_speaks_of_such(
    schema: dict[str, Any], given: dict[str, Any], taken: bool
) -> None:
    assert isinstance(check(rest(schema), given), dict) is taken


def nested(depth: int) -> dict[str, Any]:
    """An object in an object, so many times."""
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def recursive(keyword: str) -> dict[str, Any]:
    """A schema that doubles at every level."""
    branch = {"properties": {"a": {"$ref": "#/$defs/node"}}}
    node = {keyword: [{**branch, "required": ["x"]}, {**branch, "required": ["y"]}]}
    return {"$ref": "#/$defs/node", "$defs": {"node": node}}


@pytest.mark.req("SKILL-03", "SAFE-04")
@pytest.mark.parametrize(
    ("schema", "given"),
    [
        (ORDER, {"name": "x", "code": "a" * 500_000 + "!"}),
        (ORDER, {"name": "x", "ahead": "a" * 500_000}),
        ({"properties": {"c": {"pattern": "^(?=(a+)+$)(a+)+$"}}}, {"c": "a" * 5_000 + "!"}),
        (recursive("anyOf"), nested(100)),
        (recursive("oneOf"), nested(100)),
        (recursive("allOf"), nested(100)),
        ({"allOf": [{"$ref": "#"}], "required": ["x"]}, {}),
        ({"properties": {"l": {"items": {"type": "string"}}}}, {"l": list(range(150_000))}),
        ({"properties": {"l": {"uniqueItems": True}}}, {"l": [[n] for n in range(80_000)] + [[1]]}),
        ({"properties": {"l": {}}}, {str(n): 1 for n in range(80_000)}),
        (ORDER, nested(1000)),
        (ORDER, {"name": "x" * 10_000_000}),
    ],
)
def test_whatever_is_given_is_refused_in_no_time(schema: dict[str, Any], given: dict[str, Any]) -> None:
    began = time.thread_time()  # of the CPU: a busy machine is no failure
    refusal = check(rest(schema), given)

    assert isinstance(refusal, ArgumentRefusal)
    assert time.thread_time() - began < 3
    assert len(refusal.text) < 2000


@pytest.mark.req("EXEC-02")
def test_arguments_of_more_than_a_megabyte_are_refused_by_their_size() -> None:
    refusal = check(rest({}), {"x": "é" * (MAX_ARGUMENTS_BYTES // 2)})

    assert isinstance(refusal, ArgumentRefusal)
    assert "they are too large: they have 1048615 bytes; the limit is 1048576" in refusal.text


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"properties": {"x": {"pattern": "("}}}, "regex"),
        ({"properties": {"x": {"type": "file"}}}, "file"),
        ({"properties": {"x": {"$ref": "#/$defs/none"}}}, "does not exist"),
        ({"properties": {"x": {"$ref": "http://169.254.169.254/schema"}}}, "Retrieval is disabled"),
    ],
)
def test_a_tool_whose_schema_is_broken_is_not_called(schema: dict[str, Any], why: str) -> None:
    refusal = check(rest(schema), {})

    assert isinstance(refusal, ArgumentRefusal)
    assert "order was not called: the schema of its arguments is invalid, " in refusal.text
    assert why in refusal.text


@pytest.mark.req("SKILL-03")
def test_what_the_types_of_a_function_do_not_take_is_refused() -> None:
    async def book(day: date) -> None: ...

    refusal = parse_arguments(tool_of(book), '{"day": "tomorrow"}')

    assert isinstance(refusal, ArgumentRefusal)
    assert refusal.text.startswith("book was not called: the argument `day` is invalid, invalid RFC3339 encoded date.")


@pytest.mark.req("SKILL-01", "SKILL-03")
@pytest.mark.parametrize("raw", ['{"parcel": "a"}', '{"parcel": "a", "copies": 9}'])
def test_what_a_config_fixes_is_checked_neither_for_nor_against_the_model(raw: str) -> None:
    shown, overlay = apply_configs(SHIP, {"arguments": {"copies": 2, "via": "air"}})

    assert parse_arguments(shown, raw, overlay) == {"parcel": "a", "to": None, "copies": 2, "via": "air"}


@pytest.mark.req("SKILL-03")
def test_a_schema_is_made_ready_once_however_often_it_is_read() -> None:
    schema = {"properties": {"only here": {"type": "string"}}}

    first, again, equal = checker_of(schema), checker_of(schema), checker_of({**schema})

    assert first is again is equal
    for number in range(MAX_CACHED + 1):
        checker_of({"title": str(number)})
    assert checker_of(schema) is not first


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "order", "pay", "by", "items"]), inner)
    ),
    max_leaves=6,
)


@pytest.mark.req("SKILL-03")
@given(st.dictionaries(st.sampled_from([*ORDER["properties"], "more"]), JSON, max_size=4))
def test_whatever_is_given_is_taken_or_refused_by_name(given: dict[str, Any]) -> None:
    checked = check(rest(ORDER), given)

    if isinstance(checked, ArgumentRefusal):
        assert "argument" in checked.text
    else:
        assert checked.items() >= {name: value for name, value in given.items() if name != "order"}.items()


@pytest.mark.req("ENG-08")
def test_defaults_that_many_ways_lead_to_are_found_in_no_time() -> None:
    defs = {
        f"d{n}": {"type": "object", "properties": {name: {"$ref": f"#/$defs/d{n + 1}"} for name in "abcdefghijkl"}}
        for n in range(8)
    }
    leaf = {"type": "object", "properties": {"last": {"type": "integer", "default": 7}}}
    schema = {"properties": {"top": {"$ref": "#/$defs/d2"}}, "$defs": {**defs, "d8": leaf}}
    given: dict[str, Any] = {"a": {"l": {"b": {"k": {"c": {"j": {}}}}}}}

    began = time.perf_counter()
    taken = check(Tool("t", "", schema), {"top": given})

    assert time.perf_counter() - began < 5
    assert taken == {"top": {"a": {"l": {"b": {"k": {"c": {"j": {"last": 7}}}}}}}}


@pytest.mark.req("ENG-08")
def test_a_schema_that_contains_itself_has_its_defaults_on_every_level() -> None:
    node = {"type": "object", "properties": {"size": {"default": 1}, "next": {"$ref": "#/$defs/node"}}}
    tool = Tool("t", "", {"properties": {"first": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})

    assert check(tool, {"first": {"next": {"next": {}}}}) == {
        "first": {"size": 1, "next": {"size": 1, "next": {"size": 1}}}
    }
