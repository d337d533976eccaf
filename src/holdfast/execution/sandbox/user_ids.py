"""User ids for programs in the sandbox. No two programs that run on this machine have the same."""

import fcntl
import itertools
import os
import random
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from holdfast.core.errors import Unavailable

IDS = range(60600, 61100)  # no distribution gives them to anybody
PLACES = (Path("/run"), Path("/tmp"))  # noqa: S108 - the folder in it must be ours
FOLDER = "holdfast-sandbox-users"


class UserIds:
    """Lends ids to programs. A lock on the file of each tells all engines of this machine that it is taken."""

    def __init__(self, ids: Sequence[int] = IDS, places: Sequence[Path] = PLACES) -> None:
        self._ids = ids
        self._next = itertools.cycle(random.sample(ids, len(ids)))
        self._places = places

    @contextmanager
    def lend(self) -> Generator[int]:
        """Lend an id that no program has. Raises an Unavailable if there is none."""
        folder = self._folder()
        for _ in self._ids:
            user = next(self._next)
            lock = os.open(folder / str(user), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            try:
                yield user
            finally:
                os.close(lock)
            return
        raise Unavailable(
            "no user id is free for another program in the sandbox",
            why=f"{len(self._ids)} programs run on this machine",
            next="Try again when one of them has ended.",
        )

    def _folder(self) -> Path:
        """Return the folder of the locks, which nobody else can write to."""
        for place in self._places:
            folder = place / FOLDER
            try:
                folder.mkdir(mode=0o700, exist_ok=True)
                found = folder.lstat()
            except OSError:
                continue
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
                return folder
        raise Unavailable(
            "the sandbox cannot lock user ids",
            why=f"none of {', '.join(map(str, self._places))} takes a folder {FOLDER} of the engine's user",
            next="Make one of them writable for the engine.",
        )
