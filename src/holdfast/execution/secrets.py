"""Secrets: credentials for back ends. They are stored encrypted, and decrypted for one call at a time."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address

from holdfast.core.errors import Broken, InvalidInput, NotFound, TooLarge, Unavailable
from holdfast.core.text import restore, store
from holdfast.execution.encryption import EncryptionKey
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

MAX_VALUE_BYTES = 64 * 1024
MAX_HOSTS = 100
MAX_BY = 126

sql = statements(__name__)

NAME = r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,125}"
HOST_NAME = r"(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(NAME)
_HOST = re.compile(HOST_NAME)
_UNUSABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A decrypted secret. Its repr does not show the value."""

    value: str
    hosts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Secret(…)"

    def allows(self, host: str) -> bool:
        """Whether it may be sent to a host. Without `hosts`, any host is allowed; `*.example.com` is all subdomains."""
        host_name = host.lower().strip("[]").rstrip(".")
        return not self.hosts or any(_covers(each, host_name) for each in self.hosts)


@dataclass(frozen=True, slots=True)
class KnownSecret:
    """A secret without its value. `usable`: it was encrypted with this engine's key."""

    name: str
    hosts: tuple[str, ...]
    usable: bool
    version: int
    created_at: datetime
    updated_at: datetime
    updated_by: str


class Secrets:
    """Stores and decrypts the secrets of one tenant. The encryption key is derived from `key`."""

    def __init__(self, database: Database, key: bytes) -> None:
        self._database = database
        self._key = EncryptionKey(key)

    async def set(self, name: str, value: str, *, hosts: Iterable[str] = (), by: str = "") -> KnownSecret:
        """Create a secret or replace its value. With `hosts`, it is sent only to these (see `Secret.allows`)."""
        _check_name(name)
        _check_value(name, value)
        allowed = checked_hosts(hosts)
        sealed = self._key.seal(value, about=await self._about(name))
        row = await self._database.one(sql("set_secret"), name, sealed, self._key.id, list(allowed), store(by)[:MAX_BY])
        assert row is not None
        return self._describe(row)

    async def list(self) -> list[KnownSecret]:
        """List the secrets by name: their hosts, and who set them and when."""
        return [self._describe(row) for row in await self._database.all(sql("secrets"))]

    async def remove(self, name: str, *, by: str = "") -> None:
        """Remove a secret."""
        found = _NAME.fullmatch(name) and await self._database.value(sql("remove_secret"), name, store(by)[:MAX_BY])
        if not found:
            raise NotFound(
                f"the secret {name[:126]!r} does not exist", next="List the secrets with `holdfast secrets ls`."
            )

    async def values(self, names: Collection[str]) -> Mapping[str, Secret]:
        """Return those of these secrets that exist, decrypted. Keep them no longer than the call that needs them."""
        rows = await self._database.all(sql("sealed_secrets"), [name for name in names if _NAME.fullmatch(name)])
        return {row["name"]: await self._decrypt(row) for row in rows}

    async def _decrypt(self, row: Row) -> Secret:
        name: str = row["name"]
        if row["key_id"] != self._key.id:
            raise Unavailable(
                f"the secret {name} cannot be decrypted",
                why="it was encrypted with another key",
                next="Restore the earlier value of execution.secret_key, or of the installation's secret; "
                "or set the secret again.",
            )
        try:
            return Secret(self._key.open(row["sealed"], about=await self._about(name)), tuple(row["hosts"]))
        except Broken as error:
            raise Broken(f"the secret {name} cannot be decrypted", why=error.why, next="Set it again.") from None

    async def _about(self, name: str) -> str:
        return f"{await self._database.tenant()}/{name}"

    def _describe(self, row: Row) -> KnownSecret:
        return KnownSecret(
            row["name"],
            tuple(row["hosts"]),
            row["key_id"] == self._key.id,
            row["aggregate_version"],
            row["created_at"],
            row["update_ts"],
            restore(row["update_user"]),
        )


def checked_hosts(hosts: Iterable[str]) -> tuple[str, ...]:
    """Return hosts in normalized form, without duplicates. Raise InvalidInput for an invalid one."""
    if isinstance(hosts, str):
        raise InvalidInput(
            "the hosts of a secret are not a list", why="they are a single string", next="Pass a list of names."
        )
    found = tuple(dict.fromkeys(_host(each) for each in hosts))
    if len(found) > MAX_HOSTS:
        raise TooLarge(
            f"a secret can have at most {MAX_HOSTS} hosts", why=f"{len(found)} were given", next="Use fewer hosts."
        )
    return found


def _host(host: object) -> str:
    host_name = host.lower().strip("[]").rstrip(".") if isinstance(host, str) else ""
    try:
        return ip_address(host_name).compressed
    except ValueError:
        pass
    if len(host_name) > 253 or not _HOST.fullmatch(host_name):
        raise InvalidInput(
            f"{host!r:.100} is not a valid host for a secret",
            why="a host is a name or an address, without scheme, port and path",
            next="Use hosts such as api.example.com, or *.example.com for all subdomains.",
        )
    return host_name


def _covers(allowed: str, host: str) -> bool:
    if allowed.startswith("*."):
        return host.endswith(allowed[1:]) and len(host) >= len(allowed)
    try:
        return allowed == ip_address(host).compressed
    except ValueError:
        return allowed == host


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r:.150} is not a valid name for a secret",
            next="Use up to 126 letters, digits, dots, underscores and hyphens; the first is a letter or a digit.",
        )


def _check_value(name: str, value: object) -> None:
    """Check the value of a secret. No error quotes it."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"the secret {name} has no value", why="it is empty, or not a string", next="Pass a string.")
    if _UNUSABLE.search(value):
        raise InvalidInput(f"the secret {name} cannot be stored", why="it contains a NUL or a lone surrogate")
    size = len(value.encode())
    if size > MAX_VALUE_BYTES:
        raise TooLarge(
            f"the secret {name} is too large",
            why=f"it has {size} bytes, the limit is {MAX_VALUE_BYTES}",
            next="Store large data elsewhere, and only its key here.",
            size=size,
            limit=MAX_VALUE_BYTES,
        )
