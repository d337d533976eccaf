"""Sign browsers in and out: a one-time link is exchanged for a session, which is kept in a cookie."""

import re
from contextlib import suppress
from html import escape
from http import HTTPStatus
from urllib.parse import unquote

import msgspec
from starlette.responses import RedirectResponse, Response

from holdfast.access.keys import PREFIX, SESSION_LIFETIME
from holdfast.access.principals import Principal
from holdfast.audit.entries import AuditEntry
from holdfast.core.errors import Unauthenticated
from holdfast.server.authentication import COOKIE
from holdfast.server.challenges import Challenges
from holdfast.server.files import SCREENS
from holdfast.server.host_origin import scheme_of
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.plain_pages import plain_page, refusal

operations = ApiOperations("browser")

HOME = "/"
FORM = """{notice}
<form method="post" action="{root}/login"><input type="hidden" name="to" value="{to}">
{field}</form>
{help}"""
READY = "<p>This link signs this browser in, and works once.</p>"
GIVEN = '<input type="hidden" name="link" value="{link}"><button autofocus>Sign in</button>'
FIELD = """<label for="link">The link, or the part after <code>link=</code></label>
<input id="link" name="link" required autofocus autocomplete="off" spellcheck="false">
<button>Sign in</button>"""
HELP = "<p>Where the engine runs, <code>holdfast keys link</code> makes a link. It works once, within ten minutes.</p>"

_LINK = re.compile(rf"(?:^|link=)({PREFIX}[\w-]+)", re.ASCII)
_PLAIN = re.compile(r"[!-\[\]-~]{1,2000}")  # printable ASCII without the backslash, which browsers treat as a slash


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sign-in form: a link or its token, and the screen to open afterwards."""

    link: str
    to: str = HOME


# GET must not use up the link: mail programs and browsers prefetch links.
@operations.declare("GET", "/login", needs="nobody")
async def login_page(call: ApiCall, link: str = "", to: str = HOME) -> Response:
    """Show the sign-in page. Without a link, the page asks for one."""
    if not link:
        return _page(call, to, help=HELP)
    return _page(call, to, notice=READY, field=GIVEN.format(link=escape(link)))


@operations.declare(
    "POST",
    "/login",
    needs="nobody",
    status=303,
    or_status=401,  # with the page, which shows the reason
    errors=[Unauthenticated],
    body_format="application/x-www-form-urlencoded",
    signs_in=True,
)
async def login(call: ApiCall, body: Login) -> Response:
    """Exchange a one-time link for a browser session."""
    try:
        session = await call.engine.keys.exchange_link(_link_in(body.link))
    except Unauthenticated as error:
        notice = refusal(error)
        page = _page(call, body.to, notice=notice, help=HELP, status=HTTPStatus.UNAUTHORIZED)
        page.headers["www-authenticate"] = Challenges(call.engine.config).of(error, call.request.scope) or ""
        return page
    await _record(call, "login", await call.engine.keys.authenticate(session))
    return _with_session(call, session, screen_or_home(body.to), lifetime=int(SESSION_LIFETIME.total_seconds()))


@operations.declare("POST", "/logout", needs="nobody", status=303)
async def logout(call: ApiCall) -> Response:
    """End the browser session."""
    session = call.request.cookies.get(COOKIE)
    if session is not None:
        with suppress(Unauthenticated):  # it has ended already
            await _record(call, "logout", await call.engine.keys.authenticate(session))
        await call.engine.keys.end_session(session)
    return _with_session(call, "", HOME, lifetime=0)


async def _record(call: ApiCall, action: str, caller: Principal) -> None:
    """Record in the audit that a person signed in or out."""
    entry = AuditEntry(action=action, user=caller.user, key=caller.key)
    await call.engine.tenant(caller.tenant).audit.record(entry)


def screen_or_home(wanted: str) -> str:
    """Return the requested screen, without the root path, or home if it is not the path of a screen."""
    segments = unquote(wanted.partition("?")[0]).split("/")
    first = "/".join(segments[:2])
    is_screen = first != HOME and first in SCREENS and not {".", ".."} & set(segments)
    return wanted if is_screen and _PLAIN.fullmatch(wanted) else HOME


def _link_in(text: str) -> str:
    """Return the token in the pasted text. The address before it does not matter."""
    found = _LINK.search(text.strip())
    return found[1] if found else text


def _with_session(call: ApiCall, session: str, screen: str, *, lifetime: int) -> Response:
    root_path = call.engine.config.server.root_path
    response = RedirectResponse(root_path + screen, HTTPStatus.SEE_OTHER)
    response.set_cookie(
        COOKIE,
        session,
        max_age=lifetime,
        path=root_path or "/",
        secure=scheme_of(call.request.scope["scheme"], call.request.headers) == "https",
        httponly=True,
        samesite="strict",
    )
    return response


def _page(
    call: ApiCall, to: str, *, notice: str = "", field: str = FIELD, help: str = "", status: int = HTTPStatus.OK
) -> Response:
    root_path = call.engine.config.server.root_path
    content = FORM.format(root=escape(root_path), to=escape(screen_or_home(to)), notice=notice, field=field, help=help)
    return plain_page("Sign in", content, root_path, status=status)
