"""Tokens of users for calls: read from the row of the connection, refreshed shortly before they expire.

One process at a time refreshes the tokens of a connection: it claims the row for some seconds. No lock and no database
connection is held during the request. If the process dies in between, the next one tries again with the old refresh
token. A server that allows each refresh token once then refuses it, and the user connects again.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from time import monotonic
from uuid import uuid4

from holdfast.core.errors import Broken, Forbidden, HoldfastError, Unavailable
from holdfast.core.ids import TenantId
from holdfast.core.text import store
from holdfast.execution.consent.clients import OAuthClients
from holdfast.execution.consent.grants import GrantedTokens, GrantSeal
from holdfast.execution.identity.expiring_cache import ExpiringCache
from holdfast.execution.identity.token_endpoint import TokenAnswer, TokenEndpoint, TokenRefused
from holdfast.execution.redaction import Redaction
from holdfast.mcp.inputs import Forwarded
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.client import Client

FRESH = 1.0  # seconds for which a token is used without a look at its row, so that a removed one ends within a second
MARGIN = 30.0  # seconds before the end at which a token is refreshed
CLAIM = 30.0  # seconds for which a process has a refresh; more than a token endpoint may take
PATIENCE = 15.0  # seconds to wait for the refresh of another process
SETTLED = 60.0  # seconds after which a token that the back end refuses is refreshed; a newer one is refused for good
PAUSE = 0.2  # seconds between two looks at the row of such a refresh
REFUSED = "the back end refused the token"
UNREFRESHED = "the authorization server does not refresh the token any more"
UNKNOWN = "the authorization server does not know this installation any more"
QUESTION = "holdfast_connection"  # name of the input request; no tool uses it
CONSENT_PATH = "/connections?source="

sql = statements(__name__)
log = logging.getLogger(__name__)


class ConsentRequired(Forbidden):
    """The user has to connect with the source first. `details["connect"]` is where."""


@dataclass(frozen=True, slots=True)
class UsableToken:
    """A token for calls, its redaction, and the generation of its row."""

    text: str = field(repr=False)
    redaction: Redaction = field(repr=False, compare=False)
    origin: str
    generation: int


class TokenCache:
    """Tokens of all tenants in memory, and the refreshes in progress. A failure is not kept: a user may connect."""

    def __init__(self) -> None:
        self.tokens = ExpiringCache[tuple[TenantId, str, str], UsableToken](failure_seconds=0.0, clock=monotonic)
        self.refreshes: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait for the refreshes in progress: their servers may have replaced the refresh tokens already."""
        await self.tokens.close()
        if self.refreshes:
            await asyncio.wait(self.refreshes, timeout=CLAIM)


