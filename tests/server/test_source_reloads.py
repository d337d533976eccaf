"""Sources that are reloaded while tools are called, on two nodes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.config import load_config
from holdfast.engine import Engine, open_engine
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.skills.sources.source import Choice
from tests.conftest import clone_database
from tests.execution.backend import Service
from tests.server.conftest import running
from tests.server.mcp_wire import ask, call
from tests.server.wire import Site

pytestmark = pytest.mark.req("SKILL-05", "MCP-03", "MCP-05")

CALLERS = 20
CURRENT = 5.0  # seconds within which each node has a change
EVERYTHING = Choice(everything=True)


def operation(summary: str, *parameters: str) -> dict[str, Any]:
    stated = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters]
    return {"get": {"summary": summary, "parameters": stated, "responses": {"200": {"description": "so"}}}}


class Shop:
    """A service whose document changes: a description, an argument, and an operation that comes and goes."""

    def __init__(self, service: Service) -> None:
        self.url = f"{service.url}/api.json"
        self.published: list[float] = []  # when each version was
        self._service = service
        self.publish()
        service.will_answer("/api.json", self._answer)

    @property
    def document(self) -> bytes:
        """The newest version."""
        version = len(self.published) - 1
        more = ["page"] if version % 2 else []
        paths = {
            "/orders": operation(f"Version {version}", "state", *more),
            f"/parcels-{version}": operation("Parcels"),
        }
        stated = {"openapi": "3.1.0", "info": {"title": "Shop", "version": str(version)}, "paths": paths}
        return json.dumps({**stated, "servers": [{"url": self._service.url}]}).encode()

    def publish(self) -> None:
        """Publish the next version."""
        self.published.append(monotonic())

    async def _answer(self, request: web.Request) -> web.Response:
        etag = f'"{len(self.published)}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304)
        return web.Response(body=self.document, headers={"ETag": etag})


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A back end on this machine."""
    async with Service().serving() as service:
        yield service


@pytest.fixture
async def nodes(
    server: EmbeddedServer, template: str, tmp_path: Path, no_models: None
) -> AsyncIterator[tuple[Site, Site]]:
    """Two nodes on one database, which may call this machine."""
    async with clone_database(server, template) as database_url, AsyncExitStack() as stack:
        sites: list[Site] = []
        for name in ("one", "two"):
            given = {
                "database.url": database_url,
                "data": tmp_path / name,
                "server.port": 0,
                "execution.allow_private": ["127.0.0.1"],
            }
            config = load_config(given, environ={}, cwd=tmp_path)
            engine = await stack.enter_async_context(open_engine(config=config))
            sites.append(await stack.enter_async_context(running(engine, config)))
        yield sites[0], sites[1]


async def own(site: Site) -> Engine:
    """The engine of the default tenant."""
    return site.engine.tenant(await site.engine.tenants.id_of("default"))


async def listed(site: Site) -> dict[str, str]:
    """The tools that a node lists, with their descriptions."""
    tools = (await ask(site, "tools/list")).json()["result"]["tools"]
    return {tool["name"]: tool["description"] for tool in tools}


async def version_of(site: Site) -> int:
    """The version of the document that a node has."""
    return int((await listed(site))["get_orders"].split()[1])


async def current(site: Site, version: int) -> None:
    """Wait until a node has a version."""
    async with asyncio.timeout(CURRENT):
        while await version_of(site) < version:  # noqa: ASYNC110 - the list tells
            await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("seconds", "every"), [(5, 1.0), pytest.param(60, 2.0, marks=[pytest.mark.soak, pytest.mark.alone])]
)
async def test_no_call_fails_while_a_source_changes_and_each_node_is_soon_current(
    nodes: tuple[Site, Site],
    service: Service,
    seconds: float,
    every: float,
    record_property: Callable[[str, object], None],
) -> None:
    shop = Shop(service)
    await (await own(nodes[0])).sources.add("shop", url=shop.url, choice=EVERYTHING, pin="follow", reload_seconds=1)
    ends = monotonic() + seconds
    failed: list[Any] = []
    delays: list[float] = []  # from each version to the list of each node that has it
    calls = 0
    published = asyncio.Event()

    async def caller(site: Site) -> None:
        nonlocal calls
        async with site.connect() as wire:
            while monotonic() < ends:
                result = (await call(wire, "get_orders", {"state": "new"})).json().get("result")
                calls += 1
                if result is None or result.get("isError"):
                    failed.append(result)

    async def looker(site: Site) -> None:
        known = 0
        while not published.is_set() or known < len(shop.published) - 1:
            seen = await version_of(site)
            delays.extend(monotonic() - shop.published[version] for version in range(known + 1, seen + 1))
            known = seen
            await asyncio.sleep(0.1)

    async def publisher() -> None:
        while monotonic() < ends:
            await asyncio.sleep(every)
            shop.publish()
        published.set()

    async with asyncio.timeout(seconds + 30), asyncio.TaskGroup() as group:
        for number in range(CALLERS):
            group.create_task(caller(nodes[number % 2]))
        for site in nodes:
            group.create_task(looker(site))
        group.create_task(publisher())
    latest = max(delays)
    versions = len(shop.published) - 1
    record_property(
        "measured", f"{calls} calls, {len(failed)} failed; {versions} versions, each on both nodes in {latest:.1f} s"
    )

    assert failed == []
    assert len(delays) == 2 * versions
    assert latest < CURRENT
    assert calls > CALLERS


async def test_a_call_of_a_tool_that_is_removed_meanwhile_ends_as_it_began(
    nodes: tuple[Site, Site], service: Service
) -> None:
    shop = Shop(service)
    engine = await own(nodes[0])
    await engine.sources.add("shop", url=shop.url, choice=EVERYTHING, pin="follow", reload_seconds=3600)
    began, go = asyncio.Event(), asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        began.set()
        await go.wait()
        return web.json_response({"parcels": 3})

    service.will_answer("/parcels-0", answer)
    async with asyncio.timeout(30):
        calling = asyncio.create_task(call(nodes[1], "get_parcels_0"))
        await began.wait()
        shop.publish()
        await (await own(nodes[1])).source_checks.ask("shop")
        await current(nodes[1], 1)
        go.set()
        result = (await calling).json()["result"]
        removed = (await call(nodes[1], "get_parcels_0")).json()

    assert result["structuredContent"] == {"parcels": 3}
    assert "get_parcels_0" in removed["error"]["message"]


async def test_arguments_are_checked_by_the_new_definition_and_the_error_says_what_is_wrong(
    nodes: tuple[Site, Site], service: Service
) -> None:
    shop = Shop(service)
    shop.publish()
    engine = await own(nodes[0])
    await engine.sources.add("shop", url=shop.url, choice=EVERYTHING, pin="follow", reload_seconds=3600)
    before = (await call(nodes[1], "get_orders", {"page": "2"})).json()["result"]

    shop.publish()
    await engine.source_checks.ask("shop")
    await current(nodes[1], 2)
    after = (await call(nodes[1], "get_orders", {"page": "2"})).json()["result"]

    assert before["isError"] is False
    assert after["isError"] is True
    assert "page" in after["content"][0]["text"]
