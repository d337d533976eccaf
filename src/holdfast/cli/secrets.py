"""`holdfast secrets`: store, list and remove credentials for back ends."""

import sys
from typing import Annotated

import typer

from holdfast.cli.api import reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, message, table
from holdfast.core.errors import InvalidInput

app = group("Store, list and remove credentials for the back ends of tools. A value is never shown again.")

COLUMNS = {"name": "NAME", "hosts": "FOR", "usable": "USABLE", "updated_at": "SET", "updated_by": "BY"}

derive(app, "ls", "list_secrets", table(COLUMNS))
derive(app, "rm", "remove_secret", message("Removed the secret {name}."))


@command(app, "set")
async def set_(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME")],
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
        stored = await api.call("set_secret", name=name, value=value, hosts=host or [])
    invocation.output.record(stored)
    where = f" It is sent only to {', '.join(stored['hosts'])}." if stored["hosts"] else ""
    invocation.output.say(f"Stored the secret {name}.{where}")


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
            raise InvalidInput(f"the value of {name} is not UTF-8 text", next="Give it in UTF-8.") from None
    if not value:
        raise InvalidInput(f"the secret {name} has no value", next="Type it when asked, or give it on stdin.")
    return value
