"""An ASGI application, asked without a server around it."""

from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message

from tests.server.wire import Reply


async def ask(app: ASGIApp, method: str, path: str = "/", *, headers: Mapping[str, str] | None = None) -> Reply:
    """Its answer to a request; `path` is also what a route would have found in the address."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": raw,
        "path_params": {"path": path},
    }
    await app(scope, receive, send)
    start, *bodies = sent
    told = {name.decode(): value.decode() for name, value in start["headers"]}
    return Reply(start["status"], told, b"".join(message.get("body", b"") for message in bodies))
