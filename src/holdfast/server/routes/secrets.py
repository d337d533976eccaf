"""Secrets: credentials for back ends. Values can be written but never read. Needs the scope `admin`."""

from typing import Annotated

import msgspec

from holdfast.core.errors import NotFound, TooLarge
from holdfast.execution.secrets import KnownSecret
from holdfast.server.fields import HostName, SecretName, matching
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("secrets")

SecretText = Annotated[str, matching(r"[^\x00]+")]


class SecretValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value of a secret. With `hosts`, it is sent only to these; `*.example.com` means all hosts below it."""

    value: SecretText
    hosts: list[HostName] = []

    def __repr__(self) -> str:
        return "SecretValue(…)"


class SecretList(msgspec.Struct, frozen=True):
    """Secrets, by name, without their values."""

    secrets: list[KnownSecret]


@operations.declare("GET", "/api/secrets", needs="admin")
async def list_secrets(call: ApiCall) -> SecretList:
    """List secrets, without their values."""
    return SecretList(await call.engine.secrets.list())


@operations.declare("PUT", "/api/secrets/{name}", needs="admin", errors=[TooLarge], audit=["hosts"])
async def set_secret(call: ApiCall, name: SecretName, body: SecretValue) -> KnownSecret:
    """Create a secret or replace its value."""
    return await call.engine.secrets.set(name, body.value, hosts=body.hosts, by=call.principal.user)


@operations.declare("DELETE", "/api/secrets/{name}", needs="admin", status=204, errors=[NotFound])
async def remove_secret(call: ApiCall, name: SecretName) -> None:
    """Remove a secret. Calls that need it fail from then on."""
    await call.engine.secrets.remove(name, by=call.principal.user)
