"""The folder in which reader processes find their files."""

import contextlib
import fcntl
import itertools
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "holdfast-readers-"
LOCK = "lock"
LONGEST_NAME = 200  # bytes of the name of a file


class ReadersFolder:
    """A private folder. What an engine has left that was killed is removed when the next one makes its own.

    Its lock tells that its engine lives. `files` is for files that are to be read: they are then linked, not copied.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = Path(tempfile.gettempdir()) if parent is None else parent
        self._path: Path | None = None
        self._lock = -1
        self._numbers = itertools.count(1)

    @property
    def files(self) -> Path:
        """The folder for files that are to be read."""
        assert self._path is not None, "the folder is not open"
        return self._path / "files"

    def open(self) -> None:
        """Make the folder, and remove those of engines that were killed."""
        self._parent.mkdir(parents=True, exist_ok=True)
        self._path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._parent))
        self._lock = _lock(self._path)
        self.files.mkdir()
        for left in self._parent.glob(f"{PREFIX}*"):
            if left != self._path:
                _remove_if_left(left)

    def close(self) -> None:
        """Remove the folder."""
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            os.close(self._lock)
            self._path = None

    def make_input(self) -> Path:
        """Make a folder for the file of one process. No other process may read it."""
        assert self._path is not None, "the folder is not open"
        folder = self._path / str(next(self._numbers))
        folder.mkdir(mode=0o700)
        return folder


def put(path: Path, folder: Path, name: str) -> Path:
    """Put a file into the folder of a process, as a link or as a copy, and return its path there.

    It has its document's name, so that errors name it.
    """
    take(folder)
    place = folder / file_name(name)
    if path.is_symlink():
        path = path.resolve()
    try:
        os.link(path, place)
    except FileNotFoundError:
        raise
    except OSError:  # another file system
        shutil.copyfile(path, place)
    return place


def file_name(name: str) -> str:
    """Return the name of a document as one that a file can have in any folder."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2].replace("\0", "")
    short = last.encode(errors="replace")[-LONGEST_NAME:].decode(errors="ignore")
    return short if short.strip(". ") else "document"


def take(folder: Path) -> None:
    """Remove the file from the folder of a process."""
    for file in folder.iterdir():
        file.unlink(missing_ok=True)


def _lock(folder: Path) -> int:
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def _remove_if_left(folder: Path) -> None:
    with contextlib.suppress(OSError):
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        finally:
            os.close(lock)
