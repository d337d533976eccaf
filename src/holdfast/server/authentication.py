"""Who calls: by key, by an issuer's token, by that of `server.json`, by a browser's session, or by being here."""

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
from holdfast.server.origins import is_local

COOKIE = "holdfast_session"
LOCAL_TENANT = "default"
MAX_NAME = 255
ASKED_AGAIN = 0.5  # seconds for which somebody who stays is taken to be who they were
LOOK = 0.4  # seconds between two looks at those who stay, though nothing happens: access ends within a second
AT_ONCE = 100  # that are looked at before others have a turn

log = logging.getLogger(__name__)


class Authentication:
    """Recognises callers.

    Without a key only a caller on this machine is let in, as the user `local` and owner of the tenant `default`, and
    only while no key was ever made, nobody's tokens are taken, the server listens on loopback, and nothing asks for a
    key. Who sends a wrong key or token is never taken for that one.
    """

    def __init__(self, keys: Keys, tokens: Tokens, tenants: Tenants, *, token: str, allow_local: bool) -> None:
        self._keys = keys
        self._tokens = tokens
        self._tenants = tenants
        self._token = token.encode()
        self._allow_local = allow_local and not tokens.any_issuer
        self.watch = AccessWatch(self)

    async def recognise(self, connection: HTTPConnection) -> Principal:
        """Who calls, for which tenant and user."""
        headers = connection.headers
        principal = await self._authenticate(connection)
        tenant = _name(headers, "holdfast-tenant")
        if tenant is not None:
            principal.require("operator")  # before the name is looked up: who may not ask learns nothing
            principal = principal.in_tenant(await self._tenants.id_of(tenant))
        user = _name(headers, "holdfast-user")
        return principal if user is None else principal.acting_as(user)

    async def renew(self, connections: Iterable[HTTPConnection]) -> None:
        """Ask anew whether the keys of these are valid, all in one statement."""
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
                return await self._keys.recognise(session)
            except Unauthenticated:
                # Cookies do not know ports: it may be of another server on this machine.
                pass
        if self._allow_local and _is_here(connection) and not await self._keys.any_made():
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
            return await self._tokens.recognise(text)
        return await self._keys.recognise(text)

    async def _local(self, scopes: frozenset[str]) -> Principal:
        return Principal(await self._tenants.id_of(LOCAL_TENANT), LOCAL_USER, scopes)


class Standing:
    """Somebody who stays: a stream or a socket ends with the key that opened it."""

    def __init__(self, authentication: Authentication, connection: HTTPConnection, caller: Principal) -> None:
        self._authentication = authentication
        self._connection = connection
        self._asked = monotonic()
        self.caller = caller

    @contextmanager
    def watched(self) -> Generator["asyncio.Future[HoldfastError]"]:
        """Be looked at though nothing happens; done when they may not be here any more, with the reason."""
        ended: asyncio.Future[HoldfastError] = asyncio.get_running_loop().create_future()
        self._authentication.watch.add(self, ended)
        try:
            yield ended
        finally:
            self._authentication.watch.remove(self)

    @property
    def connection(self) -> HTTPConnection:
        """What they came in with."""
        return self._connection

    @property
    def credentials(self) -> tuple[str | None, ...]:
        """What says who they are: who has the same is the same."""
        headers = self._connection.headers
        return tuple(headers.get(name) for name in ("authorization", "cookie", "holdfast-tenant", "holdfast-user"))

    async def check(self) -> None:
        """Refuse who may not be here any more."""
        if monotonic() - self._asked < ASKED_AGAIN:
            return
        self.compare(await self._authentication.recognise(self._connection))
        self._asked = monotonic()

    def compare(self, caller: Principal) -> None:
        """Refuse who is another than they were."""
        if caller != self.caller:
            raise Unauthenticated("this access has ended", why="its key is not what it was", next="Come in anew.")


class AccessWatch:
    """Looks at all who stay, and ends those whose key, token or session has ended, whichever process ended it.

    It is one statement a look for all keys, however many have the same; without anybody who stays there is no look.
    """

    def __init__(self, authentication: Authentication) -> None:
        self._authentication = authentication
        self._staying: dict[Standing, asyncio.Future[HoldfastError]] = {}
        self._looking: asyncio.Task[None] | None = None

    def add(self, standing: Standing, ended: "asyncio.Future[HoldfastError]") -> None:
        """Look at somebody from now on."""
        self._staying[standing] = ended
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="access of those who stay", context=Context())

    def remove(self, standing: Standing) -> None:
        """Look at somebody no longer."""
        self._staying.pop(standing, None)
        if not self._staying and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self._look_at_all()
            except (Unavailable, Overloaded) as error:  # nobody is sent away because nobody can tell now
                log.warning("access of those who stay cannot be looked at, trying again: %s", error)
            except Exception:
                log.exception("a defect: access of those who stay cannot be looked at, trying again")

    async def _look_at_all(self) -> None:
        alike: dict[tuple[str | None, ...], list[Standing]] = {}
        for standing in self._staying:
            alike.setdefault(standing.credentials, []).append(standing)
        await self._authentication.renew(standings[0].connection for standings in alike.values())
        for number, standings in enumerate(alike.values()):
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            caller = await self._caller_now(standings[0])
            for standing in standings:
                self._compare(standing, caller)

    async def _caller_now(self, standing: Standing) -> Principal | HoldfastError:
        try:
            return await self._authentication.recognise(standing.connection)
        except (Unavailable, Overloaded):
            raise
        except HoldfastError as error:
            return error

    def _compare(self, standing: Standing, now: Principal | HoldfastError) -> None:
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
        # Headers are bytes: Starlette reads them as Latin-1, we as what everything else is written in.
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
