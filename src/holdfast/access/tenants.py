"""Tenants: isolated customers or projects. No tenant sees the rows of another."""

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from holdfast.core.errors import AlreadyExists, InvalidInput, NotFound
from holdfast.core.ids import TenantId
from holdfast.postgres.database import PooledStatements, Row
from holdfast.postgres.sql import statements

NAME = r"[a-z0-9][a-z0-9._-]{0,62}"
_NAME = re.compile(NAME)

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant."""

    id: TenantId
    name: str
    created_at: datetime


class Tenants:
    """Creates and finds tenants."""

    def __init__(self, system: PooledStatements) -> None:
        self._system = system
        self._ids: dict[str | UUID, TenantId] = {}  # a cache: a tenant's name never changes
        self._names: dict[UUID, str] = {}

    async def create(self, name: str) -> Tenant:
        """Create a tenant."""
        check_name(name)
        try:
            row = await self._system.one(sql("create_tenant"), name)
        except AlreadyExists:
            raise AlreadyExists(f"the tenant {name!r} already exists", next="Choose another name.") from None
        assert row is not None
        return _tenant(row)

    async def list(self) -> list[Tenant]:
        """Return all tenants, sorted by name."""
        return [_tenant(row) for row in await self._system.all(sql("tenants"))]

    async def find(self, name: str) -> Tenant:
        """Return the tenant with this name."""
        row = await self._system.one(sql("tenant_by_name"), name) if is_name(name) else None
        if row is None:
            raise NotFound(
                f"the tenant {name!r} does not exist",
                next="List the tenants with `holdfast tenants ls`, or create one with `holdfast tenants create NAME`.",
            )
        return _tenant(row)

    async def get(self, id: UUID) -> Tenant:
        """Return the tenant with this id."""
        row = await self._system.one(sql("tenant_by_id"), id)
        if row is None:
            raise NotFound(
                f"the tenant with the id {id} does not exist", next="List the tenants with `holdfast tenants ls`."
            )
        return _tenant(row)

    async def id_of(self, tenant: str | UUID) -> TenantId:
        """Return the id of an existing tenant, given by name or id. Caches it."""
        if tenant not in self._ids:
            self._ids[tenant] = (await (self.find(tenant) if isinstance(tenant, str) else self.get(tenant))).id
        return self._ids[tenant]

    async def name_of(self, id: UUID) -> str:
        """Return the name of an existing tenant. Caches it."""
        if id not in self._names:
            self._names[id] = (await self.get(id)).name
        return self._names[id]


def check_name(name: str) -> None:
    """Raise InvalidInput if a tenant cannot have this name: it becomes part of topics, logs and addresses."""
    if not is_name(name):
        raise InvalidInput(
            f"{name[:80]!r} is not a valid name for a tenant",
            why="a name has 1 to 63 characters of a-z, 0-9, '.', '_' and '-', and begins with a letter or a digit",
            next="Choose another name.",
        )


def is_name(name: str) -> bool:
    """Whether a tenant can have this name."""
    return _NAME.fullmatch(name) is not None


def _tenant(row: Row) -> Tenant:
    id: UUID = row["id"]
    return Tenant(TenantId(id), row["name"], row["created_at"])
