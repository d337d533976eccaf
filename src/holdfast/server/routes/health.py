"""Health checks: liveness and readiness."""

from http import HTTPStatus

import msgspec
from msgspec.structs import replace

from holdfast.engine import EnginePart, PartState
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.server_file import SERVICE, Health, holdfast_version

operations = ApiOperations("health")


class Readiness(msgspec.Struct, frozen=True):
    """The state of the engine, which is that of its worst part. Only authenticated callers get `detail` of parts."""

    state: PartState
    parts: list[EnginePart]


@operations.declare("GET", "/healthz", needs="nobody")
async def healthz(call: ApiCall) -> Health:
    """Check whether the server is alive. This does not query the database."""
    return Health(SERVICE, holdfast_version(), call.instance)


@operations.declare("GET", "/readyz", needs="anybody", or_status=503)
async def readyz(call: ApiCall) -> Readiness:
    """Check whether the engine is ready, with the state of each part; 503 if a part is down."""
    is_authenticated = call.caller is not None
    parts = [part if is_authenticated else replace(part, detail="") for part in await call.engine.parts()]
    states = {part.state for part in parts}
    state: PartState = "down" if "down" in states else "reduced" if "reduced" in states else "ok"
    if state == "down":
        call.status = HTTPStatus.SERVICE_UNAVAILABLE
    return Readiness(state, parts)
