"""A running server for every test that asks for one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any
from unittest.mock import patch

import pytest
import uvicorn.server

from holdfast import App
from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.server.app import OPERATIONS
from holdfast.server.operations import ApiCall, ApiOperation, ApiOperations
from holdfast.server.port import bind
from holdfast.server.server_file import ServerFile
from holdfast.server.serving import serve
from tests.agents.stage import Player, caller_of
from tests.server.signs import Signs
from tests.server.wire import Site

extra = ApiOperations("test")


@extra.declare("GET", "/slow", needs="nobody")
async def slow(call: ApiCall, seconds: float) -> str:
    """Take so long."""
    await asyncio.sleep(seconds)
    return "done"


@extra.declare("GET", "/broken", needs="nobody")
async def broken(call: ApiCall) -> str:
    """Fail in a way that nobody foresaw."""
    raise KeyError("inner secret")


@pytest.fixture
def settings() -> dict[str, Any]:
    """Settings of the server; parametrise it to change them."""
    return {}


@pytest.fixture
def limits() -> dict[str, Any]:
    """How much is done at once; parametrise it to change it."""
    return {}


@pytest.fixture
def config(config: Config, settings: dict[str, Any], limits: dict[str, Any]) -> Config:
    """The settings of the engine, with those of the server."""
    server = config.server.model_copy(update={"port": 0, **settings})
    return config.model_copy(update={"server": server, "limits": config.limits.model_copy(update=limits)})


@pytest.fixture
async def site(engine: Engine) -> AsyncIterator[Site]:
    """A server that runs on the test's engine."""
    async with running(engine, engine.config) as site:
        yield site


@pytest.fixture
async def key(engine: Engine) -> str:
    """A key of the tenant `default` with the scopes of an owner."""
    return await make_key(engine)


@pytest.fixture
def signs() -> Signs:
    """What the tools of a test's program say, and wait for."""
    return Signs()


@pytest.fixture
def model() -> Player:
    """The model that every agent of the desk asks."""
    return Player()


@pytest.fixture
def app() -> App:
    """A program with an agent that looks where parcels are, and gives money back when a person allows it."""
    app = App()

    @app.tool(idempotent=True)
    async def track(parcel: str) -> str:
        """Where a parcel is."""
        return f"{parcel} is in Cologne"

    @app.tool
    async def refund(order: str) -> str:
        """Give the money back."""
        return f"paid back {order}"

    app.agent("support", instructions="You help.", tools=[track, refund], approve=["refund"], memory=False)
    app.agent("default", memory=False)
    return app


@pytest.fixture
async def desk(
    config: Config, model: Player, app: App, no_models: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Site]:
    """A server whose process serves the agents of the app, for the tenants `default` and `acme`."""
    monkeypatch.setattr("holdfast.engine.Caller", caller_of(model))
    async with open_engine(config=config) as engine:
        await engine.tenants.create("acme")
        async with AsyncExitStack() as stack:
            for tenant in ("default", "acme"):
                # By its id, as the server asks for it: then what is done here is told here at once.
                own = engine.tenant(await engine.tenants.id_of(tenant))
                await stack.enter_async_context(own.serving(app))
            stack.callback(model.release)
            yield await stack.enter_async_context(running(engine, config))


async def make_key(
    engine: Engine, principal: str = "ann", *, tenant: str = "default", scopes: Sequence[str] = ()
) -> str:
    """A key that was made before the server was asked anything."""
    options: dict[str, Any] = {"scopes": frozenset(scopes)} if scopes else {}
    made = await engine.keys.create(await engine.tenants.id_of(tenant), principal, **options)
    return made.text


@asynccontextmanager
async def serving(config: Config, app: App) -> AsyncGenerator[Site]:
    """A server that serves a program to the tenant `default`."""
    async with open_engine(config=config) as engine:
        own = engine.tenant(await engine.tenants.id_of("default"))
        async with own.serving(app), running(engine, config, app=app) as site:
            yield site


@asynccontextmanager
async def running(
    engine: Engine,
    config: Config,
    operations: Sequence[ApiOperation] = (*OPERATIONS, *extra),
    *,
    app: App | None = None,
) -> AsyncGenerator[Site]:
    """A server that runs as long as this lasts; `app` is the program that it serves."""
    with patch.object(uvicorn.server, "asyncio", _Brisk()):
        async with _running(engine, config, operations, app) as site:
            yield site


class _Brisk:
    """`asyncio` as uvicorn has it here: a tenth of a second before each look whether to end is a hundredth."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 10)


@asynccontextmanager
async def _running(
    engine: Engine, config: Config, operations: Sequence[ApiOperation], app: App | None
) -> AsyncGenerator[Site]:
    listener = bind(config)
    ready: asyncio.Future[ServerFile] = asyncio.get_running_loop().create_future()
    port = listener.getsockname()[1]
    server = asyncio.create_task(serve(engine, listener, config, ready.set_result, operations=operations, app=app))
    await asyncio.wait([server, ready], return_when=asyncio.FIRST_COMPLETED)
    if server.done():
        await server
    yield Site(engine, await ready, port)
    server.cancel()
    with suppress(asyncio.CancelledError):
        await server
