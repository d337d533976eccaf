"""The installation's secrets in `holdfast db backup` and `holdfast db restore`."""

import os
import sys
from pathlib import Path

from holdfast.access.backup_secrets import INSTALLATION, SEALING, BackupSecrets, read_secrets
from holdfast.access.secret import keep_secret, present_secret
from holdfast.core.config import Config
from holdfast.core.errors import AlreadyExists, InvalidInput
from holdfast.postgres.folder import DataFolder

VARIABLE = "HOLDFAST_BACKUP_PASSPHRASE"
LOST = {
    INSTALLATION: "The installation's secret is missing: keys that were made before are not recognised, and secrets of "
    "back ends cannot be read. Bring the file `secret` of the old data folder to {} before the first start, or set "
    "HOLDFAST_SECRET_FILE; else make new keys and set the secrets anew.",
    SEALING: "Secrets of back ends are sealed with execution.secret_key, which is missing or another one here: set "
    "HOLDFAST_EXECUTION__SECRET_KEY_FILE to the one from before, or set the secrets anew.",
}


def installation_secrets(config: Config) -> dict[str, bytes | None]:
    """Return the secrets that protect rows of this installation, by name; None for a missing one."""
    given = config.secret.get_secret_value() if config.secret else None
    sealing = config.execution.secret_key
    return {
        INSTALLATION: present_secret(given, DataFolder(config.data).secret),
        SEALING: sealing.get_secret_value().encode() if sealing else None,
    }


def read_passphrase(file: Path | None, *, ask: bool, again: bool = False) -> str | None:
    """Read the passphrase from the file, the environment or the terminal, in this order; None if there is none."""
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{file} cannot be read", why=str(error), next="Name a file with one line.") from error
    if VARIABLE in os.environ:
        return os.environ[VARIABLE] or None
    if not ask or not sys.stdin.isatty():
        return None
    from getpass import getpass

    passphrase = getpass("Passphrase for the installation's secret (empty: without it): ")
    if passphrase and again and getpass("Once more: ") != passphrase:
        raise InvalidInput("the two passphrases differ", next="Try again.")
    return passphrase or None


class RestoredSecrets:
    """Restores the secrets of a backup and reports which are missing."""

    def __init__(self, config: Config, file: Path, *, keep: bool) -> None:
        self._config = config
        self._folder = DataFolder(config.data)
        self._backup = read_secrets(file) or BackupSecrets({})
        self._own = keep
        self._found: dict[str, bytes] = {}
        self.messages: list[str] = []

    @property
    def wanted(self) -> bool:
        """Whether the backup has secrets that this installation lacks."""
        present = installation_secrets(self._config)
        return not self._own and self._backup.encrypted is not None and bool(self._backup.missing(present))

    def open(self, passphrase: str | None) -> None:
        """Decrypt the secrets of the backup before anything is restored. Refuse to replace an existing secret."""
        if passphrase is None:
            return
        self._found = self._backup.decrypt(passphrase)
        present = installation_secrets(self._config)[INSTALLATION]
        if present is not None and present != self._found.get(INSTALLATION, present):
            raise AlreadyExists(
                "this installation has another secret than the backup",
                why="replacing it would make the keys and secrets of this installation unreadable",
                next=f"Restore into a new --data folder, remove {self._folder.secret}, or keep it with --keep-secret.",
            )

    def keep(self) -> None:
        """Store the secrets that this installation lacks."""
        secret, sealing = self._found.get(INSTALLATION), self._found.get(SEALING)
        present = installation_secrets(self._config)
        if secret is not None and present[INSTALLATION] is None:
            keep_secret(secret, self._folder.secret)
            self.messages.append(f"The installation's secret is in {self._folder.secret}.")
        if sealing is not None and present[SEALING] != sealing:
            file = self._folder.root / "execution_secret_key"
            keep_secret(sealing, file)
            message = f"Set HOLDFAST_EXECUTION__SECRET_KEY_FILE={file}: secrets of back ends are sealed with it."
            self.messages.append(message)

    def missing(self) -> list[tuple[str, str]]:
        """List the secrets that rows need and that are missing, each with a remedy."""
        names = self._backup.missing(installation_secrets(self._config))
        if not self._backup.digests and installation_secrets(self._config)[INSTALLATION] is None:
            names = [INSTALLATION]  # backups of earlier releases have no digests
        available = {SEALING} if SEALING in self._found else set[str]()
        return [(name, LOST[name].format(self._folder.secret)) for name in names if name not in available]
