"""The embedded server, as those who use it see it.

Whoever uses the server holds a shared lock on the data folder. The server itself belongs to a small process of its own,
the holder, that lives while any such lock is held: so the death of any one user, by `kill -9` too, is nobody else's
concern, and the last one to go takes the server along.
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

OWNER = "postgres"  # not named like our schema: what its owner makes without naming a schema would land there
DATABASE = "holdfast"
START_TIMEOUT = 300.0  # crash recovery of a full log on a slow disk takes minutes
POLL = 0.02
PYTHON = ("PYTHONHOME", "PYTHONUSERBASE", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "LC_ALL", "LC_CTYPE")


class EmbeddedServer:
    """A PostgreSQL that nobody had to install; `with` holds it running.

    `memory`: bytes that its caches are sized for, where it is started here; all of the machine's unless given.
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
        """Hold the server from now on, and start it if it does not run."""
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
        """Start the server if it does not answer; whoever starts it, it answers when this returns."""
        if answers(self.folder.sockets):
            return
        deadline = time.monotonic() + START_TIMEOUT
        with _lock(self.folder.start_lock, fcntl.LOCK_EX, deadline):
            while not answers(self.folder.sockets):
                if time.monotonic() > deadline:
                    raise Unavailable(
                        "the embedded PostgreSQL does not start",
                        why=f"nothing answered within {START_TIMEOUT:.0f} seconds",
                        next=f"read {self.folder.log}, then try again",
                    )
                # A holder that finds another one at work leaves at once: that one is starting or stopping the server.
                # One that was killed is replaced.
                if not start_holder(self.folder, deadline, self._memory):
                    time.sleep(POLL)

    def release(self) -> None:
        """Let go; the holder stops the server when nobody holds it."""
        if self._users is not None:
            self._users.close()
            self._users = None

    @property
    def url(self) -> str:
        """The owner's address; the server knows the caller by its account, not by a password."""
        return f"postgresql://{OWNER}@/{DATABASE}?host={quote(str(self.folder.sockets), safe='/')}"


def start_holder(folder: DataFolder, deadline: float, memory: int | None = None) -> bool:
    """Start a holder and wait until it has the server running; False when another one is there, or it was killed."""
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
        code = process.wait()  # the holder detaches itself at once and goes on in a process of its own
        ready, _, _ = select.select([answer], [], [], max(0.0, deadline - time.monotonic()))
        line = answer.readline() if ready else b""
    if ready and not line and code <= 0:
        return False
    if not line:
        raise Unavailable(
            "the embedded PostgreSQL does not start",
            why="its holder process ended without a word" if ready else "its holder process did not report in time",
            next=f"read {folder.log}",
        )
    report = json.loads(line)
    if "code" in report:
        kind: type[HoldfastError] = next(
            (k for k in (DataFolderUnusable, Unavailable) if k.code == report["code"]), Broken
        )
        raise kind(report["what"], why=report["why"], next=report["next"])
    return bool(report["running"])


def answers(sockets: Path) -> bool:
    """Whether a server takes connections in this folder: running means answering, never that a pid exists."""
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
    # An error is an answer too, but for "starting up" and "shutting down".
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
                    f"{path} stays locked",
                    why=f"another process has been starting or stopping the server for {START_TIMEOUT:.0f} seconds",
                    next=f"read {path.with_name('postgres.log')}; end the process that holds it",
                ) from None
            time.sleep(POLL)
