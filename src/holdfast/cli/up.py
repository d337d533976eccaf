"""`holdfast up`: start everything in one process."""

import logging
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Annotated

import typer
from msgspec.structs import asdict

from holdfast.access.principals import LOCAL_USER
from holdfast.app import App
from holdfast.cli.app_loader import NAMES, load_app
from holdfast.cli.invocation import Invocation, command, single
from holdfast.cli.process_exit import leave
from holdfast.core.config import Config
from holdfast.core.errors import InvalidInput
from holdfast.default import default_app
from holdfast.engine import Engine, EnginePart, open_engine
from holdfast.server.port import address_of, bind
from holdfast.server.server_file import ServerFile
from holdfast.server.serving import run, serve, settle

app = single()


@command(app, local=True)
def up(
    invocation: Invocation,
    application: Annotated[
        str | None, typer.Argument(metavar="APP", help=f"App with your agents and tools: {NAMES}. [default: one agent]")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 picks a free one. [default: 4600]")] = None,
    require_key: Annotated[bool, typer.Option("--require-key", help="Require an API key on loopback, too.")] = False,
    root_path: Annotated[
        str | None, typer.Option(metavar="PATH", help="Path under which a reverse proxy serves it.")
    ] = None,
    no_agents: Annotated[bool, typer.Option("--no-agents", help="Serve no agents: other processes do.")] = False,
) -> None:
    """Start everything in one process. Ctrl-C stops it; a second Ctrl-C stops it at once.

    Without APP, there is one agent, `default`. Without HOLDFAST_DATABASE_URL, an embedded PostgreSQL is started in the
    data folder. On loopback, callers need no API key until the first one is created.

    \b
    holdfast up
    holdfast up shop.py --port 4601
    """
    flags = {
        "server.host": host,
        "server.port": port,
        "server.require_key": require_key or None,
        "server.root_path": root_path,
    }
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    found = default_app() if application is None else _load(application)
    config = invocation.config(flags)
    with bind(config) as listener:
        run(_up(invocation, config, listener, found, agents=not no_agents))


def _load(name: str) -> App:
    found = load_app(name)
    if not (found.agents or found.tools or found.skills or found.resources or found.prompts):
        raise InvalidInput(f"{name} has no agents", next="Declare one: `app.agent(...)`.")
    return found


async def _up(invocation: Invocation, config: Config, listener: socket.socket, found: App, *, agents: bool) -> None:
    served: dict[str, Sequence[str]] = {}
    async with AsyncExitStack() as stack:  # stops the server, then gives runs back, then stops the rest
        with invocation.output.progress() as progress:
            engine = await stack.enter_async_context(open_engine(config=config, progress=progress))
            tenant = await engine.tenants.find(config.tenant)
            parts = await engine.parts()
            engine.embeddings.prepare()
            if agents:
                for name in dict.fromkeys([config.tenant, *config.agents.tenants]):
                    # Select the tenant by id, as requests do: then sockets get the events of this process at once.
                    tenant_engine = engine.tenant((await engine.tenants.find(name)).id)
                    serving = await stack.enter_async_context(
                        tenant_engine.serving(found, grace=config.server.shutdown_grace)
                    )
                    served["agents"] = sorted({*served.get("agents", ()), *serving.agents})
            if found.skills:
                await stack.enter_async_context(engine.worker(found))
                served["skills"] = sorted(found.skills)
        link = None
        if await _requires_keys(engine, listener):
            link = ""
            if _on_terminal(invocation):
                text = await engine.keys.create_link(tenant.id, LOCAL_USER)
                link = f"{config.server.root_path}/login?link={text}"
        settle()
        await serve(
            engine,
            listener,
            config,
            lambda server: _announce(invocation, engine, server, served, parts, link),
            app=found,
        )
    leave()
    invocation.output.say("Stopped.")


def _on_terminal(invocation: Invocation) -> bool:
    """Return whether a person sees the output. A sign-in link in a log would let every reader sign in."""
    return (sys.stdout if invocation.json else sys.stderr).isatty()


async def _requires_keys(engine: Engine, listener: socket.socket) -> bool:
    """Return whether local access is off, so that a browser needs a sign-in link."""
    config = engine.config
    if config.server.require_key or config.access.issuers or not address_of(listener).is_loopback:
        return True
    return await engine.keys.any_exists()


def _announce(
    invocation: Invocation,
    engine: Engine,
    server: ServerFile,
    served: Mapping[str, Sequence[str]],
    parts: Sequence[EnginePart],
    link: str | None,
) -> None:
    invocation.output.line(
        {
            "url": server.url,
            **({"mcp": f"{server.url}{engine.config.server.root_path}/mcp"} if engine.config.gateway.mcp else {}),
            "pid": server.pid,
            "data": server.data,
            **served,
            "parts": [asdict(part) for part in parts],
            **({"link": server.url + link} if link else {}),
        }
    )
    database = "a PostgreSQL of your own" if engine.place.embedded is None else "an embedded PostgreSQL"
    lines = [
        "Holdfast is ready.",
        f"  address  {server.url}{engine.config.server.root_path}",
        f"  data     {server.data}, with {database}",
    ]
    if engine.config.gateway.mcp:
        lines.insert(2, f"  MCP      {server.url}{engine.config.server.root_path}/mcp")
    lines += [f"  {what:<7}  {', '.join(names)}" for what, names in served.items() if names]
    lines += [f"  {part.state:<7}  {part.name}: {part.detail}" for part in parts if part.state != "ok"]
    if link is not None:
        how = f"{server.url}{link} (once, within ten minutes)" if link else "`holdfast keys link` makes a link"
        lines.append(f"  sign in  {how}")
    invocation.output.say("\n".join([*lines, "Ctrl-C stops it."]))
