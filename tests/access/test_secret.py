import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.access.secret import installation_secret
from holdfast.core.errors import DataFolderUnusable
from tests.processes import Processes

pytestmark = pytest.mark.req("SAFE-03")

MAKE = """
import sys
from pathlib import Path
from holdfast.access.secret import installation_secret
gate = Path(sys.argv[2]).open("rb")
print("ready", flush=True)
gate.read()  # until the test closes its end: then all go on at once
print("secret", installation_secret(None, Path(sys.argv[1])).decode(), flush=True)
"""


def test_a_secret_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "data" / "secret"

    first = installation_secret(None, file)
    second = installation_secret(None, file)

    assert first == second
    assert len(first) == 64
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["secret"]


def test_a_given_secret_comes_first_and_no_file_is_made(tmp_path: Path) -> None:
    assert installation_secret("given", tmp_path / "secret") == b"given"
    assert list(tmp_path.iterdir()) == []


def test_processes_that_make_it_at_once_agree(tmp_path: Path, processes: Processes) -> None:
    file, gate = tmp_path / "data" / "secret", tmp_path / "gate"
    os.mkfifo(gate)
    held = os.open(gate, os.O_RDWR)
    started = [processes.start("-c", MAKE, str(file), str(gate)) for _ in range(6)]
    for process in started:
        process.wait_for("ready")

    os.close(held)
    secrets = {process.stdout for process in started if process.wait() == 0}

    assert len(secrets) == 1
    assert file.read_text().strip() in secrets.pop()
    assert [path.name for path in file.parent.iterdir()] == ["secret"]


@pytest.mark.parametrize("content", ["", "\n", "  \n"])
def test_an_empty_secret_is_refused_for_everyone_could_derive_from_it(tmp_path: Path, content: str) -> None:
    file = tmp_path / "secret"
    file.write_text(content)

    with pytest.raises(DataFolderUnusable, match="is empty"):
        installation_secret(None, file)

    assert file.read_text() == content


def test_what_a_killed_process_left_behind_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / f".secret.{os.getpid()}").write_text("half a sec")

    assert len(installation_secret(None, tmp_path / "secret")) == 64


@contextmanager
def as_someone_else() -> Generator[None]:
    """Root reads everything: what is closed to others is tested as one of them."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_secret_that_cannot_be_read_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    installation_secret(None, file)
    file.chmod(0)

    with as_someone_else(), pytest.raises(DataFolderUnusable, match="cannot be read or created") as refused:
        installation_secret(None, file)

    assert "HOLDFAST_SECRET_FILE" in refused.value.next


def test_a_secret_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in the way")

    with pytest.raises(DataFolderUnusable, match="cannot be read or created"):
        installation_secret(None, tmp_path / "data" / "secret")
