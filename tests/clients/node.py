"""Node.js, for what runs in browsers."""

import subprocess
from pathlib import Path

from tests.npm import NODE

PATIENCE = 60  # seconds: a busy machine is no failure


def run(*words: str | Path, folder: Path) -> str:
    """What Node says of a program that has to go well."""
    done = subprocess.run([NODE, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
