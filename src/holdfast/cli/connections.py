"""`holdfast connections`: connect with back ends that need your consent, list and remove connections."""

import asyncio
from typing import Annotated, Any

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import Fields, derive, message, table
from holdfast.core.errors import TimedOut

app = group("Connect with back ends that need your consent: you agree once, in a browser.")

COLUMNS = {"source": "SOURCE", "host": "HOST", "state": "STATE", "connected_at": "CONNECTED", "reason": "WHY"}
PATIENCE = 600.0  # seconds for which a connection that was begun can be completed
PAUSE = 1.0


def _removed(found: Fields) -> str:
    if found["revoked"]:
        return f"Disconnected from {found['source']}. Its authorization server has revoked the tokens."
    return f"Disconnected from {found['source']}. The tokens are deleted here; their server was not told, or refused."


derive(app, "ls", "list_connections", table(COLUMNS))
derive(app, "disconnect", "remove_connection", message(_removed))


@command(app, "connect")
async def connect(
    invocation: Invocation,
    source: Annotated[str, typer.Argument(metavar="SOURCE")],
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until the connection is completed in the browser.")
    ] = True,
) -> None:
    """Print an address to open in a browser, where you sign in at the back end and agree.

    \b
    holdfast connections connect calendar
    """
    async with reach(invocation) as api:
        before = await _state(api, source)
        begun = await api.call("begin_connection", source=source)
        invocation.output.say("Open this address in a browser, sign in there, and agree:")
        invocation.output.value(begun["url"], begun)
        if not wait:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await _wait_for_another(api, before)
        except TimeoutError:
            what = f"the connection with {source} was not completed"
            raise TimedOut(what, why="nobody agreed within ten minutes", next="Begin it again.") from None
    invocation.output.say(f"Connected with {source}.")


async def _wait_for_another(api: Api, before: dict[str, Any]) -> None:
    """Wait until a connection is another one than before."""
    while True:
        now = await _state(api, before["source"])
        if now["state"] == "connected" and now != before:
            return
        await asyncio.sleep(PAUSE)


async def _state(api: Api, source: str) -> dict[str, Any]:
    """Return the connection with a source; an empty state if the server does not list it."""
    found = (await api.call("list_connections"))["connections"]
    return next((each for each in found if each["source"] == source), {"source": source, "state": ""})
