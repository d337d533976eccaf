"""A tenant whose tools call a back end of the test's own, and what that back end was told of callers."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from multidict import CIMultiDict

from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.skills.sources.source import Choice
from tests.execution.backend import Service, with_calls_to_this_machine
from tests.oauth.authorization_server import SmallServer, small_server

EVERYTHING = Choice(everything=True)
SECRET = "the engine's own secret"


@pytest.fixture
def config(config: Config) -> Config:
    """Settings of an engine that may call this machine."""
    return with_calls_to_this_machine(config)


@pytest.fixture
async def engine(config: Config, no_models: None) -> AsyncIterator[Engine]:
    """An open engine without models."""
    async with open_engine(config=config) as engine:
        yield engine.tenant(await engine.tenants.id_of("default"))


@pytest.fixture
async def shop() -> AsyncIterator[Service]:
    """The back end."""
    async with Service().serving() as service:
        yield service


@pytest.fixture
async def authority() -> AsyncIterator[SmallServer]:
    """A small authorization server."""
    async with small_server() as authority:
        yield authority


def document(url: str) -> bytes:
    """The description of the back end, with an operation that reads and one that writes."""
    return described(url, {"/order": {"get": {}, "post": {}}})


def described(url: str, paths: dict[str, Any]) -> bytes:
    """The description of a back end with some operations."""
    info = {"title": "Shop", "version": "1"}
    return json.dumps({"openapi": "3.1.0", "info": info, "servers": [{"url": url}], "paths": paths}).encode()


async def add_shop(engine: Engine, shop: Service, identity: Any, **more: Any) -> None:
    """Register the back end as a source."""
    await engine.secrets.set("client", SECRET)
    await engine.sources.add("shop", document=document(shop.url), choice=EVERYTHING, identity=identity, **more)


async def call(engine: Engine, name: str = "get_order", **who: Any) -> Any:
    """Call a tool of the back end, and return its value."""
    execution = await engine.executions.call(name, user=who.pop("user", "ann"), **who)
    return execution.result if execution.error is None else execution.error


def told(shop: Service) -> list[CIMultiDict[str]]:
    """The headers of the requests that the back end got."""
    return [CIMultiDict(asked.headers) for asked in shop.asked]
