"""Someone without privileges: tests that root runs must see what everybody else sees."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Ordinary:
    """An account without privileges, and a Python that it can run."""

    uid: int
    gid: int
    python: str
    environment: Mapping[str, str]

    def run(self, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a Python program to its end."""
        whoever: dict[str, Any] = {"user": self.uid, "group": self.gid, "extra_groups": ()}
        return subprocess.run(
            [self.python, *arguments],
            cwd="/",
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            **(whoever if os.geteuid() == 0 else {}),
        )

    def own(self, folder: Path) -> Path:
        """Give it a folder."""
        os.chown(folder, self.uid, self.gid)
        return folder

    def works(self) -> bool:
        """Whether it can run our programs."""
        try:
            return self.run("-c", "import holdfast.engine").returncode == 0
        except PermissionError:
            return False


def find_ordinary() -> Ordinary | None:
    """The caller, or for root the account nobody with the first Python that it can reach."""
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {"PATH": os.defpath, "HOME": "/", "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    account = pwd.getpwuid(os.geteuid()) if os.geteuid() else pwd.getpwnam("nobody")
    same_version = shutil.which(f"python3.{sys.version_info.minor}", path=os.defpath)
    for python in filter(None, (sys.executable, same_version)):
        found = Ordinary(account.pw_uid, account.pw_gid, python, environment)
        if found.works():
            return found
    return None
