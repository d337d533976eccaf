"""WebSockets: `WS /ws/{agent}` sends messages to an agent and receives the events of the conversation.

A socket holds no state of the conversation. A client that reconnects with its cursor, to any process, resumes where it
was.
"""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import Any
from uuid import UUID

from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from holdfast.agents.agents import LOOK, UNSERVED_AFTER, unserved_agent
from holdfast.agents.broadcast import Watch
from holdfast.agents.events import parse_cursor
from holdfast.agents.runs import unknown_run
from holdfast.audit.entries import AuditEntry
from holdfast.conversations.conversation import Conversation
from holdfast.core.errors import HoldfastError, InvalidInput, NotFound, Overloaded, Unavailable
from holdfast.engine import Engine
from holdfast.server.authentication import Authentication, CallerSession
from holdfast.server.problems import status_of
from holdfast.server.request_limits import SLOT, RequestSlot
from holdfast.server.socket_connections import INTERNAL_ERROR, SERVICE_RESTART, TRY_AGAIN_LATER
from holdfast.server.subprotocols import (
    EVENTS,
    ApproveFrame,
    CancelFrame,
    DenyFrame,
    Events,
    Frame,
    PingFrame,
    PlainText,
    QueuedFrame,
    ReadyFrame,
    RetryFrame,
    SayFrame,
    Subprotocol,
)

MAX_UNANSWERED = 100  # messages of one socket that are not answered yet
MAX_REASON = 123  # bytes of the reason in a close frame
SERVED_CHECK = 5.0  # seconds between two checks whether a process serves the agent of a run without events
POLICY_VIOLATION = 1008
NEEDED = ("read", "write")  # scopes
SERVER_ERROR = 500

log = logging.getLogger(__name__)


