"""The installation's secret: the key of API keys' hashes, and the source of the passwords of tenants' logins."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from holdfast.core.errors import DataFolderUnusable


def installation_secret(given: str | None, file: Path) -> bytes:
    """Return the secret from the settings, otherwise the one in `file`, which is created the first time.

    Nodes that share a database must share the secret. Otherwise a node rejects the keys that another node created.
    """
    if given is not None:
        return given.encode()
    try:
        return _read(file)
    except FileNotFoundError:
        return _make(file)
    except OSError as error:
        raise _unusable_error(file, error) from error


def present_secret(given: str | None, file: Path) -> bytes | None:
    """Return the secret from the settings, otherwise the one in `file`; None if there is none yet."""
    return installation_secret(given, file) if given is not None or file.exists() else None


def keep_secret(secret: bytes, file: Path) -> None:
    """Write a restored secret to `file`, which must not exist."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
            handle.write(secret + b"\n")
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        raise _unusable_error(file, error) from error


def _read(file: Path) -> bytes:
    secret = file.read_bytes().strip()
    if not secret:  # anyone could derive the passwords
        raise DataFolderUnusable(
            f"the secret file {file} is empty",
            why="API keys and the passwords of tenants are derived from it",
            next="Restore its content. If it is lost, remove the file: the engine generates a new secret, and you "
            "create new keys.",
        )
    return secret


def _make(file: Path) -> bytes:
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
            handle.write(secrets.token_hex(32) + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        with suppress(FileExistsError):
            os.link(draft, file)  # the first process wins, and no process ever reads half a secret
        return _read(file)
    except OSError as error:
        raise _unusable_error(file, error) from error
    finally:
        draft.unlink(missing_ok=True)


def _unusable_error(file: Path, error: OSError) -> DataFolderUnusable:
    return DataFolderUnusable(
        f"the secret file {file} cannot be read or created",
        why=str(error.strerror),
        next="Correct its permissions, or set HOLDFAST_SECRET_FILE.",
    )
