"""The request context: which request this task works for, for records, headers and logs."""

import re
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

# The entry point of a request. `engine`: it came from Python code in this process, not over a protocol.
Entry = Literal["http", "mcp", "rpc", "websocket", "stdio", "agent", "engine"]

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_NO_TRACE = "0" * 32


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request: its entry point, its id, the W3C trace that it belongs to, and the address of its client.

    `key`, `actor` and `scopes` are those of its caller (see `Principal`), once the caller is authenticated.
    """

    entry: Entry = "engine"
    request_id: str = ""
    trace_id: str = ""
    address: str = ""
    key: UUID | None = None
    actor: str | None = None
    scopes: frozenset[str] = frozenset()


NO_REQUEST = RequestContext()

_current: ContextVar[RequestContext] = ContextVar("holdfast_request_context", default=NO_REQUEST)


def current_request() -> RequestContext:
    """Return the request that this task works for."""
    return _current.get()


def set_request(context: RequestContext) -> None:
    """Set the request of this task and of the tasks that it starts."""
    _current.set(context)


def set_caller(key: UUID | None, actor: str | None, scopes: frozenset[str] = frozenset()) -> None:
    """Record whose key the request of this task has, and with which scopes."""
    if key is not None or actor is not None or scopes:
        _current.set(replace(_current.get(), key=key, actor=actor, scopes=scopes))


def trace_id_of(traceparent: str | None) -> str:
    """Return the trace id of a W3C `traceparent` header; an empty text if it has none."""
    found = None if traceparent is None else _TRACEPARENT.fullmatch(traceparent)
    return "" if found is None or found[1] == _NO_TRACE else found[1]
