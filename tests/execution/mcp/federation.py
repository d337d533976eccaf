"""A gateway in front of MCP servers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.core.config import load_config
from holdfast.engine import Engine, open_engine
from holdfast.postgres.embedded import EmbeddedServer
from tests.conftest import clone_database
from tests.server.conftest import running
from tests.server.wire import Site


@asynccontextmanager
async def gateway(server: EmbeddedServer, template: str, folder: Path, **settings: Any) -> AsyncGenerator[Site]:
    """A server on a database of its own, which may call this machine."""
    async with clone_database(server, template) as database_url:
        given = {
            "database.url": database_url,
            "data": folder / "gateway",
            "server.port": 0,
            "execution.allow_private": ["127.0.0.1"],
            **settings,
        }
        config = load_config(given, environ={}, cwd=folder)
        async with open_engine(config=config) as engine, running(engine, config) as site:
            yield site


async def own(site: Site) -> Engine:
    """The engine of the default tenant."""
    return site.engine.tenant(await site.engine.tenants.id_of(site.engine.config.tenant))
