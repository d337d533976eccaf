"""The command line as tests call it: the real program in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.verdicts import share_verdicts
from tests.zygote import zygote

MODULE = (sys.executable, "-m", "holdfast.cli.main")
NO_FETCH = {"HOLDFAST_MEMORY__EMBEDDING__FETCH": "false"}  # no test of a command line needs a model


@dataclass(frozen=True, slots=True)
class Done:
    """A call that has ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """What it answered on stdout with `--json`."""
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, Any]:
        """What it refused with on stderr with `--json`."""
        return json.loads(self.stderr)


class Program:
    """Calls `holdfast` in a folder, with a home and settings of its own, on one data folder."""

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        self.folder = folder
        self.data = data or folder / "data"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "PG"))}
        for own in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            inherited.pop(own, None)
        share_verdicts(folder / ".cache")
        self.environment = {**inherited, "HOME": str(folder), "HOLDFAST_DATA": str(self.data), **NO_FETCH}

    def __call__(self, *words: str, environment: Mapping[str, str] | None = None, typed: str | bytes = b"") -> Done:
        """Run a command to its end; `typed` is what it can read."""
        settings = {**self.environment, **(environment or {})}
        command = [*MODULE[1:], *words]
        run = zygote().run if zygote().suits(command, settings) else _run_whole
        keys = typed.encode() if isinstance(typed, str) else typed
        code, *said = run(command, settings, self.folder, keys, timeout=120)
        stdout, stderr = (text.decode().replace("\r\n", "\n").replace("\r", "\n") for text in said)
        assert "Traceback" not in stderr, stderr
        return Done(code, stdout, stderr)


def _run_whole(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, typed: bytes, *, timeout: float
) -> tuple[int, bytes, bytes]:
    whole = [sys.executable, *command]
    done = subprocess.run(whole, cwd=folder, env=environment, input=typed, capture_output=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr
