"""`holdfast secrets`: store, list and remove credentials for back ends."""

import sys
from typing import Annotated

import typer

from holdfast.cli.api import reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.urls import address
from holdfast.core.errors import InvalidInput

app = group("Store, list and remove credentials for the back ends of tools. A value is never shown again.")

COLUMNS = {"name": "NAME", "hosts": "FOR", "usable": "USABLE", "updated_at": "SET", "updated_by": "BY"}

Name = Annotated[str, typer.Argument(metavar="NAME")]


@command(app, "set")
async def set_(
    invocation: Invocation,
    name: Name,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Send it only to this host, or *.example.com. Can be repeated."),
    ] = None,
) -> None:
    """Store or replace a secret. The value comes from a hidden prompt or stdin, never from an argument.

    \b
    holdfast secrets set shop-key --host api.example.com < key.txt
    """
    value = _value(name)
    async with reach(invocation) as api:
        made = await api.put(address("secrets", name), {"value": value, "hosts": host or []})
    invocation.output.record(made)
    where = f", for {', '.join(made['hosts'])} alone" if made["hosts"] else ""
    invocation.output.say(f"The secret {name} is set{where}.")


@command(app)
async def ls(invocation: Invocation) -> None:
    """List secrets by name, without their values."""
    async with reach(invocation) as api:
        found = await api.get(address("secrets"))
    invocation.output.rows(found["secrets"], COLUMNS)


@command(app)
async def rm(invocation: Invocation, name: Name) -> None:
    """Remove a secret. Calls that need it are then refused."""
    async with reach(invocation) as api:
        await api.delete(address("secrets", name))
    invocation.output.record({"name": name})
    invocation.output.say(f"The secret {name} is removed.")


def _value(name: str) -> str:
    """Read the value from a hidden prompt or from stdin, without the line end at its end."""
    if sys.stdin.isatty():
        from getpass import getpass

        try:
            value = getpass(f"Value of {name}: ")
        except EOFError:
            value = ""
    else:
        try:
            value = sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise InvalidInput(f"the value of {name} is no text", next="Give it in UTF-8.") from None
    if not value:
        raise InvalidInput(f"the secret {name} has no value", next="Type it when asked, or give it on stdin.")
    return value
