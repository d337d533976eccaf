"""Somebody else's MCP server in front of a back end, in a process of its own and an environment of its own.

    gatekeeper.py WAY DOCUMENT

In front of the REST back end of an OpenAPI document, WAY is `fastmcp` (FastMCP, made from the document), `sdk` (the
official SDK's low-level server, with a tool that asks the back end by the client that comes with it) or `contextforge`
(IBM's gateway, with SQLite in the folder of the document and one REST tool).

In front of the MCP server that the document names as its first, WAY is `proxy` (FastMCP's) or `federated` (ContextForge
with that server as its gateway). `local` is the SDK's low-level server with a tool of its own, behind others.

Says `ready`; to a line, as JSON the port that it listens on, a token where it wants one, and how many requests have
come. Nobody is asked for a token but by ContextForge, and no caller is refused a tool.
"""

import asyncio
import json
import logging
import os
import socket
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO
from urllib.request import Request, urlopen

import uvloop
from customer import RESULT, TOOL

SECRET = "0123456789abcdef0123456789abcdef-bench"  # of nobody
ADMIN = "admin@example.com"
PASSWORD = "Bench-0123456789xY"


def fastmcp(document: dict[str, Any]) -> Any:
    """FastMCP's server, all operations tools."""
    client = import_module("httpx2").AsyncClient(base_url=document["servers"][0]["url"])
    made = import_module("fastmcp").FastMCP.from_openapi(openapi_spec=document, client=client)
    return made.http_app(path="/mcp", stateless_http=True, json_response=True)


def proxy(document: dict[str, Any]) -> Any:
    """FastMCP's proxy of an MCP server."""
    made = import_module("fastmcp.server").create_proxy(document["servers"][0]["url"])
    return made.http_app(path="/mcp", stateless_http=True, json_response=True)


def local(_: dict[str, Any]) -> Any:
    """The SDK's low-level server, whose tool has its answer at hand."""
    types: Any = import_module("mcp_types")
    tool, result = types.Tool.model_validate(TOOL), types.CallToolResult.model_validate(RESULT)

    async def list_tools(_: Any, __: Any) -> Any:
        return types.ListToolsResult(tools=[tool])

    async def call_tool(_: Any, __: Any) -> Any:
        return result

    server = import_module("mcp.server.lowlevel").Server("bench", on_list_tools=list_tools, on_call_tool=call_tool)
    return server.streamable_http_app(stateless_http=True, json_response=True)


def sdk(document: dict[str, Any]) -> Any:
    """The SDK's low-level server: each operation a tool, whose arguments are put into the path."""
    types: Any = import_module("mcp_types")
    client = import_module("httpx2").AsyncClient(base_url=document["servers"][0]["url"])
    paths = {item["get"]["operationId"]: path for path, item in document["paths"].items()}

    def tool(operation: dict[str, Any]) -> Any:
        schemas = {each["name"]: each["schema"] for each in operation["parameters"]}
        schema = {"type": "object", "properties": schemas, "required": ["id"]}
        return types.Tool(name=operation["operationId"], description=operation["summary"], input_schema=schema)

    tools = [tool(item["get"]) for item in document["paths"].values()]

    async def list_tools(_: Any, __: Any) -> Any:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, params: Any) -> Any:
        answer = await client.get(paths[params.name].format(id=params.arguments["id"]))
        return types.CallToolResult(content=[types.TextContent(text=answer.text)], structured_content=answer.json())

    server = import_module("mcp.server.lowlevel").Server("bench", on_list_tools=list_tools, on_call_tool=call_tool)
    return server.streamable_http_app(stateless_http=True, json_response=True)


def contextforge(folder: Path) -> Any:
    """ContextForge's application: what would limit or slow it that it can do without is switched off."""
    os.environ |= {
        "DATABASE_URL": f"sqlite:///{folder / 'contextforge.db'}",
        "JWT_SECRET_KEY": SECRET,
        "AUTH_ENCRYPTION_SECRET": SECRET[::-1],
        "BASIC_AUTH_PASSWORD": PASSWORD,
        "PLATFORM_ADMIN_EMAIL": ADMIN,
        "PLATFORM_ADMIN_PASSWORD": PASSWORD,
        "DEFAULT_USER_PASSWORD": PASSWORD,
        "SSRF_ALLOW_LOCALHOST": "true",
        "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        "RATE_LIMITING_ENABLED": "false",
        "TOOL_RATE_LIMIT": "100000000",
        "CACHE_TYPE": "memory",
        "LOG_LEVEL": "CRITICAL",
        "PLUGINS_ENABLED": "false",
    }
    os.chdir(folder)
    return import_module("mcpgateway.main").app


def register(document: dict[str, Any], port: int) -> str:
    """Give ContextForge its tool, or the MCP server that has it, and tell the token that it is called with."""
    user = {"email": ADMIN, "is_admin": True, "auth_provider": "local"}
    claims = {"sub": ADMIN, "user": user, "is_admin": True, "teams": None, "token_use": "session", "jti": "bench"}
    times = {"iat": int(time.time()), "exp": int(time.time()) + 36_000}
    named = {"aud": "mcpgateway-api", "iss": "mcpgateway"}
    token: str = import_module("jwt").encode({**claims, **times, **named}, SECRET, algorithm="HS256")
    if "paths" in document:
        path, given = "/tools", {"tool": rest_tool(document)}
    else:
        url = document["servers"][0]["url"]
        path, given = "/gateways", {"name": "shop", "url": url, "transport": "STREAMABLEHTTP", "visibility": "public"}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    asked = Request(f"http://127.0.0.1:{port}{path}", json.dumps(given).encode(), headers)
    with urlopen(asked, timeout=60) as answer:
        assert answer.status < 300, answer.read()
    return token


def rest_tool(document: dict[str, Any]) -> dict[str, Any]:
    """ContextForge's tool of the first operation."""
    (path, item), *_ = document["paths"].items()
    return {
        "name": item["get"]["operationId"],
        "url": document["servers"][0]["url"] + path,
        "description": item["get"]["summary"],
        "integration_type": "REST",
        "request_type": "GET",
        "input_schema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        "visibility": "public",
    }


class Counter:
    """Counts the requests that come to an application."""

    def __init__(self, app: Any) -> None:
        self.requests = 0
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests += scope["type"] == "http"
        await self._app(scope, receive, send)


async def serve(way: str, path: Path, said: TextIO) -> None:
    """Serve until the standard input ends."""
    document = json.loads(path.read_text())
    forge = way in ("contextforge", "federated")
    made = contextforge(path.parent) if forge else APPS[way](document)
    app = Counter(made) if way == "local" else made
    uvicorn: Any = import_module("uvicorn")
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False))
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        assert not serving.done(), "the server has ended"
        await asyncio.sleep(0.05)
    port = listener.getsockname()[1]
    token = await asyncio.to_thread(register, document, port) if forge else None
    print("ready", file=said, flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        told = {"port": port, "token": token, "requests": getattr(app, "requests", None)}
        print(json.dumps(told), file=said, flush=True)
    os._exit(0)  # a peer's threads are no matter of ours


APPS = {"fastmcp": fastmcp, "sdk": sdk, "proxy": proxy, "local": local}


def main() -> None:
    """Serve, and let nobody else say anything."""
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    way, path = sys.argv[1:]
    with Path(os.devnull).open("w") as nowhere, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        said, sys.stdout = sys.stdout, nowhere
        runner.run(serve(way, Path(path), said))


if __name__ == "__main__":
    main()
