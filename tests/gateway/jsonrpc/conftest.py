"""A program with services and tools, and somebody who calls them without a transport."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from holdfast import App, Forbidden, HoldfastError, InvalidInput, Run
from holdfast.access.principals import OWNER_SCOPES, Principal
from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.jsonrpc.dispatcher import Dispatcher, RpcReply
from holdfast.gateway.jsonrpc.envelopes import EnvelopeCalls
from holdfast.mcp.content import Image

CREATE_ORDER = "shop.example/market/createOrder/1.0"
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {"parcel": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "default": 1}},
    "required": ["parcel"],
}


class Strange(HoldfastError):
    """An error of the program's own."""

    code = "strange"


FAILING: dict[str, Exception] = {
    "closed": InvalidInput("the order is closed", why="it was sent", next="Send it back."),
    "foreign": Forbidden("it is not yours"),
    "strange": Strange("it is no order"),
    "broken": KeyError("inner secret"),
}


@dataclass
class Shop:
    """A program, and what is seen of it from outside."""

    app: App = field(default_factory=lambda: App("shop"))
    heard: list[Any] = field(default_factory=list[Any])
    running: int = 0
    most_running: int = 0
    begun: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))  # one for each call that has
    gate: asyncio.Event = field(default_factory=asyncio.Event)


def declare_tools(shop: Shop) -> None:
    """The tools of the program."""
    app = shop.app

    @app.tool
    async def subtract(minuend: int, subtrahend: int) -> int:
        """One less the other."""
        return minuend - subtrahend

    @app.tool
    async def sum(a: int, b: int, c: int) -> int:
        """All of them."""
        return a + b + c

    @app.tool(access="read")
    async def get_data() -> list[Any]:
        """Some data."""
        return ["hello", 5]

    @app.tool(approve=True)
    async def refund() -> str:
        """Give money back."""
        return "paid"

    @app.tool
    async def draw() -> Image:
        """Draw a picture."""
        return Image.of(b"dot", "image/png")

    @app.tool
    async def notify_hello(number: int) -> None:
        """Hear something."""
        shop.heard.append(number)


def declare_services(shop: Shop) -> None:
    """The services of the program."""
    app = shop.app

    @app.service(CREATE_ORDER, schema=ORDER, access="write")
    async def create_order(order: dict[str, Any], run: Run) -> dict[str, Any]:
        """Order something."""
        return {"order": order, "for": run.user}

    @app.service("shop.example/market/cancelOrder/1.0")
    async def cancel_order(order: str) -> str:
        """Cancel an order."""
        if order in FAILING:
            raise FAILING[order]
        return f"{order} is cancelled"

    @app.service("shop.example/market/wait/1.0")
    async def wait(order: int) -> int:
        """Wait until the gate is opened."""
        shop.running += 1
        shop.begun.release()
        shop.most_running = max(shop.running, shop.most_running)
        try:
            await shop.gate.wait()
            return order
        finally:
            shop.running -= 1

    @app.service("shop.example/market/give/1.0", access="read")
    async def give(characters: int) -> str:
        """Give a text."""
        return "x" * characters


@dataclass
class Desk:
    """Where somebody calls."""

    gateway: Gateway
    caller: Principal
    envelopes: EnvelopeCalls = field(default_factory=EnvelopeCalls)

    async def reply(self, message: Any) -> RpcReply:
        """What comes back to a message: bytes as they are, anything else as JSON."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        dispatcher = Dispatcher(self.gateway, self.caller, request_id="request-7", envelopes=self.envelopes)
        return await dispatcher.dispatch(body)

    async def send(self, message: Any) -> Any:
        """What comes back, decoded; None where nothing does."""
        reply = await self.reply(message)
        return None if reply.body is None else json.loads(reply.body)

    async def call(self, method: str, params: Any = None) -> Any:
        """The result of a call, or its error."""
        given = {} if params is None else {"params": params}
        answer = await self.send({"jsonrpc": "2.0", "method": method, "id": 1, **given})
        return answer["result"] if "result" in answer else answer["error"]

    def of(self, **changes: Any) -> "Desk":
        """The same for another caller."""
        return Desk(self.gateway, replace(self.caller, **changes))


@pytest.fixture
def shop() -> Shop:
    """A program that is not served yet."""
    shop = Shop()
    declare_tools(shop)
    declare_services(shop)
    return shop


@pytest.fixture
async def engine(config: Config, shop: Shop, no_models: None) -> AsyncIterator[Engine]:
    """An engine that serves the program."""
    async with open_engine(config=config) as engine, engine.serving(shop.app):
        yield engine


@pytest.fixture
async def desk(engine: Engine, shop: Shop) -> Desk:
    """Where the owner of the tenant calls."""
    tenant = await engine.tenants.id_of("default")
    return Desk(Gateways(engine, shop.app).of(tenant), Principal(tenant, "ann", OWNER_SCOPES))
