"""The keys that an issuer signs with: public keys (JWKS), which it rotates without notice, or a shared secret."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from holdfast.core.errors import HoldfastError, InvalidInput, NotFound, Unavailable
from holdfast.core.issuers import SHARED, Issuer, is_url
from holdfast.core.text import parse

Fetch = Callable[[str, int], Awaitable[bytes]]  # a URL, and the maximum size of the response in bytes

FRESH = 600.0  # seconds until the keys are fetched again
STALE = 12 * 3600.0  # seconds for which the keys are used while the issuer cannot be reached
PAUSE = 10.0  # seconds between two fetches, at least
MAX_BYTES = 256 * 1024
MAX_KEYS = 100
MAX_TRIED = 4  # keys that one signature is checked with, if the token names no key
MIN_RSA_BITS = 2048
PARTS = ("kty", "crv", "n", "e", "x", "y")  # members of a public key

# The algorithms of a key, by its type, or by its curve if the curve determines them.
FITS: Mapping[str, frozenset[str]] = {
    "RSA": frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    "P-256": frozenset({"ES256"}),
    "P-384": frozenset({"ES384"}),
    "P-521": frozenset({"ES512"}),
    "Ed25519": frozenset({"EdDSA", "Ed25519"}),
}

log = logging.getLogger(__name__)


class SigningKeys(Protocol):
    """The keys that verify an issuer's signatures."""

    async def keys_for(self, algorithm: str, kid: str | None) -> Sequence[Key]:
        """Return the keys that may have signed a token. Raises Unavailable if the keys are not known now."""
        ...

    @property
    def failure(self) -> str:
        """Why the keys cannot be fetched at the moment; empty if they can."""
        ...

    async def close(self) -> None:
        """Stop fetching keys."""
        ...


class SharedKey:
    """A secret that the server shares with the issuer."""

    failure = ""

    def __init__(self, secret: str) -> None:
        self._key = OctKey.import_key(secret.encode())

    async def keys_for(self, algorithm: str, kid: str | None) -> Sequence[Key]:
        """Return the secret, for its algorithm only and regardless of the key id."""
        return [self._key] if algorithm == SHARED else []

    async def close(self) -> None:
        """Do nothing: a shared key is not fetched."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key and its algorithms."""

    key: Key
    kid: str | None
    algorithms: frozenset[str]


class PublicKeys:
    """The public keys that an issuer publishes.

    They are fetched at the first use, then again in the background when they are no longer fresh, and when a token
    names an unknown key. So a key rotation needs no restart. Tokens with invented key ids cause at most one fetch in
    ten seconds.
    """

    def __init__(self, issuer: Issuer, fetch: Fetch, *, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._keys: Sequence[PublicKey] = ()
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self.failure = ""

    async def keys_for(self, algorithm: str, kid: str | None) -> Sequence[Key]:
        """Return the keys that may have signed a token. Raises Unavailable if the keys are not known now."""
        age = self._clock() - self._fetched
        if age >= STALE:
            await self._refresh()
            if self._clock() - self._fetched >= STALE:
                raise Unavailable(
                    f"tokens of {self._issuer.issuer} cannot be verified now", why=self.failure, next="Try again later."
                )
        elif age >= FRESH:
            self._start_fetch()
        found = self._matching(algorithm, kid)
        if not found and age < STALE:
            await self._refresh()
            found = self._matching(algorithm, kid)
        return found

    async def close(self) -> None:
        """Stop fetching keys."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    def _matching(self, algorithm: str, kid: str | None) -> Sequence[Key]:
        candidates = (each for each in self._keys if kid is None or each.kid == kid)
        return [each.key for each in candidates if algorithm in each.algorithms][:MAX_TRIED]

    async def _refresh(self) -> None:
        """Wait for the fetch in progress, or start one. Do nothing if the last one started less than PAUSE ago."""
        fetching = self._start_fetch()
        if fetching is not None:
            await asyncio.shield(fetching)  # other callers may wait for it, too

    def _start_fetch(self) -> asyncio.Task[None] | None:
        if self._fetching is None and self._clock() - self._tried >= PAUSE:
            self._tried = self._clock()
            self._fetching = asyncio.create_task(self._fetch_keys())
        return self._fetching

    async def _fetch_keys(self) -> None:
        try:
            url = self._issuer.jwks_url or await self._discover_url()
            self._keys = parse_jwks(await self._fetch(url, MAX_BYTES))
            self._fetched, self.failure = self._clock(), ""
        except HoldfastError as error:
            self.failure = str(error)
            log.warning("could not fetch the keys of %s: %s", self._issuer.issuer, error)
        finally:
            self._fetching = None

    async def _discover_url(self) -> str:
        """Return the URL of the keys from the issuer's metadata (OpenID Connect Discovery, RFC 8414)."""
        issuer = self._issuer.issuer
        parts = urlsplit(issuer.rstrip("/"))
        try:
            data = await self._fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration", MAX_BYTES)
        except (NotFound, InvalidInput):
            place = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server{parts.path}"
            data = await self._fetch(place, MAX_BYTES)
        metadata = _decode_object(data)
        url = metadata.get("jwks_uri")
        if metadata.get("issuer") != issuer:
            raise Unavailable("its metadata names another issuer", next="Check access.issuers.")
        if not isinstance(url, str) or not is_url(url.partition("?")[0]):
            raise Unavailable("its metadata has no valid jwks_uri", next="Set jwks_url in access.issuers.")
        if parts.scheme == "https" and not url.startswith("https://"):
            raise Unavailable("the jwks_uri in its metadata does not use TLS", next="Set jwks_url in access.issuers.")
        return url


def parse_jwks(data: bytes) -> Sequence[PublicKey]:
    """Return the keys of a JWKS that can verify signatures. Skips other keys."""
    given = _decode_object(data).get("keys")
    keys = cast(list[object], given) if isinstance(given, list) else []
    found = [
        key for each in keys[:MAX_KEYS] if isinstance(each, dict) and (key := _public_key(cast(dict[str, Any], each)))
    ]
    if not found:
        raise Unavailable(
            "the issuer publishes no key that can verify signatures", next="Check jwks_url in access.issuers."
        )
    return found


def _public_key(jwk: dict[str, Any]) -> PublicKey | None:
    """Return the public part of a signature key, None for other keys. A published shared secret proves nothing."""
    operations = jwk.get("key_ops")
    if jwk.get("use") not in (None, "sig") or (isinstance(operations, list) and "verify" not in operations):
        return None
    members = {name: value for name in PARTS if isinstance(value := jwk.get(name), str)}
    key: Key | None = None
    with suppress(JoseError, ValueError, TypeError, KeyError):
        match members.get("kty"):
            case "RSA":
                rsa = RSAKey.import_key({**members})
                key = rsa if rsa.public_key.key_size >= MIN_RSA_BITS else None
            case "EC":
                key = ECKey.import_key({**members})
            case "OKP":
                key = OKPKey.import_key({**members})
            case _:
                pass
    if key is None:
        return None
    algorithms = FITS.get(members["kty"]) or FITS.get(members.get("crv", "")) or frozenset()
    if "alg" in jwk:
        algorithms = frozenset(name for name in algorithms if name == jwk["alg"])
    kid = jwk.get("kid")
    return PublicKey(key, kid if isinstance(kid, str) else None, algorithms)


def _decode_object(data: bytes) -> dict[str, Any]:
    try:
        value = parse(data)
    except HoldfastError:
        value = None
    if not isinstance(value, dict):
        raise Unavailable("the issuer's response is not a JSON object", next="Check access.issuers.")
    return cast(dict[str, Any], value)
