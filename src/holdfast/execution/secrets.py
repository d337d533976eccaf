"""Secrets: what back ends are shown and nobody else. They are stored sealed, and opened for one call at a time."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address

from holdfast.core.errors import Broken, InvalidInput, NotFound, TooLarge, Unavailable
from holdfast.core.text import restore, store
from holdfast.execution.sealing import SealingKey
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
    """A secret, opened. It does not show itself."""

    value: str
    hosts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Secret(…)"

    def allows(self, host: str) -> bool:
        """Whether it may be sent to a host: to any, where none is named; `*.example.com` stands for all below it."""
        named = host.lower().strip("[]").rstrip(".")
        return not self.hosts or any(_covers(each, named) for each in self.hosts)


@dataclass(frozen=True, slots=True)
class KnownSecret:
    """That there is a secret, and not what it is. `usable`: it was sealed with the key of this engine."""

    name: str
    hosts: tuple[str, ...]
    usable: bool
    version: int
    created_at: datetime
    updated_at: datetime
    updated_by: str


class Secrets:
    """Stores and opens the secrets of one tenant; `key` is what the key that seals them is derived from."""

    def __init__(self, database: Database, key: bytes) -> None:
        self._database = database
        self._key = SealingKey(key)

    async def set(self, name: str, value: str, *, hosts: Iterable[str] = (), by: str = "") -> KnownSecret:
        """Store a secret, or another value for it; with `hosts` it is sent to these only (see `Secret.allows`)."""
        _check_name(name)
        _check_value(name, value)
        allowed = checked_hosts(hosts)
        sealed = self._key.seal(value, about=await self._about(name))
        row = await self._database.one(sql("set_secret"), name, sealed, self._key.id, list(allowed), store(by)[:MAX_BY])
        assert row is not None
        return self._known(row)

    async def list(self) -> list[KnownSecret]:
        """The secrets by name: for which hosts they are, and who set them when."""
        return [self._known(row) for row in await self._database.all(sql("secrets"))]

    async def remove(self, name: str, *, by: str = "") -> None:
        """Remove a secret."""
        found = _NAME.fullmatch(name) and await self._database.value(sql("remove_secret"), name, store(by)[:MAX_BY])
        if not found:
            raise NotFound(f"there is no secret {name[:126]!r}", next="List them.")

    async def values(self, names: Collection[str]) -> Mapping[str, Secret]:
        """Those of these secrets that there are, opened. Keep them no longer than the call that they are for."""
        rows = await self._database.all(sql("sealed_secrets"), [name for name in names if _NAME.fullmatch(name)])
        return {row["name"]: await self._opened(row) for row in rows}

    async def _opened(self, row: Row) -> Secret:
        name: str = row["name"]
        if row["key_id"] != self._key.id:
            raise Unavailable(
                f"the secret {name} cannot be opened",
                why="it was sealed with another key",
                next="Set execution.secret_key, or else the installation's secret, to what it was then; "
                "or set the secret anew.",
            )
        try:
            return Secret(self._key.open(row["sealed"], about=await self._about(name)), tuple(row["hosts"]))
        except Broken as error:
            raise Broken(f"the secret {name} cannot be opened", why=error.why, next="Set it anew.") from None

    async def _about(self, name: str) -> str:
        return f"{await self._database.tenant()}/{name}"

    def _known(self, row: Row) -> KnownSecret:
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
    """Hosts as they are compared; InvalidInput where one is none."""
    if isinstance(hosts, str):
        raise InvalidInput("the hosts of a secret are a list", why="this is one text", next="Give a list of names.")
    found = tuple(dict.fromkeys(_host(each) for each in hosts))
    if len(found) > MAX_HOSTS:
        raise TooLarge(f"a secret is for at most {MAX_HOSTS} hosts", why=f"{len(found)} were given", next="Name fewer.")
    return found


def _host(host: object) -> str:
    named = host.lower().strip("[]").rstrip(".") if isinstance(host, str) else ""
    try:
        return ip_address(named).compressed
    except ValueError:
        pass
    if len(named) > 253 or not _HOST.fullmatch(named):
        raise InvalidInput(
            f"a secret cannot be for the host {host!r:.100}",
            why="it is a name or an address, without scheme, port and path",
            next="Give hosts such as api.example.com, or *.example.com for all below it.",
        )
    return named


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
            f"a secret cannot be called {name!r:.150}",
            next="Use up to 126 letters, digits, dots, underscores and hyphens; the first is a letter or a digit.",
        )


def _check_value(name: str, value: object) -> None:
    """Nothing of the value is told, whatever is wrong with it."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"the secret {name} has no value", why="it is empty, or no text", next="Give a text.")
    if _UNUSABLE.search(value):
        raise InvalidInput(f"the secret {name} cannot be stored", why="it has a NUL, or half a character, in it")
    size = len(value.encode())
    if size > MAX_VALUE_BYTES:
        raise TooLarge(
            f"the secret {name} is too large",
            why=f"it has {size} bytes, at most {MAX_VALUE_BYTES} are taken",
            next="Store what is large elsewhere, and its key here.",
            size=size,
            limit=MAX_VALUE_BYTES,
        )
