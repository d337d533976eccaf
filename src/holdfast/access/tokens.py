"""Tokens (JWT) of the issuers in the settings: verifies them, and determines the principal of each."""

import base64
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from time import time
from typing import Any, cast

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import Key
from joserfc.jws import JWSRegistry

from holdfast.access.claims import SHOWN, invalid_token, read_claims
from holdfast.access.jwks import Fetch, PublicKeys, SharedKey, SigningKeys
from holdfast.access.principals import Principal
from holdfast.access.tenants import Tenants
from holdfast.core.errors import BadSetting, NotFound
from holdfast.core.issuers import AccessSettings, Issuer
from holdfast.core.json_limits import decode

MAX_BYTES = 8192  # of a token
CACHE_SECONDS = 60.0  # seconds, at most, for which a verified token is cached
MAX_CACHED_TOKENS = 10_000
TYPES = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})  # other types do not prove who calls

_TOKEN = re.compile(r"([\w-]+)\.([\w-]+)\.([\w-]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """An issuer, the accepted audiences of its tokens, and its signing keys."""

    issuer: Issuer
    audiences: frozenset[str]
    keys: SigningKeys


class Tokens:
    """Verifies tokens. Never uses a key or a URL that a token contains.

    `resource` is the public URL of the server: the audience of tokens if an issuer's settings name none.
    """

    def __init__(
        self,
        settings: AccessSettings,
        tenants: Tenants,
        fetch: Fetch,
        *,
        resource: str | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        self._tenants = tenants
        self._clock = clock
        self._trusted = {each.issuer: trusted_issuer(each, fetch, resource, clock) for each in settings.issuers}
        self._known: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()

    @property
    def any_issuer(self) -> bool:
        """Whether tokens of any issuer are accepted."""
        return bool(self._trusted)

    @property
    def failures(self) -> Sequence[str]:
        """The issuers whose keys cannot be fetched at the moment, and why."""
        return [f"{name}: {trusted.keys.failure}" for name, trusted in self._trusted.items() if trusted.keys.failure]

    async def authenticate(self, text: str) -> Principal:
        """Return the principal of a token that a trusted issuer signed for this server and that is valid now."""
        hash = sha256(text.encode(errors="surrogatepass")).digest()
        known = self._known.get(hash)
        if known is not None and self._clock() < known[0]:
            return known[1]
        self._known.pop(hash, None)
        until, principal = await self._verify(text)
        self._known[hash] = (until, principal)
        if len(self._known) > MAX_CACHED_TOKENS:
            self._known.popitem(last=False)
        return principal

    async def close(self) -> None:
        """Stop fetching keys."""
        for trusted in self._trusted.values():
            await trusted.keys.close()

    async def _verify(self, text: str) -> tuple[float, Principal]:
        parts = _TOKEN.fullmatch(text) if len(text) <= MAX_BYTES else None
        if parts is None:
            raise invalid_token(f"it is not a signed JWT of at most {MAX_BYTES} bytes")
        header, claims = _decode_object(parts[1]), _decode_object(parts[2])
        name = claims.get("iss")
        trusted = self._trusted.get(name) if isinstance(name, str) else None
        if trusted is None:
            raise invalid_token(
                f"its issuer {str(name)[:SHOWN]!a} is unknown", "Ask an operator to add the issuer to access.issuers."
            )
        algorithm, kid = _check_header(header, trusted.issuer)
        keys = await trusted.keys.keys_for(algorithm, kid)
        if not keys:
            raise invalid_token("its issuer has no key with this id and algorithm")
        signed, signature = text[: parts.end(2)].encode(), _decode_bytes(parts[3])
        if not any(_is_signed(algorithm, signed, signature, key) for key in keys):
            raise invalid_token("its signature is invalid")
        now = self._clock()
        token_claims = read_claims(claims, trusted.issuer, audiences=trusted.audiences, now=now)
        try:
            tenant = await self._tenants.id_of(token_claims.tenant)
        except NotFound:
            raise invalid_token(f"the tenant {token_claims.tenant[:SHOWN]!a} does not exist") from None
        return min(token_claims.until, now + CACHE_SECONDS), Principal(
            tenant,
            token_claims.user,
            token_claims.scopes,
            token_claims.agent,
            token=text,
            grantable=token_claims.grantable,
        )


def is_token(text: str) -> bool:
    """Whether a text has the form of a token. An API key never has it."""
    return text.count(".") == 2


def trusted_issuer(
    issuer: Issuer, fetch: Fetch, resource: str | None, clock: Callable[[], float] = time
) -> TrustedIssuer:
    """Return how to verify the tokens of an issuer. Raises BadSetting if its settings cannot be used."""
    audiences = frozenset(issuer.audience)
    if not audiences:
        if resource is None:
            why = f"{issuer.issuer} has no audience, so tokens for other servers would be accepted"
            raise _bad_issuers(why, "Set its audience, or server.public_url.")
        audiences = frozenset({resource, f"{resource}/", f"{resource}/mcp", f"{resource}/rpc"})
    if issuer.secret is None:
        return TrustedIssuer(issuer, audiences, PublicKeys(issuer, fetch, clock=clock))
    try:
        return TrustedIssuer(issuer, audiences, SharedKey(issuer.secret.get_secret_value()))
    except ValueError:
        raise _bad_issuers(f"the secret of {issuer.issuer} is a public key", "Use jwks_url for public keys.") from None


def _bad_issuers(why: str, next: str) -> BadSetting:
    return BadSetting("the setting access.issuers is invalid", why=why, next=next, key="access.issuers")


def _check_header(header: dict[str, Any], issuer: Issuer) -> tuple[str, str | None]:
    """Check the header of a token; return its algorithm and the id of its key."""
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if algorithm not in issuer.accepted_algorithms:
        raise invalid_token(
            f"its algorithm is {str(algorithm)[:SHOWN]!a}, and its issuer uses {', '.join(issuer.accepted_algorithms)}"
        )
    if "crit" in header or "b64" in header:
        raise invalid_token("its header requires an extension that this server does not support")
    if not isinstance(kind, str) or kind.lower() not in TYPES:
        raise invalid_token(f"its type is {str(kind)[:SHOWN]!a}, not an access token")
    if kid is not None and not isinstance(kid, str):
        raise invalid_token("its kid is not a string")
    return cast(str, algorithm), kid


def _is_signed(algorithm: str, signed: bytes, signature: bytes, key: Key) -> bool:
    try:
        return JWSRegistry.algorithms[algorithm].verify(signed, signature, key)
    except (JoseError, ValueError):
        return False


def _decode_object(part: str) -> dict[str, Any]:
    try:
        value = decode(_decode_bytes(part))
    except (msgspec.DecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise invalid_token("it is not a signed JWT")
    return cast(dict[str, Any], value)


def _decode_bytes(part: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise invalid_token("it is not a signed JWT") from None
