"""Programs that are forked are as programs that are started whole."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import MODULE, Done, Program

REFUSED = """
import sys
sys.exit(f"this is {__name__} in {sys.path[0]}")
"""


def whole(program: Program, *words: str, typed: bytes = b"") -> Done:
    """The same command by an interpreter of its own."""
    command = [*MODULE, *words]
    done = subprocess.run(
        command, cwd=program.folder, env=program.environment, input=typed, capture_output=True, timeout=120
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize(
    "words",
    [
        ["config", "show"],
        ["config", "show", "--json", "--tenant", "\udcff"],
        ["up", "app.py"],
        ["secrets", "set", "key", "--tenant", "näh\n"],
        ["tenant", "ls"],
    ],
    ids=" ".join,
)
def test_a_command_answers_as_one_that_was_started_whole(holdfast: Program, words: list[str]) -> None:
    (holdfast.folder / "holdfast.toml").write_text('tenant = "acme"\n')
    (holdfast.folder / "app.py").write_text(REFUSED)
    holdfast.environment["HOLDFAST_SERVER__PORT"] = "4711"

    assert holdfast(*words, typed=b"gr\xfcn") == whole(holdfast, *words, typed=b"gr\xfcn")


def test_what_kills_a_command_is_told(prepared: Program, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nkill -KILL $(ps -o ppid= $PPID)\n")
    editor.chmod(0o755)

    done = prepared("notes", "edit", "--user", "ann", environment={"VISUAL": str(editor)})

    assert (done.code, done.stdout, done.stderr) == (-signal.SIGKILL, "", "")
