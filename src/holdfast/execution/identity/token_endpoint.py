"""The token endpoint of an OAuth authorization server: one form, one answer, under the egress rules.

Nothing that is sent or received appears in an error, except for what the server says in `error` and
`error_description`, without the secrets of the request.
"""

import asyncio
import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from urllib.parse import quote_plus, urlencode

from yarl import URL

from holdfast.core.errors import HoldfastError, TimedOut, TooLarge, Unavailable
from holdfast.core.text import parse
from holdfast.execution.egress import Egress, Hop, checked_url
from holdfast.execution.redaction import Redaction
from holdfast.execution.rest.redirects import REDIRECTS
from holdfast.execution.rest.requests import ENCODINGS, USER_AGENT
from holdfast.execution.rest.responses import read_body
from holdfast.execution.rest.runner import connection_error, is_stale
from holdfast.skills.sources.identity import MAX_SCOPES, SCOPE

TIMEOUT = 10.0  # seconds, for the whole exchange
MAX_ANSWER_BYTES = 128 * 1024
MAX_TOKEN_BYTES = 16 * 1024  # of a token: larger ones do not fit into the headers of common servers
MAX_SAID = 300  # characters of what the server says
MAX_SECONDS = 10 * 365 * 86_400.0  # until a token expires

# Fields of a form whose values are never shown.
_SECRET_FIELDS = frozenset({
    "actor_token", "assertion", "client_assertion", "client_secret", "code", "code_verifier", "password",
    "refresh_token", "subject_token", "token",
})  # fmt: skip
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_REFRESH_TOKEN = re.compile(r"[\x20-\x7e]+")
_SCOPE = re.compile(SCOPE)
_ERROR = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]{1,100}")

Form = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """A client as an authorization server knows it. `auth`: how it sends its secret; `none`: it has no secret."""

    id: str
    secret: str = field(default="", repr=False)
    auth: Literal["basic", "post", "none"] = "basic"


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """The answer of a token endpoint. `expires_in` is in seconds; None: the server did not say.

    `scopes` is None if the server granted all that were asked for. No token appears in its repr.
    """

    access_token: str = field(repr=False)
    token_type: str
    expires_in: float | None = None
    scopes: tuple[str, ...] | None = None
    refresh_token: str | None = field(default=None, repr=False)
    issued_token_type: str | None = None


class TokenRefused(Unavailable):
    """The authorization server refused a request. `error` is its code, such as `invalid_grant`; empty if it has none.

    `status` is the HTTP status.
    """

    def __init__(self, what: str, *, error: str, status: int, why: str = "", next: str = "") -> None:
        super().__init__(what, why=why, next=next, oauth_error=error, status=status)
        self.error = error
        self.status = status


class TokenEndpoint:
    """Sends forms to token endpoints. Redirects are not followed, because they would take the secrets elsewhere."""

    def __init__(self, egress: Egress, *, timeout: float = TIMEOUT) -> None:
        self._egress = egress
        self._timeout = timeout

    async def request(self, url: str, form: Form, client: OAuthClient) -> TokenAnswer:
        """Request a token with a grant. Raise TokenRefused if the server refuses it."""
        fields = await self.post(url, form, client)
        host = URL(url).raw_host or ""
        return _answer_of(fields, host)

    async def post(self, url: str, form: Form, client: OAuthClient) -> Mapping[str, Any]:
        """Send a form, such as that of a revocation (RFC 7009), and return the fields of the answer."""
        address = checked_url(url)
        headers, body, secrets = _encode(form, client)
        redaction = Redaction(secrets)
        host = address.raw_host or ""
        try:
            async with asyncio.timeout(self._timeout):
                status, content, is_json = await self._send(address, headers, body)
        except TimeoutError:
            why = f"it did not answer within {self._timeout:g} seconds"
            raise TimedOut(f"the authorization server {host} gave no token", why=why, next="Try again later.") from None
        fields = _fields_of(content)
        if status in REDIRECTS:
            raise _refused(host, status, "", "it redirects the request, and secrets are not sent elsewhere")
        if status >= 400:
            error, said = _error_of(fields or {}, redaction)
            why = ": ".join(filter(None, (error, said))) or f"it answered with status {status}"
            raise _refused(host, status, error, why)
        if not content and status < 300:  # such as that of a revocation
            return {}
        if fields is None or status >= 300:
            why = f"its answer with status {status} is not a JSON object"
            raise _refused(host, status, "", why if is_json else f"{why}, but something else")
        return fields

    async def _send(self, url: URL, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes, bool]:
        may_retry = True
        while True:
            hop = Hop(url.raw_host or "")
            async with self._egress.reserve_connection(hop):
                try:
                    async with self._egress.session().post(
                        url, data=body, headers=headers, allow_redirects=False
                    ) as response:
                        encoding = response.headers.get("Content-Encoding", "")
                        content = await read_body(
                            response.content.iter_any(), encoding=encoding, limit=MAX_ANSWER_BYTES
                        )
                        return response.status, content, "json" in response.headers.get("Content-Type", "")
                except TooLarge:
                    why = f"its answer has more than {MAX_ANSWER_BYTES:,} bytes"
                    raise Unavailable(f"the authorization server {hop.host} gave no token", why=why) from None
                except HoldfastError:
                    raise
                except Exception as error:  # noqa: BLE001 - errors that are not the connection's are raised again
                    if may_retry and is_stale(error, hop):
                        may_retry = False
                        continue
                    raise connection_error(error, hop, next="Try again later.") from None


