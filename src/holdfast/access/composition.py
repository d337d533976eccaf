"""Opens the part of access control that all tenants share."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from holdfast.access.jwks import Fetch
from holdfast.access.keys import Keys
from holdfast.access.secret import installation_secret
from holdfast.access.tenants import Tenants
from holdfast.access.tokens import Tokens
from holdfast.core.config import Config
from holdfast.postgres.database import Postgres
from holdfast.postgres.folder import DataFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAccess:
    """The secret of the installation, its tenants, and what verifies API keys and tokens."""

    secret: bytes
    tenants: Tenants
    keys: Keys
    tokens: Tokens


@asynccontextmanager
async def open_access(*, config: Config, postgres: Postgres, fetch: Fetch) -> AsyncGenerator[SharedAccess]:
    """Open it. `fetch` reads documents of the token issuers."""
    given = config.secret.get_secret_value() if config.secret else None
    secret = installation_secret(given, DataFolder(config.data).secret)
    tenants = Tenants(postgres.system)
    tokens = Tokens(config.access, tenants, fetch, resource=config.resource)
    try:
        yield SharedAccess(secret=secret, tenants=tenants, keys=Keys(postgres, secret), tokens=tokens)
    finally:
        await tokens.close()
