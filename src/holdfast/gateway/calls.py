"""Tool calls through the gateway, as policies see them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.access.principals import Principal
from holdfast.gateway.views import Listed, View
from holdfast.skills.client import SILENT, Client


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool from the caller's `view`; `timeout` is how many seconds the caller waits."""

    listed: Listed
    arguments: Mapping[str, Any]
    caller: Principal
    view: View
    timeout: float
    client: Client = SILENT
