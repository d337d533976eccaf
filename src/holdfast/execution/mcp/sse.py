"""HTTP with SSE: the transport of the first version of the protocol. A stream has all messages of the server."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urljoin, urlsplit

from holdfast.core.background import end_task
from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.execution.mcp.channel import MessageChannel
from holdfast.execution.mcp.http import HttpServer
from holdfast.execution.mcp.messages import Message, messages_of

MAX_UNREAD = 100  # messages
CONNECT_SECONDS = 10.0


class SseChannel(MessageChannel):
    """The stream of a server, and the address to which its client posts messages. `headers` say who opens it."""

    def __init__(self, server: HttpServer, headers: Mapping[str, str]) -> None:
        self._server = server
        self._headers = headers
        self._unread: asyncio.Queue[Message | HoldfastError] = asyncio.Queue(MAX_UNREAD)
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._stream = asyncio.create_task(self._read(), name="stream of an MCP server")

    async def open(self) -> None:
        """Wait until the server has said where to post messages."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.shield(self._endpoint)
        except BaseException:
            await self.close()
            raise

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Post a message. Its response comes on the stream."""
        await self._server.post(message, headers, _no_response, again=False, url=await self._endpoint)

    async def messages(self) -> AsyncIterator[Message]:
        """Yield the messages of the stream."""
        while True:
            found = await self._unread.get()
            if isinstance(found, HoldfastError):
                raise found
            yield found

    async def close(self) -> str:
        """Close the stream."""
        await end_task(self._stream)
        if not self._endpoint.done():
            self._endpoint.cancel()
        return "its stream was closed"

    async def _read(self) -> None:
        error: HoldfastError = Unavailable("the MCP server ended its stream")
        try:
            await self._server.stream(self._take, self._headers)
        except HoldfastError as found:
            error = found
        if not self._endpoint.done():
            self._endpoint.set_exception(error)
            self._endpoint.exception()  # it may be that nobody waits any more
        await self._unread.put(error)

    async def _take(self, data: bytes) -> None:
        if self._endpoint.done():
            for message in await messages_of(data):
                await self._unread.put(message)
            return
        url = urljoin(self._server.url, data.decode(errors="replace").strip())
        if urlsplit(url)[:2] != urlsplit(self._server.url)[:2]:
            raise Unavailable("the MCP server cannot be used", why="it wants messages to be sent to another server")
        self._endpoint.set_result(url)


async def _no_response(_: Message) -> bool:
    return False
