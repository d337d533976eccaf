"""`holdfast mcp`: serve MCP over stdio to a client on this machine."""

import asyncio
import logging
import signal
from contextlib import AsyncExitStack
from typing import Annotated

import typer

from holdfast.access.principals import LOCAL_USER, OWNER_SCOPES, USER_SCOPES, Principal
from holdfast.app import App
from holdfast.cli.app_loader import NAMES, load_app
from holdfast.cli.invocation import Invocation, command, single
from holdfast.cli.pipes import Pipes, claim
from holdfast.cli.process_exit import leave
from holdfast.core.config import Config
from holdfast.core.request_context import RequestContext, set_request
from holdfast.core.text import MAX_TEXT_BYTES
from holdfast.engine import open_engine
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.mcp.stdio import Stdio
from holdfast.server.serving import run

FAREWELL = 1.0  # seconds for the client to read the last lines

app = single()


@command(app, local=True)
def mcp(
    invocation: Invocation,
    application: Annotated[
        str | None, typer.Argument(metavar="APP", help=f"App whose agents and tools to serve as well: {NAMES}.")
    ] = None,
    user: Annotated[str, typer.Option(metavar="NAME", help="User that the client acts as.")] = LOCAL_USER,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Serve only what this agent may use.")] = None,
) -> None:
    """Serve MCP over stdio (standard input and output) to a client on this machine. It exits when its input ends.

    MCP clients start this command themselves: add it to the configuration of the client. Without APP, agents and
    functions are those that other processes serve. Only the protocol is written to standard output.

    \b
    holdfast mcp
    holdfast mcp shop.py --user ann
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    ends = claim()
    found = None if application is None else load_app(application)
    run(_serve(invocation, invocation.config(), ends, found, user, agent))


async def _serve(
    invocation: Invocation, config: Config, ends: tuple[int, int], found: App | None, user: str, agent: str | None
) -> None:
    pipes = Pipes(*ends, longest=MAX_TEXT_BYTES)
    async with AsyncExitStack() as stack:
        with invocation.output.progress() as progress:
            engine = await stack.enter_async_context(open_engine(config=config, progress=progress))
        tenant = await engine.tenants.id_of(config.tenant)
        own = engine.tenant(tenant)
        engine.embeddings.prepare()
        if found is not None:
            await stack.enter_async_context(own.serving(found))
        if agent is not None:
            await own.definitions.get(agent)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, pipes.end)
        caller = Principal(tenant, user, OWNER_SCOPES if agent is None else USER_SCOPES, agent)
        set_request(RequestContext("stdio"))
        await Stdio(Gateways(engine, found).of(tenant), caller, pipes.write).serve(pipes.lines())
        await pipes.close(grace=FAREWELL)
    leave()
