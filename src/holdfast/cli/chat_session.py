"""A chat session with an agent that reconnects when its connection breaks."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

from holdfast.cli.api import Api
from holdfast.cli.chat_socket import AgentServer, ChatSocket, Frame
from holdfast.core.errors import Unavailable

Result = TypeVar("Result")

PATIENCE = 120.0  # seconds to replace a broken connection
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


class ChatSession:
    """A session with an agent that answers one message at a time.

    A new connection replaces a broken one and resumes where that ended: no frame is lost or repeated. A message that
    may not have arrived is sent again with the same idempotency key, so it is stored once.
    """

    def __init__(self, server: AgentServer, agent: str, session_id: str) -> None:
        self._server = server
        self._agent = agent
        self._session_id = session_id
        self._cursor: str | None = None
        self._socket: ChatSocket | None = None
        self._message: Frame | None = None  # the message that is not answered yet
        self._waiting: list[Frame] = []  # frames that arrived before the run of the message is known
        self._unwanted = False  # whether to cancel the run
        self.run_id: str | None = None  # the run that answers the message

    async def frames(self) -> AsyncGenerator[Frame]:
        """Yield frames. `lost` and `found` are added here, for a broken connection and for the next one."""
        deadline, pause, lost = 0.0, FIRST_PAUSE, False
        while True:
            try:
                async with self._server.connect(self._path()) as socket:
                    if lost:
                        yield {"kind": "found"}
                    pause, lost = FIRST_PAUSE, False
                    self._socket = socket
                    if self._message is not None:
                        await socket.send(self._message)
                    while (frame := await socket.receive()) is not None:
                        self._cursor = frame.get("cursor", self._cursor)
                        for each in self._in_order(frame):
                            yield each
            except Unavailable:
                if not lost or time.monotonic() > deadline:
                    raise
            if not lost:
                deadline, lost = time.monotonic() + PATIENCE, True
                yield {"kind": "lost"}
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def say(self, text: str) -> None:
        """Send a message to the agent."""
        self._message = {"type": "message", "text": text, "key": uuid4().hex}
        self.run_id, self._unwanted = None, False
        if self._socket is not None:
            await self._socket.send(self._message)

    async def ends(self, frame: Frame) -> bool:
        """Return whether this frame ends the turn of the message."""
        match frame["kind"]:
            case "sent":
                await self._activate()
                if self._unwanted:
                    await self.cancel()
            case "done" | "error" | "queued" if frame["run_id"] == self.run_id:
                self._message = None
            case "refused":
                self._message = None
            case _:
                pass
        return self._message is None

    async def decide(self, approval_id: str, decision: Literal["approve", "deny"]) -> None:
        """Approve or deny a pending tool call."""
        await self._call("decide_approval", id=approval_id, decision=decision)

    async def cancel(self) -> None:
        """Cancel the run, now or as soon as it is known."""
        self._unwanted = True
        if self.run_id is not None:
            await self._call("cancel_run", id=self.run_id)

    async def call(self, work: Callable[[Api], Awaitable[Result]]) -> Result:
        """Call the API once, without retries."""
        return await work(self._server.api)

    async def read_run(self) -> dict[str, Any] | None:
        """Return the run that answers the message, with its steps; None if it is not known yet."""
        return None if self.run_id is None else await self._call("get_run", id=self.run_id)

    def _in_order(self, frame: Frame) -> list[Frame]:
        """Return the frames to yield now. `sent` or `refused` of a message comes before its other frames."""
        if self._message is None or self.run_id is not None or frame["kind"] == "ready":
            return [] if frame["kind"] == "sent" else [frame]  # `sent` repeats after a resend
        if frame["kind"] not in ("sent", "refused") or frame.get("key") != self._message["key"]:
            self._waiting.append(frame)
            return []
        self.run_id = frame.get("run_id")
        waiting, self._waiting = self._waiting, []
        return [frame, *waiting]

    async def _activate(self) -> None:
        """Make the session the user's active session."""
        await self._call("activate_session", agent_id=self._agent, session_id=self._session_id)

    async def _call(self, operation: str, **arguments: Any) -> Any:
        """Call an operation, and retry while the server is unavailable."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return await self._server.api.call(operation, **arguments)
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(LONGEST_PAUSE / 2)

    def _path(self) -> str:
        query = {"session_id": self._session_id, **({} if self._cursor is None else {"since": self._cursor})}
        return f"/ws/{quote(self._agent, safe='')}?{urlencode(query)}"
