from typing import Any

import pytest

from holdfast.skills.sources.source import Choice, ImportedDocument
from tests.skills.sources.openapi import document, imported

pytestmark = pytest.mark.req("MCP-03")

PATHS: dict[str, Any] = {
    "/pets": {"get": {"operationId": "listPets", "tags": ["pets"]}, "post": {"x-ai-enabled": True, "tags": ["admin"]}},
    "/pets/{id}": {"delete": {"operationId": "dropPet", "x-ai-enabled": False, "tags": ["pets"]}},
    "/petsitters": {"x-ai-enabled": True, "get": {"operationId": "sitters"}},
    "/v1/orders/items": {"get": {"tags": ["orders"]}},
}


def names(found: ImportedDocument) -> set[str]:
    return {tool.operation for tool in found.tools}


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        (Choice(), set[str]()),
        (Choice(operations=("listPets",)), {"GET /pets"}),
        (Choice(operations=("get /pets",)), {"GET /pets"}),
        (Choice(tags=("pets", "orders")), {"GET /pets", "GET /v1/orders/items"}),
        (Choice(paths=("/pets",)), {"GET /pets"}),
        (Choice(paths=("/v1/",)), {"GET /v1/orders/items"}),
        (Choice(paths=("/*/items",)), {"GET /v1/orders/items"}),
        (Choice(operations=("dropPet",)), set[str]()),
        (Choice(everything=True), {"GET /pets", "GET /v1/orders/items"}),
    ],
)
def test_what_is_marked_or_chosen_becomes_a_tool_but_never_what_is_forbidden(choice: Choice, chosen: set[str]) -> None:
    found = imported(document(PATHS), choice)

    assert names(found) == {"POST /pets", "GET /petsitters"} | chosen
    assert names(found) | {one.operation for one in found.skipped} >= {"DELETE /pets/{id}", "GET /pets"}
    assert len(found.tools) + len(found.skipped) == 5


def test_the_nearest_mark_counts() -> None:
    tags = [{"name": "pets", "x-ai-enabled": False}, {"name": "admin", "x-ai-enabled": True}]
    paths: dict[str, Any] = {
        "/a": {"get": {"tags": ["pets"]}, "put": {"tags": ["pets", "admin"]}},
        "/b": {"x-ai-enabled": False, "get": {}, "put": {"x-ai-enabled": True}},
        "/c": {"get": {}},
    }

    found = imported(document(paths, tags=tags, **{"x-ai-enabled": True}), Choice())

    assert names(found) == {"PUT /a", "PUT /b", "GET /c"}


def test_what_was_left_out_says_where_it_stands_and_whether_somebody_wanted_it() -> None:
    found = imported(document(PATHS), Choice(operations=("listPets", "noSuch"), tags=("none",), paths=("/nowhere",)))

    left_out = {one.operation: one for one in found.skipped}
    assert left_out["DELETE /pets/{id}"].path == "paths./pets/{id}.delete"
    assert not left_out["DELETE /pets/{id}"].chosen
    assert "forbids" in left_out["DELETE /pets/{id}"].reason
    assert {one.operation for one in found.skipped if one.chosen} == {"noSuch", "none", "/nowhere"}


@pytest.mark.parametrize("mark", ["false", "true", 0, 1, {}, "no"])
def test_a_mark_that_is_neither_true_nor_false_forbids_and_is_told(mark: Any) -> None:
    paths: dict[str, Any] = {
        "/own": {"delete": {"x-ai-enabled": mark}},
        "/path": {"x-ai-enabled": mark, "get": {}, "put": {"x-ai-enabled": True}},
    }

    marked, everything = imported(document(paths), Choice()), imported(document(paths))

    assert names(marked) == {"PUT /path"}
    assert names(everything) == {"PUT /path", "GET /path"}
    left_out = {one.operation: one for one in marked.skipped}
    for operation in ("DELETE /own", "GET /path"):
        assert "not a boolean" in left_out[operation].reason
        assert left_out[operation].chosen, "somebody meant something by it"
