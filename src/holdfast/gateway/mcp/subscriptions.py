"""Subscriptions: the stream of `subscriptions/listen`, by which a modern client hears what has changed."""

from collections.abc import Mapping
from typing import Any, cast

from holdfast.gateway.mcp.answers import RequestId
from holdfast.gateway.mcp.changes import LISTS, Change, Kind, Wanted
from holdfast.gateway.mcp.modern import META
from holdfast.mcp.protocol import INVALID_PARAMS, SUBSCRIPTION, McpError

MOST_URIS = 1000  # that one stream follows


def wanted_of(params: Mapping[str, Any]) -> Wanted:
    """What a client wants to be told of; McpError where that cannot be read."""
    given = params.get("notifications")
    if not isinstance(given, dict):
        raise McpError(INVALID_PARAMS, "`notifications` has to be an object that says what to tell")
    said = cast(dict[str, Any], given)
    uris: object = said.get("resourceSubscriptions") or []
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in cast(list[Any], uris)):
        raise McpError(INVALID_PARAMS, "`resourceSubscriptions` has to be a list of URIs")
    if len(cast(list[Any], uris)) > MOST_URIS:
        raise McpError(INVALID_PARAMS, f"one stream follows at most {MOST_URIS} resources; open another for the others")
    lists: frozenset[Kind] = frozenset(kind for kind in LISTS if said.get(f"{kind}ListChanged") is True)
    return Wanted(lists, frozenset(cast(list[str], uris)))


def acknowledged(id: RequestId, wanted: Wanted) -> dict[str, Any]:
    """The first message on the stream: what will be told."""
    told: dict[str, Any] = {f"{kind}ListChanged": True for kind in LISTS if kind in wanted.lists}
    if wanted.uris:
        told["resourceSubscriptions"] = sorted(wanted.uris)
    return _tagged(id, "notifications/subscriptions/acknowledged", {"notifications": told})


def told(id: RequestId, change: Change) -> dict[str, Any]:
    """A change, as the stream tells it."""
    return _tagged(id, change.method, change.params)


def ended(id: RequestId) -> dict[str, Any]:
    """The last message on a stream that the server ends."""
    return {"resultType": "complete", "_meta": {**META, SUBSCRIPTION: id}}


def _tagged(id: RequestId, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {SUBSCRIPTION: id}}}
