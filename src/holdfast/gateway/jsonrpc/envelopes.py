"""The envelope before JSON-RPC: `{"host", "service", "action", "version", "data"}`. It is deprecated, but works.

Fields that user interfaces add (`title`, `success`, `failure`) are ignored.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from time import monotonic
from typing import Any, cast

from holdfast.core.errors import InvalidInput
from holdfast.core.ids import TenantId
from holdfast.gateway.jsonrpc.messages import Params

PARTS = ("host", "service", "action", "version")
UNKNOWN = "unknown"  # counts all unknown methods: each name costs a monitoring system a time series
WARN_AGAIN = 60.0  # seconds between two warnings about a method

log = logging.getLogger(__name__)


def is_envelope(message: Mapping[str, Any]) -> bool:
    """Whether an object is an envelope, and not a JSON-RPC request."""
    return "jsonrpc" not in message and any(part in message for part in PARTS)


def open_envelope(envelope: Mapping[str, Any]) -> tuple[str, Params]:
    """Return the method that an envelope calls, and its params; raise InvalidInput if it is malformed."""
    parts = [envelope.get(part) for part in PARTS]
    data = envelope.get("data")
    for name, part in zip(PARTS, parts, strict=True):
        if not isinstance(part, str) or not part:
            raise _invalid_envelope(f"`{name}` is no text, or empty")
    if data is not None and not isinstance(data, dict | list):
        raise _invalid_envelope("`data` is neither an object nor a list")
    return "/".join(cast(list[str], parts)), cast(Params, {} if data is None else data)


class EnvelopeCalls:
    """Counts calls with the envelope, and logs a warning for each tenant and method from time to time."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[TenantId, str]] = Counter()
        self._warned_at: dict[tuple[TenantId, str], float] = {}

    def note(self, tenant: TenantId, method: str) -> None:
        """Count a call of a method."""
        call = tenant, method
        self._counts[call] += 1
        now = monotonic()
        if now - self._warned_at.get(call, -WARN_AGAIN) >= WARN_AGAIN:
            self._warned_at[call] = now
            log.warning(
                "deprecated: %s of the tenant %s is called by the envelope before JSON-RPC (%d calls so far); "
                "send JSON-RPC 2.0 to the same address",
                method,
                tenant,
                self._counts[call],
            )

    def counts(self, tenant: TenantId | None = None) -> Mapping[tuple[TenantId, str], int]:
        """Return the number of calls of each method, for one tenant or for all."""
        return {call: count for call, count in self._counts.items() if tenant in (None, call[0])}


def _invalid_envelope(why: str) -> InvalidInput:
    return InvalidInput(
        "this envelope cannot be read",
        why=why,
        next='Send `host`, `service`, `action`, `version` and `data`, or JSON-RPC: "jsonrpc": "2.0".',
    )
