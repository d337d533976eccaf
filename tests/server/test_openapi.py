import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest

from holdfast.core.wires import HTTP_STATUS
from holdfast.server.app import OPERATIONS
from holdfast.server.openapi import document
from tests.server.wire import Site

DOCUMENT = json.loads(json.dumps(document(OPERATIONS, root_path="")))
DESCRIBED = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            if name == "$ref":
                yield item
            yield from references(item)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from references(item)


def found(reference: str) -> Any:
    value = DOCUMENT
    for name in reference.removeprefix("#/").split("/"):
        value = value[name]
    return value


async def test_the_document_lists_every_route(site: Site) -> None:
    reply = await site.ask("GET", "/api/openapi.json")

    described = {(method.upper(), path) for path, methods in reply.json()["paths"].items() for method in methods}
    assert described >= {(operation.method, operation.path) for operation in OPERATIONS}
    assert ("GET", "/api/openapi.json") in described
    assert reply.json()["openapi"].startswith("3.1.")


def test_every_reference_leads_somewhere() -> None:
    all_references = set(references(DOCUMENT))

    assert all_references
    assert all(found(reference) for reference in all_references)


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(("path", "method"), DESCRIBED)
def test_every_operation_says_what_it_does_answers_and_refuses(path: str, method: str) -> None:
    operation = DOCUMENT["paths"][path][method]

    names = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "path"}
    assert names == set(re.findall(r"{(\w+)}", path))
    assert operation["summary"].endswith(".")
    assert {"403", "429", "500", "503", "504"} <= operation["responses"].keys()
    assert ("security" in operation) == ("401" in operation["responses"] and path != "/login")
    if "requestBody" in operation:
        assert {"400", "408", "413", "415"} <= operation["responses"].keys()


def test_names_of_operations_are_unique() -> None:
    names = [operation["operationId"] for methods in DOCUMENT["paths"].values() for operation in methods.values()]

    assert len(set(names)) == len(names)


@pytest.mark.req("ENG-07")
def test_every_error_code_is_described() -> None:
    responses = DOCUMENT["components"]["responses"]

    for code, status in HTTP_STATUS.items():
        assert code in responses[f"Problem{status}"]["description"]


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("settings", [{"require_key": True}])
async def test_every_operation_that_needs_a_key_refuses_without(site: Site, settings: dict[str, Any]) -> None:
    async with site.connect() as wire:
        for path, method in DESCRIBED:
            if "security" in DOCUMENT["paths"][path][method]:
                reply = await wire.ask(method.upper(), path)
                assert reply.status == HTTPStatus.UNAUTHORIZED, (method, path)
