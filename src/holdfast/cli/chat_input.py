"""Reads input from a terminal: line editing, a stored history, and pasted text as one message."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

HISTORY = 1000  # lines


@contextmanager
def line_editing(file: Path) -> Generator[None]:
    """Enable line editing for `input`. Store the history in a file that only its user can read."""
    try:
        import readline
    except ImportError:
        yield
        return
    # Line ends in pasted text are part of the message. Enter sends it.
    if os.environ.get("TERM") not in (None, "", "dumb"):  # others would print the control sequences
        readline.parse_and_bind("set enable-bracketed-paste on")
    readline.set_history_length(HISTORY)
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        with suppress(OSError):  # the chat also works without a history
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(file)
            file.chmod(0o600)
