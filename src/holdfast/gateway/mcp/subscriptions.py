"""Subscriptions: the messages of the `subscriptions/listen` stream, on which a modern client receives changes."""

from collections.abc import Mapping
from typing import Any, cast

from holdfast.gateway.mcp.answers import RequestId
from holdfast.gateway.mcp.changes import LISTS, Kind, ListChange, WantedChanges
from holdfast.gateway.mcp.modern import META
from holdfast.mcp.protocol import INVALID_PARAMS, SUBSCRIPTION, McpError

MOST_URIS = 1000  # resources of one stream


def wanted_of(params: Mapping[str, Any]) -> WantedChanges:
    """Parse what a client subscribes to; raise McpError if it is malformed."""
    given = params.get("notifications")
    if not isinstance(given, dict):
        raise McpError(INVALID_PARAMS, "`notifications` has to be an object that says what to tell")
    fields = cast(dict[str, Any], given)
    uris: object = fields.get("resourceSubscriptions") or []
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in cast(list[Any], uris)):
        raise McpError(INVALID_PARAMS, "`resourceSubscriptions` has to be a list of URIs")
    if len(cast(list[Any], uris)) > MOST_URIS:
        raise McpError(INVALID_PARAMS, f"one stream follows at most {MOST_URIS} resources; open another for the others")
    lists: frozenset[Kind] = frozenset(kind for kind in LISTS if fields.get(f"{kind}ListChanged") is True)
    return WantedChanges(lists, frozenset(cast(list[str], uris)))


def acknowledgement(id: RequestId, wanted: WantedChanges) -> dict[str, Any]:
    """Return the first message on a stream: what the client is subscribed to."""
    subscribed: dict[str, Any] = {f"{kind}ListChanged": True for kind in LISTS if kind in wanted.lists}
    if wanted.uris:
        subscribed["resourceSubscriptions"] = sorted(wanted.uris)
    return _notification(id, "notifications/subscriptions/acknowledged", {"notifications": subscribed})


def change_notification(id: RequestId, change: ListChange) -> dict[str, Any]:
    """Return the message of a change."""
    return _notification(id, change.method, change.params)


def end_result(id: RequestId) -> dict[str, Any]:
    """Return the result at the end of a stream that the server ends."""
    return {"resultType": "complete", "_meta": {**META, SUBSCRIPTION: id}}


def _notification(id: RequestId, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {SUBSCRIPTION: id}}}
