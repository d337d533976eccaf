"""Connections of users with back ends: begun, completed by the browser that comes back, listed, and removed.

What binds a browser that comes back to the user who began it:

- The state has random bits, names the tenant, and is encrypted. It is valid once, for ten minutes, on every node.
- A connection that a browser session began is completed by that session alone.
- One that was begun with a key or a token is completed by a browser without a session, or by one of the same user. The
  browser first shows for whom it is, and asks.
"""

import base64
import hashlib
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from uuid import UUID

from holdfast.core.errors import Broken, Forbidden, HoldfastError, InvalidInput, NotFound
from holdfast.core.ids import TenantId
from holdfast.core.text import restore, store
from holdfast.execution.consent.clients import OAuthClients, PublicAddress
from holdfast.execution.consent.discovery import ConsentDiscovery, ConsentSource
from holdfast.execution.consent.grants import Grant, GrantedTokens, GrantSeal, PendingConsent
from holdfast.execution.consent.user_tokens import UserTokens, check_bearer
from holdfast.execution.encryption import EncryptionKey
from holdfast.execution.identity.token_endpoint import TokenEndpoint, TokenRefused
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

VALID = 600.0  # seconds within which the browser has to come back
MOST_BEGUN = 10  # connections that a user has begun
VERIFIER_BYTES = 48
MAX_STATE = 1000  # characters
STATE = b"holdfast consent state 1"

ConnectionState = Literal["connected", "expired", "not_connected"]

sql = statements(__name__)
log = logging.getLogger(__name__)


class ConsentDeclined(InvalidInput):
    """The authorization server gives no code: the user has not agreed, or may not."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A source that needs a user's consent, and whether this user has given it.

    `expired`: the user has to connect again, and `reason` says why. `host` gets the tokens.
    """

    source: str
    title: str
    host: str
    state: ConnectionState
    reason: str = ""
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    connected_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConsentUrl:
    """Where a user agrees. The address is valid once, until `expires_at`."""

    source: str
    url: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class BegunConsent:
    """A connection that was begun: with which source, by whom, and where the user was sent."""

    source: str
    user: str
    session: UUID | None
    origin: str
    issuer: str


@dataclass(frozen=True, slots=True)
class Removal:
    """Whether the authorization server has revoked the tokens of a connection that was removed."""

    source: str
    revoked: bool


class ConsentStates:
    """Makes states, and finds out to which tenant a state belongs. Others cannot make one."""

    def __init__(self, secret: bytes) -> None:
        self._key = EncryptionKey(secret, purpose=STATE)

    def new(self, tenant: TenantId) -> str:
        """Return a new state."""
        sealed = self._key.seal(f"{tenant}/{secrets.token_urlsafe(32)}", about="state")
        return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()

    def tenant_of(self, state: str) -> TenantId:
        """Return the tenant of a state. Raise NotFound if it is not one of ours."""
        try:
            if len(state) > MAX_STATE or not state.isascii():
                raise ValueError
            sealed = base64.b64decode(state + "=" * (-len(state) % 4), b"-_", validate=True)
            return TenantId(UUID(self._key.open(sealed, about="state").partition("/")[0]))
        except (ValueError, Broken):
            raise unknown_state() from None


