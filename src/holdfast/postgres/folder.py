"""The data folder: its paths, and checks whether it can be used."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from holdfast.core.errors import DataFolderUnusable

SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 107  # bytes in sockaddr_un, without the closing NUL


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The paths in a data folder."""

    root: Path

    @property
    def cluster(self) -> Path:
        """PostgreSQL's data directory."""
        return self.root / "postgres"

    @property
    def log(self) -> Path:
        """The log of the server and its holder."""
        return self.root / "postgres.log"

    @property
    def users_lock(self) -> Path:
        """Locked shared by each process that uses the server, exclusively by the holder when none does."""
        return self.root / "users.lock"

    @property
    def start_lock(self) -> Path:
        """Locked by the process that is starting a holder."""
        return self.root / "start.lock"

    @property
    def holder_lock(self) -> Path:
        """Locked by the holder while it runs. Contains its pid."""
        return self.root / "holder.lock"

    @property
    def secret(self) -> Path:
        """The installation's secret, if it is not in the settings."""
        return self.root / "secret"

    @property
    def server_file(self) -> Path:
        """The file by which the command line finds a running server."""
        return self.root / "server.json"

    @property
    def sockets(self) -> Path:
        """The folder of the server's socket: in the data folder, unless that path is too long for a socket.

        A path with a comma is not used either: for PostgreSQL's clients, a comma ends an address.
        """
        inside = self.root / "run"
        if len(os.fsencode(inside / SOCKET_NAME)) <= SOCKET_PATH_LIMIT and "," not in str(inside):
            return inside
        # The same path for all processes that use this data folder, whatever their account and TMPDIR.
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return Path("/tmp") / f"holdfast-{name}"  # noqa: S108 - `prepare` rejects it if it belongs to another user

    def prepare(self) -> None:
        """Create the folder if it does not exist. Raise an error that says why it cannot be used."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise _unusable(self.root, "the path or a part of it is a file") from error
        except OSError as error:
            raise _unusable(self.root, f"it cannot be created ({error.strerror})") from error
        owner = self.root.stat().st_uid
        if os.geteuid() not in (0, owner):
            raise _unusable(self.root, f"it belongs to {_account_name(owner)}, not to you")
        if not os.access(self.root, os.W_OK | os.X_OK) or _read_only(self.root):
            raise _unusable(self.root, "it is not writable")
        if self.cluster.exists() and os.geteuid() not in (0, self.cluster.stat().st_uid):
            raise _unusable(self.cluster, f"it belongs to {_account_name(self.cluster.stat().st_uid)}, not to you")
        self._prepare_sockets()

    def _prepare_sockets(self) -> None:
        sockets = self.sockets
        try:
            sockets.mkdir(mode=0o700, exist_ok=True)
            found = os.lstat(sockets)
        except OSError as error:
            raise _unusable(
                sockets, f"the folder for the server's socket cannot be created ({error.strerror})"
            ) from error
        # Another user could have created the folder in the temporary directory, as an attack.
        if not stat.S_ISDIR(found.st_mode) or (os.geteuid() != 0 and found.st_uid != os.geteuid()):
            raise _unusable(sockets, f"the folder for the server's socket belongs to {_account_name(found.st_uid)}")
        if sockets.parent != self.root and os.geteuid() == 0 and found.st_uid not in (0, self._cluster_owner()):
            raise _unusable(sockets, f"the folder for the server's socket belongs to {_account_name(found.st_uid)}")
        if stat.S_IMODE(found.st_mode) != 0o700:  # every account that can enter it can connect to the server
            sockets.chmod(0o700)

    def _cluster_owner(self) -> int:
        return self.cluster.stat().st_uid if self.cluster.exists() else os.geteuid()


def _read_only(folder: Path) -> bool:
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def _account_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _unusable(path: Path, why: str) -> DataFolderUnusable:
    return DataFolderUnusable(
        f"the data folder {path} cannot be used",
        why=why,
        next="Choose another one with --data DIR or HOLDFAST_DATA, or correct its owner and permissions.",
    )
