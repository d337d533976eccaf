"""Tokens of the engine's own, by OAuth client credentials: the same for all users of a source."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Any, cast

import msgspec

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.core.ids import TenantId
from holdfast.core.json_limits import decode
from holdfast.execution.egress import checked_url
from holdfast.execution.identity.authorization_servers import AuthorizationServers
from holdfast.execution.identity.expiring_cache import ExpiringCache
from holdfast.execution.identity.token_endpoint import Form, OAuthClient, TokenAnswer, TokenEndpoint
from holdfast.execution.redaction import Redaction
from holdfast.execution.rest.runner import Secrets, secret_values
from holdfast.skills.request import BackendIdentity

MARGIN = 30.0  # seconds before its expiry, at most, at which a token is replaced
UNSAID = 60.0  # seconds for which a token is used if the server does not say when it expires
REPLACED = 10.0  # seconds of age at which a token is replaced if a back end refuses it

NO_OWNER = "none"


@dataclass(frozen=True, slots=True)
class KeptToken:
    """An access token, when it was obtained, and its redaction from answers."""

    text: str = field(repr=False)
    at: float
    redaction: Redaction = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class TokenRequests:
    """What requests for tokens share: the endpoints of authorization servers, and a tenant's secrets."""

    servers: AuthorizationServers
    endpoint: TokenEndpoint

    async def request(self, identity: BackendIdentity, form: Form, secrets: Secrets, what: str) -> TokenAnswer:
        """Request a token by the client of an identity. `what` names the source in errors."""
        url = identity.token_url or await self.servers.token_url(identity.issuer)
        host = checked_url(url).raw_host or ""
        names = [identity.client_secret] if identity.client_secret else []
        values = await secret_values(secrets, names, lambda: host, what)
        secret = values[identity.client_secret] if names else ""
        auth = identity.client_auth if secret else "none"
        return await self.endpoint.request(url, form, OAuthClient(identity.client_id, secret, auth))


class OwnTokens:
    """Gets tokens by client credentials, and keeps them until shortly before they expire."""

    def __init__(self, requests: TokenRequests) -> None:
        self._requests = requests
        self._kept = ExpiringCache[tuple[TenantId, BackendIdentity], KeptToken]()

    async def close(self) -> None:
        """End the requests in progress."""
        await self._kept.close()

    async def token(self, tenant: TenantId, identity: BackendIdentity, secrets: Secrets, what: str) -> KeptToken:
        """Return a token. Concurrent calls share one request."""
        key = tenant, own(identity)
        found = self._kept.current(key)
        if found is not None:
            return found

        async def request() -> tuple[KeptToken, float]:
            form = {"grant_type": "client_credentials", **target_of(identity)}
            answer = await self._requests.request(identity, form, secrets, what)
            check_kind(answer, identity)
            seconds = lifetime_of(answer)
            if seconds is not None and seconds <= 0:
                raise unusable(identity, "it has expired already")
            return kept_token(answer), usable_seconds(UNSAID if seconds is None else seconds)

        return await self._kept.get(key, request)

    def refuse(self, tenant: TenantId, identity: BackendIdentity, token: KeptToken) -> bool:
        """Use a token no longer that a back end refused. Return False if it is so new that another is no better."""
        if monotonic() - token.at < REPLACED:
            return False
        self._kept.forget((tenant, own(identity)), token)
        return True


def own(identity: BackendIdentity) -> BackendIdentity:
    """Return the identity with which the engine calls for itself."""
    if identity.kind == "client_credentials":
        return identity
    return msgspec.structs.replace(identity, kind="client_credentials", actor=False, fallback=None)


def target_of(identity: BackendIdentity) -> Form:
    """Return the fields of a form that say for whom a token is."""
    return {"audience": identity.audience, "resource": identity.resource, "scope": " ".join(identity.scopes)}


def kept_token(answer: TokenAnswer) -> KeptToken:
    """Return the token of an answer, to keep it."""
    return KeptToken(answer.access_token, monotonic(), Redaction([answer.access_token]))


def check_kind(answer: TokenAnswer, identity: BackendIdentity, *, others: tuple[str, ...] = ()) -> None:
    """Refuse a token that is not sent as `Bearer`, such as one that is bound to a key."""
    if answer.token_type.lower() not in ("bearer", *others):
        raise unusable(identity, f"its type is {answer.token_type[:40]!a}, and only bearer tokens can be sent")


def lifetime_of(answer: TokenAnswer) -> float | None:
    """Return in how many seconds a token expires: as the server says, or as the token itself does, if it is a JWT."""
    return seconds_left(answer.access_token) if answer.expires_in is None else answer.expires_in


def seconds_left(token: str) -> float | None:
    """Return in how many seconds a JWT expires; None if it does not say, or is another token."""
    expires = claims_of(token).get("exp")
    is_time = isinstance(expires, int | float) and not isinstance(expires, bool) and abs(expires) < 1e15
    return float(cast(float, expires)) - time() if is_time else None


def usable_seconds(lifetime: float) -> float:
    """Return for how long a token is used: until shortly before it expires."""
    return lifetime - min(MARGIN, lifetime / 4)


def claims_of(token: str) -> Mapping[str, Any]:
    """Return the claims of a JWT, without a check of its signature; none if it is another token."""
    from base64 import urlsafe_b64decode

    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        found: object = decode(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (HoldfastError, ValueError, RecursionError, msgspec.MsgspecError):
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def unusable(identity: BackendIdentity, why: str) -> Unavailable:
    """Return the error for a token that cannot be used."""
    server = identity.token_url or identity.issuer
    host = checked_url(server).raw_host if server else NO_OWNER
    return Unavailable(f"the authorization server {host} gave no usable token", why=why)
