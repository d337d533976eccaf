"""Connections: the user agrees once to calls of a back end, and the engine calls it with the user's token (OAuth).

The address to which the authorization server sends the browser needs no sign-in: browsers withhold the session's cookie
when they come from another site. So it shows a page with a form, which is sent from our own site, with the cookie.
"""

from collections.abc import Mapping
from html import escape
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID

import msgspec
from starlette.responses import RedirectResponse, Response

from holdfast.audit.entries import AuditEntry
from holdfast.core.errors import Forbidden, HoldfastError, InvalidInput, NotFound, TimedOut, Unavailable
from holdfast.execution.consent.clients import CALLBACK, DOCUMENT, PublicAddress
from holdfast.execution.consent.connections import (
    BegunConsent,
    Connection,
    ConsentDeclined,
    ConsentUrl,
    Removal,
    unknown_state,
)
from holdfast.server.challenges import base_of
from holdfast.server.fields import SourceName
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.plain_pages import plain_page, refusal
from holdfast.server.problems import status_of

operations = ApiOperations("connections")

SCREEN = "/connections"
TITLE = "Connect"
ASK = """<p><strong>{user}</strong> will be able to use your account at <strong>{issuer}</strong> with the tools of
<strong>{source}</strong>, which are at {host}.</p>
<p>Continue only if you are {user} and have begun this yourself. If somebody has sent you here, close this page.</p>
<form method="post" action="{root}{callback}">{fields}<button>Connect</button></form>"""
DONE = "<p>{source} is connected. You can close this page.</p>"
FIELD = '<input type="hidden" name="{name}" value="{value}">'


class ConnectionList(msgspec.Struct, frozen=True):
    """The sources that need the consent of users, by name, and whether the user has given it."""

    connections: list[Connection]


class ConsentAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an authorization server has sent with the browser (RFC 6749, RFC 9207)."""

    state: str
    code: str | None = None
    iss: str | None = None
    error: str | None = None

    def __repr__(self) -> str:
        return "ConsentAnswer(…)"


@operations.declare("GET", "/api/connections", needs="read")
async def list_connections(call: ApiCall) -> ConnectionList:
    """List the sources that need your consent, and whether you have given it."""
    return ConnectionList(await call.engine.connections.list(call.principal.user))


@operations.declare(
    "POST",
    "/api/connections/{source}",
    needs="write",
    errors=[NotFound, InvalidInput, Unavailable, TimedOut],
    audit=True,
)
async def begin_connection(call: ApiCall, source: SourceName) -> ConsentUrl:
    """Begin to connect with a source. Open the URL in a browser, sign in there, and agree."""
    call.principal.require_person()
    return await call.engine.connections.begin(
        source, call.principal.user, _address(call), session=_session(call, call.principal.key)
    )


@operations.declare("DELETE", "/api/connections/{source}", needs="write", errors=[NotFound], audit=True)
async def remove_connection(call: ApiCall, source: SourceName) -> Removal:
    """Disconnect from a source. The tokens are deleted, and revoked if the authorization server offers that."""
    call.principal.require_person()
    return await call.engine.connections.remove(source, call.principal.user)


@operations.declare("GET", CALLBACK, needs="nobody", or_status=404)
async def consent_page(
    call: ApiCall, state: str = "", code: str | None = None, iss: str | None = None, error: str | None = None
) -> Response:
    """Show the page to which the authorization server sends the browser. It asks before it connects."""
    try:
        begun = await call.engine.of_state(state).connections.begun(state)
    except HoldfastError as failure:
        return _page(call, refusal(failure), status=status_of(failure))
    answer = ConsentAnswer(state, code, iss, error)
    fields = "".join(
        FIELD.format(name=name, value=escape(value)) for name, value in msgspec.to_builtins(answer).items()
    )
    about = _about(begun)
    root = escape(call.engine.config.server.root_path)
    return _page(call, ASK.format(**about, root=root, callback=CALLBACK, fields=fields))


@operations.declare(
    "POST",
    CALLBACK,
    needs="anybody",
    or_status=303,
    errors=[NotFound, Forbidden, Unavailable],
    body_format="application/x-www-form-urlencoded",
)
async def complete_connection(call: ApiCall, body: ConsentAnswer) -> Response:
    """Complete a connection: exchange the code for tokens, which are stored encrypted for the user who began it."""
    caller = call.caller
    if caller is not None:
        caller.require_person()
    try:
        source = await _complete(call, body)
    except ConsentDeclined as declined:
        return _page(call, refusal(declined))
    except HoldfastError as error:
        return _page(call, refusal(error), status=status_of(error))
    if caller is None:
        return _page(call, DONE.format(source=escape(source)))
    return RedirectResponse(
        f"{call.engine.config.server.root_path}{SCREEN}?source={quote(source)}", HTTPStatus.SEE_OTHER
    )


async def _complete(call: ApiCall, body: ConsentAnswer) -> str:
    """Complete a connection, and return its source. The audit has an entry of who did it, or why it was refused."""
    caller = call.caller
    here = call.engine.of_state(body.state)
    if caller is not None and caller.tenant != await here.connections.tenant():
        raise unknown_state()
    begun = await here.connections.begun(body.state)
    entry = AuditEntry(action="complete_connection", target=begun.source, user=begun.user)
    session = None
    if caller is not None:
        session = _session(call, caller.key)
        actor = None if caller.user == begun.user else caller.user
        entry = msgspec.structs.replace(entry, actor=actor, key=caller.key)
    given: Mapping[str, str] = {name: text for name, text in msgspec.to_builtins(body).items() if name != "state"}
    user = None if caller is None else caller.user
    await here.audit.recorded(
        lambda: entry, lambda: here.connections.complete(body.state, given, caller=user, session=session)
    )
    return begun.source


@operations.declare("GET", DOCUMENT, needs="nobody")
async def client_document(call: ApiCall) -> dict[str, Any]:
    """Get the metadata by which authorization servers know this installation (Client ID Metadata Document)."""
    address = _address(call)
    return {"client_id": address.document, "client_uri": address.base, **address.metadata()}


def _address(call: ApiCall) -> PublicAddress:
    return PublicAddress(base_of(call.engine.config, call.request.scope))


def _session(call: ApiCall, key: UUID | None) -> UUID | None:
    """Return the id of the browser session that makes a request; None if it is made with a key or a token."""
    return None if "authorization" in call.request.headers else key


def _about(begun: BegunConsent) -> dict[str, str]:
    shown = {
        "user": begun.user,
        "source": begun.source,
        "host": urlsplit(begun.origin).netloc,
        "issuer": urlsplit(begun.issuer).netloc or urlsplit(begun.origin).netloc,
    }
    return {name: escape(text) for name, text in shown.items()}


def _page(call: ApiCall, content: str, *, status: int = HTTPStatus.OK) -> Response:
    return plain_page(TITLE, content, call.engine.config.server.root_path, status=status)
