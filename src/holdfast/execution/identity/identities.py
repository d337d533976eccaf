"""Says to back ends who calls, as their sources ask for."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from holdfast.access.tenants import Tenants
from holdfast.core.errors import Forbidden, Unavailable
from holdfast.core.ids import TenantId
from holdfast.core.request_context import current_request
from holdfast.execution.consent.user_tokens import ConsentRequired, UsableToken, UserTokens, ask_to_connect
from holdfast.execution.identity.identity_keys import IdentityKeys
from holdfast.execution.identity.own_tokens import KeptToken, OwnTokens, TokenRequests, claims_of
from holdfast.execution.identity.sent_identity import AUTHORIZATION, REQUEST_ID, Renew, SentIdentity
from holdfast.execution.identity.signed_tokens import HEADER, Signed, SignedTokens
from holdfast.execution.identity.token_exchange import TokenExchange
from holdfast.execution.redaction import Redaction
from holdfast.execution.rest.runner import Secrets
from holdfast.postgres.database import Database
from holdfast.skills.request import Backend, BackendIdentity
from holdfast.skills.run import Run
from holdfast.skills.sources.identity import is_listed
from holdfast.skills.tool import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedIdentities:
    """What the identities of all tenants share: keys and tokens, and the hosts that may get callers' own tokens."""

    keys: IdentityKeys
    signed: SignedTokens
    requests: TokenRequests
    own: OwnTokens
    exchange: TokenExchange
    tenants: Tenants
    pass_through: Collection[str]

    async def close(self) -> None:
        """End the requests in progress."""
        await self.exchange.close()
        await self.own.close()
        await self.requests.servers.close()
        await self.keys.close()


@dataclass(frozen=True, slots=True)
class _IdentifiedCall:
    """A call, as far as its back end may learn of it."""

    tenant: TenantId
    source: str
    identity: BackendIdentity
    run: Run
    tool: str | None
    kind: Kind
    origin: str

    @property
    def what(self) -> str:
        return f"the source {self.source}"


