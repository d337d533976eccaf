"""Options: how to reach and use a server."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Options:
    """How to reach and use a server."""

    tenancy: Literal["connection", "transaction"] = "connection"
    pool_size: int = 16
    statement_cache_size: int = 256
    connect_timeout: float = 10
    host_timeout: float = 5
    acquire_timeout: float = 10
    statement_timeout: float | None = 30
    lock_timeout: float | None = None  # as the server has it
    tenant_share: float = 1.0  # of the connections
    user_share: float = 1.0
    revive: Callable[[], Awaitable[None]] | None = None  # brings a server back that is ours to start
