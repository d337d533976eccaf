"""Services: JSON-RPC methods that a caller can call."""

from typing import Any

import msgspec

from holdfast.gateway.views import Listed
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("services")


class Service(msgspec.Struct, frozen=True):
    """A service: `method` is its JSON-RPC method, `tool` its name in the registry, `schema` that of its params."""

    method: str
    tool: str
    description: str
    schema: dict[str, Any]


class ServiceList(msgspec.Struct, frozen=True):
    """Services, by method."""

    services: list[Service]


@operations.declare("GET", "/api/services", needs="read")
async def list_services(call: ApiCall) -> ServiceList:
    """List the services that the caller can call."""
    view = await call.gateways.of(call.principal.tenant).tools(call.principal)
    return ServiceList([_service(each) for each in view.services])


def _service(listed: Listed) -> Service:
    shown = listed.offer.shown
    return Service(shown.service or "", shown.name, shown.description, dict(shown.parameters))
