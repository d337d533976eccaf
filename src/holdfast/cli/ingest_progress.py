"""The progress of `holdfast knowledge add`: a bar on a terminal, nothing elsewhere."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.cli.output import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOWN = 40  # characters of a name


class IngestProgress(Protocol):
    """Shows how far the work is: in bytes, files, pages and chunks."""

    def show(self, *, done: float, files: int, pages: int, chunks: int, current: str) -> None:
        """Show the bytes that are done, the files that have ended, and what was read of all."""
        ...


class NoProgress:
    """Shows nothing."""

    def show(self, *, done: float, files: int, pages: int, chunks: int, current: str) -> None:
        """Show nothing."""


class ProgressBar:
    """Shows a bar."""

    def __init__(self, progress: "Progress", task: "TaskID", files: int) -> None:
        self._progress = progress
        self._task = task
        self._files = files

    def show(self, *, done: float, files: int, pages: int, chunks: int, current: str) -> None:
        """Show a bar with the numbers and the current file."""
        read = f"{files}/{self._files} files, {pages} pages, {chunks} chunks"
        shown = printable(current if len(current) <= SHOWN else "…" + current[1 - SHOWN :])
        self._progress.update(self._task, completed=done, read=read, current=shown)


@contextmanager
def ingest_progress(*, size: int, files: int, quiet: bool) -> Generator[IngestProgress]:
    """Yield what shows the progress of so many bytes in so many files, if stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield NoProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns: list[Any] = [
        BarColumn(bar_width=24),
        TextColumn("{task.fields[read]}", markup=False),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[current]}", markup=False),
    ]
    console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=max(1, size), read="", current="")
        yield ProgressBar(progress, task, files)
