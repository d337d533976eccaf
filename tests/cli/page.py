"""A page of the documentation whose examples a test runs, as a reader would who copies them."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from holdfast.server.server_file import ServerFile
from tests.cli.program import MODULE, Done, Program

DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True, slots=True)
class Example:
    """A block of a page that can be run."""

    language: str
    code: str


class Page:
    """The examples of a page, run one after another in `folder` beside a running server."""

    def __init__(self, name: str, served: Program, folder: Path) -> None:
        blocks = re.findall(r"^```(python|sh)\n(.*?)^```$", (DOCS / name).read_text("utf-8"), re.MULTILINE | re.DOTALL)
        server = ServerFile.read(served.data)
        assert server is not None
        self.examples = [
            Example(language, code.replace("http://127.0.0.1:4600", server.url)) for language, code in blocks
        ]
        self._folder = folder
        self._environment = {**served.environment, "PATH": f"{_programs(folder)}{os.pathsep}{os.environ['PATH']}"}

    @property
    def languages(self) -> list[str]:
        """What its examples are written in."""
        return [example.language for example in self.examples]

    def run(self, example: Example) -> Done:
        """Run one to its end; it must not fail."""
        program = [sys.executable, "-c"] if example.language == "python" else ["bash", "-euc"]
        done = subprocess.run(
            [*program, example.code],
            env=self._environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, example.code + done.stdout + done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def run_all(self) -> list[Done]:
        """Run all of them, in the order of the page."""
        return [self.run(example) for example in self.examples]


def _programs(folder: Path) -> Path:
    """A folder with the program as an installation puts it on the path, and with its Python."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (programs / "python3").chmod(0o755)
    (programs / "holdfast").write_text(f'#!/bin/sh\nexec {" ".join(MODULE)} "$@"\n')
    (programs / "holdfast").chmod(0o755)
    return programs
