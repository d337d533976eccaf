"""A server with one of everything, and the programs that look at it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.core.config import Config, load_config
from holdfast.engine import open_engine
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.skills.request import McpServer
from tests.conformance.mcp.everything import changing, everything
from tests.conformance.mcp.peers import Peers, peers_or_skip
from tests.execution.mcp.federation import gateway, own
from tests.server.conftest import running
from tests.server.wire import Site


@pytest.fixture(scope="session")
def peers() -> Peers:
    """The official suite, and Inspector."""
    return peers_or_skip()


@pytest.fixture
def config(database_url: str, tmp_path: Path, no_models: None) -> Config:
    """Settings of a server on the test's database; no log is the matter here."""
    return load_config(
        {"database.url": database_url, "data": tmp_path / "data", "server.port": 0}, environ={}, cwd=tmp_path
    )


@pytest.fixture
async def site(config: Config) -> AsyncIterator[Site]:
    """A server that serves the program."""
    app = everything()
    async with open_engine(config=config) as engine:
        own = engine.tenant(await engine.tenants.id_of(config.tenant))
        changing(app, own)
        async with own.serving(app), running(engine, config, app=app) as site:
            yield site


@pytest.fixture
def url(site: Site) -> str:
    """Where the server is."""
    return f"http://127.0.0.1:{site.port}/mcp"


@pytest.fixture
async def federated_url(url: str, server: EmbeddedServer, template: str, tmp_path: Path) -> AsyncIterator[str]:
    """Where another server is, whose tools, prompts and resources are all those of the first."""
    async with gateway(server, template, tmp_path) as site:
        await (await own(site)).sources.add(
            "first", kind="mcp", url=url, mcp=McpServer(prefix="", sampling=True), pin="follow"
        )
        yield f"http://127.0.0.1:{site.port}/mcp"
