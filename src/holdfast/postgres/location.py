"""Where the database is: the embedded server, or the server that the settings name; and how to connect to it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from holdfast.core.config import Config
from holdfast.core.errors import HoldfastError
from holdfast.postgres.database import Postgres, open_owner
from holdfast.postgres.database_errors import REFUSED_LOGIN
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.postgres.options import Options
from holdfast.postgres.tenancy import check_row_security, ensure_login

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """The URL of the database's owner, the options of connections, and the embedded server, if one is used."""

    owner_url: str
    options: Options
    embedded: EmbeddedServer | None


@asynccontextmanager
async def open_location(config: Config, progress: Progress) -> AsyncGenerator[DatabaseLocation]:
    """Hold the embedded server, and start it if necessary; or use the server that the settings name."""
    settings = config.database
    if settings.url is not None:
        owner = settings.owner_url or settings.url
        yield DatabaseLocation(owner.get_secret_value(), _options(config, None), None)
        return
    server = EmbeddedServer(config.data)
    progress(f"starting PostgreSQL in {server.folder.root}")
    start_task = asyncio.ensure_future(asyncio.to_thread(server.hold))
    try:
        await asyncio.shield(start_task)
    except asyncio.CancelledError:
        start_task.add_done_callback(lambda done: done.cancelled() or done.exception() or server.release())
        raise
    try:
        yield DatabaseLocation(server.url, _options(config, lambda: asyncio.to_thread(server.ensure)), server)
    finally:
        server.release()


def connect(config: Config, place: DatabaseLocation, url: str, *, pool_size: int | None = None) -> Postgres:
    """Return connections that run the statements of tenants at `url`. `pool_size` replaces the one of the settings."""
    listen_url = config.database.listen_url
    return Postgres(
        url,
        place.options if pool_size is None else replace(place.options, pool_size=pool_size),
        owner_url=place.owner_url,
        listen_url=listen_url.get_secret_value() if listen_url else None,
    )


async def check_login(config: Config, place: DatabaseLocation, postgres: Postgres) -> None:
    """Raise Forbidden if row-level security does not hold the login."""
    try:
        await check_row_security(postgres.system)
    except HoldfastError as error:
        # The password of the login is derived from the owner's. If the owner's has changed, renew the login's.
        if error.details.get("sqlstate") not in REFUSED_LOGIN or config.database.owner_url is not None:
            raise
        async with open_owner(place.owner_url, place.options) as owner:
            await ensure_login(owner, place.owner_url, by_account=place.embedded is not None, renew=True)
        await check_row_security(postgres.system)


def _options(config: Config, revive: Callable[[], Awaitable[None]] | None) -> Options:
    settings = config.database
    return Options(
        tenancy=settings.tenancy,
        pool_size=settings.pool_size,
        statement_cache_size=settings.statement_cache_size,
        connect_timeout=settings.connect_timeout,
        host_timeout=settings.host_timeout,
        acquire_timeout=settings.acquire_timeout,
        statement_timeout=settings.statement_timeout,
        lock_timeout=settings.lock_timeout,
        tenant_share=config.limits.tenant_share,
        user_share=config.limits.user_share,
        revive=revive,
    )
