"""Options for the use of a PostgreSQL server."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from holdfast.core.shares import Shares


@dataclass(frozen=True, slots=True)
class Options:
    """How to connect to a server and how to use it."""

    tenancy: Literal["connection", "transaction"] = "connection"
    pool_size: int = 16
    statement_cache_size: int = 256
    connect_timeout: float = 10
    host_timeout: float = 5
    acquire_timeout: float = 10
    statement_timeout: float | None = 30
    lock_timeout: float | None = None  # None: the server's setting
    tenant_share: float = 1.0  # of the connections
    user_share: float = 1.0
    revive: Callable[[], Awaitable[None]] | None = None  # restarts the embedded server

    @property
    def lock_settings(self) -> dict[str, str]:
        """The settings of a connection that limit the wait for locks."""
        return {} if self.lock_timeout is None else {"lock_timeout": f"{1000 * self.lock_timeout:.0f}"}

    def opening(self, tenant: object) -> str | None:
        """Return the first statements of a tenant's transaction, if connections are not bound to tenants."""
        if self.tenancy != "transaction":
            return None
        waits = "".join(f"; set local {name} = {value}" for name, value in self.lock_settings.items())
        return f"set local role holdfast_app; set local holdfast.tenant = '{tenant}'{waits}"

    def places(self) -> Shares:
        """Return the places in the pool, which tenants and users share."""
        return Shares(
            "database connections",
            self.pool_size,
            setting="database.pool_size",
            tenant_share=self.tenant_share,
            user_share=self.user_share,
        )
