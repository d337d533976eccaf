"""What a person sees: a first page, and signing in and out. A link becomes a session, which a cookie carries."""

import html
from http import HTTPStatus

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from holdfast.access.keys import SESSION_LIFETIME
from holdfast.core.errors import Unauthenticated
from holdfast.server.authentication import COOKIE
from holdfast.server.operations import Call, Operations
from holdfast.server.origins import scheme_of

operations = Operations("browser")

PAGE_POLICY = "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Holdfast</title></head>
<body><h1>Holdfast</h1>{}</body>
</html>
"""
FORM = """
<form method="post" action="{action}">
<input type="hidden" name="link" value="{link}"><button autofocus>Sign in</button>
</form>
"""


HOME = """
<p>The engine runs.</p>
<ul>
<li><a href="{root}/readyz">How its parts do</a></li>
<li><a href="{root}/api/openapi.json">What it offers</a></li>
</ul>
"""


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the page sends."""

    link: str


@operations.declare("GET", "/", needs="nobody")
async def home(call: Call) -> Response:
    """A page that says where to go on."""
    return _page(HOME.format(root=html.escape(call.engine.config.server.root_path)))


# Reading must not use the link up: mail programs and browsers fetch links before anybody has opened them.
@operations.declare("GET", "/login", needs="nobody")
async def login_page(call: Call, link: str = "") -> Response:
    """A page with one button, which signs the browser in."""
    action = f"{call.engine.config.server.root_path}/login"
    return _page(FORM.format(action=html.escape(action), link=html.escape(link)))


@operations.declare(
    "POST",
    "/login",
    needs="nobody",
    status=303,
    errors=[Unauthenticated],
    body_format="application/x-www-form-urlencoded",
)
async def login(call: Call, body: Login) -> Response:
    """Use a link up, and give the browser a session."""
    try:
        session = await call.engine.keys.exchange_link(body.link)
    except Unauthenticated as error:
        return _page(f"<p>{html.escape(str(error))}</p>", HTTPStatus.UNAUTHORIZED)
    return _with_session(call, session, lifetime=int(SESSION_LIFETIME.total_seconds()))


@operations.declare("POST", "/logout", needs="nobody", status=303)
async def logout(call: Call) -> Response:
    """End the browser's session."""
    session = call.request.cookies.get(COOKIE)
    if session is not None:
        await call.engine.keys.end_session(session)
    return _with_session(call, "", lifetime=0)


def _with_session(call: Call, session: str, *, lifetime: int) -> Response:
    root = f"{call.engine.config.server.root_path}/"
    response = RedirectResponse(root, HTTPStatus.SEE_OTHER)
    response.set_cookie(
        COOKIE,
        session,
        max_age=lifetime,
        path=root.rstrip("/") or "/",
        secure=scheme_of(call.request.scope["scheme"], call.request.headers) == "https",
        httponly=True,
        samesite="strict",
    )
    return response


def _page(content: str, status: int = HTTPStatus.OK) -> Response:
    return HTMLResponse(PAGE.format(content), status, {"content-security-policy": PAGE_POLICY})
