"""Output of commands: data on stdout, messages and progress on stderr.

With `--json`, data is JSON and there are no messages. Progress is shown only on a terminal.
"""

import json
import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

Progress = Callable[[str], None]

# Control characters, which could move the cursor or change the terminal, except tabs and line ends.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*")


class Output:
    """Prints results and messages."""

    def __init__(self, *, json: bool) -> None:
        self._json = json

    def rows(self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, cut: Sequence[str] = ()) -> None:
        """Print a table with these columns (key and heading), or as JSON a list with every key of every row.

        A terminal shows the columns in `cut` shortened to one line. A pipe gets them in full.
        """
        if self._json:
            self._write_json(rows)
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for key, heading in columns.items():
            table.add_column(heading, overflow="ellipsis" if key in cut else "fold", no_wrap=key in cut)
        for row in rows:
            table.add_row(*(Text(printable(_cell(row.get(key)))) for key in columns))
        _console(sys.stdout).print(table)
        sys.stdout.flush()

    def value(self, text: str, fields: Mapping[str, Any]) -> None:
        """Print only this text, for `$(…)`, or as JSON an object."""
        if self._json:
            self._write_json(fields)
        else:
            write(sys.stdout, text)

    def record(self, fields: Mapping[str, Any]) -> None:
        """Print an object as JSON; nothing without `--json`."""
        if self._json:
            self._write_json(fields)

    def line(self, fields: Mapping[str, Any]) -> None:
        """Print an object as one line of JSON; nothing without `--json`."""
        if self._json:
            write(sys.stdout, json.dumps(fields, default=str))

    def say(self, words: str) -> None:
        """Print a message on stderr; nothing with `--json`."""
        if not self._json:
            write(sys.stderr, printable(words))

    def hint(self, words: str) -> None:
        """Print a message if stderr is a terminal, not for a program or a file."""
        if sys.stderr.isatty():
            self.say(words)

    @contextmanager
    def progress(self) -> Generator[Progress]:
        """Yield a function that shows the current activity if stderr is a terminal."""
        if self._json or not sys.stderr.isatty():
            yield lambda _: None
            return
        with _console(sys.stderr).status("") as status:
            yield lambda doing: status.update(printable(doing))

    def _write_json(self, value: object) -> None:
        write(sys.stdout, json.dumps(value, indent=2, default=str))


def write(stream: TextIO, text: str) -> None:
    """Write a line and flush it, so that a closed pipe is noticed here and not at the exit."""
    stream.write(text + "\n")
    stream.flush()


def write_bytes(part: bytes) -> None:
    """Write a part of a download to stdout."""
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def printable(text: str) -> str:
    """Escape the control characters of a text."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    text = str(value)
    if _MOMENT.fullmatch(text):
        return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M")
    return text


def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    # A pipe has no width: its reader expects whole lines.
    width = None if stream.isatty() else 10_000
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
