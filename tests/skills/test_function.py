import asyncio
import functools
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import msgspec
import pytest
from msgspec import Meta

import holdfast
from holdfast.app import App
from holdfast.core.errors import AlreadyExists, InvalidInput
from holdfast.core.ids import uuid7
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run, current_run
from holdfast.skills.tool import Tool

RUN = Run("ann", "support", "web-42", uuid7(), uuid7(), "call-1", "run:1:call-1")


async def called(tool: Tool, run: Run, arguments: dict[str, Any]) -> Any:
    """What the function of a tool gives."""
    assert tool.function is not None
    return await tool.function.run(run, arguments, name=tool.name)


class Speed(Enum):
    SLOW = "slow"
    FAST = "fast"


@dataclass
class Address:
    street: str
    number: int = 1


class Size(TypedDict):
    width: int


class Box(msgspec.Struct):
    label: str
    inner: "list[Box]" = []


async def ship(
    parcel: str,
    to: Address,
    weight: float,
    fragile: bool,
    when: datetime,
    order: UUID,
    box: Box,
    size: Size,
    speed: Speed = Speed.FAST,
    via: Literal["air", "sea"] = "sea",
    tags: list[str] = ["new"],  # noqa: B006 - users write such defaults
    notes: dict[str, str] | None = None,
    copies: Annotated[int, Meta(ge=1, description="how many labels")] = 1,
    after: datetime | None = None,
) -> dict[str, Any]:
    """Ship a parcel.

    It is picked up the same day.

    Args:
        parcel (str): its number,
            as it is on the label
        copies: said better by the annotation
        to: where it goes

    Returns:
        What the carrier says.
    """
    return {name: value for name, value in locals().items() if name in ship.__annotations__}


GIVEN: dict[str, Any] = {
    "parcel": "AB-123",
    "to": {"street": "Main"},
    "weight": 2,
    "fragile": True,
    "when": "2026-11-15T12:00:00Z",
    "order": "6f1ed002-ab59-5ef4-9d56-7e5b5f6f3b35",
    "box": {"label": "outer", "inner": [{"label": "inner"}]},
    "size": {"width": 3},
    "speed": "slow",
}


@pytest.mark.req("EXEC-02")
def test_a_tool_is_described_by_its_signature_and_its_docstring() -> None:
    spec = tool_of(ship).spec

    properties = spec.parameters["properties"]
    assert (spec.name, spec.description) == ("ship", "Ship a parcel.\n\nIt is picked up the same day.")
    assert properties["parcel"] == {"type": "string", "description": "its number, as it is on the label"}
    assert properties["copies"] == {"type": "integer", "minimum": 1, "default": 1, "description": "how many labels"}
    assert properties["via"] == {"type": "string", "enum": ["air", "sea"], "default": "sea"}
    assert properties["when"] == {"type": "string", "format": "date-time"}
    assert properties["after"]["anyOf"] == [{"type": "string", "format": "date-time"}, {"type": "null"}]
    assert properties["tags"] == {"type": "array", "items": {"type": "string"}}
    assert spec.parameters["required"] == ["parcel", "to", "weight", "fragile", "when", "order", "box", "size"]


@pytest.mark.req("AGENT-03")
def test_a_schema_is_a_closed_object_that_refers_to_nothing_outside() -> None:
    schema = tool_of(ship).parameters

    refs = set(_refs(schema))
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert refs == {f"#/$defs/{name}" for name in schema["$defs"]}
    assert set(schema["$defs"]) == {"Address", "Box", "Size", "Speed"}
    assert schema["$defs"]["Speed"]["type"] == "string"


