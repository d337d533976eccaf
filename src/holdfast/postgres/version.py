"""The versions of PostgreSQL and pgvector that this program works with."""

from pathlib import Path

from holdfast.core.errors import DataFolderUnusable, HoldfastError, Unavailable
from holdfast.postgres.binaries import MAJOR

OLDEST_SERVER = 160000
OLDEST_VECTOR = (0, 8)


def check_version(cluster: Path) -> None:
    """Raise DataFolderUnusable if another major version of PostgreSQL wrote the data."""
    try:
        written_by = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return
    if written_by != str(MAJOR):
        raise DataFolderUnusable(
            f"PostgreSQL {written_by} wrote the data in {cluster}, and this program contains PostgreSQL {MAJOR}",
            why="major versions have different file formats",
            next="Run `holdfast db backup FILE` with the holdfast release that wrote it, then `holdfast db restore "
            "FILE` with this one and a new --data folder. The old folder is unchanged.",
        )


def check_server(version: int, vector: str | None) -> None:
    """Raise Unavailable if the server or `vector`, the newest pgvector that it offers, is too old or missing."""
    if version < OLDEST_SERVER:
        raise _too_old(f"PostgreSQL {version // 10000} is too old", "holdfast needs PostgreSQL 16 or later")
    if vector is None:
        raise _too_old("the server has no pgvector", "the extension `vector` is not installed on the server")
    if tuple(int(part) for part in vector.split(".")[:2]) < OLDEST_VECTOR:
        raise _too_old(f"pgvector {vector} is too old", "holdfast needs pgvector 0.8 or later")


def _too_old(what: str, why: str) -> HoldfastError:
    return Unavailable(what, why=why, next="Upgrade it, or unset HOLDFAST_DATABASE_URL to use the embedded server.")
