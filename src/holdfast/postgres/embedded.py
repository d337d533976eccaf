"""The embedded server, as used by a process.

Every process that uses the server holds a shared lock on the data folder. The server is the child of a small separate
process, the holder, which runs as long as any process holds the lock. So the death of one process, even by `kill -9`,
does not affect the others. When the last process ends, the holder stops the server.
"""

import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Self
from urllib.parse import quote

from holdfast.core.errors import Broken, DataFolderUnusable, HoldfastError, Unavailable
from holdfast.postgres.account import clean_environment
from holdfast.postgres.folder import SOCKET_NAME, DataFolder
from holdfast.postgres.version import check_version

OWNER = "postgres"  # not the name of our schema: PostgreSQL would create objects there that name no schema
DATABASE = "holdfast"
START_TIMEOUT = 300.0  # crash recovery of a full log on a slow disk takes minutes
POLL = 0.02
PYTHON = ("PYTHONHOME", "PYTHONUSERBASE", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "LC_ALL", "LC_CTYPE")


class EmbeddedServer:
    """A PostgreSQL server that needs no installation. It runs while `with` lasts.

    `memory`: bytes to size its caches for, if this process starts it; by default, all of the machine's memory.
    """

    def __init__(self, data: Path, *, memory: int | None = None) -> None:
        self.folder = DataFolder(data.expanduser().resolve())
        self._memory = memory
        self._users: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self.hold()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def hold(self) -> None:
        """Keep the server running from now on. Start it if it does not run."""
        self.folder.prepare()
        check_version(self.folder.cluster)
        deadline = time.monotonic() + START_TIMEOUT
        self._users = _lock(self.folder.users_lock, fcntl.LOCK_SH, deadline)
        try:
            self.ensure()
        except BaseException:
            self.release()
            raise

    def ensure(self) -> None:
        """Start the server if it does not answer. When this returns, it answers, whichever process started it."""
        if is_responding(self.folder.sockets):
            return
        deadline = time.monotonic() + START_TIMEOUT
        with _lock(self.folder.start_lock, fcntl.LOCK_EX, deadline):
            while not is_responding(self.folder.sockets):
                if time.monotonic() > deadline:
                    raise Unavailable(
                        "the embedded PostgreSQL does not start",
                        why=f"it did not respond within {START_TIMEOUT:.0f} seconds",
                        next=f"Look for the cause in {self.folder.log}, then try again.",
                    )
                # A holder exits at once if another one runs, which is starting or stopping the server.
                # A holder that was killed is replaced.
                if not start_holder(self.folder, deadline, self._memory):
                    time.sleep(POLL)

    def release(self) -> None:
        """Stop using the server. The holder stops it when no process uses it."""
        if self._users is not None:
            self._users.close()
            self._users = None

    @property
    def url(self) -> str:
        """The owner's URL. The server authenticates the caller by its account, not by a password."""
        return f"postgresql://{OWNER}@/{DATABASE}?host={quote(str(self.folder.sockets), safe='/')}"


def start_holder(folder: DataFolder, deadline: float, memory: int | None = None) -> bool:
    """Start a holder and wait until the server runs. Return False if another holder runs, or this one was killed."""
    package_root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
    with folder.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.postgres.holder", str(folder.root), *([str(memory)] if memory else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            env={**clean_environment(*PYTHON), "PYTHONPATH": path},
            start_new_session=True,
        )
    assert process.stdout is not None
    with process.stdout as answer:
        code = process.wait()  # the holder forks at once and continues in the child
        ready, _, _ = select.select([answer], [], [], max(0.0, deadline - time.monotonic()))
        line = answer.readline() if ready else b""
    if ready and not line and code <= 0:
        return False
    if not line:
        raise Unavailable(
            "the embedded PostgreSQL does not start",
            why="its holder process ended without a report" if ready else "its holder process did not report in time",
            next=f"Look for the cause in {folder.log}.",
        )
    report = json.loads(line)
    if "code" in report:
        kind: type[HoldfastError] = next(
            (k for k in (DataFolderUnusable, Unavailable) if k.code == report["code"]), Broken
        )
        raise kind(report["what"], why=report["why"], next=report["next"])
    return bool(report["running"])


def is_responding(sockets: Path) -> bool:
    """Whether a server accepts connections in this folder. That its pid exists would not prove it."""
    parameters = b"".join(part + b"\0" for part in (b"user", OWNER.encode(), b"database", DATABASE.encode())) + b"\0"
    hello = struct.pack("!ii", 8 + len(parameters), 196608) + parameters
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(5)
            connection.connect(str(sockets / SOCKET_NAME))
            connection.sendall(hello)
            reply = connection.recv(4096)
    except OSError:
        return False
    # An error is an answer, too, except "starting up" and "shutting down".
    return bool(reply) and not (reply[:1] == b"E" and b"C57P03\0" in reply)


def _lock(path: Path, kind: int, deadline: float) -> IO[bytes]:
    handle = path.open("ab")
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() > deadline:
                handle.close()
                raise Unavailable(
                    f"{path} is locked",
                    why=f"another process has been starting or stopping the server for {START_TIMEOUT:.0f} seconds",
                    next=f"Read {path.with_name('postgres.log')}, and end the process that holds the lock.",
                ) from None
            time.sleep(POLL)