def _refs(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [ref for each in schema for ref in _refs(each)]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(schema, dict):
        here = [schema["$ref"]] if "$ref" in schema else []  # pyright: ignore[reportUnknownVariableType]
        return here + [ref for each in schema.values() for ref in _refs(each)]  # pyright: ignore[reportUnknownVariableType]
    return []


@pytest.mark.req("EXEC-02")
async def test_arguments_reach_the_function_as_its_types_and_its_own_defaults_remain() -> None:
    result = await called(tool_of(ship), RUN, GIVEN)

    assert result["to"] == Address("Main", 1)
    assert result["when"] == datetime(2026, 11, 15, 12, tzinfo=UTC)
    assert result["order"] == UUID(GIVEN["order"])
    assert result["box"] == Box("outer", [Box("inner")])
    assert (result["speed"], result["via"], result["tags"], result["copies"]) == (Speed.SLOW, "sea", ["new"], 1)


@pytest.mark.req("EXEC-02")
def test_a_rest_style_docstring_describes_parameters_too() -> None:
    def find(query: str, limit: int = 5) -> str:
        """Find something.

        :param query: what to look for,
            in a few words
        :param int limit: how many
        :returns: what was found
        """
        return query * limit

    tool = tool_of(find)

    assert tool.description == "Find something."
    assert tool.parameters["properties"]["query"]["description"] == "what to look for, in a few words"
    assert tool.parameters["properties"]["limit"]["description"] == "how many"


@pytest.mark.req("SAFE-02")
@pytest.mark.parametrize("optional", [False, True])
async def test_the_run_is_given_by_the_engine_and_never_by_the_model(optional: bool) -> None:
    async def whose(query: str, run: Run) -> tuple[str, Run]:
        return query, run

    async def perhaps(query: str, run: Run | None = None) -> tuple[str, Run | None]:
        return query, run

    tool = tool_of(perhaps if optional else whose)

    assert tool.function is not None
    assert tool.function.run_argument is not None
    assert list(tool.parameters["properties"]) == ["query"]
    assert await called(tool, RUN, {"query": "x"}) == ("x", RUN)
    with pytest.raises(InvalidInput, match="unknown field `run`"):
        await called(tool, RUN, {"query": "x", "run": {"user": "bob"}})


@pytest.mark.req("EXEC-02")
async def test_plain_functions_run_in_threads_and_know_their_run_as_well() -> None:
    def plain() -> tuple[str, bool]:
        return current_run().key, threading.current_thread() is threading.main_thread()

    async def on_the_loop() -> str:
        return current_run().key

    other = Run("bob", "support", None, uuid7(), uuid7(), "call-2", "other")

    told = await asyncio.gather(
        called(tool_of(plain), RUN, {}), called(tool_of(on_the_loop), RUN, {}), called(tool_of(on_the_loop), other, {})
    )

    assert told == [(RUN.key, False), RUN.key, "other"]
    with pytest.raises(InvalidInput, match="no tool is running"):
        current_run()


class Counter:
    """Counts."""

    async def __call__(self, start: int) -> int:
        return start + 1

    async def down(self, start: int) -> int:
        """Count down."""
        return start - 1


@pytest.mark.req("EXEC-02")
@pytest.mark.parametrize(
    ("function", "name", "description", "result"),
    [
        (Counter(), "Counter", "Counts.", 2),
        (Counter().down, "down", "Count down.", 0),
        (functools.partial(Counter().down), "down", "Count down.", 0),
    ],
)
async def test_whatever_is_called_like_a_function_can_be_a_tool(
    function: Any, name: str, description: str, result: int
) -> None:
    tool = tool_of(function)

    assert (tool.name, tool.description) == (name, description)
    assert await called(tool, RUN, {"start": 1}) == result


def positional(first: int, /) -> int:
    return first


def variadic(*numbers: int) -> int:
    return sum(numbers)


def keywords(**options: int) -> int:
    return len(options)


def strange(first: threading.Lock) -> None:
    assert first


def unresolved(first: int) -> int:
    return first


def foreign(größe: int) -> int:  # noqa: PLC2401 - Python takes such a name, and models' APIs do not
    return größe


untyped: Any = lambda first: first  # noqa: E731  # pyright: ignore[reportUnknownVariableType, reportUnknownLambdaType]
unresolved.__annotations__["first"] = "Nowhere"


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (positional, {}, "first cannot be passed by name. Use named parameters"),
        (variadic, {}, "numbers cannot be passed by name"),
        (keywords, {}, r"\*\*options does not say which arguments it takes. Name each argument"),
        (untyped, {"name": "untyped"}, "the parameter first has no type. Annotate it, for example first: str"),
        (strange, {}, "its types have no JSON Schema .*Use str, int"),
        (unresolved, {}, "its annotations cannot be read .*Nowhere.*Define its types at module level"),
        (lambda: None, {}, "models do not accept this name. Pass name="),
        (foreign, {}, "models do not accept the argument name 'größe'"),
        (ship, {"name": "ship it"}, "models do not accept this name"),
        (ship, {"name": "x" * 65}, "models do not accept this name"),
        (ship, {"timeout": 0}, "its timeout 0 is invalid"),
        (ship, {"timeout": "soon"}, "its timeout 'soon' is invalid"),
        ("ship", {}, "it is not a function. Use @app.tool on a function"),
    ],
)
def test_a_tool_that_no_model_could_call_is_refused_when_it_is_declared(
    function: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        tool_of(function, **options)


@pytest.mark.req("EXEC-05")
def test_an_app_declares_tools_bare_or_with_options() -> None:
    app = holdfast.App()

    @app.tool
    async def track(parcel: str) -> str:
        return parcel

    @app.tool(name="pay-back", idempotent=True, timeout=5, approve=True)
    async def refund(order: str) -> str:
        return order

    def options(tool: Tool) -> tuple[object, ...]:
        return tool.function and tool.function.call, tool.idempotent, tool.timeout, tool.approve

    assert list(app.tools) == ["track", "pay-back"]
    assert options(app.tools["track"]) == (track, False, None, False)
    assert options(app.tools["pay-back"]) == (refund, True, 5, True)


@pytest.mark.req("ENG-07")
def test_a_name_is_declared_once() -> None:
    app = App()
    app.tool(ship)

    with pytest.raises(AlreadyExists, match="the tool ship is declared twice"):
        app.tool(name="ship")(positional_free)


def positional_free() -> None:
    """Takes nothing."""


@pytest.mark.req("EXEC-01")
async def test_a_tool_may_bring_the_schema_of_its_arguments() -> None:
    app = App()
    schema = {"properties": {"phone": {"type": "string"}, "email": {"type": "string"}}, "minProperties": 1}

    @app.tool(schema=schema)
    async def contact(ways: dict[str, str]) -> str:
        return ", ".join(ways.values())

    tool = app.tools["contact"]
    assert tool.parameters == {"type": "object", **schema}
    assert await called(tool, RUN, {"email": "ann@example.com"}) == "ann@example.com"


@pytest.mark.req("ENG-07")
def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"the tool 'contact' cannot be declared.*Correct the schema"):
        App().tool(name="contact", schema={"type": "array"})(positional_free)
