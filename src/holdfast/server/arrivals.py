"""Arrivals: requests to the gateway, which are answered without what the ordinary API needs, since each is paid for."""

from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import cast

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import Receive, Scope, Send

from holdfast.access.principals import Principal
from holdfast.server.authentication import Authentication, Standing
from holdfast.server.problems import WrongMediaType
from holdfast.server.traffic import VISIT, Visit

JSON = b"application/json"


@dataclass
class Arrival:
    """A request by a caller who is known."""

    scope: Scope
    receive: Receive
    send: Send
    standing: Standing

    @classmethod
    async def of(cls, authentication: Authentication, scope: Scope, receive: Receive, send: Send) -> "Arrival":
        """A request, if its caller is recognised."""
        connection = HTTPConnection(scope)
        caller = await authentication.recognise(connection)
        visit: Visit = scope[VISIT]
        visit.enter(caller)
        return cls(scope, receive, send, Standing(authentication, connection, caller))

    @property
    def caller(self) -> Principal:
        """Who calls."""
        return self.standing.caller

    @cached_property
    def headers(self) -> Headers:
        """The headers."""
        return Headers(scope=self.scope)

    def require_json(self) -> None:
        """Refuse a body that is not said to be JSON."""
        given = next((value for name, value in self.scope["headers"] if name == b"content-type"), b"")
        kind = given.partition(b";")[0].strip().lower()
        if kind != JSON:
            raise WrongMediaType(
                "the body is not of a kind that is read here",
                why=f"Content-Type is {kind[:100].decode('latin-1')!a}" if kind else "it has no Content-Type",
                next="Send application/json.",
            )

    @property
    def visit(self) -> Visit:
        """How long it may last."""
        return cast(Visit, self.scope[VISIT])

    async def body(self) -> bytes:
        """All of the body; the guards see to it that it is neither too large nor too slow."""
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
        """Answer with all of it at once."""
        length = () if status == HTTPStatus.NO_CONTENT else ((b"content-length", str(len(body)).encode()),)
        kind = ((b"content-type", content_type),) if body else ()
        await self.send({"type": "http.response.start", "status": status, "headers": [*kind, *length, *headers]})
        await self.send({"type": "http.response.body", "body": body})
