"""Every operation, tool, resource, method and frame: each caller, each object, and what comes of it."""

import ast
import inspect
from collections.abc import AsyncIterator, Iterable
from typing import get_args

import pytest
import pytest_asyncio

from holdfast.gateway.builtin import own_resources, own_tools
from holdfast.gateway.jsonrpc.methods import DISCOVER as RPC_DISCOVER
from holdfast.gateway.mcp.legacy import messages
from holdfast.gateway.mcp.methods import METHODS
from holdfast.gateway.mcp.modern import DISCOVER, LISTEN
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.server.app import OPERATIONS
from holdfast.server.subprotocols import Frame
from tests.access.matrix import gateway_rows
from tests.access.matrix.gateway_rows import GATEWAY
from tests.access.matrix.http_rows import HTTP
from tests.access.matrix.rows import Row
from tests.access.matrix.transports import Transports
from tests.access.matrix.trial import Trial
from tests.access.matrix.world import World, open_world
from tests.conftest import clone_database

pytestmark = pytest.mark.req("SAFE-02", "SAFE-03")
with_world = pytest.mark.asyncio(loop_scope="module")  # which has one server for all tests

ROWS = [*HTTP, *GATEWAY]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    server: EmbeddedServer, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """One server, its callers and its objects, for all rows."""
    async with clone_database(server, template) as url, open_world(url, tmp_path_factory.mktemp("matrix")) as world:
        yield world


@with_world
@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_callers_reach_what_is_theirs_and_nothing_else(world: World, row: Row) -> None:
    async with world.site.connect() as wire:
        trial = Trial(world, row, Transports(world, wire))
        await trial.run()

    if trial.failures:
        pytest.fail("\n".join(trial.failures), pytrace=False)


@with_world
async def test_every_operation_has_a_row(world: World) -> None:
    reply = await world.site.ask("GET", "/api/openapi.json")
    served = {(method.upper(), path) for path, methods in reply.json()["paths"].items() for method in methods}
    beside = served - {(operation.method, operation.path) for operation in OPERATIONS}
    names = [*(operation.name for operation in OPERATIONS), *(" ".join(each) for each in beside)]

    compare(HTTP, names, "http_rows.py")


@with_world
async def test_every_tool_and_resource_of_the_engine_has_a_row(world: World) -> None:
    tools = [tool.name for tool in own_tools(world.site.engine)]
    resources = [resource.uri for resource in own_resources(world.site.engine)]

    for way in ("tool", "rpc"):
        compare([row for row in gateway_rows.OWN_TOOLS if row.way == way], tools, "gateway_rows.py")
    compare(gateway_rows.RESOURCES, resources, "gateway_rows.py")


def test_every_method_and_frame_has_a_row() -> None:
    frames = [frame.__struct_config__.tag for frame in get_args(Frame)]
    legacy = [row for row in gateway_rows.LEGACY if row.way == "session" and row.name not in METHODS]

    compare(gateway_rows.METHODS, [*METHODS, DISCOVER, LISTEN], "gateway_rows.py")
    compare(legacy, [messages.INITIALIZE, *cases(inspect.getsource(messages.answer))], "gateway_rows.py")
    compare(gateway_rows.FRAMES, frames, "gateway_rows.py")
    assert RPC_DISCOVER in {row.name for row in gateway_rows.RPC}


def compare(rows: Iterable[Row], names: Iterable[str], file: str) -> None:
    """Tell which have no row, and which rows are of nothing."""
    found, wanted = {row.name for row in rows}, {*names}
    if found != wanted:
        without, of_nothing = sorted(wanted - found), sorted(found - wanted)
        pytest.fail(
            f"without a row in the access matrix, tests/access/matrix/{file}: {without or 'none'}; "
            f"rows of nothing: {of_nothing or 'none'}",
            pytrace=False,
        )


def cases(source: str) -> list[str]:
    """The texts that a function matches."""
    return [
        str(node.pattern.value.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.match_case)
        and isinstance(node.pattern, ast.MatchValue)
        and isinstance(node.pattern.value, ast.Constant)
    ]
