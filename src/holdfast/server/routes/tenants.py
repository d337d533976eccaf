"""Tenants, and the identity of the caller."""

import msgspec

from holdfast.access.tenants import Tenant
from holdfast.core.errors import AlreadyExists
from holdfast.server.fields import TenantName
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("tenants")


class TenantList(msgspec.Struct, frozen=True):
    """Tenants, by name."""

    tenants: list[Tenant]


class NewTenant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tenant to create."""

    name: TenantName


class Me(msgspec.Struct, frozen=True):
    """The caller, and the name of its tenant. `local`: local access without a key, which has no sign-out."""

    tenant: str
    user: str
    scopes: list[str]
    local: bool


@operations.declare("GET", "/api/tenants", needs="operator")
async def list_tenants(call: ApiCall) -> TenantList:
    """List tenants, by name."""
    return TenantList(await call.engine.tenants.list())


@operations.declare("POST", "/api/tenants", needs="operator", status=201, errors=[AlreadyExists], audit=["name"])
async def create_tenant(call: ApiCall, body: NewTenant) -> Tenant:
    """Create a tenant."""
    return await call.engine.tenants.create(body.name)


@operations.declare("GET", "/api/me", needs="somebody")
async def me(call: ApiCall) -> Me:
    """Get the tenant, the user and the scopes of the caller."""
    tenant = await call.engine.tenants.get(call.principal.tenant)
    return Me(tenant.name, call.principal.user, sorted(call.principal.scopes), call.principal.local)
