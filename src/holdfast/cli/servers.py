"""Finds the server of a command: the one that is named, the one on the data folder, or one started for the command.

In the last two cases, it uses the database that the settings name, and no other.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.cli.invocation import Invocation
from holdfast.core.config import DEFAULT, Config
from holdfast.core.errors import BadSetting, InvalidInput, NotFound, Unavailable
from holdfast.core.threads import run_in_thread

if TYPE_CHECKING:
    from holdfast.engine import Engine
    from holdfast.server.server_file import ServerFile

Headers = dict[str, bytes]

URL, KEY = "HOLDFAST_SERVER_URL", "HOLDFAST_KEY"


@dataclass(frozen=True, slots=True)
class Server:
    """A server and the headers that identify the caller. `socket` is its Unix socket, used instead of the URL."""

    url: str
    headers: Headers
    socket: str | None = None


@dataclass(frozen=True, slots=True)
class FoundServer:
    """The server of a command. `again` looks it up again: after a restart it has another port and token."""

    server: Server
    again: Callable[[], Server]


Serve = Callable[["Engine"], AbstractAsyncContextManager[object]]


@asynccontextmanager
async def find_server(
    invocation: Invocation,
    *,
    of_a_tenant: bool = True,
    user: str | None = None,
    running: bool = False,
    serve: Serve | None = None,
) -> AsyncGenerator[FoundServer]:
    """Find the command's server. If none runs, start one, unless it must already be `running`.

    `serve` makes the engine of a started server serve agents.
    """
    config = invocation.config()
    named = _named_server(invocation, config, user)
    if named is not None:
        _say_which(invocation, f"Asking the server at {named.url}.")
        yield FoundServer(named, lambda: named)
        return
    tenant = config.tenant if of_a_tenant else None

    def find() -> Server | None:
        file = _server_file(config)
        return None if file is None else Server(file.url, caller(file.token, tenant, user))

    def find_again() -> Server:
        server = find()
        if server is None:
            raise _no_server(config)
        return server

    server = await run_in_thread(find, name="server")
    if server is not None:
        _say_which(invocation, f"Asking the server at {server.url}, which runs on {config.data}.")
        yield FoundServer(server, find_again)
        return
    if running:
        raise _no_server(config)
    async with _own_server(invocation, config, tenant, user, serve) as own:
        yield FoundServer(own, lambda: own)


def caller(key: str | None, tenant: str | None, user: str | None) -> Headers:
    """Build the headers that identify the caller: its key, the tenant, and the user that it acts for."""
    headers: Headers = {}
    if key is not None:
        if not key.isascii() or not key.isprintable():
            raise BadSetting("the API key is invalid", why="it has characters that no key has", key=KEY)
        headers["authorization"] = f"Bearer {key}".encode()
    if tenant is not None:
        if not tenant.isprintable():  # it cannot be sent in a header
            raise NotFound(f"there is no tenant {tenant!r}", next="`holdfast tenants ls` lists them.")
        headers["holdfast-tenant"] = tenant.encode()
    if user is not None:
        if not user or not user.isprintable() or user != user.strip():
            raise InvalidInput(f"{user[:80]!r} is not a valid user name", next="Correct --user.")
        headers["holdfast-user"] = user.encode()
    return headers


def named_database(config: Config) -> str | None:
    """Return the database that the settings name, or None for the one in the data folder."""
    from holdfast.postgres.address import place_of

    return None if config.database.url is None else place_of(config.database.url.get_secret_value())


def _named_server(invocation: Invocation, config: Config, user: str | None) -> Server | None:
    """Return the server of --server or HOLDFAST_SERVER_URL. The key determines the tenant, unless one is named."""
    url = (invocation.server or os.environ.get(URL, "")).rstrip("/")
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        origin = "--server" if invocation.server else URL
        raise BadSetting(
            f"{url[:200]!r} is not the address of a server",
            next=f"Write {origin} as http://HOST:PORT or https://HOST.",
            key=origin,
        )
    tenant = None if config.origin("tenant") == DEFAULT else config.tenant
    return Server(url, caller(os.environ.get(KEY) or None, tenant, user))


def _server_file(config: Config) -> "ServerFile | None":
    """Return the server on the data folder; None if none runs, or if the settings name another database.

    Raise an error if the settings name no database but the server uses an external one. Otherwise the command would
    open an embedded database beside it, which nobody expects.
    """
    from holdfast.server.server_file import ServerFile

    server = ServerFile.read(config.data)
    if server is None or server.database == named_database(config):
        return server
    if config.database.url is None:
        raise BadSetting(
            f"the server on {config.data} uses the database {server.database}, and the settings name none",
            why="without HOLDFAST_DATABASE_URL the database in the data folder is meant",
            next="Set HOLDFAST_DATABASE_URL as the server has it, or choose another folder with --data DIR.",
        )
    return None


@asynccontextmanager
async def _own_server(
    invocation: Invocation, config: Config, tenant: str | None, user: str | None, serve: Serve | None
) -> AsyncGenerator[Server]:
    from holdfast.engine import open_engine
    from holdfast.server.serving import serve_privately

    # The command reports its own errors, and a search reports that it is degraded.
    for name in ("holdfast.server", "holdfast.embeddings", "holdfast.knowledge"):
        logging.getLogger(name).setLevel(logging.ERROR)
    async with AsyncExitStack() as stack:
        with invocation.output.progress() as progress:
            engine = await stack.enter_async_context(open_engine(config=config, progress=progress))
            if serve is not None:
                await stack.enter_async_context(serve(engine))
        _say_where(invocation, config)
        socket, token = await stack.enter_async_context(serve_privately(engine, config))
        yield Server("http://localhost", caller(token, tenant, user), str(socket))


def _say_which(invocation: Invocation, words: str) -> None:
    if invocation.verbose:
        invocation.output.say(words)


def _say_where(invocation: Invocation, config: Config) -> None:
    """Tell the user that no server runs, and which database is used."""
    named = named_database(config)
    if named is None:
        words = f"No server runs on {config.data}: asking its database."
    else:
        words = f"No server for the database {named} runs on {config.data}: asking the database."
    (invocation.output.say if invocation.verbose else invocation.output.hint)(words)


def _no_server(config: Config) -> Unavailable:
    """Return the error for a missing server."""
    named = named_database(config)
    beside = "" if named is None else f" with the database {named}"
    return Unavailable(f"no server runs on {config.data}{beside}", next="Start one with `holdfast up`.")
