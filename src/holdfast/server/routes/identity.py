"""The keys with which the server signs who calls, for back ends. They serve all tenants: needs the scope `operator`."""

import msgspec

from holdfast.execution.identity.identity_keys import IdentityKey
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("identity")


class IdentityKeyList(msgspec.Struct, frozen=True):
    """The published keys, oldest first."""

    keys: list[IdentityKey]


class KeyRotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a new key begins to sign: after ten minutes, when all back ends know it.

    `now`: it replaces all others at once, because one has leaked. Back ends refuse calls until they have fetched the
    keys again.
    """

    now: bool = False


@operations.declare("GET", "/api/identity/keys", needs="operator")
async def list_identity_keys(call: ApiCall) -> IdentityKeyList:
    """List the keys that sign who calls, for back ends."""
    return IdentityKeyList([*await call.engine.identity_keys.list()])


@operations.declare("POST", "/api/identity/keys", needs="operator", status=201, audit=["now"])
async def rotate_identity_keys(call: ApiCall, body: KeyRotation) -> IdentityKeyList:
    """Make a new key that signs who calls. Back ends know it before it signs."""
    return IdentityKeyList([*await call.engine.identity_keys.rotate(at_once=body.now, by=call.principal.user)])
