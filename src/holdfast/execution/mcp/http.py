"""Streamable HTTP: sends messages to an MCP server, and reads the messages that it answers with."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from yarl import URL

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.core.text import render
from holdfast.execution.egress import Egress, Hop
from holdfast.execution.mcp.exchange import Exchange
from holdfast.execution.mcp.messages import (
    Message,
    StreamPlace,
    events_of,
    is_response,
    messages_of,
    params_of,
    result_of,
)
from holdfast.execution.mcp.modern_session import ModernServer
from holdfast.execution.rest.requests import ENCODINGS, USER_AGENT
from holdfast.execution.rest.responses import read_body
from holdfast.execution.rest.runner import connection_error, is_stale

if TYPE_CHECKING:
    from aiohttp import ClientResponse

STREAM = "text/event-stream"
ACCEPT = f"application/json, {STREAM}"
MAX_STREAM = 4  # times the limit of a response
IN_DOUBT = "The server may have begun: check before you call it again."

# Takes a message of the server. Returns whether it was the one that ends the exchange.
Receive = Callable[[Message], Awaitable[bool]]


class SessionGone(Exception):
    """The server does not know the session any more. Its message is what the server said."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """How a server replied. `ended`: the expected message has come; `place`: where the stream was cut otherwise."""

    status: int
    headers: Mapping[str, str]
    ended: bool
    place: StreamPlace


class HttpServer(ModernServer):
    """An MCP server at an address. `headers` are sent with each request, such as credentials."""

    def __init__(self, egress: Egress, url: str, headers: Mapping[str, str], *, limit: int) -> None:
        self.url = url
        self._egress = egress
        self._headers = {"User-Agent": USER_AGENT, **headers}
        self._limit = limit

    async def request(
        self, exchange: Exchange, message: Message, headers: Mapping[str, str], *, again: bool
    ) -> Message:
        """Send a request, and return the response."""
        found: list[Message] = []

        async def receive(received: Message) -> bool:
            if is_response(received, message["id"]):
                found.append(received)
                return True
            await exchange.notify(received.get("method"), params_of(received))
            return False

        try:
            await self.post(message, {**headers, **exchange.headers}, receive, again=again)
        except UnexpectedStatus as error:
            found += error.responses_to(message["id"])
            if not found:
                raise
            result_of(found[0], status=error.status)
        if not found:
            raise Unavailable("the server ended its response without a result")
        return found[0]

    async def close(self) -> None:
        """Do nothing: there is no connection of its own."""

    async def post(
        self,
        message: Message,
        headers: Mapping[str, str],
        receive: Receive,
        *,
        again: bool,
        url: str | None = None,
        counted: bool = True,
    ) -> HttpReply:
        """Send a message, and hand the messages of the reply to `receive`, until one ends the exchange.

        Raises UnexpectedStatus for an error status, which has the messages of the reply.
        `again`: it can be sent a second time if the connection was closed. `url`: another address of the server.
        `counted`: see `Egress.reserve_connection`.
        """
        sent = {"Content-Type": "application/json", "Accept": ACCEPT, "Accept-Encoding": ENCODINGS, **headers}
        body = render(message)
        return await self._request("POST", url or self.url, sent, body, receive, again=again, counted=counted)

    async def get(self, headers: Mapping[str, str], receive: Receive, *, counted: bool = True) -> HttpReply:
        """Read the stream of the server, until a message ends it."""
        sent = {"Accept": STREAM, **headers}
        return await self._request("GET", self.url, sent, None, receive, again=True, counted=counted)

    async def stream(self, take: Callable[[bytes], Awaitable[None]], headers: Mapping[str, str]) -> None:
        """Read a stream until it ends, and hand over the data of its events. It may be endless, its events not.

        It takes no place among the connections: sessions are limited.
        """
        hop = Hop(URL(self.url, encoded=True).raw_host or "")
        async with self._egress.reserve_connection(hop, counted=False):
            try:
                async with self._egress.session().get(
                    URL(self.url, encoded=True),
                    headers={**self._headers, **headers, "Accept": STREAM},
                    allow_redirects=False,
                ) as response:
                    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
                    if response.status != HTTPStatus.OK or kind != STREAM:
                        raise status_error(response.status, hop.host)
                    async for data in events_of(
                        response.content.iter_any(), StreamPlace(), limit=sys.maxsize, event_limit=self._limit
                    ):
                        await take(data)
            except HoldfastError:
                raise
            except Exception as error:  # noqa: BLE001 - errors that are not the connection's are raised again
                raise connection_error(error, hop, next=IN_DOUBT) from None

    async def delete(self, headers: Mapping[str, str]) -> None:
        """End a session."""
        await self._request("DELETE", self.url, headers, None, _ignore, again=True)

    async def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        receive: Receive,
        *,
        again: bool,
        counted: bool = True,
    ) -> HttpReply:
        moved = False
        while True:
            address = URL(url, encoded=True)
            hop = Hop(address.raw_host or "")
            async with self._egress.reserve_connection(hop, counted=counted):
                try:
                    async with self._egress.session().request(
                        method, address, data=body, headers={**self._headers, **headers}, allow_redirects=False
                    ) as response:
                        place = _moved_to(response, address)
                        if place is None or moved:
                            return await self._read(response, hop, receive)
                        moved = True
                        self.url, url = (place if url == self.url else self.url), place
                except (HoldfastError, SessionGone):
                    raise
                except Exception as error:  # noqa: BLE001 - errors that are not the connection's are raised again
                    if again and is_stale(error, hop):
                        again = False
                        continue
                    raise connection_error(error, hop, next=IN_DOUBT if not again else "Try again.") from None

    async def _read(self, response: "ClientResponse", hop: Hop, receive: Receive) -> HttpReply:
        status, headers, place = response.status, response.headers, StreamPlace()
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        ended = False
        if kind == STREAM and status == HTTPStatus.OK:
            async for data in self._events(response, place):
                for message in await messages_of(data):
                    ended = await receive(message) or ended
                if ended:
                    break
        else:
            encoding = headers.get("Content-Encoding", "")
            body = await read_body(response.content.iter_any(), encoding=encoding, limit=self._limit)
            messages: Sequence[Message] = ()
            if kind == "application/json" and body and status < HTTPStatus.INTERNAL_SERVER_ERROR:
                try:
                    messages = await messages_of(body)
                except Unavailable:
                    if status < HTTPStatus.BAD_REQUEST:
                        raise
            if status >= HTTPStatus.MULTIPLE_CHOICES:
                raise status_error(status, hop.host, messages)
            for message in messages:
                ended = await receive(message) or ended
        return HttpReply(status, headers, ended, place)

    async def _events(self, response: "ClientResponse", place: StreamPlace) -> AsyncIterator[bytes]:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise Unavailable("the stream of the server is compressed", why="streams are read uncompressed")
        async for data in events_of(response.content.iter_any(), place, limit=MAX_STREAM * self._limit):
            yield data


def _moved_to(response: "ClientResponse", address: URL) -> str | None:
    """Return where the request has to be sent instead, if that is an address of the same server."""
    if response.status not in (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT):
        return None
    place = address.join(URL(response.headers.get("Location", ""), encoded=True))
    return str(place) if place.origin() == address.origin() else None


class UnexpectedStatus(Unavailable):
    """The server replied with an error status. `status` is the HTTP status, `messages` are those of the reply."""

    def __init__(self, status: int, what: str, *, why: str = "", next: str = "") -> None:
        super().__init__(what, why=why, next=next)
        self.status = status
        self.messages: Sequence[Message] = ()

    def responses_to(self, id: object) -> list[Message]:
        """Return the messages that are responses to a request."""
        return [each for each in self.messages if is_response(each, id)]


def status_error(status: int, host: str, messages: Sequence[Message] = ()) -> UnexpectedStatus:
    """Return the error for an HTTP status."""
    error = _status_error(status, f"the MCP server {host} returned {status}")
    error.messages = messages
    return error


def _status_error(status: int, what: str) -> UnexpectedStatus:
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return UnexpectedStatus(status, what, why="it rejects the credentials", next="Check the secrets of the source.")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return UnexpectedStatus(
            status, what, why="redirects to other servers are not followed", next="Change the address of the source."
        )
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return UnexpectedStatus(status, what, next="Wait before the next call.")
    return UnexpectedStatus(status, what)


async def _ignore(_: Message) -> bool:
    return False
