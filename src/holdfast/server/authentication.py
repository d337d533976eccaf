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
from holdfast.access.principals import LOCAL_USER, OWNER_SCOPES, SCOPES, USER_SCOPES, Principal
from holdfast.access.tenants import Tenants
from holdfast.access.tokens import Tokens, is_token
from holdfast.core.errors import HoldfastError, InvalidInput, Overloaded, Unauthenticated, Unavailable
from holdfast.server.host_origin import is_local

COOKIE = "holdfast_session"
LOCAL_TENANT = "default"
MAX_NAME = 255
RECHECK_SECONDS = 0.5  # seconds for which the check of a long-lived connection is cached
LOOK = 0.4  # seconds between two checks of all long-lived connections, so that revoked access ends within a second
REJECTED_LOG = 10.0  # seconds between two lines about rejected requests
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
        self.rejected = RejectedRequests()

    async def authenticate(self, connection: HTTPConnection, *needs: str) -> Principal:
        """Return the caller, in the tenant and as the user that its headers name.

        `needs` are the scopes that the request needs. An error about a scope for the headers names them, too.
        """
        headers = connection.headers
        try:
            principal = await self._authenticate(connection)
        except Unauthenticated as error:
            self.rejected.count(connection, error)
            raise
        tenant = _name(headers, "holdfast-tenant")
        if tenant is not None:
            principal.require("operator", *needs)  # before the lookup: others cannot find out which tenants exist
            principal = principal.in_tenant(await self._tenants.id_of(tenant))
        user = _name(headers, "holdfast-user")
        if user is None:
            return principal
        principal.require("act-as", *(scope for scope in needs if scope in USER_SCOPES))
        return principal.acting_as(user)

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
        if self._allow_local and _is_local_client(connection) and not await self._keys.any_exists():
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


class RejectedRequests:
    """Counts requests of callers who are not authenticated, and logs some of them.

    They belong to no tenant, so that no audit has them. At most one line is logged every `REJECTED_LOG` seconds: an
    attacker cannot fill the log.
    """

    def __init__(self) -> None:
        self.total = 0
        self._logged_at = -REJECTED_LOG
        self._unlogged = 0

    def count(self, connection: HTTPConnection, error: Unauthenticated) -> None:
        """Count a request."""
        self.total += 1
        self._unlogged += 1
        if monotonic() - self._logged_at >= REJECTED_LOG:
            address = "" if connection.client is None else connection.client.host
            log.warning(
                "rejected %d requests without a valid key; the last from %s: %s", self._unlogged, address, error
            )
            self._logged_at, self._unlogged = monotonic(), 0


class CallerSession:
    """The caller of a connection. It is checked again while the connection lasts.

    A stream or a socket ends when the key, token or session that opened it ends.
    """

    def __init__(self, authentication: Authentication, connection: HTTPConnection, caller: Principal) -> None:
        self._authentication = authentication
        self._connection = connection
        self._checked_at = monotonic()
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
    def rejected(self) -> int:
        """How many requests this process has rejected, because their callers were not authenticated."""
        return self._authentication.rejected.total

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
        """Raise an error if the caller's access has ended. The result is cached for `RECHECK_SECONDS` seconds."""
        if monotonic() - self._checked_at < RECHECK_SECONDS:
            return
        self.compare(await self._authentication.authenticate(self._connection))
        self._checked_at = monotonic()

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
        self._sessions: dict[CallerSession, asyncio.Future[HoldfastError]] = {}
        self._checking: asyncio.Task[None] | None = None

    def add(self, session: CallerSession, ended: "asyncio.Future[HoldfastError]") -> None:
        """Start to check a caller."""
        self._sessions[session] = ended
        if self._checking is None:
            self._checking = asyncio.create_task(
                self._check_periodically(), name="access of open connections", context=Context()
            )

    def remove(self, session: CallerSession) -> None:
        """Stop checking a caller."""
        self._sessions.pop(session, None)
        if not self._sessions and self._checking is not None:
            self._checking.cancel()
            self._checking = None

    async def _check_periodically(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self._check_all()
            except (Unavailable, Overloaded) as error:  # a failed check ends no connection
                log.warning("the access of open connections cannot be checked; retrying: %s", error)
            except Exception:
                log.exception("internal error: could not check the access of open connections; retrying")

    async def _check_all(self) -> None:
        by_credentials: dict[tuple[str | None, ...], list[CallerSession]] = {}
        for session in self._sessions:
            by_credentials.setdefault(session.credentials, []).append(session)
        await self._authentication.renew(sessions[0].connection for sessions in by_credentials.values())
        for number, sessions in enumerate(by_credentials.values()):
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            caller = await self._caller_now(sessions[0])
            for session in sessions:
                self._compare(session, caller)

    async def _caller_now(self, session: CallerSession) -> Principal | HoldfastError:
        try:
            return await self._authentication.authenticate(session.connection)
        except (Unavailable, Overloaded):
            raise
        except HoldfastError as error:
            return error

    def _compare(self, session: CallerSession, now: Principal | HoldfastError) -> None:
        ended = self._sessions.get(session)
        if ended is None or ended.done():
            return
        try:
            if isinstance(now, HoldfastError):
                raise now
            session.compare(now)
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


def _is_local_client(connection: HTTPConnection) -> bool:
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
