"""Composes users' consent: what all tenants share, and the part of each tenant."""

from dataclasses import dataclass

from holdfast.execution.consent.clients import OAuthClients
from holdfast.execution.consent.connections import ConsentStates, UserConnections
from holdfast.execution.consent.discovery import ConsentDiscovery
from holdfast.execution.consent.grants import GrantSeal
from holdfast.execution.consent.user_tokens import TokenCache, UserTokens
from holdfast.execution.egress import Egress
from holdfast.execution.identity.authorization_servers import AuthorizationServers
from holdfast.execution.identity.token_endpoint import TokenEndpoint
from holdfast.execution.rest.runner import Secrets
from holdfast.postgres.database import Database


class SharedConsent:
    """What the connections of all tenants share. `address` is the public URL of the server, if the settings name it."""

    def __init__(self, egress: Egress, servers: AuthorizationServers, secret: bytes, *, address: str | None) -> None:
        self.states = ConsentStates(secret)
        self._egress = egress
        self._endpoint = TokenEndpoint(egress)
        self._discovery = ConsentDiscovery(egress, servers)
        self._seal = GrantSeal(secret)
        self._cache = TokenCache()
        self._address = address

    async def close(self) -> None:
        """Wait for the refreshes in progress."""
        await self._cache.close()

    def of(self, database: Database, secrets: Secrets) -> "TenantConsent":
        """Return the part of a tenant."""
        clients = OAuthClients(database, self._egress, secrets, self._seal)
        tokens = UserTokens(database, self._endpoint, clients, self._seal, self._cache, address=self._address)
        connections = UserConnections(
            database, self._discovery, clients, self._endpoint, tokens, self._seal, self.states
        )
        return TenantConsent(connections, tokens)


@dataclass(frozen=True, slots=True)
class TenantConsent:
    """The connections of one tenant's users, and their tokens."""

    connections: UserConnections
    tokens: UserTokens
