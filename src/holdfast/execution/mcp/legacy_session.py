"""Sessions with servers of the versions before 2026-07-28, which begin with a handshake."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Protocol, cast

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.execution.mcp.exchange import MAX_OPEN, NO_HEADERS, Exchange
from holdfast.execution.mcp.http import IN_DOUBT, HttpReply, HttpServer, Receive, SessionGone, UnexpectedStatus
from holdfast.execution.mcp.messages import Message, StreamPlace, is_response, params_of, refusal, result_of
from holdfast.execution.mcp.modern_session import READING, next_id
from holdfast.mcp.headers import MirroredArgument
from holdfast.mcp.inputs import CAPABILITIES, Forwarded
from holdfast.mcp.protocol import INTERNAL_ERROR, LEGACY, McpError
from holdfast.skills.client import SILENT

MAX_RESUMPTIONS = 100  # of the stream of one request
NO_SESSION = (-32000, -32001)  # with the status 400: the SDKs and their examples; no version of the protocol says more

log = logging.getLogger(__name__)


class LegacyServer(Protocol):
    """Sends the messages of a session to a server, and hands over those that come back.

    `is_stateless`: all users can share the session. `is_serial`: it takes one request at a time. `is_gone`: the
    connection has ended.
    """

    is_stateless: bool = False
    is_serial: bool = False
    is_gone: bool = False

    async def request(self, exchange: Exchange, message: Message) -> Message:
        """Send a request, and return the response. Questions and notifications go to the exchange."""
        ...

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a notification or a response. `headers` say who calls."""
        ...

    def agree(self, version: str) -> None:
        """Use the version that the handshake has found."""

    async def close(self) -> None:
        """End the session."""
        ...


class LegacySession:
    """A session. `initialized` is what the server said of itself, `version` is the one that both sides use."""

    def __init__(self, server: LegacyServer, initialized: Mapping[str, Any]) -> None:
        self.server = server
        self.version = str(initialized.get("protocolVersion"))
        self.initialized = initialized

    @classmethod
    async def open(
        cls,
        server: LegacyServer,
        *,
        about: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> "LegacySession":
        """Make the handshake. The server may ask for what is in `capabilities`. `headers` say who opens the session."""
        given = {"protocolVersion": LEGACY[0], "capabilities": capabilities, "clientInfo": about}
        nobody = Exchange(SILENT, headers=headers)
        try:
            session = cls(server, await _request(server, nobody, "initialize", given))
            if session.version not in LEGACY:
                raise Unavailable(
                    "the MCP server cannot be used",
                    why=f"it speaks version {session.version[:40]!r} of the protocol",
                    next=f"Use a server that speaks one of {', '.join(LEGACY)}.",
                )
            server.agree(session.version)
            await server.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)
            if "logging" in cast(dict[str, Any], session.initialized.get("capabilities") or {}):
                with suppress(HoldfastError, McpError):  # a server without logs is as good
                    await _request(server, nobody, "logging/setLevel", {"level": "debug"})
        except BaseException:
            await server.close()
            raise
        return session

    async def request(
        self,
        exchange: Exchange,
        method: str,
        params: Mapping[str, Any],
        *,
        mirrored: Sequence[MirroredArgument] = (),
        again: bool = False,
    ) -> Mapping[str, Any]:
        """Send a request, and return the result. `mirrored` and `again` have no meaning for these versions."""
        if exchange.client.wants_progress:
            meta = cast(dict[str, Any], params.get("_meta") or {})
            params = {**params, "_meta": {**meta, "progressToken": next_id()}}
        return await _request(self.server, exchange, method, params)

    async def close(self) -> None:
        """End the session."""
        await self.server.close()


async def _request(
    server: LegacyServer, exchange: Exchange, method: str, params: Mapping[str, Any]
) -> Mapping[str, Any]:
    message = {"jsonrpc": "2.0", "id": next_id(), "method": method, "params": params}
    return result_of(await server.request(exchange, message))


async def answer(exchange: Exchange, question: Message) -> dict[str, Any]:
    """Return the response to a request of a server: the reply of the client, or why there is none."""
    id, method = question.get("id"), str(question.get("method"))
    if method == "ping":
        return {"jsonrpc": "2.0", "id": id, "result": {}}
    if CAPABILITIES.get(method) not in exchange.capabilities:
        return refusal(id)
    try:
        replies = await exchange.ask({"input": Forwarded(method, params_of(question))})
    except HoldfastError as error:
        return refusal(id, INTERNAL_ERROR, str(error))
    return {"jsonrpc": "2.0", "id": id, "result": replies["input"]}


