"""A server made with the official SDK, old or new: `sdk_server.py TRANSPORT PORT`."""

import sys
from importlib import import_module
from typing import Any


def new_server(name: str) -> Any:
    """A server of the SDK that is installed."""
    module: Any = import_module("mcp.server")
    return module.MCPServer(name) if hasattr(module, "MCPServer") else module.FastMCP(name)


SERVER: Any = new_server("sdk")


@SERVER.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@SERVER.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("this tool fails")


@SERVER.resource("notes://today")
def today() -> str:
    """What is planned."""
    return "Buy milk."


@SERVER.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


def main() -> None:
    """Serve."""
    transport, port = sys.argv[1], int(sys.argv[2])
    if transport == "stdio":
        SERVER.run("stdio")
        return
    import uvicorn

    app = SERVER.sse_app() if transport == "sse" else SERVER.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
