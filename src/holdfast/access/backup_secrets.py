"""The installation's secrets in a backup: encrypted with a passphrase at the end of the file, or left out.

After the dump of the database, the file has one line of JSON, its length and a mark. The line contains digests of the
secrets that the rows were written under, so a restore can report which secrets are missing. With a passphrase, it also
contains the encrypted secrets.
"""

import hashlib
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from holdfast.core.errors import InvalidInput

MARK: Final = b"holdfast-secrets-1\n"
LENGTH: Final = 8  # bytes of the length before the mark
LARGEST: Final = 65_536  # bytes of the line, at most
LEAST: Final = 8  # characters of a passphrase, at least
COST: Final = 2**15  # `n` of scrypt: each guess takes 32 MB and a tenth of a second

INSTALLATION: Final = "secret"
SEALING: Final = "execution.secret_key"


@dataclass(frozen=True, slots=True)
class BackupSecrets:
    """The secrets of a backup: the digests of those that its rows need, by name, and the encrypted secrets, if any."""

    digests: Mapping[str, str]
    encrypted: Mapping[str, str] | None = field(default=None, repr=False)

    def missing(self, present: Mapping[str, bytes | None]) -> list[str]:
        """Return the names of the secrets that rows need and that this installation does not have."""
        return [name for name, digest in self.digests.items() if digest_of(present.get(name)) != digest]

    def decrypt(self, passphrase: str) -> dict[str, bytes]:
        """Decrypt the secrets; return them by name."""
        if self.encrypted is None:
            raise InvalidInput(
                "the backup contains no secrets",
                why="it was written without a passphrase",
                next="Omit the passphrase, and copy the file `secret` from the old data folder.",
            )
        salt, nonce, body = (b64decode(self.encrypted[name]) for name in ("salt", "nonce", "body"))
        try:
            found = json.loads(AESGCM(_key(passphrase, salt)).decrypt(nonce, body, MARK))
        except InvalidTag:
            raise InvalidInput(
                "the passphrase does not decrypt the secrets of this backup",
                why="the passphrase is wrong, or the file was changed",
                next="Use the passphrase of the backup. Nothing was restored.",
            ) from None
        return {name: value.encode("latin-1") for name, value in found.items()}


def digest_of(secret: bytes | None) -> str | None:
    """Return a digest that identifies a secret and reveals nothing of it."""
    if secret is None:
        return None
    return hashlib.sha256(b"holdfast backup digest" + hashlib.sha256(secret).digest()).hexdigest()[:32]


def append_secrets(file: Path, secrets: Mapping[str, bytes | None], passphrase: str | None) -> None:
    """Append to a backup the digests of the secrets, and with a passphrase the encrypted secrets."""
    given = {name: value for name, value in secrets.items() if value is not None}
    content: dict[str, Any] = {"digests": {name: digest_of(value) for name, value in given.items()}}
    if passphrase is not None:
        check_passphrase(passphrase)
        salt, nonce = os.urandom(16), os.urandom(12)
        plain = json.dumps({name: value.decode("latin-1") for name, value in given.items()}).encode()
        body = AESGCM(_key(passphrase, salt)).encrypt(nonce, plain, MARK)
        parts = {"salt": salt, "nonce": nonce, "body": body}
        content["sealed"] = {name: b64encode(value).decode() for name, value in parts.items()}
    line = json.dumps(content).encode()
    with file.open("ab") as handle:
        handle.write(line + len(line).to_bytes(LENGTH) + MARK)
        handle.flush()
        os.fsync(handle.fileno())


def read_secrets(file: Path) -> BackupSecrets | None:
    """Return the secrets of a backup; None if it has no such line, like backups of earlier releases."""
    try:
        with file.open("rb") as handle:
            size, end = handle.seek(0, os.SEEK_END), len(MARK) + LENGTH
            handle.seek(max(0, size - end))
            tail = handle.read()
            length = int.from_bytes(tail[:LENGTH])
            if tail[LENGTH:] != MARK or length > min(LARGEST, size - end):
                return None
            handle.seek(size - end - length)
            content = json.loads(handle.read(length))
        return BackupSecrets(content["digests"], content.get("sealed"))
    except (OSError, ValueError, KeyError):
        return None


def check_passphrase(passphrase: str) -> None:
    """Raise InvalidInput if a passphrase is too short."""
    if len(passphrase) < LEAST:
        raise InvalidInput(
            "the passphrase is too short", why=f"it has fewer than {LEAST} characters", next="Use several words."
        )


def _key(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=COST, r=8, p=1).derive(passphrase.encode())
