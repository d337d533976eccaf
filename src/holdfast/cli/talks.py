"""A talk with an agent: what is said goes to it and what happens comes back, over as many lines as that takes."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

from holdfast.cli.addresses import address, given
from holdfast.cli.api import Api
from holdfast.cli.lines import Door, Frame, Line
from holdfast.core.errors import Unavailable

Result = TypeVar("Result")

PATIENCE = 120.0  # seconds in which a line that broke must be replaced
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


class Talk:
    """One session with an agent, in which one message at a time is answered.

    A line that breaks is replaced by another, which goes on where the first ended: nothing is lost, nothing comes
    twice, and a message that may not have arrived is sent again under the same key, by which it is heard once.
    """

    def __init__(self, door: Door, agent: str, session_id: str) -> None:
        self._door = door
        self._agent = agent
        self._session_id = session_id
        self._cursor: str | None = None
        self._line: Line | None = None
        self._message: Frame | None = None  # not answered yet
        self._held: list[Frame] = []  # what happened before it is known which run answers the message
        self._unwanted = False  # an answer to it
        self.run_id: str | None = None  # of what answers it

    async def frames(self) -> AsyncGenerator[Frame]:
        """What happens from now on; `lost` and `found` are ours, for a line that broke and the one after it."""
        deadline, pause, lost = 0.0, FIRST_PAUSE, False
        while True:
            try:
                async with self._door.line(self._path()) as line:
                    if lost:
                        yield {"kind": "found"}
                    pause, lost = FIRST_PAUSE, False
                    self._line = line
                    if self._message is not None:
                        await line.send(self._message)
                    while (frame := await line.receive()) is not None:
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
        """Say something to the agent."""
        self._message = {"type": "message", "text": text, "key": uuid4().hex}
        self.run_id, self._unwanted = None, False
        if self._line is not None:
            await self._line.send(self._message)

    async def ends(self, frame: Frame) -> bool:
        """Whether the message is answered with this frame, or will never be."""
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
        """Allow a call that waits for it, or not."""
        await self._call(lambda api: api.post(address("approvals", approval_id), {"decision": decision}))

    async def cancel(self) -> None:
        """Have the agent stop answering, now or as soon as it is known what to stop."""
        self._unwanted = True
        if self.run_id is not None:
            await self._call(lambda api: api.post(address("runs", self.run_id, "cancel"), {}))

    async def call(self, work: Callable[[Api], Awaitable[Result]]) -> Result:
        """Call the API beside the lines, once."""
        return await work(self._door.api)

    async def story(self) -> dict[str, Any] | None:
        """The run that answers the message and all that it did, if it is known yet."""
        return None if self.run_id is None else await self._call(lambda api: api.get(address("runs", self.run_id)))

    def _in_order(self, frame: Frame) -> list[Frame]:
        """What is to be told now: that the message was taken or refused comes before all that came of it."""
        if self._message is None or self.run_id is not None or frame["kind"] == "ready":
            return [] if frame["kind"] == "sent" else [frame]  # it was sent again, and said before
        if frame["kind"] not in ("sent", "refused") or frame.get("key") != self._message["key"]:
            self._held.append(frame)
            return []
        self.run_id = frame.get("run_id")
        held, self._held = self._held, []
        return [frame, *held]

    async def _activate(self) -> None:
        """Make the session the one that the user is in."""
        where = address("sessions", "active", agent_id=self._agent)
        await self._call(lambda api: api.put(where, {"session_id": self._session_id}))

    async def _call(self, work: Callable[[Api], Awaitable[Any]]) -> Any:
        """Call the API, as often as it takes while the server is away."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return await work(self._door.api)
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(LONGEST_PAUSE / 2)

    def _path(self) -> str:
        asked = given(session_id=self._session_id, since=self._cursor)
        return f"/ws/{quote(self._agent, safe='')}?{urlencode(asked)}"
