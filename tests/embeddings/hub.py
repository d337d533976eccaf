"""A hub as its library knows it: two files under a revision, which a test can break off in the middle."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web


class Hub:
    """Serves files also from somewhere in the middle on."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.url = ""
        self.sent: list[tuple[str, int]] = []  # each file that was asked for, and from which byte on
        self.break_after: int | None = None
        self._files = files

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["path"]
        content = self._files.get(name)
        if content is None:
            return web.Response(status=404)
        found = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        start = int(found[1]) if found else 0
        headers = {
            "Content-Length": str(len(content) - start),
        }
        if found:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.sent.append((name, start))
        response = web.StreamResponse(status=206 if found else 200, headers=headers)
        await response.prepare(request)
        end = len(content) if self.break_after is None else min(len(content), start + self.break_after)
        await response.write(content[start:end])
        if end < len(content) and request.transport is not None:
            request.transport.close()
        return response

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Listen as long as it lasts."""
        app = web.Application()
        app.router.add_get("/{owner}/{name}/resolve/{revision}/{path:.+}", self._serve)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()
