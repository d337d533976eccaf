"""Secrets: what back ends are shown. Values go in, and never out; who administers the tenant sees their names."""

from typing import Annotated

import msgspec

from holdfast.core.errors import NotFound, TooLarge
from holdfast.execution.secrets import KnownSecret
from holdfast.server.fields import HostName, SecretName, matching
from holdfast.server.operations import Call, Operations

operations = Operations("secrets")

SecretText = Annotated[str, matching(r"[^\x00]+")]


class SecretValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value of a secret. With `hosts` it is sent to these alone; `*.example.com` stands for all below it."""

    value: SecretText
    hosts: list[HostName] = []

    def __repr__(self) -> str:
        return "SecretValue(…)"


class SecretList(msgspec.Struct, frozen=True):
    """Secrets, by name, without their values."""

    secrets: list[KnownSecret]


@operations.declare("GET", "/api/secrets", needs="admin")
async def list_secrets(call: Call) -> SecretList:
    """Which secrets there are, for which hosts, and who set them."""
    return SecretList(await call.engine.secrets.list())


@operations.declare("PUT", "/api/secrets/{name}", needs="admin", errors=[TooLarge])
async def set_secret(call: Call, name: SecretName, body: SecretValue) -> KnownSecret:
    """Store a secret, or another value for it."""
    return await call.engine.secrets.set(name, body.value, hosts=body.hosts, by=call.principal.user)


@operations.declare("DELETE", "/api/secrets/{name}", needs="admin", status=204, errors=[NotFound])
async def remove_secret(call: Call, name: SecretName) -> None:
    """Remove a secret; calls that need it are refused from then on."""
    await call.engine.secrets.remove(name, by=call.principal.user)
