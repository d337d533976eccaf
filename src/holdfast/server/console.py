"""The console: one HTML page for all screens. The page routes by itself."""

from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from holdfast.server.problems import only_read

# The paths of the screens. The router in the page has the same paths.
SCREENS = ("/", "/chat", "/sessions", "/memory")
# Only our own scripts and styles run, the page connects only to this server, and no other page can frame it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Holdfast</title></head>
<body><h1>Holdfast</h1>
<p>The engine runs. Its console was not built: <code>make run</code> does that, and every package has it.</p>
<ul>
<li><a href="{root}/readyz">How its parts do</a></li>
<li><a href="{root}/api/openapi.json">What it offers</a></li>
</ul>
</body>
</html>
"""


class Console:
    """Serves the page, without authentication: the API checks access to the data."""

    def __init__(self, root_path: str, folder: Traversable | None = None) -> None:
        page = (folder or files("holdfast.server") / "static" / "console") / "index.html"
        self._page = (
            _placed(page.read_text(), root_path) if page.is_file() else NOT_BUILT.format(root=escape(root_path))
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        only_read(scope["method"])
        headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}
        await HTMLResponse(self._page, headers=headers)(scope, receive, send)


def _placed(page: str, root_path: str) -> str:
    """Insert the paths of the page's files and the root path of the API."""
    root = escape(root_path)
    told = '<meta name="holdfast-root" content="'
    return page.replace('"./', f'"{root}/static/console/').replace(told, told + root)
