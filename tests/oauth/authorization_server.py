"""A small authorization server of the tests, which answers whatever a test wants, also what no good server would."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import time
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.access.issuing import ed, signed

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


@dataclass
class SmallServer:
    """The server: what it was asked, and what it answers. `change` replaces members of its answers."""

    url: str = ""
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    seconds: int = 300
    change: dict[str, Any] = field(default_factory=dict[str, Any])
    claims: dict[str, Any] = field(default_factory=dict[str, Any])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    instead: web.Response | None = None
    waits: asyncio.Event | None = None
    began: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def token_url(self) -> str:
        """Its token endpoint."""
        return f"{self.url}/token"

    def token(self, form: Mapping[str, str]) -> str:
        """The access token for a form, as a JWT that says for whom it is and who acts."""
        now = int(time())
        claims = {
            "iss": self.url,
            "sub": form.get("subject_token", form.get("client_id", "client"))[-16:],
            "aud": form.get("audience", "anyone"),
            "iat": now,
            "exp": now + self.seconds,
            "jti": f"token-{len(self.asked)}",
            **({"act": {"sub": form["actor_token"][-16:]}} if "actor_token" in form else {}),
            **self.claims,
        }
        return signed({name: value for name, value in claims.items() if value is not None}, ed(), "EdDSA")

    async def _describe(self, _: web.Request) -> web.Response:
        known = {"issuer": self.url, "token_endpoint": self.token_url, **self.metadata}
        return web.json_response(known)

    async def _issue(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.asked.append(form)
        self.headers.append(dict(request.headers))
        self.began.set()
        if self.waits is not None:
            await self.waits.wait()
        if self.instead is not None:
            copied = self.instead
            return web.Response(status=copied.status, body=copied.body, headers=copied.headers)
        answer: dict[str, Any] = {"access_token": self.token(form), "token_type": "Bearer", "expires_in": self.seconds}
        if form.get("grant_type") == EXCHANGE:
            answer["issued_token_type"] = ACCESS_TOKEN
        answer |= self.change
        return web.json_response({name: value for name, value in answer.items() if value is not None})


@asynccontextmanager
async def small_server() -> AsyncGenerator[SmallServer]:
    """A small authorization server on this machine."""
    server = SmallServer()
    app = web.Application()
    app.router.add_get("/.well-known/oauth-authorization-server", server._describe)  # pyright: ignore[reportPrivateUsage]
    app.router.add_post("/token", server._issue)  # pyright: ignore[reportPrivateUsage]
    async with TestServer(app) as listening:
        server.url = str(listening.make_url("")).rstrip("/")
        yield server