class HttpSession(LegacyServer):
    """A session over streamable HTTP."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._id: str | None = None
        self._version = ""
        self._identity = NO_HEADERS  # of the last request: the session is ended with it

    def agree(self, version: str) -> None:
        """Send the version with each request from now on."""
        self._version = version

    async def request(self, exchange: Exchange, message: Message) -> Message:
        """Send a request, and read the stream until the response, again and again if the server cuts it."""
        found: list[Message] = []
        answers: set[asyncio.Task[None]] = set()

        async def receive(received: Message) -> bool:
            if is_response(received, message["id"]):
                found.append(received)
                return True
            if "method" in received and "id" in received:
                exchange.count_message()
                if len(answers) >= MAX_OPEN:  # the server is read no further until it has taken this
                    refused = refusal(received["id"], INTERNAL_ERROR, "there are too many questions")
                    await self._send_answer(exchange, refused)
                    return False
                task = asyncio.create_task(self._answer(exchange, received), name="answer to an MCP server")
                answers.add(task)
                task.add_done_callback(answers.discard)
            else:
                await exchange.notify(received.get("method"), params_of(received))
            return False

        self._identity = exchange.headers
        try:
            reply = await self._post(exchange, message, receive)
            if message["method"] == "initialize":
                self._id = reply.headers.get("Mcp-Session-Id")
                self.is_stateless = self._id is None  # the server keeps no state for it
            place, tries = reply.place, 0
            while not found:
                tries += 1
                if not place.last or tries > MAX_RESUMPTIONS:
                    raise Unavailable("the server ended its response without a result")
                await exchange.client.detach()
                place = await self._resume(exchange, place, receive)
        except asyncio.CancelledError:
            await self._cancel(exchange, message)
            raise
        finally:
            for task in [*answers]:
                task.cancel()
        return found[0]

    async def listen(self, receive: Receive) -> None:
        """Read the stream on which the server announces changes, until it ends."""
        await self._server.get(self._headers(self._identity), receive, counted=False)

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a notification or a response."""

        async def ignore(_: Message) -> bool:
            return False

        await self._server.post(message, self._headers(headers), ignore, again=True)

    async def close(self) -> None:
        """End the session. If the server cannot be reached, it forgets the session by itself."""
        if self._id is not None:
            with suppress(HoldfastError, SessionGone, TimeoutError):
                async with asyncio.timeout(2):
                    await self._server.delete(self._headers(self._identity))

    async def _post(self, exchange: Exchange, message: Message, receive: Receive) -> HttpReply:
        again = message["method"] in READING
        try:
            return await self._server.post(message, self._headers(exchange.headers), receive, again=again)
        except UnexpectedStatus as error:
            if self._id is not None and _is_session_unknown(error, message):
                raise SessionGone(str(error)) from None
            responses = error.responses_to(message["id"])
            if not responses:
                raise
            await receive(responses[0])
            return HttpReply(error.status, {}, ended=True, place=StreamPlace())

    async def _resume(self, exchange: Exchange, place: StreamPlace, receive: Receive) -> StreamPlace:
        """Read the rest of a stream that the server has cut."""
        await asyncio.sleep(place.retry)
        headers = {**self._headers(exchange.headers), "Last-Event-ID": place.last}
        try:
            reply = await self._server.get(headers, receive)
        except UnexpectedStatus as error:  # a refusal of this request is none of the first, which is being processed
            raise Unavailable(error.what, why=error.why, next=IN_DOUBT) from None
        return StreamPlace(reply.place.last or place.last, reply.place.retry)

    async def _answer(self, exchange: Exchange, question: Message) -> None:
        await self._send_answer(exchange, await answer(exchange, question))

    async def _send_answer(self, exchange: Exchange, response: Message) -> None:
        try:
            await self.send(response, exchange.headers)
        except HoldfastError as error:
            log.warning("an MCP server did not take the answer to its question: %s", error)

    async def _cancel(self, exchange: Exchange, message: Message) -> None:
        if message["method"] == "initialize":
            return
        params = {"requestId": message["id"], "reason": "the caller has gone"}
        with suppress(HoldfastError, SessionGone, TimeoutError):
            async with asyncio.timeout(2):
                await self.send(
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}, exchange.headers
                )

    def _headers(self, identity: Mapping[str, str]) -> dict[str, str]:
        headers = {**identity, "MCP-Protocol-Version": self._version} if self._version else {**identity}
        return headers if self._id is None else {**headers, "Mcp-Session-Id": self._id}


def _is_session_unknown(error: UnexpectedStatus, request: Message) -> bool:
    """Whether a server refuses a request because it does not know the session. It has not seen the request then."""
    if error.status == HTTPStatus.NOT_FOUND:
        return True
    if error.status != HTTPStatus.BAD_REQUEST:
        return False
    codes = [_code_of(each) for each in error.responses_to(request["id"]) if each.get("id") is not None]
    return not codes or codes[0] in NO_SESSION


def _code_of(response: Message) -> object:
    error: object = response.get("error")
    return cast(dict[str, Any], error).get("code") if isinstance(error, dict) else None
