"""Discovery: which authorization server gives tokens for a source, and for what it is asked.

A REST back end's source names its issuer, or the two endpoints. An MCP server names its issuer itself: in the challenge
to a request without a token, and in its metadata (RFC 9728).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from holdfast.core.errors import HoldfastError, InvalidInput, Unavailable
from holdfast.core.issuers import is_url
from holdfast.execution.consent.web import ask
from holdfast.execution.egress import Egress, checked_url
from holdfast.execution.identity.authorization_servers import AuthorizationServer, AuthorizationServers
from holdfast.execution.identity.token_endpoint import scopes_of
from holdfast.postgres.database import Row
from holdfast.skills.request import Backend, BackendIdentity

METADATA = "/.well-known/oauth-protected-resource"
OK, UNAUTHORIZED = 200, 401
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

_BEARER = re.compile(r"(?:\A|,)\s*bearer(?=\s|\Z)", re.IGNORECASE)
_PARAMETER = re.compile(r'([a-zA-Z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


@dataclass(frozen=True, slots=True)
class ConsentSource:
    """A source whose back end needs the consent of users."""

    id: object
    name: str
    backend: Backend
    identity: BackendIdentity

    @classmethod
    def of(cls, row: Row) -> "ConsentSource":
        """Read a row."""
        backend = msgspec.structs.replace(msgspec.convert(row["backend"], Backend), source=row["name"])
        assert backend.identity is not None
        return cls(row["source_id"], row["name"], backend, backend.identity)

    @property
    def host(self) -> str:
        """The host and port that gets tokens; an empty text if the source does not say."""
        return urlsplit(self._address).netloc

    @property
    def address(self) -> str:
        """Where its back end is. Only the origin of this address gets tokens."""
        if not (address := self._address):
            raise InvalidInput(
                f"users cannot connect with {self.name}",
                why="its source has no base URL, so that nobody can say who gets their tokens",
                next="Set it: `holdfast sources change NAME --base-url URL`.",
            )
        return address

    @property
    def _address(self) -> str:
        return (self.backend.mcp.url if self.backend.mcp is not None else self.backend.base_url) or ""

    @property
    def origin(self) -> str:
        """The scheme, host and port that gets tokens."""
        return str(checked_url(self.address).origin())


class UpstreamResource(msgspec.Struct, frozen=True):
    """The metadata of a protected resource (RFC 9728)."""

    resource: str
    authorization_servers: tuple[str, ...] = ()
    scopes_supported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsentTarget:
    """Where a user consents: the authorization server, and what is asked of it."""

    server: AuthorizationServer
    scopes: tuple[str, ...]
    resource: str

    @property
    def authorize_url(self) -> str:
        """Where the user's browser goes."""
        return _required(self.server, self.server.authorization_endpoint, "authorization_endpoint")

    @property
    def token_url(self) -> str:
        """Where codes and refresh tokens are exchanged."""
        return _required(self.server, self.server.token_endpoint, "token_endpoint")


class ConsentDiscovery:
    """Finds the authorization server of a source."""

    def __init__(self, egress: Egress, servers: AuthorizationServers) -> None:
        self._egress = egress
        self._servers = servers

    async def find(self, source: ConsentSource) -> ConsentTarget:
        """Return where a user consents to calls of this source."""
        identity = source.identity
        if source.backend.mcp is not None and not identity.issuer and not identity.authorize_url:
            return await self._of_mcp_server(source)
        if identity.issuer:
            server = await self._servers.find(identity.issuer)
        else:
            server = AuthorizationServer("")
        server = msgspec.structs.replace(
            server,
            authorization_endpoint=identity.authorize_url or server.authorization_endpoint,
            token_endpoint=identity.token_url or server.token_endpoint,
        )
        resource = identity.resource
        if not resource and source.backend.mcp is not None:
            resource = source.address
        return ConsentTarget(server, identity.scopes, resource)

    async def _of_mcp_server(self, source: ConsentSource) -> ConsentTarget:
        """Ask a server for its challenge, its metadata, and those of its authorization server."""
        answer = await ask(self._egress, "POST", source.address, PING)
        challenge = challenge_of(answer.challenges) if answer.status == UNAUTHORIZED else {}
        resource = await self._metadata(source, challenge.get("resource_metadata", ""))
        if not resource.authorization_servers:
            raise _undiscovered(source, "its metadata name no authorization server")
        server = await self._servers.find(resource.authorization_servers[0])
        if "S256" not in server.code_challenge_methods_supported:
            raise _undiscovered(source, "its authorization server does not support PKCE (S256)")
        said = scopes_of(challenge.get("scope", "")) or scopes_of(" ".join(resource.scopes_supported))
        return ConsentTarget(server, source.identity.scopes or said, source.identity.resource or resource.resource)

    async def _metadata(self, source: ConsentSource, named: str) -> UpstreamResource:
        why = "it has no metadata of a protected resource"
        for url in [named] if named else well_known(source.address):
            if not is_url(url):
                raise _undiscovered(source, "its challenge names metadata at something that is not a URL")
            answer = await ask(self._egress, "GET", url)
            if answer.status != OK:
                why = f"its metadata were answered with status {answer.status}"
                continue
            try:
                found = msgspec.convert(answer.fields, UpstreamResource)
            except msgspec.ValidationError:
                why = "its metadata are not those of a protected resource"
                continue
            if not covers(found.resource, source.address):
                raise _undiscovered(source, f"its metadata are those of {found.resource[:200]}")
            return found
        raise _undiscovered(source, why)


def challenge_of(header: str) -> dict[str, str]:
    """Return the parameters of the first challenge for bearer tokens; none if there is no such challenge."""
    begin = _BEARER.search(header)
    if begin is None:
        return {}
    pairs = _PARAMETER.findall(header, begin.end())
    return {name.lower(): re.sub(r"\\(.)", r"\1", quoted) or plain for name, quoted, plain in reversed(pairs)}


def well_known(url: str) -> Iterator[str]:
    """Yield where the metadata of a protected resource may be, in the order in which clients look."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    if parts.path.strip("/"):
        yield f"{origin}{METADATA}{parts.path}"
    yield f"{origin}{METADATA}"


def covers(resource: str, url: str) -> bool:
    """Whether an address belongs to a protected resource: it is the same, or below it."""
    try:
        one, other = checked_url(resource), checked_url(url)
    except (HoldfastError, ValueError):
        return False
    path = one.path.rstrip("/")
    return one.origin() == other.origin() and (other.path.rstrip("/") == path or other.path.startswith(f"{path}/"))


def _required(server: AuthorizationServer, url: str | None, name: str) -> str:
    if url is None:
        what = f"the authorization server {server.issuer[:200]}" if server.issuer else "the source"
        raise Unavailable(f"{what} cannot be used", why=f"it has no {name}", next="Set the issuer of the source.")
    return url


def _undiscovered(source: ConsentSource, why: str) -> Unavailable:
    next = "Set the issuer of the source, or give it a secret instead."
    return Unavailable(f"users cannot connect with {source.name}: {why}", next=next)


def supported(methods: Sequence[str], wanted: str) -> bool:
    """Whether a server supports a method; it does if it does not say."""
    return not methods or wanted in methods
