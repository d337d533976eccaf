"""Our gateway as a process, as it comes: PostgreSQL of its own, keys required, an issuer whose tokens name an agent."""

import asyncio
import json
import os
import signal
import sys
import time
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import aiohttp
from joserfc import jwt
from joserfc.jwk import RSAKey
from measure.helpers import BENCH
from measure.rounds import Server

from holdfast.postgres.folder import DataFolder
from holdfast.server.server_file import ServerFile
from parts.loading import Front, Tree

AGENT, AUDIENCE = "support", "bench"
AT_ONCE = 1000  # requests: all clients are one user, who may have most of them
HOUR = 3600  # seconds that a token lasts
STARTING = 120  # seconds
SAMPLED = BENCH / "programs" / "sampled.py"


class Issuer:
    """Signs tokens, and shows its public key to whoever asks."""

    def __init__(self) -> None:
        self._key = RSAKey.generate_key(2048, {"kid": "bench", "use": "sig", "alg": "RS256"})
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["Issuer"]:
        """Show the key as long as this is open."""
        async with await asyncio.start_server(self._show, "127.0.0.1", 0) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield self

    @property
    def settings(self) -> dict[str, Any]:
        """What a server has to know of it."""
        scopes = ["read", "write", "admin"]
        where = {"issuer": self.url, "jwks_url": f"{self.url}/jwks"}
        return {**where, "audience": AUDIENCE, "agent_claim": "agent", "scopes": scopes}

    def token(self, **claims: str) -> str:
        """A token of Ann's."""
        now = int(time.time())
        about = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + HOUR}
        return jwt.encode({"alg": "RS256", "kid": "bench"}, {**about, **claims}, self._key)

    async def _show(self, reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps({"keys": [self._key.as_dict(private=False)]}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def ours(
    data: Path,
    sources: Sequence[Mapping[str, Any]],
    issuer: Issuer,
    *,
    tools: Sequence[str],
    secrets: Mapping[str, str] = MappingProxyType({}),
    settings: Mapping[str, str] = MappingProxyType({}),
    requests: Sequence[tuple[str, str, object]] = (),
    samples: Path | None = None,
) -> AsyncGenerator[Front]:
    """A server with sources and secrets; these tools are permitted to the agent of the token that it is shown.

    `requests` are sent to it by its operator before it is measured. `samples` is where it says what it was at since
    SIGUSR2, when it has ended.
    """
    settings = {
        **settings,
        "HOLDFAST_ACCESS__ISSUERS": json.dumps([issuer.settings]),
        "HOLDFAST_EXECUTION__ALLOW_PRIVATE": "127.0.0.1",
        "HOLDFAST_LIMITS__REQUESTS": str(AT_ONCE),
        "HOLDFAST_GATEWAY__LISTED_TOOLS": "2000",
        "HOLDFAST_MEMORY__EMBEDDING__MODEL": "none",
        "HOLDFAST_MEMORY__EMBEDDING__CHINESE_MODEL": "",
    }
    program = ["-m", "holdfast.cli.main"] if samples is None else [str(SAMPLED), str(samples)]
    options = ["--no-agents", "--require-key", "--json", "--port", "0", "--data", str(data)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *program, "up", *options, stdout=PIPE, env={**os.environ, **settings}, limit=2**20
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(STARTING):
            said = await process.stdout.readline()
        assert said, "holdfast up ended before it was ready"
        url: str = json.loads(said)["url"]
        await _equip(url, data, sources, tools, secrets, requests)
        database = Server(DataFolder(data).cluster)
        token = issuer.token(agent=AGENT, scope="holdfast:read holdfast:write")
        yield Front(int(url.rpartition(":")[2]), Tree(process.pid), token, database)
    finally:
        process.send_signal(signal.SIGINT)
        await process.wait()


def administered(front: Front, issuer: Issuer) -> Front:
    """The same server for somebody who sees every tool."""
    return replace(front, token=issuer.token(scope="holdfast:read holdfast:write holdfast:admin"))


async def _equip(
    url: str,
    data: Path,
    sources: Sequence[Mapping[str, Any]],
    tools: Sequence[str],
    secrets: Mapping[str, str],
    requests: Sequence[tuple[str, str, object]],
) -> None:
    file = ServerFile.read(data)
    assert file is not None
    permissions = {"permissions": {"default": "none", "agents": {AGENT: "execute"}}}
    headers = {"Authorization": f"Bearer {file.token}"}
    async with aiohttp.ClientSession(url, headers=headers) as session:
        for method, path, body in (
            *(("PUT", f"/api/secrets/{name}", {"value": value}) for name, value in secrets.items()),
            *(("POST", "/api/sources", source) for source in sources),
            ("PUT", f"/api/agents/{AGENT}", {"instructions": "Help."}),
            *(("PUT", f"/api/tools/{tool}/permissions", permissions) for tool in tools),
            *requests,
        ):
            async with session.request(method, path, json=body) as answer:
                assert answer.ok, await answer.text()
