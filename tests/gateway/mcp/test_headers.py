"""What a client repeats in headers has to say what the body says."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.gateway.mcp.headers import MirroredHeaders
from holdfast.mcp.headers import MirroredArgument, mirrored_of
from holdfast.mcp.protocol import HEADER_MISMATCH, MODERN, McpError

VERSION = (b"mcp-protocol-version", MODERN.encode())
CALL = (b"mcp-method", b"tools/call")
REGION = {"type": "string", "x-mcp-header": "Region"}


def checked(*headers: tuple[bytes, bytes], method: str = "tools/call", name: object = "track") -> None:
    """Check headers against a body of this method and name."""
    MirroredHeaders(headers).check(MODERN, method, {"name": name})


def wrapped(text: str) -> bytes:
    """A text as a header has it that cannot have it as it is."""
    return b"=?base64?%b?=" % base64.b64encode(text.encode())


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize("value", [b"track", b"  track\t", wrapped("track")])
def test_headers_that_say_what_the_body_says_pass(value: bytes) -> None:
    checked(VERSION, CALL, (b"mcp-name", value))


@pytest.mark.req("MCP-01")
@given(st.text(min_size=1))
def test_any_name_that_is_wrapped_is_unwrapped(name: str) -> None:
    checked(VERSION, CALL, (b"mcp-name", wrapped(name)), name=name)


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    "headers",
    [
        [CALL, (b"mcp-name", b"track")],
        [(b"mcp-protocol-version", b"2025-11-25"), CALL, (b"mcp-name", b"track")],
        [VERSION, (b"mcp-name", b"track")],
        [VERSION, (b"mcp-method", b"TOOLS/CALL"), (b"mcp-name", b"track")],
        [VERSION, CALL],
        [VERSION, CALL, (b"mcp-name", b"Track")],
        [VERSION, CALL, (b"mcp-name", "träck".encode())],
        [VERSION, CALL, (b"mcp-name", b"=?base64?dHJhY2s?=")],
        [VERSION, CALL, (b"mcp-name", b"=?base64?dHJh!!!Y2s=?=")],
        [VERSION, CALL, (b"mcp-name", b"=?base64?/w==?=")],
        [VERSION, CALL, (b"mcp-name", b"track"), (b"mcp-name", b"refund")],
        [VERSION, CALL, CALL, (b"mcp-name", b"track")],
        [VERSION, CALL, (b"mcp-name", b"track"), (b"mcp-param-a", b"1"), (b"mcp-param-a", b"2")],
    ],
)
def test_headers_that_are_missing_doubled_or_say_something_else_are_refused(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(McpError) as refused:
        checked(*headers)

    assert (refused.value.code, refused.value.status) == (HEADER_MISMATCH, 400)


@pytest.mark.req("MCP-01")
def test_only_methods_that_name_something_repeat_a_name() -> None:
    checked(VERSION, (b"mcp-method", b"tools/list"), method="tools/list")
    checked(VERSION, CALL, name=None)
    with pytest.raises(McpError):
        MirroredHeaders([VERSION, (b"mcp-method", b"resources/read")]).check(
            MODERN, "resources/read", {"uri": "shop://a"}
        )


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    ("schema", "argument", "header", "passes"),
    [
        (REGION, "west", b"west", True),
        (REGION, "Köln", wrapped("Köln"), True),
        (REGION, "=?base64?west", b"=?base64?west", True),
        (REGION, "west", b"east", False),
        (REGION, "west", None, False),
        (REGION, None, None, True),
        (REGION, None, b"west", False),
        (REGION, ["west"], None, True),
        (REGION, ["west"], b"west", False),
        ({**REGION, "type": "integer"}, 42, b"42.0", True),
        ({**REGION, "type": "integer"}, 42.0, b"42", True),
        ({**REGION, "type": "integer"}, 42, b"42.5", False),
        ({**REGION, "type": "integer"}, 42, b"4.2e1", False),
        ({**REGION, "type": "integer"}, True, b"1", False),
        ({**REGION, "type": "integer"}, 1, b"9" * 5000, False),
        ({**REGION, "type": "boolean"}, True, b"true", True),
        ({**REGION, "type": "boolean"}, False, b"False", False),
        (REGION, "42", b"42.0", False),
    ],
)
def test_an_argument_that_is_repeated_is_the_same_in_header_and_body(
    schema: dict[str, Any], argument: object, header: bytes | None, passes: bool
) -> None:
    mirrored = mirrored_of({"type": "object", "properties": {"region": schema}})
    mirror = MirroredHeaders([] if header is None else [(b"mcp-param-region", header)])

    if passes:
        mirror.check_arguments(mirrored, {"region": argument})
    else:
        with pytest.raises(McpError) as refused:
            mirror.check_arguments(mirrored, {"region": argument})
        assert refused.value.code == HEADER_MISMATCH


@pytest.mark.req("MCP-01")
def test_arguments_in_objects_are_repeated_too() -> None:
    inner = {"type": "object", "properties": {"region": REGION}}

    mirrored = mirrored_of({"properties": {"where": inner, "default": {**REGION, "x-mcp-header": "Other"}}})

    assert set(mirrored) == {
        MirroredArgument(b"mcp-param-region", ("where", "region"), is_integer=False),
        MirroredArgument(b"mcp-param-other", ("default",), is_integer=False),
    }
    MirroredHeaders([(b"mcp-param-region", b"west")]).check_arguments(mirrored, {"where": {"region": "west"}})


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    "schema",
    [
        REGION,
        {"properties": {"a": {**REGION, "type": "number"}}},
        {"properties": {"a": {**REGION, "x-mcp-header": "no token"}}},
        {"properties": {"a": {**REGION, "x-mcp-header": 1}}},
        {"properties": {"a": REGION, "b": {**REGION, "x-mcp-header": "region"}}},
        {"properties": {"a": {"type": "array", "items": REGION}}},
        {"anyOf": [{"properties": {"a": REGION}}]},
        {"$defs": {"a": REGION}},
    ],
)
def test_a_schema_that_breaks_the_rules_has_nothing_repeated(schema: dict[str, Any]) -> None:
    assert mirrored_of(schema) == ()


@pytest.mark.req("MCP-01")
def test_what_looks_like_an_annotation_in_a_value_is_none() -> None:
    assert mirrored_of({"properties": {"a": {"type": "object", "default": REGION, "examples": [REGION]}}}) == ()
