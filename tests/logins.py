"""Tenants' own logins, and LangChain's own client on them."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg
from langchain_postgres import PostgresChatMessageHistory

from holdfast.conversations import Node
from holdfast.core.ids import TenantId
from holdfast.engine import Engine
from holdfast.postgres.database import OwnerConnection
from holdfast.postgres.logins import LoginLimits, TenantLogins

VIEW = "chat_message_history"
Connection = psycopg.Connection[Any]


class Login:
    """A tenant's login, and the engine's services of the same tenant."""

    def __init__(self, url: str, engine: Engine, connections: AsyncExitStack) -> None:
        self.url = url
        self.engine = engine
        self._connections = connections
        self._at_hand: Connection | None = None

    def connect(self) -> Connection:
        """One more connection."""
        connection: Connection = psycopg.connect(self.url)
        self._connections.callback(connection.close)
        return connection

    def at_hand(self) -> Connection:
        """A connection for all who do not need their own."""
        self._at_hand = self._at_hand or self.connect()
        return self._at_hand

    def history(self, session: str, connection: Connection | None = None) -> PostgresChatMessageHistory:
        """A session's history, on a connection of its own unless there is one."""
        return PostgresChatMessageHistory(VIEW, session, sync_connection=connection or self.connect())

    async def async_history(self, session: str) -> PostgresChatMessageHistory:
        """The same for asyncio."""
        connection = await psycopg.AsyncConnection.connect(self.url)
        self._connections.push_async_callback(connection.close)
        return PostgresChatMessageHistory(VIEW, session, async_connection=connection)

    async def nodes(self, session: str) -> list[Node]:
        """The session as the engine reads it."""
        talk = await self.engine.conversations.find(session_id=session)
        return [] if talk is None else await self.engine.conversations.since(talk.id, 0, native="langchain")


@asynccontextmanager
async def tenant_login(engine: Engine, name: str) -> AsyncGenerator[Login]:
    """A new tenant with its login."""
    tenant = await engine.tenants.create(name)
    async with login_of(engine.tenant(name), tenant.id) as login:
        yield login


@asynccontextmanager
async def login_of(engine: Engine, tenant: TenantId) -> AsyncGenerator[Login]:
    """The login of a tenant, which belongs to the server and so has to be removed."""
    async with engine.postgres.owner() as owner:
        logins = tenant_logins(engine, owner)
        url = await logins.ensure(tenant)
        async with AsyncExitStack() as connections:
            yield Login(url, engine, connections)
        await logins.remove(tenant)


def tenant_logins(engine: Engine, owner: OwnerConnection, *, secret: bytes = b"secret", **limits: Any) -> TenantLogins:
    """The service for tenants' logins."""
    return TenantLogins(owner, engine.place.owner_url, secret, LoginLimits(**limits))
