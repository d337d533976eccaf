"""An issuer of tokens: a real server that publishes its keys, and signs whatever a test wants it to."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from time import time
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

SECRET = "a secret of a platform, of 32 bytes and more"


@cache
def rsa(name: str = "rsa") -> RSAKey:
    """A key pair of this name: the same in all tests, since it takes long to find one."""
    return RSAKey.generate_key(2048, {"kid": name})


def ec(name: str = "ec") -> ECKey:
    return ECKey.generate_key("P-256", {"kid": name})


def ed(name: str = "ed") -> OKPKey:
    return OKPKey.generate_key("Ed25519", {"kid": name})


def signed(claims: object, key: Key | None, algorithm: str, **header: object) -> str:
    """A token as it goes over the wire; None as key leaves the signature out, None in the header the entry."""
    kid = {"kid": key.kid} if key is not None and key.kid is not None else {}
    head = {"typ": "JWT", "alg": algorithm, **kid, **header}
    parts = [json.dumps({name: value for name, value in head.items() if value is not None}), json.dumps(claims)]
    text = b".".join(encoded(part.encode()) for part in parts)
    signature = b"none" if key is None else JWSRegistry.algorithms[algorithm].sign(text, key)
    return (text + b"." + encoded(signature)).decode()


def claims_of(issuer: str, **more: object) -> dict[str, Any]:
    """The claims of a token that is good for an hour; None leaves one out."""
    now = int(time())
    claims = {"iss": issuer, "sub": "ann", "aud": "holdfast", "iat": now, "exp": now + 3600, **more}
    return {name: value for name, value in claims.items() if value is not None}


def shared_token(issuer: str, **claims: object) -> str:
    """A token signed with the platform's secret."""
    return signed(claims_of(issuer, **claims), OctKey.import_key(SECRET), "HS256")


@dataclass
class IssuerServer:
    """The issuer: what it publishes, and what it was asked for."""

    url: str = ""
    keys: list[Key] = field(default_factory=lambda: [rsa()])
    published: list[dict[str, Any]] | None = None  # in place of the keys
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    away: bool = False
    asked: list[str] = field(default_factory=list[str])
    waits: asyncio.Event | None = None  # before it answers
    arrivals: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/.well-known/jwks.json"

    def token(self, key: Key | None = None, algorithm: str = "RS256", **claims: object) -> str:
        """A token of this issuer, signed with its first key or another."""
        return signed(claims_of(self.url, **claims), key or self.keys[0], algorithm)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        self.arrivals.put_nowait(request.path)
        if self.waits is not None:
            await self.waits.wait()
        if self.away:
            return web.Response(status=503)
        if request.path.endswith("/jwks.json"):
            keys = [key.as_dict(private=False) for key in self.keys] if self.published is None else self.published
            return web.json_response({"keys": keys})
        if request.path in self.metadata:
            return web.json_response(self.metadata[request.path])
        return web.Response(status=404)


@asynccontextmanager
async def issuer_server(path: str = "") -> AsyncGenerator[IssuerServer]:
    """An issuer that runs as long as this lasts; its address ends in `path`."""
    issuer = IssuerServer()
    app = web.Application()
    app.router.add_get("/{path:.*}", issuer.answer)
    async with TestServer(app) as server:
        issuer.url = str(server.make_url(path)).rstrip("/")
        yield issuer


def encoded(data: bytes) -> bytes:
    """Bytes as a token has them."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")
