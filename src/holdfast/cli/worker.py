"""`holdfast worker`: carry out commands with the handlers of an app, and tool calls that are routed to workers."""

import asyncio
import logging
import signal
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Annotated

import typer

from holdfast.app import App
from holdfast.cli.app_loader import NAMES, load_app
from holdfast.cli.invocation import Invocation, command, single
from holdfast.cli.process_exit import leave
from holdfast.core.config import Config
from holdfast.core.errors import InvalidInput
from holdfast.engine import open_engine
from holdfast.execution.served_tools import ServedTools
from holdfast.server.serving import run

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

app = single()


@command(app, local=True)
def worker(
    invocation: Invocation,
    application: Annotated[
        str | None, typer.Argument(metavar="[APP]", help=f"App with the handlers: {NAMES}.", show_default=False)
    ] = None,
    tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOOLS",
            help="Registered tools to serve as well: a name such as `github_*`, `source:NAME`, `kind:KIND`, or `*` "
            "for all. Repeatable.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, max=10_000, help="Commands to run at the same time.")
    ] = 10,
    grace: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Time for running commands to finish on shutdown.")
    ] = 20,
) -> None:
    """Start a worker that carries out commands with the handlers of an app, and calls of the tools that it serves.

    A worker serves the functions of its app. It serves tools of sources only with --tools: it may have other secrets,
    settings and networks than the process that calls the tool.

    \b
    holdfast worker shop:app
    holdfast worker shop:app --tools source:github --tools 'billing_*'
    holdfast worker --tools kind:rest

    Ctrl-C stops it; a second Ctrl-C stops it at once. On shutdown, the worker takes no new commands. It gives commands
    that do not finish in the grace time back to other workers.
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    declared = tools or []
    ServedTools.parse(declared)
    if application is None and not declared:
        raise InvalidInput("the worker has nothing to do", next="Name an app, or the tools to serve with --tools.")
    found = App() if application is None else load_app(application)
    run(_work(invocation, invocation.config(), found, declared, concurrency, grace))


async def _work(
    invocation: Invocation, config: Config, found: App, tools: Sequence[str], concurrency: int, grace: float
) -> None:
    async with AsyncExitStack() as stack:
        with invocation.output.progress() as progress:
            engine = await stack.enter_async_context(open_engine(config=config, progress=progress))
        with _signals() as (stop, at_once):
            async with engine.worker(found, tools=tools, concurrency=concurrency) as worker:
                _announce(invocation, config, found, tools, concurrency)
                await stop.wait()
                stopping = asyncio.create_task(worker.stop(grace))
                hurrying = asyncio.create_task(at_once.wait())
                await asyncio.wait([stopping, hurrying], return_when=asyncio.FIRST_COMPLETED)
                for task in (stopping, hurrying):
                    task.cancel()
                await asyncio.gather(stopping, hurrying, return_exceptions=True)
            leave()
    invocation.output.say("Stopped.")


@contextmanager
def _signals() -> Generator[tuple[asyncio.Event, asyncio.Event]]:
    """Yield two events: the first stop signal sets the first one, the second signal the second one."""
    first, second = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        (second if first.is_set() else first).set()

    # `nohup` ignores SIGHUP: keep that.
    numbers = [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, on_signal)
    try:
        yield first, second
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _announce(invocation: Invocation, config: Config, found: App, tools: Sequence[str], concurrency: int) -> None:
    skills, declared = sorted(found.skills), sorted(tools)
    invocation.output.line({"skills": skills, "tools": declared, "concurrency": concurrency, "tenant": config.tenant})
    own = [*skills, *(f"tools {each}" for each in declared)]
    served = ", ".join(own) or "event tools of its app"
    invocation.output.say(f"The worker runs up to {concurrency} commands at once: {served}.\nCtrl-C stops it.")
