"""The work folder of a program in the sandbox."""

import os
import tempfile
import threading
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from holdfast.core.errors import InvalidInput, Unavailable
from holdfast.execution.sandbox.launcher import remove_folder

PREFIX = "holdfast-sandbox-"
TEMPORARY = "tmp"  # in the work folder


class WorkFolder:
    """A folder with the files of one program. `user` owns them; None: the engine's own user.

    `make` and `remove` run in threads. A thread whose caller was cancelled goes on, so either waits for the other.
    """

    def __init__(
        self, parent: Path | None, files: Mapping[str, bytes], *, executable: Collection[str], user: int | None
    ) -> None:
        self._parent = parent
        self._files = files
        self._executable = executable
        self._user = user
        self._path: Path | None = None
        self._removed = False
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        """The folder, which has been made."""
        assert self._path is not None
        return self._path

    @property
    def temporary(self) -> Path:
        """The folder for temporary files. It has another name if a file has this one."""
        name = TEMPORARY
        while name in self._files:
            name += "_"
        return self.path / name

    @property
    def is_left(self) -> bool:
        """Whether there is something to remove: the folder is there, or a thread may still make it."""
        return self._path is None or self._path.exists()

    def make(self) -> None:
        """Make the folder, unless it has been removed before."""
        with self._lock:
            if not self._removed:
                try:
                    self._path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._parent))
                    self._fill()
                except OSError as error:
                    raise Unavailable(
                        "the sandbox cannot make a work folder",
                        why=str(error),
                        next="Give the engine space and rights for its temporary folder. As root, it needs the "
                        "capabilities of root, such as CHOWN, SETUID and SETGID; otherwise run it as an ordinary user.",
                    ) from None

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        with self._lock:
            self._removed = True
            if self._path is not None:
                remove_folder(str(self._path))

    def _fill(self) -> None:
        made = [self.path, self.temporary]
        made[1].mkdir()
        for name, content in self._files.items():
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\0" in name:
                raise InvalidInput(f"the file {name!r:.200} cannot be put into the work folder")
            place = self.path / path
            for above in reversed(place.relative_to(self.path).parents[:-1]):
                if not (self.path / above).exists():
                    (self.path / above).mkdir()
                    made.append(self.path / above)
            place.write_bytes(content)
            place.chmod(0o700 if name in self._executable else 0o600)
            made.append(place)
        if self._user is not None:
            for place in made:
                os.chown(place, self._user, self._user, follow_symlinks=False)
