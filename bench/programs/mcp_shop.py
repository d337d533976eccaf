"""An MCP server of little cost, in a process of its own: its one tool returns what shop.py answers.

    mcp_shop.py VERSIONS

VERSIONS is `all`, or `legacy`: those before 2026-07-28, with a session that the client has to name. Says `ready`; to a
line, as JSON the port that it listens on, and how many requests have come, whatever they were.
"""

import asyncio
import json
import sys
from typing import Any

import msgspec
import uvloop
from customer import RESULT, TOOL
from shop import Shop

MODERN, LEGACY = "2026-07-28", "2025-11-25"
SESSION = "bench"
ABOUT = {"name": "shop", "version": "1"}
CAPABILITIES: dict[str, Any] = {"tools": {}}
MODERN_ONLY: dict[str, Any] = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": ABOUT}}
LISTED = {"ttlMs": 60_000, "cacheScope": "public"}


class Request(msgspec.Struct):
    """A request or a notification, as far as it is read."""

    method: str
    id: int | str | None = None
    params: dict[str, Any] = {}


class McpShop(Shop):
    """Answers every call of a tool alike."""

    requests = 0
    is_modern = True
    _decoder = msgspec.json.Decoder(Request)

    def answer(self, head: bytes, body: bytes) -> bytes:
        """Return the response."""
        type(self).requests += 1
        if not head.startswith(b"POST "):
            return response(b"", "405 Method Not Allowed")
        request = self._decoder.decode(body)
        if request.id is None:
            return response(b"", "202 Accepted")
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": request.id}
        asks_modern = "io.modelcontextprotocol/protocolVersion" in request.params.get("_meta", {})
        result = None if asks_modern and not self.is_modern else self._result(request.method, request.params)
        if result is None:
            error = {"code": -32601, "message": "there is no such method"}
            return response(msgspec.json.encode({**message, "error": error}), "400 Bad Request")
        headers = f"Mcp-Session-Id: {SESSION}\r\n" if request.method == "initialize" else ""
        whole = {**result, **MODERN_ONLY} if asks_modern else result
        return response(msgspec.json.encode({**message, "result": whole}), headers=headers)

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        match method:
            case "tools/call":
                return RESULT
            case "tools/list":
                return {"tools": [TOOL], **LISTED}
            case "initialize":
                return {"protocolVersion": LEGACY, "capabilities": CAPABILITIES, "serverInfo": ABOUT}
            case "server/discover" if self.is_modern:
                return {"supportedVersions": [MODERN, LEGACY], "capabilities": CAPABILITIES, **LISTED}
            case "ping":
                return {}
            case _:
                return None


def response(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    """Return a response as it is sent."""
    kind = "Content-Type: application/json\r\n" if body else ""
    return f"HTTP/1.1 {status}\r\n{kind}{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def main(versions: str) -> None:
    """Serve until the standard input ends."""
    McpShop.is_modern = versions == "all"
    server = await asyncio.get_running_loop().create_server(McpShop, "127.0.0.1", 0)
    print("ready", flush=True)
    port = server.sockets[0].getsockname()[1]
    while await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps({"port": port, "token": None, "requests": McpShop.requests}), flush=True)
    server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*sys.argv[1:]))
