"""`holdfast tenants`: create and list tenants."""

from typing import Annotated

import typer

from holdfast.cli.api import reach
from holdfast.cli.invocation import Invocation, command, group

app = group("Create and list tenants. No tenant sees the rows of another.")


@command(app)
async def ls(invocation: Invocation) -> None:
    """List tenants."""
    async with reach(invocation, of_a_tenant=False) as api:
        found = await api.get("/api/tenants")
    invocation.output.rows(found["tenants"], {"name": "NAME", "created_at": "MADE", "id": "ID"})


@command(app)
async def create(invocation: Invocation, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Create a tenant. Its name consists of a-z, 0-9, '.', '_' and '-'."""
    async with reach(invocation, of_a_tenant=False) as api:
        tenant = await api.post("/api/tenants", {"name": name})
    invocation.output.record(tenant)
    invocation.output.say(
        f"Made the tenant {tenant['name']}. `holdfast keys create --tenant {tenant['name']}` makes a key for it."
    )