class UserConnections:
    """The connections of one tenant's users."""

    def __init__(
        self,
        database: Database,
        discovery: ConsentDiscovery,
        clients: OAuthClients,
        endpoint: TokenEndpoint,
        tokens: UserTokens,
        seal: GrantSeal,
        states: ConsentStates,
    ) -> None:
        self._database = database
        self._discovery = discovery
        self._clients = clients
        self._endpoint = endpoint
        self._tokens = tokens
        self._seal = seal
        self._states = states

    async def tenant(self) -> TenantId:
        """Return the tenant."""
        return await self._database.tenant()

    async def list(self, user: str) -> "list[Connection]":
        """List the sources that need consent, by name, and whether this user has given it."""
        rows = await self._database.all(sql("connections_of_user"), store(user))
        return [self._describe(row) for row in rows]

    async def begin(
        self, source_name: str, user: str, address: PublicAddress, *, session: UUID | None = None
    ) -> ConsentUrl:
        """Begin a connection, and return where the user agrees. `session`: the browser's, if a browser begins it."""
        source = await self._source(source_name)
        origin = source.origin
        target = await self._discovery.find(source)
        client = await self._clients.choose(source, target, address)
        server = target.server
        grant = Grant(
            source=source.name,
            origin=origin,
            token_url=target.token_url,
            client=client,
            issuer=server.issuer,
            names_issuer=server.authorization_response_iss_parameter_supported,
            revocation_url=server.revocation_endpoint or "",
            resource=target.resource,
            scopes=target.scopes,
        )
        pending = PendingConsent(grant, secrets.token_urlsafe(VERIFIER_BYTES), address.callback)
        tenant = await self._database.tenant()
        state = self._states.new(tenant)
        digest = digest_of(state)
        expires_at: datetime = await self._database.value(
            sql("begin_consent"),
            digest,
            source.id,
            store(user),
            session,
            self._seal.seal(pending, tenant, "request", digest.hex()),
            self._seal.key.id,
            VALID,
            MOST_BEGUN - 1,
        )
        asked = {
            "response_type": "code",
            "client_id": client.id,
            "redirect_uri": pending.redirect_uri,
            "state": state,
            "code_challenge": challenge_of(pending.verifier),
            "code_challenge_method": "S256",
            "scope": " ".join(grant.scopes),
            "resource": grant.resource,
        }
        return ConsentUrl(source.name, with_query(target.authorize_url, asked), expires_at)

    async def begun(self, state: str) -> BegunConsent:
        """Return for whom a state is. It stays valid. Raise NotFound if it is unknown, used or expired."""
        digest = digest_of(state)
        row = await self._database.one(sql("consent_request"), digest)
        return await self._begun(row, digest)

    async def complete(self, state: str, answer: Mapping[str, str], *, caller: str | None, session: UUID | None) -> str:
        """Complete a connection with the answer of the authorization server, and return the name of the source.

        `caller` and `session` are those of the browser, if it is signed in. A state is used up, whatever the answer,
        unless it came with the wrong browser. Raises ConsentDeclined if the user has not agreed.
        """
        digest = digest_of(state)
        check_browser(await self.begun(state), caller=caller, session=session)
        row = await self._database.one(sql("take_consent_request"), digest)
        begun = await self._begun(row, digest)
        assert row is not None
        pending = await self._pending(row, digest)
        grant = pending.grant
        check_issuer(grant, answer.get("iss"))
        if "error" in answer or "code" not in answer:
            raise _declined(answer)
        form = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "redirect_uri": pending.redirect_uri,
            "code_verifier": pending.verifier,
            "resource": grant.resource,
        }
        client = await self._clients.authenticated(grant.client, grant.source, grant.token_url)
        try:
            got = await self._endpoint.request(grant.token_url, form, client)
        except TokenRefused as error:
            if error.error == "invalid_client" and grant.client.registered:
                await self._clients.forget(grant.issuer)
            raise
        check_bearer(got, grant.source)
        tokens = GrantedTokens(grant, got.access_token, got.refresh_token or "")
        tenant = await self._database.tenant()
        await self._database.run(
            sql("put_connection"),
            row["source_id"],
            store(begun.user),
            self._seal.seal(tokens, tenant, "connection", row["source_id"], begun.user),
            self._seal.key.id,
            grant.origin,
            grant.issuer,
            list(got.scopes or grant.scopes),
            bool(tokens.refresh_token),
            got.expires_in,
        )
        await self._tokens.forget(begun.source, begun.user)
        return begun.source

    async def remove(self, source: str, user: str) -> Removal:
        """Remove a connection, and revoke its tokens where the authorization server offers that (RFC 7009)."""
        row = await self._database.one(sql("remove_connection"), source, store(user))
        if row is None:
            raise NotFound(f"you have no connection with {source!r:.100}", next="`holdfast connections ls` lists them.")
        await self._tokens.forget(source, user)
        return Removal(source, await self._revoke(source, user, row))

    async def _revoke(self, source: str, user: str, row: Row) -> bool:
        try:
            place = ("connection", row["source_id"], user)
            tokens = self._seal.open(GrantedTokens, row, await self._database.tenant(), *place)
            grant = tokens.grant
            if not grant.revocation_url:
                return False
            client = await self._clients.authenticated(grant.client, source, grant.revocation_url)
            hint = "refresh_token" if tokens.refresh_token else "access_token"
            form = {"token": tokens.refresh_token or tokens.access_token, "token_type_hint": hint}
            await self._endpoint.post(grant.revocation_url, form, client)
        except HoldfastError as error:  # the row is gone: nobody uses the tokens any more
            log.warning("the tokens of a connection with %s were not revoked: %s", source, error)
            return False
        return True

    async def _source(self, name: str) -> ConsentSource:
        row = await self._database.one(sql("consent_source"), store(name))
        if row is None:
            next = "`holdfast connections ls` lists the sources that need it."
            raise NotFound(f"there is no source {name!r:.100} that needs your consent", next=next)
        return ConsentSource.of(row)

    async def _begun(self, row: Row | None, digest: bytes) -> BegunConsent:
        if row is None:
            raise unknown_state()
        grant = (await self._pending(row, digest)).grant
        return BegunConsent(row["source"], restore(row["user_name"]), row["session"], grant.origin, grant.issuer)

    async def _pending(self, row: Row, digest: bytes) -> PendingConsent:
        return self._seal.open(PendingConsent, row, await self._database.tenant(), "request", digest.hex())

    def _describe(self, row: Row) -> Connection:
        state: ConnectionState = "not_connected"
        reason = ""
        if row["connected"]:
            foreign = row["key_id"] != self._seal.key.id
            ended = row["expired"] and not row["refreshable"]
            reason = row["broken"] or ("it was encrypted with another key" if foreign else "")
            reason = reason or ("the token has expired" if ended else "")
            state = "expired" if reason else "connected"
        return Connection(
            row["name"],
            row["title"],
            ConsentSource.of(row).host,
            state,
            reason,
            row["issuer"] or "",
            tuple(row["scopes"] or ()),
            row["connected_at"],
            row["updated_at"],
        )