class UserTokens:
    """Returns the tokens that users of one tenant have consented to. `address` is the public URL, if it is known."""

    def __init__(
        self,
        database: Database,
        endpoint: TokenEndpoint,
        clients: OAuthClients,
        seal: GrantSeal,
        cache: TokenCache,
        *,
        address: str | None,
    ) -> None:
        self._database = database
        self._endpoint = endpoint
        self._clients = clients
        self._seal = seal
        self._cache = cache
        self._address = address or ""

    async def get(self, source: str, user: str | None, origin: str) -> UsableToken:
        """Return a user's token for the back end at an origin. Raise ConsentRequired if the user has to connect."""
        if not user:
            raise self.required(source, "the call has no user")
        tenant = await self._database.tenant()

        async def read() -> tuple[UsableToken, float]:
            return await self._read(source, user)

        token = await self._cache.tokens.get((tenant, source, user), read)
        if token.origin != origin:
            raise self.required(source, f"the consent was for {token.origin}, and the tool calls {origin}")
        return token

    async def renewed(self, source: str, user: str, token: UsableToken) -> UsableToken:
        """Return a new token in place of one that the back end has refused with status 401.

        Raises ConsentRequired if there is none, or if the refused token is new: the user has to connect again.
        """
        await self.forget(source, user)
        row = await self._row(source, user)
        if row is None:
            raise self.required(source)
        if row["generation"] == token.generation:
            if not row["refreshable"] or row["age"] < SETTLED:
                await self._break(row, user, REFUSED)
                raise self.required(source, REFUSED)
            await self._refresh(source, user, row, is_good=False)
        return await self.get(source, user, token.origin)

    async def forget(self, source: str, user: str) -> None:
        """Forget a token in memory."""
        key = (await self._database.tenant(), source, user)
        known = self._cache.tokens.current(key)
        if known is not None:
            self._cache.tokens.forget(key, known)

    def required(self, source: str, why: str = "") -> ConsentRequired:
        """Return the error for a user who has to connect."""
        connect = f"{self._address}{CONSENT_PATH}{source}"
        return ConsentRequired(
            f"you have not connected with {source}",
            why=why or "its back end is called with a token that each user has to agree to",
            next=f"Open {connect} in a browser, or run `holdfast connections connect {source}`.",
            source=source,
            connect=connect,
        )

    async def _read(self, source: str, user: str) -> tuple[UsableToken, float]:
        row = await self._row(source, user)
        if row is None:
            raise self.required(source)
        if row["broken"] is not None:
            raise self.required(source, row["broken"])
        left: float | None = row["seconds_left"]
        if left is not None and left <= min(MARGIN, row["lifetime"] / 4):
            if row["refreshable"]:
                row = await self._refresh(source, user, row, is_good=left > 0)
            elif left <= 0:
                await self._break(row, user, "the token has expired")
                raise self.required(source, "the token has expired")
        tokens = await self._open(source, user, row)
        left = row["seconds_left"]
        text = tokens.access_token
        token = UsableToken(text, Redaction([text]), row["origin"], row["generation"])
        return token, FRESH if left is None else max(0.0, min(FRESH, left))

    async def _refresh(self, source: str, user: str, row: Row, *, is_good: bool) -> Row:
        """Return the row with new tokens. If the old token is still good, do not wait for them, and return the row."""
        key = (row["source_id"], store(user), row["generation"])
        if await self._database.run(sql("claim_refresh"), *key, CLAIM):
            # A caller that gives up does not end it: the server may have replaced the refresh token already.
            work = asyncio.create_task(self._request(source, user, row), name="holdfast token refresh")
            self._cache.refreshes.add(work)
            work.add_done_callback(self._cache.refreshes.discard)
            work.add_done_callback(_observe)
            if not is_good:
                await asyncio.shield(work)
        if is_good:
            return row
        return await self._refreshed(source, user, row["generation"])

    async def _refreshed(self, source: str, user: str, generation: int) -> Row:
        """Wait until the row has new tokens, from whichever process."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    row = await self._row(source, user)
                    if row is None:
                        raise self.required(source)
                    if row["broken"] is not None:
                        raise self.required(source, row["broken"])
                    if row["generation"] != generation:
                        return row
                    await asyncio.sleep(PAUSE)
        except TimeoutError:
            why = "another process requests a new one, and has not got it yet"
            raise Unavailable(f"there is no token for {source}", why=why, next="Try again later.") from None

    async def _request(self, source: str, user: str, row: Row) -> None:
        """Request new tokens and store them."""
        place = (row["source_id"], store(user), row["generation"])
        tokens = await self._open(source, user, row)
        grant = tokens.grant
        form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token, "resource": grant.resource}
        try:
            client = await self._clients.authenticated(grant.client, source, grant.token_url)
            answer = await self._endpoint.request(grant.token_url, form, client)
        except TokenRefused as error:
            why = UNREFRESHED if error.error == "invalid_grant" else ""
            if error.error == "invalid_client" and grant.client.registered:
                await self._clients.forget(grant.issuer)
                why = UNKNOWN
            if why:
                await self._break(row, user, why)
                raise self.required(source, why) from None
            await self._database.run(sql("release_refresh"), *place)
            raise
        except BaseException:
            await self._database.run(sql("release_refresh"), *place)
            raise
        check_bearer(answer, grant.source)
        fresh = GrantedTokens(grant, answer.access_token, answer.refresh_token or tokens.refresh_token)
        sealed = self._seal.seal(fresh, await self._database.tenant(), "connection", row["source_id"], user)
        scopes = list(answer.scopes or grant.scopes)
        await self._database.run(
            sql("store_refreshed"),
            *place,
            sealed,
            self._seal.key.id,
            scopes,
            bool(fresh.refresh_token),
            answer.expires_in,
        )

    async def _open(self, source: str, user: str, row: Row) -> GrantedTokens:
        try:
            return self._seal.open(
                GrantedTokens, row, await self._database.tenant(), "connection", row["source_id"], user
            )
        except Broken as error:
            raise self.required(source, error.why or error.what) from None

    async def _row(self, source: str, user: str) -> Row | None:
        return await self._database.one(sql("connection"), source, store(user))

    async def _break(self, row: Row, user: str, why: str) -> None:
        await self._database.run(sql("break_connection"), row["source_id"], store(user), row["generation"], why)


async def ask_to_connect(client: Client, required: ConsentRequired) -> None:
    """Ask the user of a client to open the address where one connects. Raise the error if it cannot, or will not.

    A client opens addresses if it has declared elicitation by URL (MCP). Other callers get the address in the error.
    """
    declared: object = client.capabilities.get("elicitation")
    if not isinstance(declared, dict) or "url" not in declared or "://" not in str(required.details["connect"]):
        raise required
    url = str(required.details["connect"])
    params = {"mode": "url", "message": f"{required.what}. Sign in there and agree.", "url": url}
    if not client.is_modern:
        params["elicitationId"] = uuid4().hex
    try:
        replies = await client.inputs({QUESTION: Forwarded("elicitation/create", params)})
    except Unavailable:
        raise required from None
    if replies[QUESTION].action != "accept":
        raise required


def check_bearer(answer: TokenAnswer, source: str) -> None:
    """Refuse a token that is not used as a bearer token."""
    if answer.token_type.lower() != "bearer":
        why = f"the authorization server gave a token of the type {answer.token_type[:40]!a}"
        raise Unavailable(f"there is no usable token for {source}", why=why)


def _observe(task: "asyncio.Task[None]") -> None:
    """Log a refresh that failed: nobody may wait for it, and the next call tries again."""
    error = None if task.cancelled() else task.exception()
    if isinstance(error, HoldfastError):
        log.info("a user's token was not refreshed: %s", error)
    elif error is not None:
        log.error("internal error: a user's token was not refreshed", exc_info=error)
