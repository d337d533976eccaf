from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from msgspec import inspect

from holdfast.core.errors import NotFound
from holdfast.server.fields import TWICE_ENCODED, about
from holdfast.server.operation_table import input_of, table
from holdfast.server.operations import ApiCall, ApiOperations

Limit = Annotated[int, msgspec.Meta(ge=1, le=100, description="Maximum number.")]


@pytest.mark.parametrize(
    ("type", "described"),
    [
        (str, {"type": "text"}),
        (str | None, {"type": "text"}),
        (str | msgspec.UnsetType | None, {"type": "text"}),
        (int, {"type": "integer"}),
        (Limit, {"type": "integer", "min": 1, "max": 100, "help": "Maximum number."}),
        (Limit | None, {"type": "integer", "min": 1, "max": 100, "help": "Maximum number."}),
        (Annotated[Limit | None, about("How many.")], {"type": "integer", "min": 1, "max": 100, "help": "How many."}),
        (Annotated[float, msgspec.Meta(ge=0.5)], {"type": "number", "min": 0.5}),
        (bool, {"type": "flag"}),
        (UUID | None, {"type": "id"}),
        (datetime, {"type": "time"}),
        (Literal["new", "old"] | None, {"type": "choice", "choices": ["new", "old"]}),
        (Annotated[str, TWICE_ENCODED], {"type": "text", "encoded_twice": True}),
        (list[str], {"type": "json"}),
        (dict[str, Any], {"type": "json"}),
        (str | int, {"type": "json"}),
    ],
)
def test_a_type_is_described_with_its_constraints(type: Any, described: dict[str, Any]) -> None:
    found = input_of(inspect.type_info(type), "query")

    assert {name: value for name, value in found.items() if not (name == "help" and "encoded_twice" in found)} == {
        "place": "query",
        **described,
    }


def test_a_default_is_described_if_it_is_a_plain_value() -> None:
    assert input_of(inspect.IntType(), "query", default=50)["default"] == 50
    assert "default" not in input_of(inspect.IntType(), "query")
    assert "default" not in input_of(inspect.AnyType(), "body", default=["a"])
    assert input_of(inspect.StrType(), "body", required=True) == {"place": "body", "type": "text", "required": True}


class Edit(msgspec.Struct, frozen=True):
    text: str
    tags: list[str] = []
    final: bool = False


def test_an_operation_has_the_inputs_of_its_path_its_query_and_its_body() -> None:
    operations = ApiOperations("pages")

    @operations.declare("PUT", "/api/pages/{id}", needs="write", errors=[NotFound])
    async def edit_page(call: ApiCall, id: UUID, body: Edit, version: int | None = None) -> None:  # pyright: ignore[reportUnusedFunction]
        """Edit a page."""

    (row,) = table(operations).values()

    assert {name: each["place"] for name, each in row["inputs"].items()} == {
        "id": "path",
        "version": "query",
        "text": "body",
        "tags": "body",
        "final": "body",
    }
    assert [name for name, each in row["inputs"].items() if each.get("required")] == ["id", "text"]
    assert (row["method"], row["summary"], row["body_format"]) == ("PUT", "Edit a page.", "application/json")
