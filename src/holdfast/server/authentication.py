"""Who calls: by key, by an issuer's token, by that of `server.json`, by a browser's session, or by being here."""

import hmac
from dataclasses import replace
from time import monotonic

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from holdfast.access.keys import Keys
from holdfast.access.principals import LOCAL_USER, OWNER_SCOPES, SCOPES, Principal
from holdfast.access.tenants import Tenants
from holdfast.access.tokens import Tokens, is_token
from holdfast.core.errors import InvalidInput, Unauthenticated
from holdfast.server.origins import is_local

COOKIE = "holdfast_session"
LOCAL_TENANT = "default"
MAX_NAME = 255
ASKED_AGAIN = 0.5  # seconds for which somebody who stays is taken to be who they were
CHECKED = 1.5  # seconds after which they are looked at anew, though nothing happens


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

    async def check(self) -> None:
        """Refuse who may not be here any more."""
        if monotonic() - self._asked < ASKED_AGAIN:
            return
        if await self._authentication.recognise(self._connection) != self.caller:
            raise Unauthenticated("this access has ended", why="its key is not what it was", next="Come in anew.")
        self._asked = monotonic()


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
