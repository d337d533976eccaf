"""Authentication: by API key, issuer's token, token of `server.json`, browser session, or local access."""

import asyncio
import hmac
import logging
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import Context
from dataclasses import replace
from time import monotonic

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from holdfast.access.keys import Keys
from holdfast.access.principals import LOCAL_USER, OWNER_SCOPES, SCOPES, Principal
from holdfast.access.tenants import Tenants
from holdfast.access.tokens import Tokens, is_token
from holdfast.core.errors import HoldfastError, InvalidInput, Overloaded, Unauthenticated, Unavailable
from holdfast.server.host_origin import is_local

COOKIE = "holdfast_session"
LOCAL_TENANT = "default"
MAX_NAME = 255
ASKED_AGAIN = 0.5  # seconds for which the check of a long-lived connection is cached
LOOK = 0.4  # seconds between two checks of all long-lived connections, so that revoked access ends within a second
AT_ONCE = 100  # callers that are checked before other tasks can run

log = logging.getLogger(__name__)


class Authentication:
    """Authenticates callers.

    Without a key, only a caller on this machine has access, as the user `local` and owner of the tenant `default`. This
    local access ends when the first key is created. It also needs that no token issuer is configured, that the server
    listens on loopback, and that the settings do not require a key. A wrong key or token never gets local access.
    """

    def __init__(self, keys: Keys, tokens: Tokens, tenants: Tenants, *, token: str, allow_local: bool) -> None:
        self._keys = keys
        self._tokens = tokens
        self._tenants = tenants
        self._token = token.encode()
        self._allow_local = allow_local and not tokens.any_issuer
        self.watch = AccessWatch(self)

    async def authenticate(self, connection: HTTPConnection) -> Principal:
        """Return the caller, in the tenant and as the user that its headers name."""
        headers = connection.headers
        principal = await self._authenticate(connection)
        tenant = _name(headers, "holdfast-tenant")
        if tenant is not None:
            principal.require("operator")  # before the lookup, so that others cannot find out which tenants exist
            principal = principal.in_tenant(await self._tenants.id_of(tenant))
        user = _name(headers, "holdfast-user")
        return principal if user is None else principal.acting_as(user)

    async def renew(self, connections: Iterable[HTTPConnection]) -> None:
        """Check again, in one statement, whether the keys of these connections are valid."""
        given = {text for connection in connections if (text := self._key_of(connection)) is not None}
        if given:
            await self._keys.renew(given)

    def _key_of(self, connection: HTTPConnection) -> str | None:
        if "authorization" not in connection.headers:
            return connection.cookies.get(COOKIE)
        text = _bearer(connection.headers)
        return None if self._tokens.any_issuer and is_token(text) else text

    async def _authenticate(self, connection: HTTPConnection) -> Principal:
        if "authorization" in connection.headers:
            return await self._by_bearer(_bearer(connection.headers))
        session = connection.cookies.get(COOKIE)
        if session is not None:
            try:
                return await self._keys.authenticate(session)
            except Unauthenticated:
                # Cookies are not bound to ports: it may be of another server on this machine.
                pass
        if self._allow_local and _is_here(connection) and not await self._keys.any_exists():
            return replace(await self._local(OWNER_SCOPES), local=True)
        raise Unauthenticated(
            "a key is needed",
            why="local access without one has ended here, or the call came from elsewhere",
            next="Send `Authorization: Bearer <key>`; `holdfast keys create` makes one, `holdfast keys link` a link.",
        )

    async def _by_bearer(self, text: str) -> Principal:
        if hmac.compare_digest(text.encode(), self._token):
            return await self._local(SCOPES)
        if self._tokens.any_issuer and is_token(text):
            return await self._tokens.authenticate(text)
        return await self._keys.authenticate(text)

    async def _local(self, scopes: frozenset[str]) -> Principal:
        return Principal(await self._tenants.id_of(LOCAL_TENANT), LOCAL_USER, scopes)


