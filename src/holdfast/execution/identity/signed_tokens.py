"""Signed identities: short tokens (JWT) of this engine that say who calls which tool, for one back end."""

import base64
import secrets
from collections.abc import Awaitable, Callable
from time import monotonic, time
from typing import NamedTuple

from joserfc.jws import JWSRegistry

from holdfast.core.ids import TenantId
from holdfast.core.text import render
from holdfast.execution.identity.expiring_cache import ExpiringCache
from holdfast.execution.identity.identity_keys import ALGORITHM, IdentityKeys
from holdfast.execution.redaction import Redaction

HEADER = "Holdfast-Identity"
LIFETIME = 300  # seconds
KEPT = 60.0  # seconds for which a token is sent again
MOST = 5_000  # tokens


class Signed(NamedTuple):
    """Who calls what, and for whom the token is."""

    tenant: TenantId
    user: str | None
    agent: str | None
    tool: str | None
    audience: str


class SignedToken(NamedTuple):
    """A token, and its redaction from answers."""

    text: str
    redaction: Redaction


class SignedTokens:
    """Signs tokens. Each is signed once, and sent for a minute with every call of the same tool by the same caller."""

    def __init__(self, keys: IdentityKeys, *, issuer: str | None, clock: Callable[[], float] = monotonic) -> None:
        self._keys = keys
        self.issuer = issuer or keys.installation
        self._known = ExpiringCache[tuple[Signed, str], SignedToken](most=MOST, clock=clock)

    async def token(self, signed: Signed, tenant_name: Callable[[], Awaitable[str]]) -> SignedToken:
        """Return a token. It is valid for four minutes at least."""
        key = await self._keys.current()
        found = self._known.current((signed, key.kid))
        if found is not None:
            return found
        now = int(time())
        claims = {
            "iss": self.issuer,
            "sub": signed.user,
            "aud": signed.audience,
            "iat": now,
            "exp": now + LIFETIME,
            "jti": secrets.token_urlsafe(16),
            "tenant": await tenant_name(),
            "agent": signed.agent,
            "tool": signed.tool,
        }
        header = {"typ": "JWT", "alg": ALGORITHM, "kid": key.kid}
        given = {name: value for name, value in claims.items() if value is not None}
        data = b".".join(_encoded(render(part)) for part in (header, given))
        signature = JWSRegistry.algorithms[ALGORITHM].sign(data, key.key)
        text = (data + b"." + _encoded(signature)).decode()
        token = SignedToken(text, Redaction([text]))
        self._known.put((signed, key.kid), token, KEPT)
        return token


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
