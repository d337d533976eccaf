"""`server.json`: the command line finds a running server by it, and authenticates as the same account."""

import hashlib
import http.client
import os
import secrets
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import msgspec
import psutil

from holdfast.core.errors import DataFolderUnusable
from holdfast.postgres.folder import DataFolder

HEALTH_TIMEOUT = 2.0
SERVICE = "holdfast"


class Health(msgspec.Struct, frozen=True):
    """The public description of a running server."""

    service: str
    version: str
    instance: str  # identifies the server; a hash of its token, which cannot be derived from it
    state: str = "alive"


class ServerFile(msgspec.Struct, frozen=True):
    """A running server: its URL, and a token that only its own account can read."""

    url: str
    pid: int
    token: str
    version: str
    data: str
    started_at: datetime
    database: str | None = None  # the place of an external database, without credentials

    @classmethod
    def new(cls, url: str, data: Path, database: str | None = None) -> Self:
        """Describe a server of this process, with a new token."""
        token = secrets.token_urlsafe(32)
        return cls(url, os.getpid(), token, holdfast_version(), str(data.absolute()), datetime.now(UTC), database)

    @property
    def instance(self) -> str:
        """The public identifier of the server."""
        return instance_of(self.token)

    @staticmethod
    def read(data: Path) -> "ServerFile | None":
        """Return the server that runs on a data folder. A stale file is ignored: without a live server, return None."""
        found = _read(data)
        if found is None or not _runs(found.pid):
            return None
        health = ask_health(found.url)
        return found if health is not None and health.instance == found.instance else None

    def write(self, data: Path) -> bool:
        """Write the file. If the file describes another running server, do nothing and return False."""
        other = ServerFile.read(data)
        if other is not None and other.token != self.token:
            return False
        file = DataFolder(data).server_file
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
                handle.write(msgspec.json.format(msgspec.json.encode(self)) + b"\n")
            draft.replace(file)
        except OSError as error:
            raise DataFolderUnusable(
                f"{file} cannot be written",
                why=error.strerror or str(error),
                next="Mend the folder's permissions, or choose another with --data DIR.",
            ) from error
        return True

    def remove(self, data: Path) -> None:
        """Delete the file, unless it describes another server."""
        found = _read(data)
        if found is not None and found.token == self.token:
            DataFolder(data).server_file.unlink(missing_ok=True)


def instance_of(token: str) -> str:
    """Return the public identifier of the server with this token."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]


def ask_health(url: str) -> Health | None:
    """Request `/healthz` at `url`. Return None if no Holdfast server answers."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=HEALTH_TIMEOUT)
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/healthz")
        health = msgspec.json.decode(connection.getresponse().read(10_000), type=Health)
    except (OSError, ValueError, http.client.HTTPException, msgspec.MsgspecError):
        return None
    finally:
        connection.close()
    return health if health.service == SERVICE else None


@cache
def holdfast_version() -> str:
    """Return the version of this program."""
    try:
        return version("holdfast")
    except PackageNotFoundError:
        return "0"


def _read(data: Path) -> ServerFile | None:
    try:
        return msgspec.json.decode(DataFolder(data).server_file.read_bytes(), type=ServerFile)
    except (OSError, msgspec.MsgspecError):
        return None


def _runs(pid: int) -> bool:
    try:
        return pid > 0 and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OverflowError):
        return False