class CallerSession:
    """The caller of a connection. It is checked again while the connection lasts.

    A stream or a socket ends when the key, token or session that opened it ends.
    """

    def __init__(self, authentication: Authentication, connection: HTTPConnection, caller: Principal) -> None:
        self._authentication = authentication
        self._connection = connection
        self._asked = monotonic()
        self.caller = caller

    @contextmanager
    def watched(self) -> Generator["asyncio.Future[HoldfastError]"]:
        """Check the caller periodically. The future is done when access has ended, with the reason."""
        ended: asyncio.Future[HoldfastError] = asyncio.get_running_loop().create_future()
        self._authentication.watch.add(self, ended)
        try:
            yield ended
        finally:
            self._authentication.watch.remove(self)

    @property
    def connection(self) -> HTTPConnection:
        """The connection."""
        return self._connection

    @property
    def credentials(self) -> tuple[str | None, ...]:
        """The headers that identify the caller. Connections with equal ones have the same caller."""
        headers = self._connection.headers
        return tuple(headers.get(name) for name in ("authorization", "cookie", "holdfast-tenant", "holdfast-user"))

    async def check(self) -> None:
        """Raise an error if the caller's access has ended. The result is cached for `ASKED_AGAIN` seconds."""
        if monotonic() - self._asked < ASKED_AGAIN:
            return
        self.compare(await self._authentication.authenticate(self._connection))
        self._asked = monotonic()

    def compare(self, caller: Principal) -> None:
        """Raise an error if the caller or its scopes have changed."""
        if caller != self.caller:
            raise Unauthenticated(
                "your access has ended",
                why="the key, token or session was revoked or has expired",
                next="Authenticate again.",
            )


class AccessWatch:
    """Checks all long-lived connections, and ends those whose key, token or session has ended, in any process.

    Each check runs one statement for all keys. Without long-lived connections there are no checks.
    """

    def __init__(self, authentication: Authentication) -> None:
        self._authentication = authentication
        self._staying: dict[CallerSession, asyncio.Future[HoldfastError]] = {}
        self._looking: asyncio.Task[None] | None = None

    def add(self, standing: CallerSession, ended: "asyncio.Future[HoldfastError]") -> None:
        """Start to check a caller."""
        self._staying[standing] = ended
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="access of those who stay", context=Context())

    def remove(self, standing: CallerSession) -> None:
        """Stop checking a caller."""
        self._staying.pop(standing, None)
        if not self._staying and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self._look_at_all()
            except (Unavailable, Overloaded) as error:  # a failed check ends no connection
                log.warning("access of those who stay cannot be looked at, trying again: %s", error)
            except Exception:
                log.exception("internal error: could not check the access of open connections; retrying")

    async def _look_at_all(self) -> None:
        alike: dict[tuple[str | None, ...], list[CallerSession]] = {}
        for standing in self._staying:
            alike.setdefault(standing.credentials, []).append(standing)
        await self._authentication.renew(standings[0].connection for standings in alike.values())
        for number, standings in enumerate(alike.values()):
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            caller = await self._caller_now(standings[0])
            for standing in standings:
                self._compare(standing, caller)

    async def _caller_now(self, standing: CallerSession) -> Principal | HoldfastError:
        try:
            return await self._authentication.authenticate(standing.connection)
        except (Unavailable, Overloaded):
            raise
        except HoldfastError as error:
            return error

    def _compare(self, standing: CallerSession, now: Principal | HoldfastError) -> None:
        ended = self._staying.get(standing)
        if ended is None or ended.done():
            return
        try:
            if isinstance(now, HoldfastError):
                raise now
            standing.compare(now)
        except HoldfastError as error:
            ended.set_result(error)


def _bearer(headers: Headers) -> str:
    given = headers.getlist("authorization")
    scheme, _, key = given[0].partition(" ")
    key = key.strip()
    if len(given) > 1 or scheme.lower() != "bearer" or not key:
        raise Unauthenticated(
            "the Authorization header cannot be read",
            why="it is not `Bearer <key>`",
            next="Send exactly one, of that form.",
        )
    return key


def _is_here(connection: HTTPConnection) -> bool:
    return connection.client is not None and is_local(connection.client.host, connection.headers)


def _name(headers: Headers, header: str) -> str | None:
    given = headers.getlist(header)
    if not given:
        return None
    try:
        # Starlette decodes headers as Latin-1, but clients send UTF-8.
        name = given[0].encode("latin-1").decode()
    except UnicodeDecodeError:
        name = ""
    if len(given) > 1 or not name or len(name) > MAX_NAME:
        raise InvalidInput(
            f"the header {header} cannot be used",
            why=f"it is not one name of 1 to {MAX_NAME} characters in UTF-8",
            next="Correct it.",
        )
    return name
