"""Keys: how a program or a browser proves who it is.

A key is shown once, when it is made. The database holds only its hash, keyed with the installation's secret, so that a
stolen dump opens nothing. The same rows serve three kinds: a `key` for programs, a one-time `link` for a person, and
the `session` that link becomes in a browser.
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
REMEMBERED = 0.5  # seconds a key is taken without asking again: a revocation takes effect within a second
REMEMBERED_KEYS = 10_000

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Key:
    """What may be known of a key after it was made."""

    id: UUID
    kind: Kind
    tenant: TenantId
    principal: str
    agent: str | None  # that its holder speaks for
    label: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key and its text, which nobody can read again."""

    key: Key
    text: str


class Keys:
    """Makes, lists, revokes and recognises keys."""

    def __init__(self, postgres: Postgres, secret: bytes) -> None:
        self._postgres = postgres
        self._system = postgres.system
        self._secret = secret
        self._secret_id = hmac.new(secret, b"secret id", hashlib.sha256).hexdigest()[:16]
        self._known: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()
        self._any_made = False
        self._looked_for_any = 0.0

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
        """Make a key for `principal`, or for an agent that speaks for them; the text it returns is not kept anywhere.

        Without scopes it may do what an owner may, an agent's what a user may.
        """
        if scopes is None:
            scopes = OWNER_SCOPES if agent is None else USER_SCOPES
        check_scopes(scopes)
        if agent is not None and not scopes <= USER_SCOPES:
            raise InvalidInput(
                "an agent's key cannot administer",
                why=f"it would have {', '.join(sorted(scopes - USER_SCOPES))}",
                next=f"give it {' and '.join(sorted(USER_SCOPES))} at most",
            )
        names = (principal,) if agent is None else (principal, agent)
        if "\0" in label or any(not name or len(name) > MAX_NAME or "\0" in name for name in names):
            raise InvalidInput(
                "a key belongs to someone",
                why=f"the name is empty, over {MAX_NAME} characters or holds NUL",
                next="name a user, and an agent if it is one's",
            )
        if lifetime is not None and lifetime <= timedelta():
            raise InvalidInput("a key cannot have expired before it is made", next="give a lifetime above zero")
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
        """The tenant's keys, newest first, the revoked ones too, and the browser sessions that are signed in."""
        return [_key(row) for row in await self._system.all(sql("keys_of_tenant"), tenant)]

    async def revoke(self, tenant: TenantId, id: UUID) -> Key:
        """End a key, and within a second every use of it."""
        row = await self._system.one(sql("revoke_key"), tenant, id)
        if row is None:
            raise NotFound(f"there is no key {id}", next="`holdfast keys ls` lists them")
        self._known.clear()
        return _key(row)

    async def recognise(self, text: str) -> Principal:
        """Who this key belongs to, if it is a key or a browser's session and still valid."""
        hash = self._hash(text)
        known = self._known.get(hash)
        if known is not None and monotonic() - known[0] < REMEMBERED:
            return known[1]
        row = await self._system.one(sql("valid_key"), hash)
        if row is None:
            self._known.pop(hash, None)
            raise Unauthenticated(
                "this key is not valid",
                why="it was never made here, has expired or was revoked",
                next="make one with `holdfast keys create`",
            )
        principal = _principal(row)
        self._remember(hash, monotonic(), principal)
        return principal

    async def renew(self, texts: Collection[str]) -> None:
        """Ask anew whether keys are valid, in one statement; `recognise` knows it then."""
        hashes = [self._hash(text) for text in texts]
        found = {bytes(row["hash"]): _principal(row) for row in await self._system.all(sql("valid_keys"), hashes)}
        now = monotonic()
        for hash in hashes:
            if hash in found:
                self._remember(hash, now, found[hash])
            else:
                self._known.pop(hash, None)

    async def create_link(self, tenant: TenantId, principal: str, *, scopes: frozenset[str] | None = None) -> str:
        """The text of a one-time link for a person's browser; the session it becomes has its scopes."""
        await self._system.run(sql("forget_expired"))
        made = await self.create(
            tenant, principal, scopes=scopes, lifetime=LINK_LIFETIME, kind="link", label="browser link"
        )
        return made.text

    async def exchange_link(self, text: str) -> str:
        """The session that a one-time link becomes; the link is worth nothing afterwards."""
        async with self._system.transaction() as tx:
            row = await tx.one(sql("use_link"), self._hash(text))
            if row is None:
                raise Unauthenticated(
                    "this link is not valid",
                    why="it was used already or has expired",
                    next="`holdfast keys link` makes a new one",
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
        """End a browser's session."""
        hash = self._hash(text)
        await self._system.run(sql("end_session"), hash)
        self._known.pop(hash, None)

    async def any_made(self) -> bool:
        """Whether a key was ever made here: the first one ends access without a key for good."""
        if not self._any_made and monotonic() - self._looked_for_any >= REMEMBERED:
            self._any_made = bool(await self._system.value(sql("any_key")))
            self._looked_for_any = monotonic()
        return self._any_made

    async def made_elsewhere(self) -> int:
        """How many valid keys were made under another secret and are therefore never recognised."""
        return int(await self._system.value(sql("keys_of_other_secrets"), self._secret_id))

    def _remember(self, hash: bytes, now: float, principal: Principal) -> None:
        self._known[hash] = (now, principal)
        self._known.move_to_end(hash)
        if len(self._known) > REMEMBERED_KEYS:
            self._known.popitem(last=False)

    def _hash(self, text: str) -> bytes:
        return hmac.new(self._secret, text.encode(errors="surrogatepass"), hashlib.sha256).digest()


def _principal(row: Row) -> Principal:
    return Principal(TenantId(row["tenant_id"]), row["principal"], frozenset(row["scopes"]), row["agent"])


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