def digest_of(state: str) -> bytes:
    """Return what is stored of a state."""
    return hashlib.sha256(state.encode(errors="surrogatepass")).digest()


def challenge_of(verifier: str) -> str:
    """Return the code challenge of a verifier (RFC 7636, S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def with_query(url: str, parameters: Mapping[str, str]) -> str:
    """Return a URL with more parameters. Empty ones are left out."""
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    added = [(name, value) for name, value in parameters.items() if value]
    return urlunsplit(parts._replace(query=urlencode([*given, *added]), fragment=""))


def check_browser(begun: BegunConsent, *, caller: str | None, session: UUID | None) -> None:
    """Refuse a browser that belongs to somebody else than the user who began the connection."""
    if caller is not None and caller != begun.user:
        raise Forbidden(
            "the connection was not completed",
            why="another user began it than the one who is signed in here",
            next="Begin it as yourself, on the screen Connections.",
        )
    if begun.session is not None and session != begun.session:
        raise Forbidden(
            "the connection was not completed",
            why="it was begun in another browser, or you have signed out in the meantime",
            next="Begin it again in this browser.",
        )


def check_issuer(grant: Grant, named: str | None) -> None:
    """Refuse an answer that comes from another server than the one that was asked (RFC 9207)."""
    if named is None and not (grant.issuer and grant.names_issuer):
        return
    if named != grant.issuer or not grant.issuer:
        raise Forbidden(
            "the connection was not completed",
            why="the answer does not come from the authorization server that was asked",
            next="Begin it again. If this happens again, set the issuer of the source.",
        )


def unknown_state() -> NotFound:
    """Return the error for a state that nobody can use."""
    return NotFound(
        "there is no such connection to complete",
        why="it was completed already, it has expired, or it was begun somewhere else",
        next="Begin it again.",
    )


def _declined(answer: Mapping[str, str]) -> ConsentDeclined:
    error = answer.get("error", "no code")
    shown = "".join(each for each in error[:100] if each.isprintable())
    return ConsentDeclined("the connection was not completed", why=f"the authorization server answered: {shown}")
