"""API keys: they authenticate programs and browsers.

A key is shown once, when it is created. The database stores only a hash of it, keyed with the installation's secret, so
a stolen dump contains no usable key. One table holds three kinds: a `key` for programs, a one-time `link` for a person,
and the browser `session` that a link is exchanged for.
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Literal
from uuid import UUID

from holdfast.access.principals import OWNER_SCOPES, USER_SCOPES, Principal, check_scopes, ensure_principal
from holdfast.core.errors import InvalidInput, NotFound, Unauthenticated
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Postgres, Row, Transaction
from holdfast.postgres.sql import statements

Kind = Literal["key", "link", "session"]

PREFIX = "hf_"
MAX_NAME = 255
LINK_LIFETIME = timedelta(minutes=10)
SESSION_LIFETIME = timedelta(days=30)
CACHE_SECONDS = 0.5  # seconds for which a valid key is cached: a revocation takes effect within a second
MAX_CACHED_KEYS = 10_000

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its text."""

    id: UUID
    kind: Kind
    tenant: TenantId
    principal: str
    agent: str | None  # the agent that the holder speaks for
    label: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key and its text, which cannot be read again."""

    key: Key
    text: str


class Keys:
    """Creates, lists, revokes and verifies keys."""

    def __init__(self, postgres: Postgres, secret: bytes) -> None:
        self._postgres = postgres
        self._system = postgres.system
        self._secret = secret
        self._secret_id = hmac.new(secret, b"secret id", hashlib.sha256).hexdigest()[:16]
        self._known: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()
        self._any_exists = False
        self._checked_any_at = 0.0

    async def create(
        self,
        tenant: TenantId,
        principal: str,
        *,
        scopes: frozenset[str] | None = None,
        agent: str | None = None,
        label: str = "",
        lifetime: timedelta | None = None,
        kind: Kind = "key",
        tx: Transaction | None = None,
    ) -> NewKey:
        """Create a key for `principal`, or for an agent that speaks for them. Its text is not stored.

        Without `scopes`, the key gets an owner's scopes, or a user's scopes if it is an agent's.
        """
        if scopes is None:
            scopes = OWNER_SCOPES if agent is None else USER_SCOPES
        check_scopes(scopes)
        if agent is not None and not scopes <= USER_SCOPES:
            raise InvalidInput(
                "the key of an agent cannot have administrative scopes",
                why=f"it was given {', '.join(sorted(scopes - USER_SCOPES))}",
                next=f"Use only {' and '.join(sorted(USER_SCOPES))}.",
            )
        names = (principal,) if agent is None else (principal, agent)
        if "\0" in label or any(not name or len(name) > MAX_NAME or "\0" in name for name in names):
            raise InvalidInput(
                "the name of the key's user or agent is invalid",
                why=f"it is empty, has more than {MAX_NAME} characters or contains NUL",
                next="Name a user, and an agent if the key belongs to one.",
            )
        if lifetime is not None and lifetime <= timedelta():
            raise InvalidInput("the lifetime of the key is not positive", next="Use a lifetime above zero.")
        text = PREFIX + secrets.token_urlsafe(32)
        if kind == "key":
            await ensure_principal(self._postgres.tenant(tenant), principal, owner="admin" in scopes)
        row = await (tx or self._system).one(
            sql("create_key"),
            self._hash(text),
            kind,
            tenant,
            principal,
            agent,
            label,
            sorted(scopes),
            self._secret_id,
            lifetime,
        )
        assert row is not None
        return NewKey(_key(row), text)

    async def list(self, tenant: TenantId) -> list[Key]:
        """Return the tenant's keys, newest first, including revoked ones, and its active browser sessions."""
        return [_key(row) for row in await self._system.all(sql("keys_of_tenant"), tenant)]

    async def revoke(self, tenant: TenantId, id: UUID) -> Key:
        """Revoke a key. Every use of it ends within a second."""
        row = await self._system.one(sql("revoke_key"), tenant, id)
        if row is None:
            raise NotFound(f"the key {id} does not exist", next="List the keys with `holdfast keys ls`.")
        self._known.clear()
        return _key(row)

    async def authenticate(self, text: str) -> Principal:
        """Return the principal of a valid key or browser session. Raises Unauthenticated for anything else."""
        hash = self._hash(text)
        known = self._known.get(hash)
        if known is not None and monotonic() - known[0] < CACHE_SECONDS:
            return known[1]
        row = await self._system.one(sql("valid_key"), hash)
        if row is None:
            self._known.pop(hash, None)
            raise Unauthenticated(
                "the key is invalid",
                why="it is unknown, expired or revoked",
                next="Create one with `holdfast keys create`.",
            )
        principal = _principal(row)
        self._remember(hash, monotonic(), principal)
        return principal

    async def renew(self, texts: Collection[str]) -> None:
        """Check again whether keys are valid, in one statement, and cache the result for `authenticate`."""
        hashes = [self._hash(text) for text in texts]
        found = {bytes(row["hash"]): _principal(row) for row in await self._system.all(sql("valid_keys"), hashes)}
        now = monotonic()
        for hash in hashes:
            if hash in found:
                self._remember(hash, now, found[hash])
            else:
                self._known.pop(hash, None)

    async def create_link(self, tenant: TenantId, principal: str, *, scopes: frozenset[str] | None = None) -> str:
        """Create a one-time link for a person's browser and return its text. The session gets the link's scopes."""
        await self._system.run(sql("forget_expired"))
        link = await self.create(
            tenant, principal, scopes=scopes, lifetime=LINK_LIFETIME, kind="link", label="browser link"
        )
        return link.text

    async def exchange_link(self, text: str) -> str:
        """Exchange a one-time link for a session and return the session's text. The link cannot be used again."""
        async with self._system.transaction() as tx:
            row = await tx.one(sql("use_link"), self._hash(text))
            if row is None:
                raise Unauthenticated(
                    "the link is invalid",
                    why="it was already used, or it has expired",
                    next="Create a new one with `holdfast keys link`.",
                )
            session = await self.create(
                TenantId(row["tenant_id"]),
                row["principal"],
                scopes=frozenset(row["scopes"]),
                lifetime=SESSION_LIFETIME,
                kind="session",
                label="browser session",
                tx=tx,
            )
        return session.text

    async def end_session(self, text: str) -> None:
        """End a browser session."""
        hash = self._hash(text)
        await self._system.run(sql("end_session"), hash)
        self._known.pop(hash, None)

    async def any_exists(self) -> bool:
        """Whether a key was ever created. The first one ends access without a key for good."""
        if not self._any_exists and monotonic() - self._checked_any_at >= CACHE_SECONDS:
            self._any_exists = bool(await self._system.value(sql("any_key")))
            self._checked_any_at = monotonic()
        return self._any_exists

    async def count_of_other_secrets(self) -> int:
        """Return the number of valid keys that were created under another secret, and so are never accepted."""
        return int(await self._system.value(sql("keys_of_other_secrets"), self._secret_id))

    def _remember(self, hash: bytes, now: float, principal: Principal) -> None:
        self._known[hash] = (now, principal)
        self._known.move_to_end(hash)
        if len(self._known) > MAX_CACHED_KEYS:
            self._known.popitem(last=False)

    def _hash(self, text: str) -> bytes:
        return hmac.new(self._secret, text.encode(errors="surrogatepass"), hashlib.sha256).digest()


def _principal(row: Row) -> Principal:
    tenant, scopes = TenantId(row["tenant_id"]), frozenset[str](row["scopes"])
    return Principal(tenant, row["principal"], scopes, row["agent"], key=row["id"])


def _key(row: Row) -> Key:
    return Key(
        id=row["id"],
        kind=row["kind"],
        tenant=TenantId(row["tenant_id"]),
        principal=row["principal"],
        agent=row["agent"],
        label=row["label"],
        scopes=tuple(row["scopes"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
    )
