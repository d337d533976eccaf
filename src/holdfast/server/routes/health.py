"""Health checks: liveness and readiness."""

from http import HTTPStatus
from typing import Literal

import msgspec

from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.server_file import SERVICE, Health, holdfast_version

operations = ApiOperations("health")

State = Literal["ok", "reduced", "down"]


class PartState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of the engine. `reduced` means degraded. Only authenticated callers get `detail`."""

    name: str
    state: State
    detail: str = ""


class Readiness(msgspec.Struct, frozen=True):
    """The state of the engine, which is that of its worst part."""

    state: State
    parts: list[PartState]


@operations.declare("GET", "/healthz", needs="nobody")
async def healthz(call: ApiCall) -> Health:
    """Check whether the server is alive. This does not query the database."""
    return Health(SERVICE, holdfast_version(), call.instance)


@operations.declare("GET", "/readyz", needs="anybody", or_status=503)
async def readyz(call: ApiCall) -> Readiness:
    """Check whether the engine is ready, with the state of each part; 503 if a part is down."""
    told = call.caller is not None
    parts = [PartState(part.name, part.state, part.detail if told else "") for part in await call.engine.parts()]
    states = {part.state for part in parts}
    state: State = "down" if "down" in states else "reduced" if "reduced" in states else "ok"
    if state == "down":
        call.status = HTTPStatus.SERVICE_UNAVAILABLE
    return Readiness(state, parts)
