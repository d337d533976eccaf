"""What a data folder holds, for tests that look at it from outside."""

import asyncio
import hashlib
import stat
from pathlib import Path

from holdfast.core.ids import identity_id
from holdfast.engine import open_engine


def fingerprint(folder: Path) -> dict[str, str]:
    """Every name below a folder with its mode, owner and content: equal when nothing was changed."""
    found: dict[str, str] = {}
    for path in [folder, *folder.rglob("*")]:
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
        found[str(path.relative_to(folder))] = f"{status.st_mode:o} {status.st_uid} {status.st_gid} {content}"
    return found


def first_number(pid_file: Path) -> int:
    """The pid in the first line of a file."""
    return int(pid_file.read_text().split("\n", 1)[0])


def modes_above(folder: Path) -> list[str]:
    """Mode and owner of each folder on the way to this one."""
    return [f"{path} {path.stat().st_mode:o} {path.stat().st_uid}" for path in folder.parents]


def fill(data: Path) -> None:
    """Open the engine on the folder, and put an identity there."""
    asyncio.run(_fill(data))


def remembers(data: Path) -> bool:
    """Whether the engine opens on the folder and still has the identity that `fill` put there."""
    return asyncio.run(_remembers(data))


async def _fill(data: Path) -> None:
    async with open_engine(data=data) as engine:
        await engine.identities.id("user", "ann")


async def _remembers(data: Path) -> bool:
    async with open_engine(data=data) as engine:
        ann = identity_id(await engine.database.tenant(), "user", "ann")
        return await engine.identities.name("user", ann) == "ann"