class Sockets:
    """The endpoint for WebSockets: authenticates the caller and opens a socket to an agent."""

    def __init__(self, engine: Engine, authentication: Authentication) -> None:
        self._engine = engine
        self._authentication = authentication

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a socket and serve it until it closes. A refusal before the handshake is an HTTP response."""
        connection = HTTPConnection(scope)
        caller = await self._authentication.authenticate(connection, *NEEDED)
        slot: RequestSlot = scope[SLOT]
        slot.enter(caller)
        caller.require(*NEEDED)
        subprotocol = _choose_subprotocol(scope["subprotocols"])
        since = connection.query_params.get("since")
        cursor = parse_cursor(since) if since else None
        engine = self._engine.tenant(caller.tenant)
        agents = engine.agents
        agent = connection.path_params["agent"]
        session_id = connection.query_params.get("session_id") or None
        conversation = await agents.session(agent, user=caller.user, session_id=session_id, adopts=caller.adopts)
        cursor = cursor or await agents.now(conversation.id)
        await receive()  # websocket.connect
        async with agents.watch(conversation.id, agent, since=str(cursor)) as watch:
            with slot.socket():
                await send({"type": "websocket.accept", "subprotocol": subprotocol.name})
                caller_session = CallerSession(self._authentication, connection, caller)
                socket = Socket(engine, agent, conversation, caller_session, subprotocol, receive, send)
                await socket.serve(watch)


class Socket:
    """The WebSocket of one client: reads its frames and sends it events."""

    def __init__(
        self,
        engine: Engine,
        agent: str,
        conversation: Conversation,
        caller_session: CallerSession,
        subprotocol: Subprotocol,
        receive: Receive,
        send: Send,
    ) -> None:
        self._agents = engine.agents
        self._quotas = engine.quotas
        self._audit = engine.audit
        self._agent = agent
        self._conversation = conversation
        self._caller_session = caller_session
        self._subprotocol = subprotocol
        self._receive = receive
        self._send = send
        self._unanswered: set[UUID] = set()
        self._without_events: dict[
            UUID, float
        ] = {}  # runs without an event, and when to check whether the agent is served
        self._notifying: asyncio.Task[None] | None = None
        self._ended: deque[UUID] = deque(maxlen=MAX_UNANSWERED)  # a run can end before `send` returns its id

    async def serve(self, watch: Watch) -> None:
        """Serve the socket until the client or the server ends it."""
        await self._send_text(
            self._subprotocol.encode_ready(
                ReadyFrame(self._conversation.session_id or "", self._conversation.id, self._agent, str(watch.cursor))
            )
        )
        receiving, sending = asyncio.create_task(self._receive_frames()), asyncio.create_task(self._send_events(watch))
        with self._caller_session.watched() as ended:
            try:
                await asyncio.wait([receiving, sending, ended], return_when=asyncio.FIRST_COMPLETED)
            finally:
                ending = [receiving, sending, *([self._notifying] if self._notifying else [])]
                for task in ending:
                    task.cancel()
                await asyncio.wait(ending)
        errors = [task.exception() for task in (receiving, sending) if not task.cancelled()]
        errors += [ended.result()] if ended.done() else []
        error = next((error for error in errors if error is not None), None)
        if error is not None or receiving.cancelled():
            code, reason = _close_reason(error)
            with suppress(ClientDisconnected):
                await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def _receive_frames(self) -> None:
        """Handle the client's frames, one after the other."""
        while (message := await self._receive())["type"] != "websocket.disconnect":
            await self._caller_session.check()
            # Fails if the conversation was removed: a message would create the session again.
            await self._agents.now(self._conversation.id)
            frame: Frame | None = None
            try:
                frame = self._subprotocol.read(_text(message))
                await self._handle(frame)
            except HoldfastError as error:
                if status_of(error) == SERVER_ERROR:
                    raise
                await self._send_text(
                    self._subprotocol.encode_refusal(error, frame.key if isinstance(frame, SayFrame) else None)
                )

    async def _send_events(self, watch: Watch) -> None:
        """Send events to the client."""
        async for event in watch:
            await self._caller_session.check()
            if event.run_id is not None:
                self._without_events.pop(event.run_id, None)
            if event.kind in ("done", "error") and event.run_id is not None:
                self._unanswered.discard(event.run_id)
                self._ended.append(event.run_id)
            await self._send_text(self._subprotocol.encode_event(event))

    async def _handle(self, frame: Frame) -> None:
        match frame:
            case SayFrame():
                await self._send_to_agent(frame)
            case ApproveFrame() | DenyFrame():
                approval = await self._agents.approvals.get(frame.approval_id)
                if approval.conversation != self._conversation.id:
                    raise NotFound(f"there is no approval {frame.approval_id}")
                self._caller_session.caller.require_person()
                await self._decide(frame, approve=isinstance(frame, ApproveFrame))
            case CancelFrame():
                await self._agents.cancel(await self._own_run(frame.run_id))
            case RetryFrame():
                await self._agents.retry(await self._own_run(frame.run_id))
            case PingFrame():
                await self._send_text(self._subprotocol.encode_pong())

    async def _decide(self, frame: ApproveFrame | DenyFrame, *, approve: bool) -> None:
        caller = self._caller_session.caller
        entry = AuditEntry(
            action="decide_approval",
            target=str(frame.approval_id),
            user=caller.user,
            actor=caller.actor,
            key=caller.key,
            details={"decision": "approve" if approve else "deny"},
        )
        await self._audit.recorded(
            lambda: entry,
            lambda: self._agents.decide(frame.approval_id, approve=approve, by=caller.user, comment=frame.comment),
        )

    async def _send_to_agent(self, frame: SayFrame) -> None:
        if len(self._unanswered) >= MAX_UNANSWERED:
            raise Overloaded(
                "the message was not accepted", why=f"{MAX_UNANSWERED} of this socket wait for answers", retry_after=1
            )
        self._agents.check_message(frame.text, frame.busy)
        caller = self._caller_session.caller
        await self._quotas.admit_message(user=caller.user, agent=self._agent, key=caller.key)
        sent = await self._agents.send(
            self._agent,
            frame.text,
            user=caller.user,
            session_id=self._conversation.session_id,
            key=frame.key,
            busy=frame.busy,
            adopts=False,
        )
        if sent.is_new and sent.run_id not in self._ended:
            self._unanswered.add(sent.run_id)
        await self._send_text(self._subprotocol.encode_sent(sent, frame.key))
        if sent.held is None and sent.run_id in self._unanswered:
            self._without_events[sent.run_id] = asyncio.get_running_loop().time() + UNSERVED_AFTER
            if self._notifying is None or self._notifying.done():
                self._notifying = asyncio.create_task(self._notify_queued())

    async def _notify_queued(self) -> None:
        """Notify the client of messages that wait because no process serves the agent."""
        now = asyncio.get_running_loop().time
        while self._without_events:
            await asyncio.sleep(LOOK)
            with suppress(HoldfastError, ClientDisconnected):
                for run_id in [run_id for run_id, due in self._without_events.items() if due <= now()]:
                    stranded = await self._agents.is_stranded(run_id, self._agent)
                    if self._without_events.pop(run_id, None) is None:
                        continue
                    if stranded:
                        await self._send_text(
                            self._subprotocol.encode_queued(
                                QueuedFrame(run_id, str(unserved_agent(self._agent, run_id)))
                            )
                        )
                    else:
                        self._without_events[run_id] = now() + SERVED_CHECK

    async def _own_run(self, run_id: UUID) -> UUID:
        """Return the run id, if the run belongs to this conversation."""
        if (await self._agents.runs.get(run_id)).conversation != self._conversation.id:
            raise unknown_run(run_id)
        return run_id

    async def _send_text(self, text: str | None) -> None:
        if text is not None:
            await self._send({"type": "websocket.send", "text": text})


def _choose_subprotocol(offered: list[str]) -> Subprotocol:
    if EVENTS in offered:
        return Events()
    if offered:
        raise InvalidInput("none of these sub-protocols is supported", next=f"Offer {EVENTS}, or none for plain text.")
    return PlainText()


def _text(message: Message) -> str:
    text: Any = message.get("text")
    if not isinstance(text, str):
        raise InvalidInput("the frame is binary", next="Send text.")
    return text


def _close_reason(error: BaseException | None) -> tuple[int, str]:
    """Return the code and the reason of the close frame."""
    match error:
        case None:
            return SERVICE_RESTART, "the engine is closing; come back with your cursor"
        case Unavailable() | Overloaded():
            code, reason = TRY_AGAIN_LATER, error.what
        case HoldfastError() if status_of(error) < SERVER_ERROR:
            code, reason = POLICY_VIOLATION, str(error)
        case _:
            if not isinstance(error, ClientDisconnected):
                log.error("a socket broke: %s", error, exc_info=error)
            code, reason = INTERNAL_ERROR, "internal error"
    return code, reason.encode()[:MAX_REASON].decode(errors="ignore")
