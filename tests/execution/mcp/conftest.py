from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.engine import Engine
from holdfast.postgres.embedded import EmbeddedServer
from tests.conformance.mcp.everything import changing, everything
from tests.execution.mcp.federation import gateway
from tests.server.conftest import running
from tests.server.wire import Site


@pytest.fixture
async def upstream(words_only: Engine) -> AsyncIterator[Site]:
    """A server with one of everything that MCP knows."""
    app = everything()
    config = words_only.config
    config = config.model_copy(update={"server": config.server.model_copy(update={"port": 0})})
    own = words_only.tenant(await words_only.tenants.id_of(config.tenant))
    changing(app, own)
    async with own.serving(app), running(words_only, config, app=app) as site:
        yield site


@pytest.fixture
def url(upstream: Site) -> str:
    """Where that server is."""
    return f"http://127.0.0.1:{upstream.port}/mcp"


@pytest.fixture
async def site(server: EmbeddedServer, template: str, tmp_path: Path, no_models: None) -> AsyncIterator[Site]:
    """A gateway that may call this machine."""
    async with gateway(server, template, tmp_path) as site:
        yield site
