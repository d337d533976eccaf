"""`holdfast worker`: does commands of an app's skills."""

import asyncio
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.app import App
from holdfast.cli.invocation import Invocation, command, single
from holdfast.core.config import Config
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.engine import open_engine
from holdfast.server.serving import run

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LEAVING = 3.0  # seconds for the process to end by itself, when all work is given back

app = single()
log = logging.getLogger(__name__)


@command(app)
def worker(
    invocation: Invocation,
    application: Annotated[str, typer.Argument(metavar="MODULE:APP", help="The App, such as shop:app for shop.py.")],
    concurrency: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Commands at once.")] = 10,
    grace: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Time for what runs to end.")] = 20,
) -> None:
    """Do commands of an app's skills; Ctrl-C stops it, a second one at once.

    It then takes nothing new, and what is not done after the grace time is given back to others.
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    found = load_app(application)
    run(_work(invocation, invocation.config(), found, concurrency, grace))


def load_app(name: str) -> App:
    """The App that `module:name` means, its module found in the current folder first."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise InvalidInput(f"{name!r} names no app", next="Write module:app, such as shop:app for `app` in shop.py.")
    found: Any = _load_module(module)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InvalidInput(
                f"the module {module} has no {attribute}", next=f"Declare it there: `{attribute} = holdfast.App()`."
            )
        found = getattr(found, part)
    if not isinstance(found, App):
        raise InvalidInput(f"{name} is no holdfast.App", why=f"it is a {type(found).__name__}")
    if not found.skills:
        raise InvalidInput(f"{name} has no skills", next="Declare one with `@app.skill(...)`.")
    return found


def _load_module(name: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise _unloadable(name, error) from error
        raise InvalidInput(
            f"there is no module {name}",
            why="it is neither in the current folder nor installed",
            next="Name it as an import statement would, without `.py`.",
        ) from None
    except SystemExit as error:
        raise HoldfastError(
            f"the module {name} ends the program when it is loaded",
            why=f"it calls sys.exit({error.code!r:.100})",
            next='Have it do so only `if __name__ == "__main__":`.',
        ) from error
    except Exception as error:
        raise _unloadable(name, error) from error


def _unloadable(name: str, error: Exception) -> InvalidInput:
    why = f"{type(error).__name__}: {error}"
    return InvalidInput(f"the module {name} cannot be loaded", why=why, next="--debug shows where it failed.")


async def _work(invocation: Invocation, config: Config, found: App, concurrency: int, grace: float) -> None:
    async with AsyncExitStack() as stack:
        with invocation.output.progress() as progress:
            engine = await stack.enter_async_context(open_engine(config=config, progress=progress))
        with _signals() as (stop, at_once):
            async with engine.worker(found, concurrency=concurrency) as worker:
                _tell(invocation, config, found, concurrency)
                await stop.wait()
                stopping = asyncio.create_task(worker.stop(grace))
                hurrying = asyncio.create_task(at_once.wait())
                await asyncio.wait([stopping, hurrying], return_when=asyncio.FIRST_COMPLETED)
                for task in (stopping, hurrying):
                    task.cancel()
                await asyncio.gather(stopping, hurrying, return_exceptions=True)
            _leave()
    invocation.output.say("Stopped.")


@contextmanager
def _signals() -> Generator[tuple[asyncio.Event, asyncio.Event]]:
    """What is set by the first and by the second signal that asks the process to end."""
    first, second = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def asked() -> None:
        (second if first.is_set() else first).set()

    # `nohup` has it that a hang-up means nothing.
    heard = [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, asked)
    try:
        yield first, second
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def _leave() -> None:
    """End the process before long, though a skill has a task or a thread that never ends."""

    def end() -> None:
        try:
            log.warning("a skill does not end, and the process ends without it")
            logging.shutdown()
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
        finally:
            os._exit(0)

    timer = threading.Timer(LEAVING, end)
    timer.daemon = True
    timer.start()


def _tell(invocation: Invocation, config: Config, found: App, concurrency: int) -> None:
    skills = sorted(found.skills)
    invocation.output.line({"skills": skills, "concurrency": concurrency, "tenant": config.tenant})
    invocation.output.say(f"Working, {concurrency} commands at once: {', '.join(skills)}.\nCtrl-C stops it.")
