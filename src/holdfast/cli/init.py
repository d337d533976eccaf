"""`holdfast init`: write a small example app."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.invocation import Invocation, command, single
from holdfast.core.errors import AlreadyExists, Forbidden

# The files to write, and their templates in `example/`.
FILES = {"holdfast.toml": "holdfast.toml", "app.py": "app.py.txt", "README.md": "README.md", ".gitignore": "gitignore"}

app = single()


@command(app, local=True)
def init(
    invocation: Invocation, folder: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)] = Path()
) -> None:
    """Write a small example app into DIR, or into the current folder.

    The command overwrites nothing: if one of the files exists, it writes none of them.
    """
    write_example(folder)
    invocation.output.record({"folder": str(folder.absolute()), "files": list(FILES)})
    invocation.output.say(f"Wrote {', '.join(FILES)} into {folder.absolute()}. Go there and run: holdfast up app.py")


def write_example(folder: Path) -> None:
    """Write the example's files, all of them or none."""
    taken = [name for name in FILES if (folder / name).exists()]
    if taken:
        raise AlreadyExists(
            f"{', '.join(taken)} in {folder.absolute()} would be overwritten",
            next="Choose another folder, or move the files away.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, copied in FILES.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write((files("holdfast.cli") / "example" / copied).read_text("utf-8"))
    except OSError as error:
        raise Forbidden(
            f"the example cannot be written into {folder.absolute()}",
            why=error.strerror or str(error),
            next="Choose another folder.",
        ) from error
