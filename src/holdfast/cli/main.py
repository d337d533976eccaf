"""`holdfast`: finds the command, and turns what goes wrong into a message and an exit code.

A command's module is loaded when the command is called, so that `holdfast --help` and a typo cost next to nothing.
"""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from holdfast.cli.invocation import Invocation, group
from holdfast.cli.output import printable, write
from holdfast.core.errors import Broken, HoldfastError, InvalidInput
from holdfast.core.wires import EXIT_CODE

NAME = "holdfast"
COMPLETION = "_HOLDFAST_COMPLETE"
INTERRUPTED = 130

# Every command is a module of this package.
COMMANDS = {
    "init": "Write a small example to start from.",
    "up": "Start everything in one process.",
    "mcp": "Serve MCP to a client on this machine.",
    "chat": "Talk to an agent in the terminal.",
    "worker": "Do commands of an app's skills.",
    "doctor": "Check every part, and say what to do.",
    "config": "The settings that are in force.",
    "db": "The database under the engine.",
    "tenants": "Tenants: rows that no other tenant sees.",
    "keys": "Keys for programs and browsers.",
    "agents": "Agents: who they are and what they may do.",
    "sources": "Documents of back ends, whose operations are tools.",
    "secrets": "What back ends are shown, and nobody else.",
    "runs": "What agents did, turn by turn, and why.",
    "approvals": "Calls of tools that wait for a person.",
    "skills": "What agents know how to do, in and out.",
    "tools": "What agents can call, and by hand.",
    "sessions": "Conversations: who said what.",
    "notes": "What agents have noted about users.",
    "memory": "What agents remember.",
    "models": "The embedding models, and where they are.",
    "topics": "Topics of the log, and who has read how far.",
    "dead-letters": "What could not be processed.",
    "commands": "Work for workers, and what came of it.",
    "completion": "Print the completion script of a shell.",
}


class Deferred(TyperCommand):
    """A command whose module is loaded when it is called."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the real command."""
        module = import_module(f"holdfast.cli.{str(self.name).replace('-', '_')}")
        return typer.main.get_command(module.app).make_context(info_name, args, parent, **extra)


def program() -> TyperGroup:
    """The whole command line, with the commands' modules not yet loaded."""
    help = "An agent engine on PostgreSQL.\n\n`holdfast up` starts it; `holdfast init DIR` writes an example."
    app = group(help, _version_option, context_settings={"help_option_names": ["-h", "--help"]})
    commands = typer.main.get_command(app)
    assert isinstance(commands, TyperGroup)
    for name, summary in COMMANDS.items():
        commands.add_command(Deferred(name, help=summary))
    return commands


def run(words: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    ours = words[: words.index("--")] if "--" in words else words
    as_json, debug = "--json" in ours, "--debug" in ours
    if COMPLETION in os.environ:
        from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage]

        completion_init()
    try:
        return program().main(words or ["--help"], NAME, COMPLETION, standalone_mode=False) or 0
    except HoldfastError as error:
        failure = error
    except typer.TyperException as error:
        failure = _wrong_usage(error)
    except Exception as error:  # noqa: BLE001
        what = f"holdfast failed: {type(error).__name__}: {error}"
        failure = Broken(what, next="Run it again with --debug and report the traceback: this is a defect.")
        failure.__cause__ = error
    if debug:
        traceback.print_exception(failure)
    write(sys.stderr, _as_json(failure) if as_json else _as_text(failure))
    return EXIT_CODE[failure.code]


def main() -> NoReturn:
    """The entry point of the script `holdfast`."""
    # What a terminal's encoding cannot show is shown by its number, and is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _show_version(asked: bool) -> None:
    if asked:
        from holdfast.server.server_file import holdfast_version

        write(sys.stdout, f"holdfast {holdfast_version()}")
        raise typer.Exit


def _version_option(
    _: Invocation,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


def _wrong_usage(error: typer.TyperException) -> HoldfastError:
    context = getattr(error, "ctx", None)
    shown_by = context.command_path if context else NAME
    what, hint, near = error.format_message().partition("Did you mean")
    return InvalidInput(what.rstrip(" ."), next=f"{hint}{near} `{shown_by} --help` shows how it is called.".lstrip())


def _as_text(error: HoldfastError) -> str:
    return printable("\n".join([str(error), *getattr(error, "__notes__", ())]))


def _as_json(error: HoldfastError) -> str:
    fields = {"code": error.code, "what": error.what, "why": error.why, "next": error.next, "details": error.details}
    return json.dumps(fields, default=str)


if __name__ == "__main__":
    main()
