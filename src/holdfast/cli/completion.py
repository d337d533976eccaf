"""`holdfast completion`: print a shell completion script."""

import os
from pathlib import Path
from typing import Annotated

import typer
from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage]

from holdfast.cli.invocation import Invocation, command, single
from holdfast.core.errors import InvalidInput

SHELLS = ("bash", "zsh", "fish")

app = single()


@command(app, local=True)
def completion(
    invocation: Invocation,
    shell: Annotated[
        str, typer.Argument(metavar="SHELL", help="bash, zsh or fish. [default: your shell]", show_default=False)
    ] = "",
) -> None:
    """Print a shell completion script, by default for your shell.

    \b
    bash:  source <(holdfast completion bash)
    zsh:   source <(holdfast completion zsh)
    fish:  holdfast completion fish | source

    Add the line to your shell's startup file to load it in every shell.
    """
    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise InvalidInput(f"there is no completion for the shell {shell!r}", next=f"Name one of {', '.join(SHELLS)}.")
    script = get_completion_script(prog_name="holdfast", complete_var="_HOLDFAST_COMPLETE", shell=shell)
    invocation.output.value(script, {"shell": shell, "script": script})
