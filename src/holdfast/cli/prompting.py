"""Reading what a person types: keys, a history that lasts, and pasted text as one message."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

HISTORY = 1000  # lines


@contextmanager
def line_editing(file: Path) -> Generator[None]:
    """Have `input` edit lines; what is typed is kept in a file that its user alone can read."""
    try:
        import readline
    except ImportError:
        yield
        return
    # Line ends in what is pasted are part of the message: it is sent when Enter is pressed.
    if os.environ.get("TERM") not in (None, "", "dumb"):  # others would show the signs for it
        readline.parse_and_bind("set enable-bracketed-paste on")
    readline.set_history_length(HISTORY)
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        with suppress(OSError):  # a chat without a history is one, too
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(file)
            file.chmod(0o600)
