"""Requests to the gateway. They skip the machinery of the HTTP API, because its cost would add to every call."""

from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import cast

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import Receive, Scope, Send

from holdfast.access.principals import Principal
from holdfast.server.authentication import Authentication, CallerSession
from holdfast.server.problems import WrongMediaType
from holdfast.server.request_limits import SLOT, RequestSlot

JSON = b"application/json"


@dataclass
class GatewayRequest:
    """A request of an authenticated caller."""

    scope: Scope
    receive: Receive
    send: Send
    caller_session: CallerSession

    @classmethod
    async def of(cls, authentication: Authentication, scope: Scope, receive: Receive, send: Send) -> "GatewayRequest":
        """Authenticate the caller of a request, and take a place for it."""
        connection = HTTPConnection(scope)
        caller = await authentication.authenticate(connection)
        slot: RequestSlot = scope[SLOT]
        slot.enter(caller)
        return cls(scope, receive, send, CallerSession(authentication, connection, caller))

    @property
    def caller(self) -> Principal:
        """The caller."""
        return self.caller_session.caller

    @cached_property
    def headers(self) -> Headers:
        """The headers."""
        return Headers(scope=self.scope)

    def require_json(self) -> None:
        """Refuse a body whose Content-Type is not JSON."""
        given = next((value for name, value in self.scope["headers"] if name == b"content-type"), b"")
        kind = given.partition(b";")[0].strip().lower()
        if kind != JSON:
            raise WrongMediaType(kind.decode("latin-1"), "application/json")

    @property
    def slot(self) -> RequestSlot:
        """The request's place and timeout."""
        return cast(RequestSlot, self.scope[SLOT])

    async def body(self) -> bytes:
        """Read the whole body. The guards limit its size and the time that it takes."""
        parts: list[bytes] = []
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    async def answer(
        self,
        body: bytes,
        *,
        status: int = 200,
        content_type: bytes = JSON,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        """Send the response with its whole body."""
        length = () if status == HTTPStatus.NO_CONTENT else ((b"content-length", str(len(body)).encode()),)
        kind = ((b"content-type", content_type),) if body else ()
        await self.send({"type": "http.response.start", "status": status, "headers": [*kind, *length, *headers]})
        await self.send({"type": "http.response.body", "body": body})
