"""What stands before a REST back end, and what it is asked: nothing, ours, and other people's MCP servers."""

import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from measure.helpers import Helper, helper
from peers import ENVIRONMENTS

from parts.loading import Ask, Front, Tree, port_of

TOOL, CUSTOMER = "get_customers_by_id", 42
CITY = "Cologne"  # of the customer: every right answer has it
FASTMCP, SDK, CONTEXTFORGE = "FastMCP, from OpenAPI", "the SDK's server, httpx2", "ContextForge, a REST tool"
PROXY, FEDERATED = "FastMCP, create_proxy", "ContextForge, federated"
SDK_SERVER = "the SDK's server"
PEERS = {
    FASTMCP: ("gateway", "fastmcp"),
    SDK: ("gateway", "sdk"),
    CONTEXTFORGE: ("contextforge", "contextforge"),
    PROXY: ("gateway", "proxy"),
    FEDERATED: ("contextforge", "federated"),
    SDK_SERVER: ("gateway", "local"),
}
PACKAGES = ("fastmcp", "mcp", "httpx2", "mcp-contextforge-gateway")
ACCEPT = "application/json, text/event-stream"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


def document(port: int, tools: int) -> dict[str, Any]:
    """The back end's OpenAPI document; beside customers, it has other things until they are so many."""
    names = ["customers", *(f"things{number:03}" for number in range(1, tools))]
    return {
        "openapi": "3.0.3",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": f"http://127.0.0.1:{port}"}],
        "paths": {f"/{name}/{{id}}": {"get": _operation(name)} for name in names},
    }


def _operation(name: str) -> dict[str, Any]:
    fields = {"type": "string", "maxLength": 200, "description": "The fields to give, with commas; all, if not said."}
    return {
        "operationId": f"get_{name}_by_id",
        "summary": f"Get one of the {name} by its number, with the orders that were made.",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}},
            {"name": "fields", "in": "query", "schema": fields},
        ],
        "responses": {"200": {"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}}},
    }


def http(front: Front, line: str, headers: Mapping[str, str], body: object = None) -> bytes:
    """A request as it is sent."""
    data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    fields = {"Host": f"127.0.0.1:{front.port}", **headers}
    if body is not None:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
    if front.token is not None:
        fields["Authorization"] = f"Bearer {front.token}"
    head = "\r\n".join([f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())])
    return f"{head}\r\n\r\n".encode() + data


def direct(front: Front) -> Ask:
    """What the back end itself is asked."""
    return Ask(front, http(front, f"GET /customers/{CUSTOMER}", {}), CITY)


def modern(front: Front, method: str, params: Mapping[str, Any]) -> bytes:
    """A request of the era without sessions."""
    headers = {"Accept": ACCEPT, "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return http(front, "POST /mcp", headers, body)


def legacy(
    front: Front, method: str, params: Mapping[str, Any], *, path: str = "/mcp", session: str | None = None
) -> bytes:
    """A request of the era before."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Accept": ACCEPT, "MCP-Protocol-Version": LEGACY}
    if session is not None:
        headers["Mcp-Session-Id"] = session
    return http(front, f"POST {path}", headers, body)


def tool_call(front: Front, tool: str = TOOL) -> Ask:
    """`tools/call` of the customer."""
    return Ask(front, modern(front, "tools/call", {"name": tool, "arguments": {"id": CUSTOMER}}), CITY)


def legacy_call(front: Front, session: str | None = None) -> Ask:
    """The same in the era before."""
    params = {"name": TOOL, "arguments": {"id": CUSTOMER}}
    return Ask(front, legacy(front, "tools/call", params, session=session), CITY)


def tool_list(front: Front, last: str) -> Ask:
    """`tools/list`, in which there is a tool of this name."""
    return Ask(front, modern(front, "tools/list", {}), f'"{last}"')


def forge_call(front: Front, tool: str = TOOL, *, session: str | None = None) -> Ask:
    """`tools/call` of ContextForge, which shows tools by names of its own, and knows no newer era.

    It keeps its sessions with upstream servers for as long as its caller names the same session.
    """
    params = {"name": tool.replace("_", "-"), "arguments": {"id": CUSTOMER}}
    return Ask(front, legacy(front, "tools/call", params, path="/mcp/", session=session), CITY)


def rpc_call(front: Front, calls: int = 1) -> Ask:
    """The customer by JSON-RPC, so many times in one batch."""
    batch = [{"jsonrpc": "2.0", "id": id, "method": TOOL, "params": {"id": CUSTOMER}} for id in range(calls)]
    return Ask(front, http(front, "POST /rpc", {}, batch[0] if calls == 1 else batch), CITY, calls)


def is_installed(way: str) -> bool:
    """Whether the environment of a peer was made."""
    return (ENVIRONMENTS / PEERS[way][0] / ".made").exists()


def versions() -> dict[str, str]:
    """What is installed of the peers."""
    places = [*ENVIRONMENTS.glob("gateway/lib/*/site-packages"), *ENVIRONMENTS.glob("contextforge/lib/*/site-packages")]
    found = [(each.name, each.version) for place in places for each in distributions(path=[str(place)])]
    return {name: version for name, version in reversed(found) if name in PACKAGES}


def peer_process(way: str, document: Path) -> AbstractAsyncContextManager[Helper]:
    """The process of a peer's server."""
    environment, program = PEERS[way]
    return helper("gatekeeper", program, str(document), python=ENVIRONMENTS / environment / "bin" / "python")


@asynccontextmanager
async def peer(way: str, document: Path) -> AsyncGenerator[Front]:
    """A peer's server in front of what a document describes; it sleeps when it is not asked."""
    async with peer_process(way, document) as process:
        port, token = await port_of(process)
        process.pause()
        yield Front(port, Tree(process.pid), token, awake=lambda: _awake(process))


@contextmanager
def _awake(process: Helper) -> Generator[None]:
    process.resume()
    try:
        yield
    finally:
        process.pause()
