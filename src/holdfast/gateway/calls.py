"""Tool calls through the gateway, as policies see them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.access.principals import Principal
from holdfast.gateway.views import CallerView, Listed
from holdfast.skills.client import SILENT, Client


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """A call of a tool from the caller's `view`; `timeout` is how many seconds the caller waits."""

    listed: Listed
    arguments: Mapping[str, Any]
    caller: Principal
    view: CallerView
    timeout: float
    client: Client = SILENT
