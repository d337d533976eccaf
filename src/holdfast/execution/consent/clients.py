"""Clients: as whom this installation asks authorization servers for tokens of users.

In this order: the client of the source's settings; a document that we publish, whose address is the client id (Client
ID Metadata Documents); a client that we register by ourselves (RFC 7591, deprecated by MCP).
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from holdfast.core.errors import Unavailable
from holdfast.execution.consent.discovery import ConsentSource, ConsentTarget, supported
from holdfast.execution.consent.grants import GrantSeal, StoredClient
from holdfast.execution.consent.web import ask
from holdfast.execution.egress import Egress, is_private
from holdfast.execution.identity.token_endpoint import OAuthClient
from holdfast.execution.rest.runner import Secrets, secret_values
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

NAME = "Holdfast"
CALLBACK = "/oauth/callback"
DOCUMENT = "/oauth/client.json"
MAX_ID = 2000  # characters
CREATED = (200, 201)

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class PublicAddress:
    """The public URL of this server, to which browsers come back."""

    base: str

    @property
    def callback(self) -> str:
        """Where an authorization server sends the browser."""
        return f"{self.base}{CALLBACK}"

    @property
    def document(self) -> str:
        """Where our metadata are, which is also our client id."""
        return f"{self.base}{DOCUMENT}"

    @property
    def is_public(self) -> bool:
        """Whether an authorization server elsewhere can fetch the document: it needs TLS, by the rules for it."""
        return self.base.startswith("https://")

    def metadata(self) -> dict[str, Any]:
        """Return our metadata, as a document says them and as we register them."""
        return {
            "client_name": NAME,
            "redirect_uris": [self.callback],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }


class OAuthClients:
    """Chooses the client for an authorization server, and registers it if nothing else is left."""

    def __init__(self, database: Database, egress: Egress, secrets: Secrets, seal: GrantSeal) -> None:
        self._database = database
        self._egress = egress
        self._secrets = secrets
        self._seal = seal

    async def choose(self, source: ConsentSource, target: ConsentTarget, address: PublicAddress) -> StoredClient:
        """Return the client as which a user's tokens are requested."""
        identity, server = source.identity, target.server
        if identity.client_id:
            auth = identity.client_auth if identity.client_secret else "none"
            return StoredClient(identity.client_id, auth, secret_name=identity.client_secret)
        methods = server.token_endpoint_auth_methods_supported
        if server.client_id_metadata_document_supported and address.is_public and supported(methods, "none"):
            return StoredClient(address.document)
        if server.registration_endpoint is not None:
            return await self._registered(server.issuer, server.registration_endpoint, target, address)
        raise Unavailable(
            f"users cannot connect with {source.name}: the authorization server does not know this installation",
            next="Register it there, with the redirect URI "
            f"{address.callback}, and set the client id: `holdfast sources change {source.name} --client-id ID`.",
        )

    async def authenticated(self, client: StoredClient, source: str, token_url: str) -> OAuthClient:
        """Return a client with its secret, if that may be sent to this token endpoint."""
        secret = client.secret
        if client.secret_name:
            host = urlsplit(token_url).hostname or ""
            values = await secret_values(self._secrets, [client.secret_name], lambda: host, f"the source {source}")
            secret = values[client.secret_name]
        return OAuthClient(client.id, secret, client.auth)

    async def forget(self, issuer: str) -> None:
        """Forget the clients of a server that does not know one any more: the next connection registers anew."""
        await self._database.run(sql("remove_registration"), issuer)

    async def _registered(
        self, issuer: str, endpoint: str, target: ConsentTarget, address: PublicAddress
    ) -> StoredClient:
        tenant, place = await self._database.tenant(), ("registration", issuer, address.callback)
        row = await self._database.one(sql("registration"), issuer, address.callback)
        if row is not None and row["key_id"] == self._seal.key.id:
            return self._seal.open(StoredClient, row, tenant, *place)
        client = await self._register(endpoint, target, address)
        sealed = self._seal.seal(client, tenant, *place)
        await self._database.run(sql("put_registration"), issuer, address.callback, sealed, self._seal.key.id)
        return client

    async def _register(self, endpoint: str, target: ConsentTarget, address: PublicAddress) -> StoredClient:
        host = urlsplit(address.base).hostname or ""
        local = host == "localhost" or _is_private(host)
        methods = target.server.token_endpoint_auth_methods_supported
        method = "none" if supported(methods, "none") else "client_secret_basic"
        wanted = {
            **address.metadata(),
            "token_endpoint_auth_method": method,
            "application_type": "native" if local else "web",
            **({"scope": " ".join(target.scopes)} if target.scopes else {}),
        }
        answer = await ask(self._egress, "POST", endpoint, wanted)
        id, secret = answer.fields.get("client_id"), answer.fields.get("client_secret", "")
        method = answer.fields.get("token_endpoint_auth_method", method)
        usable = isinstance(id, str) and 0 < len(id) <= MAX_ID and isinstance(secret, str) and method in _METHODS
        if answer.status not in CREATED or not usable or (method != "none" and not secret):
            error = str(answer.fields.get("error", ""))[:100]
            raise Unavailable(
                f"the authorization server {urlsplit(endpoint).hostname} does not register this installation: "
                f"it answered with status {answer.status}{f', {error}' if error.isprintable() and error else ''}",
                next="Register it there by hand, and set the client id of the source.",
            )
        auth = _METHODS[method]
        return StoredClient(str(id), auth, secret=secret if auth != "none" else "", registered=True)


_METHODS: Any = {"none": "none", "client_secret_basic": "basic", "client_secret_post": "post"}


def _is_private(host: str) -> bool:
    try:
        return is_private(host)
    except ValueError:
        return False
