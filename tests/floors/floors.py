"""`make floors`: whether the lowest versions that pyproject.toml allows really work.

    python -m tests.floors.floors [NAME…]

For the core and for each extra, on every Python that is found, an environment with the lowest versions of the direct
dependencies is made below `.venv-floors` and `smoke.py` runs in it. One line says how each went. A version without a
wheel for that Python is passed over: nobody gets it without a compiler.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-floors"
SMOKE = Path(__file__).with_name("smoke.py")
PROJECT = ROOT / "pyproject.toml"
PYTHONS = ("3.11", "3.12", "3.13")
CORE = "core"
WITHOUT_USE = ("all",)  # the sum of the others
PATIENCE = 600  # seconds for one environment, and for its use


@dataclass(frozen=True, slots=True)
class Floor:
    """The lowest versions for the core or one extra, on one Python."""

    python: str  # its version
    extra: str

    def __str__(self) -> str:
        return f"{self.extra} on Python {self.python}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a floor did; `complaint` is empty where it works."""

    floor: Floor
    complaint: str = ""
    missing: bool = False  # there is no such Python here

    def __str__(self) -> str:
        if self.missing:
            return f"SKIPPED  {self.floor}: {self.complaint}"
        return f"FAILS    {self.floor}\n{self.complaint}" if self.complaint else f"works    {self.floor}"


def extras() -> list[str]:
    """The core, and the extras that there is something of ours for."""
    declared = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    return [CORE, *(name for name in declared if name not in WITHOUT_USE)]


def floors() -> list[Floor]:
    """Every combination."""
    return [Floor(python, extra) for python in PYTHONS for extra in extras()]


def tried(chosen: Sequence[Floor]) -> Iterator[Verdict]:
    """How each of them does, one after another."""
    for floor in chosen:
        interpreter = interpreter_of(floor.python)
        if interpreter is None:
            yield Verdict(floor, f"there is no python{floor.python} on PATH", missing=True)
        else:
            yield Verdict(floor, _complaint(floor, interpreter))


def interpreter_of(version: str) -> str | None:
    """A Python of this version that runs; a name on PATH alone may be that of a version manager."""
    for name in (sys.executable, f"python{version}"):
        found = shutil.which(name)
        if found is not None:
            asked = subprocess.run(
                [found, "-c", "import sys; print('{}.{}'.format(*sys.version_info))"], capture_output=True, text=True
            )
            if asked.stdout.strip() == version:
                return found
    return None


def _complaint(floor: Floor, interpreter: str) -> str:
    """What went wrong with a floor; empty where nothing did."""
    home = FOLDER / f"{floor.python}-{floor.extra}"
    lock, python = home / "floor.txt", home / "bin" / "python"
    chosen = [] if floor.extra == CORE else ["--extra", floor.extra]
    steps = [
        _uv("venv", "--allow-existing", "--python", interpreter, str(home)),
        _uv("pip", "compile", "--resolution", "lowest-direct", "--python", str(python), *chosen, str(PROJECT),
            "--only-binary", ":all:", "--no-header", "-o", str(lock)),
        _uv("pip", "sync", "--python", str(python), str(lock)),
        [str(python), str(SMOKE), floor.extra],
    ]  # fmt: skip
    # As it lies here: a wheel of ours would have nothing else in it.
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    for step in steps:
        try:
            run = subprocess.run(
                step, capture_output=True, text=True, env=environment, cwd=FOLDER.parent, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return f"no end of it in {PATIENCE} s: {' '.join(step)}"
        if run.returncode:
            return f"{' '.join(step)}\n{run.stdout}{run.stderr}"
    return ""


def _uv(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("uv")), *arguments, "--quiet"]


def main(names: Sequence[str]) -> int:
    """Print a line for each floor; those that are named `EXTRA` or `PYTHON`, or all."""
    failed = False
    for verdict in tried([floor for floor in floors() if not names or {floor.extra, floor.python} & set(names)]):
        print(verdict, flush=True)  # noqa: T201 - that is what it is for
        failed |= bool(verdict.complaint) and not verdict.missing
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
