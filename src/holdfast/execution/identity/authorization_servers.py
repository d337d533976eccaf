"""Metadata of OAuth authorization servers (RFC 8414, OpenID Connect Discovery): where their endpoints are."""

from collections.abc import Iterator
from time import monotonic
from typing import cast
from urllib.parse import urlsplit

import msgspec

from holdfast.core.errors import Forbidden, HoldfastError, InvalidInput, NotFound, Unavailable
from holdfast.core.issuers import is_url
from holdfast.core.text import parse
from holdfast.execution.documents import Documents
from holdfast.execution.egress import Egress
from holdfast.execution.identity.expiring_cache import ExpiringCache

TIMEOUT = 10.0  # seconds, for each document
FRESH = 600.0  # seconds for which metadata are used
MAX_BYTES = 256 * 1024
MAX_SERVERS = 1000


class AuthorizationServer(msgspec.Struct, frozen=True):
    """The metadata of an authorization server. An endpoint that it does not have is None."""

    issuer: str
    token_endpoint: str | None = None
    authorization_endpoint: str | None = None
    revocation_endpoint: str | None = None
    registration_endpoint: str | None = None
    jwks_uri: str | None = None
    scopes_supported: tuple[str, ...] = ()
    grant_types_supported: tuple[str, ...] = ()
    code_challenge_methods_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = ()
    authorization_response_iss_parameter_supported: bool = False
    client_id_metadata_document_supported: bool = False


ENDPOINTS = ("token_endpoint", "authorization_endpoint", "revocation_endpoint", "registration_endpoint", "jwks_uri")


class AuthorizationServers:
    """Fetches the metadata of authorization servers, and keeps them for ten minutes."""

    def __init__(self, egress: Egress, *, timeout: float = TIMEOUT) -> None:
        self._documents = Documents(egress, timeout=timeout)
        self._known = ExpiringCache[str, AuthorizationServer](most=MAX_SERVERS, clock=monotonic)

    async def find(self, issuer: str) -> AuthorizationServer:
        """Return the metadata of an issuer. Raise Unavailable if it has none, or those of another issuer."""
        return await self._known.get(issuer, lambda: self._fetch(issuer))

    async def token_url(self, issuer: str) -> str:
        """Return the token endpoint of an issuer."""
        found = (await self.find(issuer)).token_endpoint
        if found is None:
            raise _unusable(issuer, "they name no token_endpoint", "Set the token URL of the source.")
        return found

    async def close(self) -> None:
        """End the requests in progress."""
        await self._known.close()

    async def _fetch(self, issuer: str) -> tuple[AuthorizationServer, float]:
        failure: HoldfastError | None = None
        for url in metadata_urls(issuer):
            try:
                return read_metadata(issuer, await self._documents.fetch(url, MAX_BYTES)), FRESH
            except (NotFound, InvalidInput) as error:
                failure = failure or error
            except Forbidden:
                raise
            except HoldfastError as error:
                raise _unusable(issuer, error.why or error.what) from None
        assert failure is not None
        raise _unusable(issuer, failure.why or failure.what)


def metadata_urls(issuer: str) -> Iterator[str]:
    """Yield where the metadata of an issuer may be, in the order in which clients look."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    yield f"{origin}/.well-known/oauth-authorization-server{path}"
    yield f"{origin}{path}/.well-known/openid-configuration"
    if path:
        yield f"{origin}/.well-known/openid-configuration{path}"


def read_metadata(issuer: str, data: bytes) -> AuthorizationServer:
    """Return the metadata in a document. Raise InvalidInput if it is none, and Unavailable for another issuer's."""
    try:
        given: object = parse(data, limit=MAX_BYTES)
        members = cast(dict[str, object], given) if isinstance(given, dict) else {}
        named = {name: value for name, value in members.items() if value is not None}
        found = msgspec.convert(named, AuthorizationServer)
    except (HoldfastError, msgspec.ValidationError):
        raise InvalidInput("it is not the metadata of an authorization server") from None
    if found.issuer.rstrip("/") != issuer.rstrip("/"):
        raise Unavailable("they are those of another issuer", next="Correct the issuer of the source.")
    for name in ENDPOINTS:
        endpoint = getattr(found, name)
        if endpoint is None:
            continue
        if not is_url(endpoint.partition("?")[0]):
            raise Unavailable(f"their {name} is not a URL")
        if issuer.startswith("https:") and not endpoint.startswith("https:"):
            raise Unavailable(f"their {name} does not use TLS, although the issuer does")
    return found


def _unusable(issuer: str, why: str, next: str = "Check the issuer, or set its URLs.") -> Unavailable:
    return Unavailable(f"the metadata of the authorization server {issuer[:200]} cannot be used", why=why, next=next)
