"""`holdfast`: finds the command, and turns errors into messages and exit codes.

A command's module is loaded when the command is called, so that `holdfast --help` and a typo take little time.
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
    "init": "Write a small example app.",
    "up": "Start the engine: database, server, console and agents.",
    "mcp": "Serve MCP over stdio to a client on this machine.",
    "chat": "Chat with an agent in the terminal.",
    "worker": "Start a worker that carries out commands.",
    "doctor": "Check every part and say how to fix problems.",
    "config": "Show settings.",
    "db": "Connect to, migrate, back up and restore the database.",
    "tenants": "Create and list tenants.",
    "keys": "Create, list and revoke API keys.",
    "limits": "Set rate limits and budgets, and show what was used.",
    "audit": "Show, verify and export who called and changed what.",
    "agents": "List and show agents.",
    "sources": "Import tools from OpenAPI, GraphQL and JSON-RPC services.",
    "identity": "List and rotate the keys that sign who calls.",
    "secrets": "Store credentials for the back ends of tools.",
    "connections": "Connect with back ends that need your consent.",
    "runs": "List, show, cancel and retry runs of agents.",
    "approvals": "Approve or deny tool calls of agents.",
    "skills": "Import, export, assign, enable and disable skills.",
    "gateway": "Explain why a call is allowed or refused, and manage access rules.",
    "tools": "Call, enable and disable tools, and set permissions.",
    "sessions": "List, search, show, fork and export conversations.",
    "notes": "Show and edit agents' notes about users.",
    "memory": "Store, search, correct, export and import memories.",
    "knowledge": "Add, search, read and remove documents.",
    "research": "Answer questions from many documents, with citations.",
    "models": "List and download embedding models.",
    "topics": "Manage topics, records and consumer groups.",
    "dead-letters": "List, redrive (retry) and drop dead letters.",
    "commands": "Send commands to workers and get their results.",
    "completion": "Print a shell completion script.",
}


class Deferred(TyperCommand):
    """A command whose module is loaded when it is called."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the real command."""
        module = import_module(f"holdfast.cli.{str(self.name).replace('-', '_')}")
        return typer.main.get_command(module.app).make_context(info_name, args, parent, **extra)


def program() -> TyperGroup:
    """Build the command line without loading the modules of the commands."""
    help = (
        "A self-hosted agent engine on PostgreSQL.\n\n`holdfast up` starts it. `holdfast init DIR` writes an example."
    )
    app = group(help, _version_option, context_settings={"help_option_names": ["-h", "--help"]})
    commands = typer.main.get_command(app)
    assert isinstance(commands, TyperGroup)
    for name, summary in COMMANDS.items():
        commands.add_command(Deferred(name, help=summary))
    return commands


def run(words: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
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
    # Escape characters that the terminal's encoding cannot show, instead of failing.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _show_version(value: bool) -> None:
    if value:
        from holdfast.server.server_file import holdfast_version

        write(sys.stdout, f"holdfast {holdfast_version()}")
        raise typer.Exit


def _version_option(
    _: Invocation,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
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
