"""The command line as tests call it: the real program in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        self.environment = {**inherited, "HOME": str(folder), "HOLDFAST_DATA": str(self.data), **NO_FETCH}

    def __call__(self, *words: str, environment: Mapping[str, str] | None = None) -> Done:
        """Run a command to its end."""
        done = subprocess.run(
            [*MODULE, *words],
            cwd=self.folder,
            env={**self.environment, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)
