"""Token exchange (RFC 8693): a token for a back end, in exchange for the caller's token."""

from collections.abc import Mapping
from hashlib import sha256
from time import monotonic
from typing import Any, cast

from holdfast.core.errors import Unauthenticated
from holdfast.core.ids import TenantId
from holdfast.execution.identity.expiring_cache import ExpiringCache
from holdfast.execution.identity.own_tokens import (
    REPLACED,
    KeptToken,
    OwnTokens,
    TokenRequests,
    check_kind,
    claims_of,
    kept_token,
    seconds_left,
    target_of,
    unusable,
    usable_seconds,
)
from holdfast.execution.identity.token_endpoint import TokenAnswer
from holdfast.execution.rest.runner import Secrets
from holdfast.skills.request import BackendIdentity

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
TYPE = "urn:ietf:params:oauth:token-type:"
ACCESS_TOKEN, JWT = f"{TYPE}access_token", f"{TYPE}jwt"
SHOWN = 100  # characters of an answer in an error

Key = tuple[TenantId, BackendIdentity, bytes]


class TokenExchange:
    """Exchanges tokens. One is kept per caller's token and source, until shortly before one of both expires."""

    def __init__(self, requests: TokenRequests, own_tokens: OwnTokens) -> None:
        self._requests = requests
        self._own = own_tokens
        self._kept = ExpiringCache[Key, KeptToken]()

    async def close(self) -> None:
        """End the exchanges in progress."""
        await self._kept.close()

    async def token(
        self, tenant: TenantId, identity: BackendIdentity, subject: str, secrets: Secrets, what: str
    ) -> KeptToken:
        """Return a token for the caller with the token `subject`. Concurrent calls share one exchange."""
        key = _key(tenant, identity, subject)
        found = self._kept.current(key)
        if found is not None:
            return found

        async def exchange() -> tuple[KeptToken, float]:
            left = checked_seconds(subject)
            form = {
                "grant_type": GRANT,
                "subject_token": subject,
                "subject_token_type": ACCESS_TOKEN,
                "requested_token_type": f"{TYPE}{identity.requested}",
                **target_of(identity),
            }
            if identity.actor:
                actor = await self._own.token(tenant, _actor_of(identity), secrets, what)
                form |= {"actor_token": actor.text, "actor_token_type": ACCESS_TOKEN}
            answer = await self._requests.request(identity, form, secrets, what)
            seconds = check_answer(answer, identity)
            return kept_token(answer), usable_seconds(min(seconds, left))

        return await self._kept.get(key, exchange)

    def refuse(self, tenant: TenantId, identity: BackendIdentity, subject: str, token: KeptToken) -> bool:
        """Use a token no longer that a back end refused. Return False if it is so new that another is no better."""
        if monotonic() - token.at < REPLACED:
            return False
        self._kept.forget(_key(tenant, identity, subject), token)
        return True


def check_answer(answer: TokenAnswer, identity: BackendIdentity) -> float:
    """Return in how many seconds the token of an exchange expires, if it is one that can be sent to the back end."""
    if answer.issued_token_type not in (ACCESS_TOKEN, JWT):
        given = "no type" if answer.issued_token_type is None else f"the type {answer.issued_token_type[:SHOWN]!a}"
        raise unusable(identity, f"it issued a token of {given}, and not an access token or a JWT")
    check_kind(answer, identity, others=("n_a",))
    known = [each for each in (answer.expires_in, seconds_left(answer.access_token)) if each is not None]
    if not known:
        raise unusable(identity, "it did not say when the token expires")
    seconds = min(known)
    if seconds <= 0:
        raise unusable(identity, "it has expired already")
    _check_audience(claims_of(answer.access_token), identity)
    return seconds


def checked_seconds(subject: str) -> float:
    """Return in how many seconds the caller's token expires. Raise Unauthenticated if it has."""
    left = seconds_left(subject)
    if left is None or left <= 0:
        raise Unauthenticated(
            "the caller's token has expired", why="it is no longer exchanged", next="Request a new token."
        )
    return left


def _check_audience(claims: Mapping[str, Any], identity: BackendIdentity) -> None:
    """Refuse a token for another audience, as far as that can be read."""
    given: object = claims.get("aud")
    if given is None or not identity.audience:
        return
    audiences = cast(list[object], given) if isinstance(given, list) else [given]
    if identity.audience not in audiences:
        raise unusable(
            identity, f"its audience is {str(cast(object, given))[:SHOWN]!a} and not {identity.audience[:SHOWN]!a}"
        )


def _actor_of(identity: BackendIdentity) -> BackendIdentity:
    """Return with which token the engine says that it acts: one for the authorization server itself."""
    return BackendIdentity(
        "client_credentials",
        issuer=identity.issuer,
        token_url=identity.token_url,
        client_id=identity.client_id,
        client_secret=identity.client_secret,
        client_auth=identity.client_auth,
    )


def _key(tenant: TenantId, identity: BackendIdentity, subject: str) -> Key:
    return tenant, identity, sha256(subject.encode()).digest()
