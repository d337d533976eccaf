"""The installation's secret in backups: sealed by a passphrase, or left out with a warning."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.access.backup_secrets import INSTALLATION, append_secrets, read_secrets
from holdfast.core.config import load_config
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.engine import open_engine
from tests.cli.program import Program

pytestmark = pytest.mark.req("SAFE-05")

PASSPHRASE = "correct horse battery"
VALUE = "sk-of-the-back-end"


@pytest.fixture
def backup(prepared: Program) -> Path:
    """A backup with the secret, of an installation with a key and a sealed secret."""
    prepared("secrets", "set", "token", typed=VALUE)
    words = prepared.folder / "passphrase"
    words.write_text(PASSPHRASE + "\n")
    file = prepared.folder / f"{uuid4().hex}.backup"
    done = prepared("db", "backup", str(file), "--passphrase-file", str(words))
    assert done.code == 0, done.stderr
    assert "secret is in it" in done.stderr
    return file


async def opened(data: Path) -> str:
    """The secret of a back end, as a call would get it."""
    config = load_config({"data": data, "memory.embedding.fetch": False}, environ={}, cwd=data)
    async with open_engine(config=config) as engine:
        return (await engine.secrets.values(["token"]))["token"].value


async def test_a_sealed_secret_can_be_used_after_a_restore_into_a_new_folder(
    prepared: Program, backup: Path, tmp_path: Path
) -> None:
    key = prepared("keys", "create").stdout.strip()
    data = tmp_path / "new"

    done = prepared(
        *("db", "restore", str(backup), "--data", str(data), "--json"),
        environment={"HOLDFAST_BACKUP_PASSPHRASE": PASSPHRASE},
    )

    assert (done.code, done.json["missing"]) == (0, []), done.stderr
    assert (data / "secret").read_text() == (prepared.data / "secret").read_text()
    assert (data / "secret").stat().st_mode & 0o777 == 0o600
    assert await opened(data) == VALUE
    assert key  # made after the backup, so not in it


async def test_without_the_passphrase_a_restore_says_what_is_missing_and_what_to_do(
    prepared: Program, backup: Path, tmp_path: Path
) -> None:
    data = tmp_path / "new"

    done = prepared("db", "restore", str(backup), "--data", str(data))

    assert done.code == 0, done.stderr
    assert "secret is missing" in done.stderr
    assert str(data / "secret") in done.stderr
    assert not (data / "secret").exists()
    (data / "secret").write_bytes((prepared.data / "secret").read_bytes())  # what it says to do
    assert await opened(data) == VALUE


def test_a_wrong_passphrase_restores_nothing(prepared: Program, backup: Path, tmp_path: Path) -> None:
    data = tmp_path / "new"

    done = prepared(
        *("db", "restore", str(backup), "--data", str(data), "--json"),
        environment={"HOLDFAST_BACKUP_PASSPHRASE": "another one"},
    )

    assert (done.code, done.error["code"]) == (2, "invalid_input")
    assert not data.exists()


def test_another_secret_that_is_there_is_not_overwritten(prepared: Program, backup: Path, tmp_path: Path) -> None:
    data, environment = tmp_path / "new", {"HOLDFAST_BACKUP_PASSPHRASE": PASSPHRASE}
    data.mkdir(mode=0o700)
    (data / "secret").write_text("0" * 64)
    (data / "secret").chmod(0o600)

    refused = prepared("db", "restore", str(backup), "--data", str(data), "--json", environment=environment)
    kept = prepared(
        "db", "restore", str(backup), "--data", str(data), "--json", "--keep-secret", environment=environment
    )

    assert (refused.code, refused.error["code"]) == (5, "already_exists")
    assert "--keep-secret" in refused.error["next"]
    assert (kept.code, kept.json["missing"]) == (0, ["secret"])
    assert (data / "secret").read_text() == "0" * 64


def test_a_backup_without_a_passphrase_warns_and_has_no_secret(prepared: Program) -> None:
    prepared("keys", "create")
    file = prepared.folder / f"{uuid4().hex}.backup"

    done = prepared("db", "backup", str(file))

    assert "secret is NOT in it" in done.stderr
    assert (prepared.data / "secret").read_text().strip().encode() not in file.read_bytes()
    found = read_secrets(file)
    assert found is not None
    assert found.encrypted is None
    assert list(found.digests) == [INSTALLATION]


def test_a_short_passphrase_is_refused_before_anything_is_written(prepared: Program) -> None:
    file = prepared.folder / f"{uuid4().hex}.backup"

    done = prepared("db", "backup", str(file), environment={"HOLDFAST_BACKUP_PASSPHRASE": "short"})

    assert (done.code, file.exists()) == (2, False)


def test_a_changed_backup_does_not_open(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"PGDMP")
    append_secrets(file, {"secret": b"s" * 64, "execution.secret_key": None}, PASSPHRASE)
    found = read_secrets(file)
    assert found is not None
    assert found.encrypted is not None
    assert found.decrypt(PASSPHRASE) == {"secret": b"s" * 64}
    assert b"s" * 8 not in file.read_bytes()

    file.write_bytes(file.read_bytes().replace(json.dumps(found.encrypted["body"]).encode()[:6], b'"AAAAA'))

    changed = read_secrets(file)
    assert changed is not None
    with pytest.raises(HoldfastError):
        changed.decrypt(PASSPHRASE)


@pytest.mark.parametrize("text", [b"", b"PGDMP", b"\xff" * 8 + b"holdfast-secrets-1\n", b"{}" + (2).to_bytes(8)])
def test_a_file_that_says_nothing_of_secrets_says_nothing(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(text)

    assert read_secrets(file) is None
    with pytest.raises(InvalidInput):
        append_secrets(file, {}, "short")
