"""The data folder: what lies where in it, and whether it can be used."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from holdfast.core.errors import DataFolderUnusable

SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 107  # bytes in sockaddr_un, less the closing NUL


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The places in one data folder."""

    root: Path

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own files."""
        return self.root / "postgres"

    @property
    def log(self) -> Path:
        """What the server and its holder had to say."""
        return self.root / "postgres.log"

    @property
    def users_lock(self) -> Path:
        """Held shared by everyone who uses the server, exclusively by the holder when nobody does."""
        return self.root / "users.lock"

    @property
    def start_lock(self) -> Path:
        """Held by the one process that is starting a holder."""
        return self.root / "start.lock"

    @property
    def holder_lock(self) -> Path:
        """Held by the holder while it lives; its pid is written inside."""
        return self.root / "holder.lock"

    @property
    def secret(self) -> Path:
        """The installation's secret, where no setting gives one."""
        return self.root / "secret"

    @property
    def server_file(self) -> Path:
        """How the command line finds a running engine."""
        return self.root / "server.json"

    @property
    def sockets(self) -> Path:
        """The folder of the server's socket: in the data folder, unless that path is too long for a socket.

        PostgreSQL's clients take a comma for the end of an address.
        """
        inside = self.root / "run"
        if len(os.fsencode(inside / SOCKET_NAME)) <= SOCKET_PATH_LIMIT and "," not in str(inside):
            return inside
        # The same for everyone who uses this data folder, whatever account and TMPDIR they have.
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return Path("/tmp") / f"holdfast-{name}"  # noqa: S108 - `prepare` refuses it if it is someone else's

    def prepare(self) -> None:
        """Make the folder if need be, and say clearly why it cannot be used."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise _unusable(self.root, "it, or a part of its path, is a file") from error
        except OSError as error:
            raise _unusable(self.root, f"it cannot be made ({error.strerror})") from error
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
            raise _unusable(sockets, f"the folder for the server's socket cannot be made ({error.strerror})") from error
        # A folder under the temporary directory could be laid as a trap by another user.
        if not stat.S_ISDIR(found.st_mode) or (os.geteuid() != 0 and found.st_uid != os.geteuid()):
            raise _unusable(sockets, f"the folder for the server's socket belongs to {_account_name(found.st_uid)}")
        if sockets.parent != self.root and os.geteuid() == 0 and found.st_uid not in (0, self._cluster_owner()):
            raise _unusable(sockets, f"the folder for the server's socket belongs to {_account_name(found.st_uid)}")
        if stat.S_IMODE(found.st_mode) != 0o700:  # whoever enters it can speak to the server
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
        next="choose another with --data DIR (or HOLDFAST_DATA), or mend its owner and permissions",
    )
