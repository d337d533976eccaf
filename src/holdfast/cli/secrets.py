"""`holdfast secrets`: what back ends are shown, and nobody else."""

import sys
from typing import Annotated

import typer

from holdfast.cli.addresses import address
from holdfast.cli.api import reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.core.errors import InvalidInput

app = group("What back ends are shown. A value goes in, and is never shown again.")

COLUMNS = {"name": "NAME", "hosts": "FOR", "usable": "USABLE", "updated_at": "SET", "updated_by": "BY"}

Name = Annotated[str, typer.Argument(metavar="NAME")]


@command(app, "set")
async def set_(
    invocation: Invocation,
    name: Name,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Sent to this host alone, or *.example.com; may be repeated."),
    ] = None,
) -> None:
    """Store a secret, or another value for it. The value is asked for, or read from stdin; it is no argument.

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
    """Remove a secret; calls that need it are refused from then on."""
    async with reach(invocation) as api:
        await api.delete(address("secrets", name))
    invocation.output.record({"name": name})
    invocation.output.say(f"The secret {name} is removed.")


def _value(name: str) -> str:
    """What was typed unseen, or came through a pipe; the end of its last line is no part of it."""
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
