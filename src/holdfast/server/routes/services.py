"""Services: what a caller can call by JSON-RPC under the name of a method."""

from typing import Any

import msgspec

from holdfast.gateway.views import Listed
from holdfast.server.operations import Call, Operations

operations = Operations("services")


class Service(msgspec.Struct, frozen=True):
    """A service: `method` is what it is called by on JSON-RPC, `tool` in the registry; `schema` is of its params."""

    method: str
    tool: str
    description: str
    schema: dict[str, Any]


class Services(msgspec.Struct, frozen=True):
    """Services in the order of their methods."""

    services: list[Service]


@operations.declare("GET", "/api/services", needs="read")
async def list_services(call: Call) -> Services:
    """The services that the caller can call."""
    view = await call.gateways.of(call.principal.tenant).tools(call.principal)
    return Services([_service(each) for each in view.services])


def _service(listed: Listed) -> Service:
    shown = listed.offer.shown
    return Service(shown.service or "", shown.name, shown.description, dict(shown.parameters))
