"""The envelope before JSON-RPC: `{"host", "service", "action", "version", "data"}`, deprecated, and still answered.

What user interfaces put beside it (`title`, `success`, `failure`) is not looked at.
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
UNKNOWN = "unknown"  # what methods that there are not are counted as: a monitoring system pays for each name
SAID_AGAIN = 60.0  # seconds after which it is said again that a method is called so

log = logging.getLogger(__name__)


def is_envelope(message: Mapping[str, Any]) -> bool:
    """Whether an object is an envelope rather than a request of JSON-RPC."""
    return "jsonrpc" not in message and any(part in message for part in PARTS)


def opened(envelope: Mapping[str, Any]) -> tuple[str, Params]:
    """The method that an envelope calls, and its params; InvalidInput that says what is wrong with it."""
    parts = [envelope.get(part) for part in PARTS]
    data = envelope.get("data")
    for name, part in zip(PARTS, parts, strict=True):
        if not isinstance(part, str) or not part:
            raise _refused(f"`{name}` is no text, or empty")
    if data is not None and not isinstance(data, dict | list):
        raise _refused("`data` is neither an object nor a list")
    return "/".join(cast(list[str], parts)), cast(Params, {} if data is None else data)


class EnvelopeCalls:
    """Counts calls by the envelope, and says from time to time who still makes them."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[TenantId, str]] = Counter()
        self._said: dict[tuple[TenantId, str], float] = {}

    def note(self, tenant: TenantId, method: str) -> None:
        """A method was called."""
        call = tenant, method
        self._counts[call] += 1
        now = monotonic()
        if now - self._said.get(call, -SAID_AGAIN) >= SAID_AGAIN:
            self._said[call] = now
            log.warning(
                "deprecated: %s of the tenant %s is called by the envelope before JSON-RPC (%d calls so far); "
                "send JSON-RPC 2.0 to the same address",
                method,
                tenant,
                self._counts[call],
            )

    def counts(self, tenant: TenantId | None = None) -> Mapping[tuple[TenantId, str], int]:
        """How many calls there were of each method: of one tenant, or of all."""
        return {call: count for call, count in self._counts.items() if tenant in (None, call[0])}


def _refused(why: str) -> InvalidInput:
    return InvalidInput(
        "this envelope cannot be read",
        why=why,
        next='Send `host`, `service`, `action`, `version` and `data`, or JSON-RPC: "jsonrpc": "2.0".',
    )