class BackendIdentities:
    """Returns the headers that say who calls, for the back ends of one tenant."""

    def __init__(self, database: Database, shared: SharedIdentities, secrets: Secrets, user_tokens: UserTokens) -> None:
        self._database = database
        self._user_tokens = user_tokens
        self._shared = shared
        self._secrets = secrets

    async def of_call(
        self, backend: Backend, run: Run, *, tool: str | None, kind: Kind, origin: str
    ) -> SentIdentity | None:
        """Return what a back end learns about the caller of a tool; None: nothing."""
        identity = backend.identity
        if identity is None:
            return None
        call = _IdentifiedCall(await self._database.tenant(), backend.source, identity, run, tool, kind, origin)
        given = identity.kind
        if given == "token_exchange" and run.token is None:
            if identity.fallback is None:
                raise _no_token_error(call)
            given = identity.fallback
        match given:
            case "signed":
                return await self._signed(call)
            case "client_credentials":
                return await self._own(call)
            case "token_exchange":
                return await self._exchanged(call)
            case "pass_through":
                return self._passed_through(call)
            case "user":
                return await self._consented(call)

    async def of_engine(
        self, backend: Backend, run: Run, *, tool: str | None, kind: Kind, origin: str
    ) -> SentIdentity | None:
        """Return what a back end learns if the engine itself asks it, such as for the tools that it has."""
        identity = backend.identity
        if identity is None or identity.kind == "pass_through" or (identity.kind == "user" and run.user is None):
            return None
        call = _IdentifiedCall(await self._database.tenant(), backend.source, identity, run, None, kind, origin)
        if identity.kind == "user":
            return await self._consented(call)
        return await (self._signed(call) if identity.kind == "signed" else self._own(call))

    async def describe(
        self, backend: Backend, *, user: str | None, agent: str | None, token: str | None, origin: str
    ) -> Mapping[str, Any]:
        """Return the claims that a back end would get for a caller, if its token is a JWT. It is not called.

        An error has its reason in its text: whoever sets up a source has to know it.
        """
        run = Run(user, agent, None, None, None, "", "", token=token)
        kind: Kind = "rest" if backend.mcp is None else "mcp_server"
        try:
            sent = await self.of_call(backend, run, tool=None, kind=kind, origin=origin)
        except Unavailable as error:  # of these, callers get only what failed
            if error.why:
                error.what, error.why = f"{error.what}: {error.why}", ""
            raise
        values = () if sent is None else (sent.headers.get(HEADER), sent.headers.get(AUTHORIZATION))
        return claims_of(next(filter(None, values), "").removeprefix("Bearer "))

    async def _signed(self, call: _IdentifiedCall) -> SentIdentity:
        signed = Signed(call.tenant, call.run.user, call.run.agent, call.tool, call.identity.audience or call.origin)
        token = await self._shared.signed.token(signed, partial(self._tenant_name, call.tenant))
        return SentIdentity(_headers(call, HEADER, token.text), token.redaction)

    async def _own(self, call: _IdentifiedCall) -> SentIdentity:
        token = await self._shared.own.token(call.tenant, call.identity, self._secrets, call.what)

        async def renew() -> SentIdentity | None:
            is_old = self._shared.own.refuse(call.tenant, call.identity, token)
            return await self._own(call) if is_old else None

        return _bearer(call, token, renew)

    async def _exchanged(self, call: _IdentifiedCall) -> SentIdentity:
        subject = call.run.token
        assert subject is not None
        token = await self._shared.exchange.token(call.tenant, call.identity, subject, self._secrets, call.what)

        async def renew() -> SentIdentity | None:
            is_old = self._shared.exchange.refuse(call.tenant, call.identity, subject, token)
            return await self._exchanged(call) if is_old else None

        return _bearer(call, token, renew)

    def _passed_through(self, call: _IdentifiedCall) -> SentIdentity:
        if call.kind != "rest":
            why = "callers' own tokens are only passed to REST services"
            raise Forbidden(f"{call.what} was not called", why=why, next="Ask an operator to change its identity.")
        if not is_listed(call.origin, self._shared.pass_through):
            host = urlsplit(call.origin).netloc
            raise Forbidden(
                f"{call.what} was not called",
                why=f"callers' own tokens may not be passed to {host}",
                next=f"Ask an operator to add {host} to the setting execution.pass_through.",
            )
        if call.run.token is None:
            raise _no_token_error(call)
        return SentIdentity(_headers(call, AUTHORIZATION, f"Bearer {call.run.token}"), Redaction([call.run.token]))

    async def _consented(self, call: _IdentifiedCall) -> SentIdentity:
        """Return the token that the caller's user has agreed to. A client that opens addresses is asked to connect."""
        user, tokens = call.run.user, self._user_tokens
        try:
            token = await tokens.get(call.source, user, call.origin)
        except ConsentRequired as required:
            await ask_to_connect(call.run.client, required)
            token = await tokens.get(call.source, user, call.origin)
        assert user is not None

        async def renew() -> SentIdentity | None:
            return bearer(await tokens.renewed(call.source, user, token))

        def bearer(given: UsableToken) -> SentIdentity:
            headers = _headers(call, AUTHORIZATION, f"Bearer {given.text}")
            return SentIdentity(headers, given.redaction, renew if given is token else None)

        return bearer(token)

    async def _tenant_name(self, tenant: TenantId) -> str:
        return await self._shared.tenants.name_of(tenant)


def _bearer(call: _IdentifiedCall, token: KeptToken, renew: Renew) -> SentIdentity:
    return SentIdentity(_headers(call, AUTHORIZATION, f"Bearer {token.text}"), token.redaction, renew)


def _headers(call: _IdentifiedCall, name: str, value: str) -> dict[str, str]:
    request_id = call.run.request_id or current_request().request_id
    return {name: value, REQUEST_ID: request_id} if request_id else {name: value}


def _no_token_error(call: _IdentifiedCall) -> Forbidden:
    return Forbidden(
        f"{call.what} was not called",
        why="its back end needs a token of the caller's identity provider, and this caller has none",
        next="Call it with a token of an issuer in access.issuers. API keys and agents' turns have none: for them, an "
        "operator can set what the back end gets instead (--fallback).",
    )
