"""What every benchmark does alike: where its data lie, what ran, how figures are printed and kept."""

import argparse
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of this process's CPU and of the clock."""

    cpu: float
    wall: float

    def per(self, operations: int) -> "Cost":
        """The cost of one of so many operations."""
        return Cost(self.cpu / operations, self.wall / operations)


@dataclass(frozen=True, slots=True)
class Table:
    """The figures of one benchmark; the first row of cells are the headings."""

    name: str
    title: str
    cells: Sequence[Sequence[str]]
    figures: object
    notes: Sequence[str]
    packages: Sequence[str]

    def publish(self, results: Path) -> None:
        """Print it, and keep it as JSON and as Markdown with what it was measured on."""
        ran_on = versions(self.packages)
        print(f"\n{self.title}\n\n{self._aligned()}\n")
        print("\n".join(self.notes))
        results.mkdir(parents=True, exist_ok=True)
        kept = {"title": self.title, "ran_on": ran_on, "figures": self.figures, "notes": list(self.notes)}
        (results / f"{self.name}.json").write_text(json.dumps(kept, indent=2) + "\n")
        (results / f"{self.name}.md").write_text(self._markdown(ran_on))

    def _aligned(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.cells, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in self.cells]
        return "\n".join(line.rstrip() for line in lines)

    def _markdown(self, ran_on: Mapping[str, str]) -> str:
        head, *rows = (f"| {' | '.join(row)} |" for row in self.cells)
        rule = f"|{'---|' * len(self.cells[0])}"
        ran = ", ".join(f"{name} {value}" for name, value in ran_on.items())
        return "\n".join([f"# {self.title}", "", head, rule, *rows, "", *self.notes, "", f"Run on: {ran}.", ""])


def versions(packages: Sequence[str]) -> dict[str, str]:
    """What a figure depends on."""
    found = {"Python": platform.python_version(), platform.system(): platform.machine()}
    found["cores"] = str(os.cpu_count())
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "(from source)"
    return found


def arguments(description: str, *, seconds: float, flags: Mapping[str, str] | None = None) -> argparse.Namespace:
    """The options of every benchmark: `--seconds` of measuring in all, and `--results`, the folder to keep them in.

    `flags` are a benchmark's own, each with its help.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=seconds, help="how long to measure in all")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the figures are kept")
    for flag, help in (flags or {}).items():
        parser.add_argument(flag, action="store_true", help=help)
    return parser.parse_args()


@contextmanager
def scratch() -> Generator[Path]:
    """A folder for data, in shared memory where there is one: what is measured is not the disk."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-", dir=shared if shared.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
