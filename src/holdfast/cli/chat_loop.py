"""Runs a chat with an agent on a background event loop, while the program waits for user input."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

from holdfast.cli.api import Api
from holdfast.cli.chat_session import ChatSession
from holdfast.cli.chat_socket import AgentServer, Frame, reach_agents
from holdfast.cli.invocation import Invocation
from holdfast.core.errors import HoldfastError, InvalidInput, Unavailable
from holdfast.core.ids import uuid7

Result = TypeVar("Result")

INTERRUPTED: Final[Frame] = {"kind": "interrupted"}
SILENT: Final[Frame] = {"kind": "silent"}
SILENCE = 5.0  # seconds without an event before the chat checks whether a process has taken the run
CLOSING = 10.0
MOMENT = 0.1  # longest wait: the handler of a signal that arrives just before a wait runs only after it
HISTORY = 1000  # lines


class ChatLoop:
    """A chat that runs in the background inside `with`. Only `interrupt` may be called from any thread."""

    def __init__(
        self, invocation: Invocation, agent: str | None, *, user: str | None, session: str | None, go_on: bool
    ) -> None:
        self._invocation = invocation
        self._agent = agent
        self._user = user
        self._session = session
        self._go_on = go_on
        self._queue: SimpleQueue[Frame | BaseException] = SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._work, name="talk", daemon=True)
        self._task: asyncio.Task[None] | None = None
        self._chat: ChatSession | None = None
        self._has_events = False  # whether an event of the answer has arrived

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._leave)
            self._thread.join(CLOSING)

    def interrupt(self) -> None:
        """Make `next` return INTERRUPTED. A signal handler may call it."""
        self._queue.put(INTERRUPTED)

    def wait_until_ready(self) -> Frame:
        """Wait for the connection to the agent and return its first frame."""
        while (frame := self.next())["kind"] != "ready":
            if frame is INTERRUPTED:
                raise KeyboardInterrupt
        return frame

    def say(self, text: str) -> None:
        """Send a message to the agent."""
        self._has_events = False
        self._do(self._open_chat.say(text))

    def next(self) -> Frame:
        """Return the next frame: INTERRUPTED after an interrupt, SILENT if no process has taken the run."""
        silent_at = time.monotonic() + SILENCE
        while True:
            try:
                item = self._queue.get(timeout=MOMENT)
            except Empty:
                if self._has_events or self._chat is None or time.monotonic() < silent_at:
                    continue
                self._has_events = True
                if self._is_queued():
                    return SILENT
                continue
            if isinstance(item, BaseException):
                raise item
            return item

    def ends(self, frame: Frame) -> bool:
        """Return whether this frame ends the turn of the message."""
        ended = self._do(self._open_chat.ends(frame))
        self._has_events = self._has_events or (self.is_ours(frame) and frame["kind"] != "sent")
        return ended

    def is_ours(self, frame: Frame) -> bool:
        """Return whether the frame belongs to the run that answers the message."""
        return self._open_chat.run_id is not None and frame.get("run_id") == self._open_chat.run_id

    def cancel(self) -> None:
        """Cancel the run without waiting for it to stop."""
        cancelling = self._begin(self._open_chat.cancel())
        cancelling.add_done_callback(self._report_failure)

    def decide(self, approval_id: str, decision: Literal["approve", "deny"]) -> None:
        """Approve or deny a pending tool call."""
        self._do(self._open_chat.decide(approval_id, decision))

    def call(self, work: Callable[[Api], Coroutine[Any, Any, Result]]) -> Result:
        """Call the API during the chat."""
        return self._do(self._open_chat.call(work))

    def count_recalled(self) -> int:
        """Return the number of memories that were recalled for the answer."""
        details = self._read_run()
        steps: list[dict[str, Any]] = details["steps"] if details else []
        parts = [part for step in steps[:1] for part in step["sent"]["parts"]]
        return sum(part["kept"] for part in parts if part["name"] == "memories")

    def _is_queued(self) -> bool:
        details = self._read_run()
        return details is not None and details["run"]["state"] == "queued"

    def _read_run(self) -> dict[str, Any] | None:
        try:
            return self._do(self._open_chat.read_run())
        except HoldfastError:  # it is optional information
            return None

    @property
    def _open_chat(self) -> ChatSession:
        assert self._chat is not None
        return self._chat

    # The background thread

    def _begin(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _do(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._begin(work).result()

    def _report_failure(self, done: "Future[None]") -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            self._queue.put(error)

    def _work(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._follow())
            except BaseException as error:  # noqa: BLE001 - the other thread raises it
                self._queue.put(error)

    async def _follow(self) -> None:
        self._task = asyncio.current_task()
        async with reach_agents(self._invocation, self._agent, user=self._user) as server:
            agent = self._agent or await _choose_agent(server)
            self._chat = ChatSession(server, agent, await self._session_id(server, agent))
            async for frame in self._chat.frames():
                self._queue.put(frame)

    async def _session_id(self, server: AgentServer, agent: str) -> str:
        if self._go_on:
            active = await server.api.call("active_session", agent_id=agent)
            self._session = active["session_id"]
        return self._session or str(uuid7())

    def _leave(self) -> None:
        if self._task is not None:
            self._task.cancel()


async def _choose_agent(server: AgentServer) -> str:
    """Choose the agent if none is named."""
    found = await server.api.call("list_agents")
    if found["chosen"] is not None:
        return found["chosen"]
    served = [agent["name"] for agent in found["agents"] if agent["served"] and agent["kind"] != "ui"]
    if served:
        why = f"several are served: {', '.join(served)}"
        raise InvalidInput("the agent is ambiguous", why=why, next="Name one: `holdfast chat AGENT`.")
    raise Unavailable("no agent is served", next="Start one with `holdfast up` or `holdfast up APP`.")


@contextmanager
def line_editing(file: Path) -> Generator[None]:
    """Enable line editing for `input`. Store the history in a file that only its user can read."""
    try:
        import readline
    except ImportError:
        yield
        return
    # Line ends in pasted text are part of the message. Enter sends it.
    if os.environ.get("TERM") not in (None, "", "dumb"):  # others would print the control sequences
        readline.parse_and_bind("set enable-bracketed-paste on")
    readline.set_history_length(HISTORY)
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        with suppress(OSError):  # the chat also works without a history
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(file)
            file.chmod(0o600)
