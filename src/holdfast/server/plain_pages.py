"""Plain pages: forms without scripts, which work before anybody is signed in."""

from html import escape
from http import HTTPStatus

from starlette.responses import HTMLResponse, Response

from holdfast.core.errors import HoldfastError

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title} · Holdfast</title>
<link rel="icon" href="{root}/static/console/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{root}/static/page.css">
</head>
<body><main><p class="brand">Holdfast</p><h1>{title}</h1>
{content}
</main></body>
</html>
"""
REFUSED = '<p class="refused" role="alert"><strong>{what}</strong> {rest}</p>'


def plain_page(title: str, content: str, root_path: str, *, status: int = HTTPStatus.OK) -> Response:
    """Return a page. `content` is HTML: its texts are escaped already."""
    page = PAGE.format(title=escape(title), root=escape(root_path), content=content)
    return HTMLResponse(page, status, {"content-security-policy": POLICY})


def refusal(error: HoldfastError) -> str:
    """Return what a page says of an error, as HTML."""
    return REFUSED.format(what=_sentence(error.what), rest=_sentence(error.why) if error.why else "")


def _sentence(text: str) -> str:
    return escape(f"{text[:1].upper()}{text[1:]}.")
