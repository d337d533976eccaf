"""What is sent where nobody gave a value: a document's defaults are the back end's, a person's are ours."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.skills.arguments import check
from tests.execution.backend import Service
from tests.skills.sources.openapi import EVERYTHING

pytestmark = [pytest.mark.req("EXEC-01", "MCP-03"), pytest.mark.usefixtures("no_models")]

FLAGS = {f"flag_{n}": {"type": "boolean", "default": False} for n in range(16)}
REPOSITORY: dict[str, Any] = {
    "type": "object",
    "properties": {
        **FLAGS,
        "name": {"type": "string"},
        "description": {"type": "string"},
        "visibility": {"type": "string", "enum": ["public", "private"], "default": "public"},
        "security": {
            "type": "object",
            "default": {},
            "properties": {
                "scanning": {"type": "object", "properties": {"status": {"type": "string", "default": "disabled"}}},
                "level": {"type": "integer", "default": 1},
            },
        },
    },
}
PARAMETERS = [
    {"name": "repo", "in": "path", "required": True, "schema": {"type": "string"}},
    {"name": "per_page", "in": "query", "schema": {"type": "integer", "default": 30}},
    {"name": "X-Mode", "in": "header", "schema": {"type": "string", "default": "strict"}},
]


def document(url: str) -> bytes:
    """A document with defaults wherever it may have some."""
    body = {"required": True, "content": {"application/json": {"schema": REPOSITORY}}}
    said = {"parameters": PARAMETERS, "requestBody": body, "responses": {"200": {"description": "done"}}}
    operations = {method: {**said, "operationId": f"{method}_repos_by_repo"} for method in ("patch", "put", "post")}
    root = {"openapi": "3.1.0", "info": {"title": "Repositories", "version": "1"}, "servers": [{"url": url}]}
    return json.dumps({**root, "paths": {"/repos/{repo}": operations}}).encode()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A back end that echoes what it is asked."""
    async with Service().serving() as service:
        yield service


@pytest.fixture
async def engine(config: Config, service: Service) -> AsyncIterator[Engine]:
    """An engine that reaches the back end, with its document imported."""
    execution = config.execution.model_copy(update={"allow_private": ("127.0.0.1",)})
    async with open_engine(config=config.model_copy(update={"execution": execution})) as engine:
        await engine.sources.add("repos", document=document(service.url), choice=EVERYTHING)
        yield engine


@pytest.mark.parametrize("method", ["patch", "put", "post"])
async def test_a_documents_defaults_are_never_sent(engine: Engine, service: Service, method: str) -> None:
    given: dict[str, Any] = {"repo": "holdfast", "description": "new", "security": {"scanning": {}}}

    done = await engine.executions.call(f"{method}_repos_by_repo", given)

    [asked] = service.asked
    assert done.status == "done"
    assert json.loads(asked.body) == {"description": "new", "security": {"scanning": {}}}
    assert asked.path == "/repos/holdfast"
    assert "x-mode" not in {name.lower() for name in asked.headers}


async def test_what_a_person_configured_is_sent(engine: Engine, service: Service) -> None:
    await engine.definitions.put("keeper", instructions="You keep repositories.", version=None)
    await engine.skills.put("keeping", description="Keeps.", instructions="Keep.")
    config = {"defaults": {"flag_1": True, "per_page": 5}, "arguments": {"visibility": "private"}}
    await engine.skills.link("keeping", "patch_repos_by_repo", access="execute", config=config)
    await engine.skills.assign("keeper", "keeping")
    opened = await engine.catalogs.open("keeper", ["keeping"])
    offer = opened.disclosed["patch_repos_by_repo"]

    given = check(offer.tool, {"repo": "holdfast", "description": "new"}, offer.overlay)

    assert given == {"repo": "holdfast", "description": "new", "flag_1": True, "per_page": 5, "visibility": "private"}


async def test_defaults_of_a_tool_that_a_person_registered_are_sent(engine: Engine, service: Service) -> None:
    days = {"type": "integer", "default": 7}
    parameters = {"type": "object", "properties": {"parcel": {"type": "string"}, "days": days}}
    await engine.tools.put(
        "track", description="", parameters=parameters, kind="rest", endpoint=f"{service.url}/track", method="GET"
    )

    done = await engine.executions.call("track", {"parcel": "P1"})

    assert done.status == "done"
    assert service.asked[0].path == "/track?parcel=P1&days=7"
