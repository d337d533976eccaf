"""Files that `holdfast knowledge add` is given: found in folders and by patterns, each with its name as a document."""

import glob
import hashlib
import mimetypes
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from holdfast.core.errors import InvalidInput, NotFound
from holdfast.knowledge.parsing.detect import BINARY_ENDINGS

STDIN = "-"
PIECE = 1024 * 1024  # bytes per read
LOOKED_AT = 8192  # bytes that decide whether a file is text
# Folders that programs make; what begins with a dot is left out anyway.
IGNORED = frozenset({"__pycache__", "node_modules", "venv", "CVS"})
UTF_16 = (b"\xff\xfe", b"\xfe\xff")

# The types of some systems lack these.
_TYPES = mimetypes.MimeTypes()
_TYPES.add_type("text/markdown", ".md")
_TYPES.add_type("text/markdown", ".markdown")
_TYPES.add_type("application/epub+zip", ".epub")


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A file and its name as a document. `is_named`: it was named itself, and not found in a folder."""

    path: Path
    name: str
    size: int
    is_named: bool = False

    @property
    def media_type(self) -> str:
        """Its media type by its name; empty if the name does not say it."""
        return _TYPES.guess_type(self.name)[0] or ""

    def pieces(self) -> Iterator[bytes]:
        """Yield its content."""
        with self.path.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece

    def hash(self) -> str:
        """Return its SHA-256."""
        found = hashlib.sha256()
        for piece in self.pieces():
            found.update(piece)
        return found.hexdigest()


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Files to add, and why others are skipped, by name."""

    files: Sequence[DocumentFile]
    skipped: dict[str, str]


def find_files(paths: Sequence[str], name: str | None, folder: Path) -> FoundFiles:
    """Find the files of these paths, folders and patterns. `folder` keeps what comes on stdin."""
    if STDIN in paths:
        if len(paths) > 1 or name is None:
            raise InvalidInput(
                "a document on stdin has no name" if name is None else "stdin cannot be added with other files",
                next="Write it like: holdfast knowledge add - --name report.md < report.md",
            )
        return FoundFiles([_stdin(name, folder)], {})
    found: list[DocumentFile] = []
    skipped: dict[str, str] = {}
    for path in _expanded(paths):
        if path.is_dir():
            for file in _in_folder(path):
                why = _reason_to_skip(file.path)
                if why:
                    skipped[file.name] = why
                else:
                    found.append(file)
        else:
            found.append(_named(path))
    if name is not None:
        if len(found) != 1:
            raise InvalidInput(f"--name names one document, and there are {len(found)} files", next="Omit it.")
        found = [replace(found[0], name=name)]
    return FoundFiles(_with_unique_names(found), skipped)


def _expanded(paths: Sequence[str]) -> list[Path]:
    expanded: list[Path] = []
    for given in paths:
        path = Path(given)
        if path.exists():
            expanded.append(path)
            continue
        # The pattern can be absolute, which `Path.glob` refuses.
        matches = sorted(glob.glob(given, recursive=True)) if glob.has_magic(given) else []  # noqa: PTH207
        if not matches:
            raise NotFound(f"there is no file or folder {given[:500]!r}", next="Correct the path.")
        expanded += map(Path, matches)
    return list(dict.fromkeys(expanded))


def _in_folder(folder: Path) -> Iterator[DocumentFile]:
    """Yield the files of a folder and its subfolders, sorted by path, without hidden ones."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in IGNORED)
        for name in sorted(names):
            path = Path(place, name)
            if not name.startswith(".") and path.is_file():
                yield DocumentFile(path, PurePosixPath(path.relative_to(folder)).as_posix(), path.stat().st_size)


def _named(path: Path) -> DocumentFile:
    if not path.is_file():
        raise InvalidInput(f"{str(path)[:500]!r} is neither a file nor a folder", next="Give a file, a folder or -.")
    return DocumentFile(path, path.name, path.stat().st_size, is_named=True)


def _stdin(name: str, folder: Path) -> DocumentFile:
    """Keep stdin in a file, because its size has to be known before it is sent."""
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        while piece := sys.stdin.buffer.read(PIECE):
            file.write(piece)
    path = Path(file.name)
    return DocumentFile(path, name, path.stat().st_size, is_named=True)


def _reason_to_skip(path: Path) -> str:
    """Return why a file of a folder is no document; empty if it may be one."""
    if path.suffix.lower() in BINARY_ENDINGS:
        return ""
    try:
        with path.open("rb") as file:
            start = file.read(LOOKED_AT)
    except OSError as error:
        return error.strerror or str(error)
    if not start:
        return "it is empty"
    return "" if start.startswith(UTF_16) or b"\x00" not in start else "it is a binary file that no parser reads"


def _with_unique_names(files: Sequence[DocumentFile]) -> list[DocumentFile]:
    """Name files that were named themselves by their whole path, if others have the same name."""
    counts = Counter(file.name for file in files)
    named = [
        replace(file, name=file.path.as_posix()) if file.is_named and counts[file.name] > 1 else file for file in files
    ]
    twice = next((name for name, count in Counter(file.name for file in named).items() if count > 1), None)
    if twice is not None:
        raise InvalidInput(
            f"two files would be the document {twice[:200]!r}",
            why="names are relative to the given folders",
            next="Add the folders separately, each with its own --collection.",
        )
    return named
