"""Data folders in every state, and someone without privileges."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.accounts import Ordinary, find_ordinary
from tests.acceptance.folders import fill
from tests.processes import servers_on, wait_until_gone


@pytest.fixture
def empty(fast_folder: Path) -> Iterator[Path]:
    """A place for a data folder; whatever works there must end with the test (ask for it before `processes`)."""
    place = Path(tempfile.mkdtemp(prefix="data-", dir=fast_folder))
    yield place / "data"
    wait_until_gone(*servers_on(place / "data"))
    shutil.rmtree(place)


@pytest.fixture(scope="session")
def prepared(fast_folder: Path) -> Path:
    """A data folder as a former run left it, to be copied."""
    return fast_folder / "prepared"


@pytest.fixture
def used(prepared: Path, empty: Path) -> Path:
    """A data folder as a former run left it, with one identity in it."""
    if not prepared.exists():
        fill(prepared)
        wait_until_gone(*servers_on(prepared))
    subprocess.run(["cp", "-a", prepared, empty], check=True)
    return empty


@pytest.fixture(scope="session")
def ordinary() -> Ordinary:
    """Someone without privileges."""
    found = find_ordinary()
    if found is None:
        complaint = "no Python that an ordinary account could run: what it would meet was not tried"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(complaint)
    return found


@pytest.fixture
def place(ordinary: Ordinary) -> Iterator[Path]:
    """A folder that belongs to someone without privileges."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-test-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield ordinary.own(folder)
    wait_until_gone(*servers_on(folder / "data"))
    shutil.rmtree(folder)
