"""What a command says, and where: data on stdout, words and progress on stderr.

With `--json` data is JSON and there are no words; progress is shown on a terminal only.
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

# What would move the cursor or change the terminal; tabs and line ends are ours to print.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*")


class Output:
    """Where results and words go."""

    def __init__(self, *, json: bool) -> None:
        self._json = json

    def rows(self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, cut: Sequence[str] = ()) -> None:
        """A table with these columns (key and heading); as JSON a list with every key of every row.

        Of the columns to `cut` a terminal shows what has room on one line; what reads a pipe gets all of it.
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
        """One text alone on stdout, for `$(…)`; as JSON an object."""
        if self._json:
            self._write_json(fields)
        else:
            write(sys.stdout, text)

    def record(self, fields: Mapping[str, Any]) -> None:
        """One thing with its fields; without `--json` there is nothing to print."""
        if self._json:
            self._write_json(fields)

    def line(self, fields: Mapping[str, Any]) -> None:
        """One thing as one line of JSON, for those who read line by line."""
        if self._json:
            write(sys.stdout, json.dumps(fields, default=str))

    def say(self, words: str) -> None:
        """Words for people."""
        if not self._json:
            write(sys.stderr, printable(words))

    def hint(self, words: str) -> None:
        """Words for a person at a terminal; who reads stderr in a program or a file is spared them."""
        if sys.stderr.isatty():
            self.say(words)

    @contextmanager
    def progress(self) -> Generator[Progress]:
        """Shows what is being done, while it is done, to whoever watches."""
        if self._json or not sys.stderr.isatty():
            yield lambda _: None
            return
        with _console(sys.stderr).status("") as status:
            yield lambda doing: status.update(printable(doing))

    def _write_json(self, value: object) -> None:
        write(sys.stdout, json.dumps(value, indent=2, default=str))


def write(stream: TextIO, text: str) -> None:
    """Write a line at once: a reader that has gone away is noticed here and not at the very end."""
    stream.write(text + "\n")
    stream.flush()


def printable(text: str) -> str:
    """The text with what a terminal would obey made visible."""
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

    # A pipe has no width: what reads it wants whole lines.
    width = None if stream.isatty() else 10_000
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