def _encode(form: Form, client: OAuthClient) -> tuple[dict[str, str], bytes, list[str]]:
    """Return the headers, the body, and the secrets that they contain."""
    fields = [
        (name, value)
        for name, given in form.items()
        for value in ([given] if isinstance(given, str) else given)
        if value
    ]
    secrets = [value for name, value in fields if name in _SECRET_FIELDS]
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": ENCODINGS,
        "Content-Type": "application/x-www-form-urlencoded",
        "User-Agent": USER_AGENT,
    }
    if client.secret and client.auth == "basic":
        # RFC 6749, 2.3.1: each is encoded as in a form first.
        credentials = base64.b64encode(f"{quote_plus(client.id)}:{quote_plus(client.secret)}".encode()).decode()
        headers["Authorization"] = f"Basic {credentials}"
        secrets += [client.secret, credentials]
    else:
        fields.append(("client_id", client.id))
        if client.secret and client.auth == "post":
            fields.append(("client_secret", client.secret))
            secrets.append(client.secret)
    return headers, urlencode(fields).encode(), secrets


def _fields_of(content: bytes) -> dict[str, Any] | None:
    try:
        found: object = parse(content, limit=MAX_ANSWER_BYTES)
    except HoldfastError:
        return None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def _error_of(fields: Mapping[str, Any], redaction: Redaction) -> tuple[str, str]:
    """Return the code of an error, and what the server says of it. It is cut last: a part of a secret is not found."""
    error, said = fields.get("error"), fields.get("error_description")
    code = error if isinstance(error, str) and _ERROR.fullmatch(error) else ""
    text = " ".join(redaction.redact(said).split())[:MAX_SAID] if isinstance(said, str) else ""
    return redaction.redact(code), "".join(each for each in text if each.isprintable())


def _refused(host: str, status: int, error: str, why: str) -> TokenRefused:
    next = (
        "Ask an operator to check the client and its secret."
        if error in ("invalid_client", "unauthorized_client")
        else ""
    )
    return TokenRefused(
        f"the authorization server {host} gave no token", error=error, status=status, why=why, next=next
    )


def _answer_of(fields: Mapping[str, Any], host: str) -> TokenAnswer:
    token, kind = fields.get("access_token"), fields.get("token_type")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token) or len(token) > MAX_TOKEN_BYTES:
        raise _invalid(host, f"its answer has no access_token of at most {MAX_TOKEN_BYTES:,} characters")
    if not isinstance(kind, str) or not kind:
        raise _invalid(host, "its answer has no token_type")
    return TokenAnswer(
        access_token=token,
        token_type=kind,
        expires_in=_seconds(fields.get("expires_in"), host),
        scopes=None if (scopes := _text(fields.get("scope"))) is None else scopes_of(scopes),
        refresh_token=_refresh_token(fields.get("refresh_token"), host),
        issued_token_type=_text(fields.get("issued_token_type")),
    )


def _seconds(value: object, host: str) -> float | None:
    """Return the seconds of `expires_in`. Some servers write them as text."""
    if value is None:
        return None
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,12}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise _invalid(host, "its answer has an expires_in that is not a number of seconds")
    return min(float(value), MAX_SECONDS)


def scopes_of(text: str) -> tuple[str, ...]:
    """Return the scopes in a text (RFC 6749, 3.3), without what is none."""
    return tuple(each for each in text.split() if _SCOPE.fullmatch(each))[:MAX_SCOPES]


def _refresh_token(value: object, host: str) -> str | None:
    text = _text(value)
    if text is not None and (not _REFRESH_TOKEN.fullmatch(text) or len(text) > MAX_TOKEN_BYTES):
        raise _invalid(host, f"its refresh_token is not a text of at most {MAX_TOKEN_BYTES:,} printable characters")
    return text


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _invalid(host: str, why: str) -> Unavailable:
    return Unavailable(f"the authorization server {host} gave no usable token", why=why)
