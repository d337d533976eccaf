"""Rules for the locked dependencies."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def unhashed_pins(root: Path) -> list[str]:
    """Every line of every lock is one version with its hashes."""
    return [
        f"{lock.relative_to(root).as_posix()}: {line.split()[0]} is not pinned by hash; run `make lock`"
        for lock in _locks(root)
        for line in _entries(lock)
        if not re.match(r"[\w.-]+==\S+ .*--hash=sha256:", line)
    ]


def stale_locks(root: Path) -> list[str]:
    """The locks hold a version that fits, for every dependency that is asked for."""
    wanted = {"base": _runtime(root) + _asked(root, "base")}
    wanted["dev"] = wanted["base"] + _asked(root, "dev")
    return [
        f"requirements/{name}.txt: holds no version that fits {requirement}; run `make lock`"
        for name, requirements in wanted.items()
        for requirement in requirements
        if not _fits(requirement, _pins(root / "requirements" / f"{name}.txt"))
    ]


def _fits(requirement: Requirement, pins: dict[str, str]) -> bool:
    version = pins.get(canonicalize_name(requirement.name))
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _locks(root: Path) -> list[Path]:
    return sorted((root / "requirements").glob("*.txt"))


def _entries(lock: Path) -> list[str]:
    joined = lock.read_text("utf-8").replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _pins(lock: Path) -> dict[str, str]:
    pairs = (line.split()[0].partition("==") for line in _entries(lock))
    return {canonicalize_name(name): version for name, _, version in pairs}


def _runtime(root: Path) -> list[Requirement]:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return [Requirement(line) for line in project["dependencies"]]


def _asked(root: Path, name: str) -> list[Requirement]:
    return [Requirement(line) for line in _entries(root / "requirements" / f"{name}.in")]
