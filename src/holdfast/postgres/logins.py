"""Logins of tenants: PostgreSQL roles for other programs. Each sees the rows of one tenant, whatever it sets.

The name of a login is random, because everyone who can log in can read the names of all roles. The table
`holdfast.tenant_login` has the tenant of each login. Tenants cannot read it; the policies of all tables look it up.

The role of a login starts with timeouts and memory limits. PostgreSQL lets a session lift all of them except the number
of connections and the size of temporary files. So `LoginWatch` ends sessions that exceed the time limits.
"""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from holdfast.core.background import PeriodicJob
from holdfast.core.errors import NotFound
from holdfast.core.ids import TenantId
from holdfast.core.settings import DatabaseSettings
from holdfast.postgres.address import with_login
from holdfast.postgres.database import OpenOwner, OwnerConnection
from holdfast.postgres.sql import statements
from holdfast.postgres.tenancy import derive_password

WORK_MEM: Final = "16MB"  # for each sort or hash of a statement, unless the session asks for more
TEMP_FILES: Final = "1GB"  # of each session's sorts and hashes on disk
PAUSE: Final = 5.0  # seconds between two checks of the sessions
SLACK: Final = timedelta(seconds=2)  # for the server to enforce its own timeouts first
BLOCKING: Final = timedelta(seconds=5)  # that the engine waits for a tenant's session, at most

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoginLimits:
    """The limits of a tenant's login. Times are in seconds."""

    connections: int = 20
    statement: float = 30
    idle_transaction: float = 300

    @property
    def settings(self) -> dict[str, str]:
        """The settings that its sessions start with."""
        return {
            "statement_timeout": f"{1000 * self.statement:.0f}",
            "idle_in_transaction_session_timeout": f"{1000 * self.idle_transaction:.0f}",
            "work_mem": WORK_MEM,
            "temp_file_limit": TEMP_FILES,
        }


def login_limits(settings: DatabaseSettings) -> LoginLimits:
    """Return the limits of the settings."""
    return LoginLimits(settings.login_connections, settings.login_statement_timeout, settings.login_idle_timeout)


@dataclass(frozen=True, slots=True)
class TenantLogin:
    """A tenant's login. `usable`: its role exists on this server. `shows_tenant`: its name contains the tenant's id."""

    login: str
    tenant_id: TenantId
    tenant: str
    created_at: datetime
    usable: bool
    most_sessions: int | None
    sessions: int
    shows_tenant: bool
    temp_files_limited: bool


class TenantLogins:
    """Creates, lists, rotates and removes tenants' logins, on the owner's connection."""

    def __init__(self, owner: OwnerConnection, url: str, secret: bytes, limits: LoginLimits) -> None:
        self._owner = owner
        self._url = url
        self._secret = secret
        self._limits = limits

    async def ensure(self, tenant: TenantId) -> str:
        """Return the URL of the tenant's login. Create the login if there is none."""
        async with self._owner.transaction():
            login: str = await self._owner.value(sql("claim_login"), tenant, _new_name())
            return await self._renew(tenant, login)

    async def rotate(self, tenant: TenantId) -> str:
        """Create a new login and return its URL. Remove the former login and end its sessions."""
        async with self._owner.transaction():
            former = await self._login_of(tenant)
            login = _new_name()
            await self._owner.run(sql("rename_login"), tenant, login)
            address = await self._renew(tenant, login)
        await self._owner.value(sql("drop_tenant_login"), former)
        return address

    async def remove(self, tenant: TenantId) -> None:
        """Remove the tenant's login and end its sessions."""
        async with self._owner.transaction():
            former = await self._login_of(tenant)
            await self._owner.run(sql("forget_login"), tenant)
        await self._owner.value(sql("drop_tenant_login"), former)

    async def ls(self) -> Sequence[TenantLogin]:
        """Return the logins of all tenants."""
        return await tenant_logins(self._owner)

    async def _login_of(self, tenant: TenantId) -> str:
        login = await self._owner.value(sql("login_of_tenant"), tenant)
        if login is None:
            raise NotFound("the tenant has no login", next="Create one with `holdfast db url --tenant NAME`.")
        return str(login)

    async def _renew(self, tenant: TenantId, login: str) -> str:
        password = derive_password(self._secret, login)
        await self._owner.value(sql("renew_tenant_login"), login, password)
        await limit(self._owner, login, self._limits)
        return with_login(self._url, login, password, options=f"-c holdfast.tenant={tenant}")


class LoginWatch(PeriodicJob):
    """Ends sessions of tenants' logins that exceed a time limit or block the engine, while `async with` lasts."""

    def __init__(self, open_owner: OpenOwner, limits: LoginLimits, *, blocking: timedelta = BLOCKING) -> None:
        super().__init__("check of tenants' logins", pause=PAUSE, first=0)
        self._open_owner = open_owner
        self._limits = limits
        self._blocking = blocking
        self._limited = False

    async def end_overdue(self) -> int:
        """End the sessions that exceed a limit; return how many."""
        async with self._open_owner() as owner:
            if not self._limited:  # the settings may have changed, or a login may have changed its defaults
                for found in await tenant_logins(owner):
                    if found.usable:
                        await limit(owner, found.login, self._limits)
                self._limited = True
            idle = timedelta(seconds=self._limits.idle_transaction) + SLACK
            statement = timedelta(seconds=self._limits.statement) + SLACK
            ended = await owner.all(sql("end_overdue_logins"), idle, statement, self._blocking)
        for row in ended:
            log.warning("ended a session of the tenant login %s: %s", row["login"], row["why"])
        return len(ended)

    async def step(self) -> None:
        """End the sessions that exceed a limit."""
        await self.end_overdue()


async def tenant_logins(owner: OwnerConnection) -> Sequence[TenantLogin]:
    """Return the logins of all tenants."""
    return [TenantLogin(**dict(row)) for row in await owner.all(sql("tenant_logins"))]


async def limit(owner: OwnerConnection, login: str, limits: LoginLimits) -> None:
    """Set the limits of a login."""
    await owner.value(sql("limit_tenant_login"), login, limits.connections, limits.settings)


def _new_name() -> str:
    return f"hf_{secrets.token_hex(8)}"
