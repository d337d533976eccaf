"""The files that the rules read."""

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def source(root: Path, ending: str) -> Iterator[tuple[str, str]]:
    """Name and text of every file of the package with this ending."""
    for path in sorted((root / "src").rglob(f"*{ending}")):
        yield path.relative_to(root).as_posix(), path.read_text("utf-8")


def project(root: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every text file that is, or would be, committed; outside of git every file."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        names = sorted(set(listed.split("\0")) - {""})
    else:
        paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
        names = sorted(path.as_posix() for path in paths if not path.parts[0].startswith(".venv"))
    for name in names:
        path = root / name
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            yield name, content.decode("utf-8", "replace")


def line_of(text: str, position: int) -> int:
    """The line, counted from one, in which a position lies."""
    return text.count("\n", 0, position) + 1


def beyond(known: Mapping[str, str], found: Iterable[str]) -> list[str]:
    """What was found and is not known, and what is known and was not found: a list of known violations only shrinks.

    A violation is `rule: place`, and may say after a semicolon what to do; places are listed by rule.
    """
    listed = {f"{rule}: {place}" for rule, places in known.items() for place in places.split()}
    seen = {violation.partition(";")[0]: violation for violation in found}
    return [
        *(violation for place, violation in seen.items() if place not in listed),
        *(f"{place} is mended; remove it from the list of known ones" for place in sorted(listed - set(seen))),
    ]


def plant(root: Path, name: str, text: str) -> Path:
    """Write a file into a tree made for a test, and return the tree."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return root
