"""A shop behind a gateway: a small program, those who call, and a client that takes down what it is told."""

from collections.abc import Mapping
from typing import Any

import holdfast
from holdfast import App, Image, Link, Message, ResourceContents, Run
from holdfast.access.principals import Principal
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.methods import METHODS
from holdfast.gateway.mcp.requests import McpRequest
from holdfast.mcp.inputs import InputRequest, Reply
from holdfast.mcp.protocol import MODERN
from holdfast.skills.client import SILENT, Client, InputRequired

PIXEL = b"\x89PNG"
ADMIN = frozenset({"read", "write", "admin"})
MEMBER = frozenset({"read", "write"})
READER = frozenset({"read"})
CITIES = ("Berlin", "Bern", "Cologne")


def shop() -> App:
    """Tools, resources and prompts of a shop, and two agents."""
    app = App()

    @app.tool(idempotent=True, access="read")
    async def track(parcel: str) -> dict[str, str]:
        """Where a parcel is."""
        return {"parcel": parcel, "where": "Cologne"}

    @app.tool
    async def refund(order: str, amount: int = 1) -> str:
        """Give money back to the buyer."""
        return f"paid back {amount} for {order}"

    @app.tool(access="read")
    async def picture(order: str) -> list[Any]:
        """A picture of an order."""
        return [Image.of(PIXEL, "image/png"), Link(f"shop://orders/{order}", order)]

    @app.tool
    async def ship(order: str, run: Run) -> str:
        """Send an order, when its buyer says where to."""
        await run.client.progress(1, total=2, message="looking it up")
        reply = await run.client.elicit("where", f"Where does {order} go?", {"type": "object", "properties": {}})
        return f"{order} goes to {reply.content.get('city', 'nowhere')}"

    app.add_skill("returns", description="Sending goods back.", instructions="Ask why first.", tools=[refund, track])
    app.agent("support", instructions="You help.", tools=[track], skills=["returns"], memory=False)
    app.agent("clerk", instructions="You pay.", tools=[refund], approve=["refund"], memory=False)
    _offer(app)
    return app


def _offer(app: App) -> None:
    @app.resource("shop://hours", title="Opening hours", mime_type="text/markdown")
    def hours() -> str:
        """When the shop is open."""
        return "# Monday to Friday"

    @app.resource("shop://logo")
    async def logo() -> bytes:
        """The logo."""
        return PIXEL

    @app.resource("shop://orders/{order}", complete={"order": ["A-1", "A-2", "B-1"]})
    async def order(order: str, run: Run) -> str:
        """An order."""
        if order == "none":
            raise holdfast.NotFound("there is no such order")
        if order == "broken":
            raise KeyError("inner secret")
        return f"{order} of {run.user}"

    @app.resource("shop://bills/{year}/{number}")
    async def bill(year: int, number: str) -> list[ResourceContents]:
        """A bill, page by page."""
        return [ResourceContents(f"shop://bills/{year}/{number}#{n}", text=f"{year + 1} {number}") for n in (1, 2)]

    @app.prompt(title="Complain", complete={"city": cities})
    async def complain(order: str, city: str = "Berlin") -> str:
        """Write a complaint.

        Args:
            order: what it is about.
        """
        return f"Complain about {order} to the shop in {city}."

    @app.prompt
    def greet(run: Run) -> list[Any]:
        """Greet somebody."""
        return [Message("assistant", "Who is there?"), f"{run.user}.", Image.of(PIXEL, "image/png")]


async def cities(typed: str, order: str = "") -> list[str]:
    """The cities of shops, only one of which sells what begins with a B."""
    return [city for city in (CITIES[:1] if order.startswith("B") else CITIES) if city.startswith(typed)]


async def caller(
    gateway: Gateway, user: str = "ann", *, scopes: frozenset[str] = ADMIN, agent: str | None = None
) -> Principal:
    """Somebody of the gateway's tenant."""
    return Principal(await gateway.engine.database.tenant(), user, scopes, agent)


async def ask(
    gateway: Gateway,
    who: Principal,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    client: Client = SILENT,
    version: str = MODERN,
) -> dict[str, Any]:
    """What a method of MCP answers."""
    return await METHODS[method](McpRequest(method, params or {}, gateway, who, client, version))


class Person(Client):
    """A client that takes down how it goes, and that answers what it knows an answer to."""

    def __init__(self, **answers: Mapping[str, Any]) -> None:
        self.heard: list[str | None] = []
        self._answers = answers

    async def progress(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Take it down."""
        self.heard.append(message)

    async def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Take it down."""
        self.heard.append(f"{level}: {data}")

    async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
        """Answer, or have it wait."""
        lacking = {name: request for name, request in requests.items() if name not in self._answers}
        if lacking:
            raise InputRequired(lacking)
        return {name: Reply({"action": "accept", "content": self._answers[name]}) for name in requests}
