"""A call of the command line: the options that all commands share, and what commands need from them.

A command is a function whose first parameter is the `Invocation`. `command` registers it and adds the shared options,
which may come before or after its name.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.output import Output
from holdfast.core.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.core.config import Config


@dataclass(frozen=True, slots=True)
class Invocation:
    """The shared options of a call."""

    json: bool = False
    tenant: str | None = None
    data: Path | None = None
    server: str | None = None
    verbose: bool = False
    debug: bool = False

    @property
    def output(self) -> Output:
        """Where results and messages go."""
        return Output(json=self.json)

    def config(self, flags: Mapping[str, object] | None = None) -> "Config":
        """Load the settings. Flags of this call take precedence."""
        from holdfast.core.config import load_config

        return load_config({"data": self.data, "tenant": self.tenant, **(flags or {})})

    def and_then(self, inner: "Invocation") -> "Invocation":
        """Merge the options that come after a subcommand. They take precedence."""
        return Invocation(
            json=self.json or inner.json,
            tenant=self.tenant if inner.tenant is None else inner.tenant,
            data=inner.data or self.data,
            server=inner.server or self.server,
            verbose=self.verbose or inner.verbose,
            debug=self.debug or inner.debug,
        )


def _shared(
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and errors as JSON on stderr.")] = False,
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Tenant to use.")] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Data folder.", show_default=False, readable=False)
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Server to use. The API key comes from HOLDFAST_KEY.", show_default=False),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print which server is used.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
) -> None: ...


SHARED = tuple(inspect.signature(_shared).parameters.values())
# The `--server` of a local command: the help does not list it, and its use gets an explanation.
UNLISTED = Annotated[str | None, typer.Option(hidden=True)]


def single(**settings: Any) -> typer.Typer:
    """Create the Typer application of a module with one command."""
    # Rich help would take three times as long as the rest of the start.
    return typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False, **settings)


def group(help: str, shared: Callable[..., Any] | None = None, **settings: Any) -> typer.Typer:
    """Create the Typer application of a module with several commands. `shared` runs before each of them."""
    app = single(help=help, **settings)
    app.callback()(_wrap(shared or _nothing_more))
    return app


def _nothing_more(_: Invocation) -> None: ...


def command(
    app: typer.Typer, name: str | None = None, *, local: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function or a coroutine function as a command. Its result, if any, is the exit code.

    A `local` command works on this machine and does not use a server.
    """

    def register(work: Callable[..., Any]) -> Callable[..., Any]:
        app.command(name)(_wrap(work, local=local))
        return work

    return register


def _wrap(work: Callable[..., Any], *, local: bool = False) -> Callable[..., Any]:
    own = list(inspect.signature(work, eval_str=True).parameters.values())[1:]

    def run(ctx: typer.Context, **given: Any) -> Any:
        inner = Invocation(**{option.name: given.pop(option.name) for option in SHARED})
        outer = ctx.obj if isinstance(ctx.obj, Invocation) else Invocation()
        ctx.obj = outer.and_then(inner)
        if local and ctx.obj.server is not None:
            raise InvalidInput(
                "this command uses no server", why="it works on this machine's settings and data", next="Omit --server."
            )
        done = work(ctx.obj, **given)
        return asyncio.run(done) if inspect.iscoroutine(done) else done

    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    shared = [option.replace(annotation=UNLISTED) if local and option.name == "server" else option for option in SHARED]
    options = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in (*own, *shared)]
    run.__signature__ = inspect.Signature([context, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (context, *options)}
    run.__name__ = work.__name__
    run.__doc__ = work.__doc__
    return run
