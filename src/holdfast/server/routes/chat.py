"""Chat: send a message to an agent, and get its answer as one response or as a stream.

A process that serves the agent carries out the turn. The turn continues if the client disconnects, and every process
can deliver its events. A chat request can last as long as its turn, longer than other requests.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from http import HTTPStatus
from typing import Any, Literal
from uuid import UUID

import msgspec
from starlette.responses import Response

from holdfast.agents import Approval, Event, Sent
from holdfast.agents.agents import UNSERVED_AFTER, start_of, unserved_agent
from holdfast.agents.broadcast import Watch
from holdfast.agents.events import parse_cursor
from holdfast.authorization import Name
from holdfast.conversations.turn_claims import Policy
from holdfast.core.errors import Busy, InvalidInput, LimitReached, ModelFailed, NotFound, ShuttingDown
from holdfast.server.fields import EventCursor, NotBlank
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.problems import TurnFailed
from holdfast.server.routes.conversations import Limit
from holdfast.server.streams import EVENT_STREAM, SIGN_OF_LIFE, EventStream, encode_event, follow_events, wants_stream

operations = ApiOperations("chat")

MARGIN = 10.0  # seconds that a response can take beyond the limit of its turn


class ChatRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to an agent. Without `session_id`, a new session starts.

    Without `agent_id`, the only served agent answers, else the one called `default`. `key` is an idempotency key: a
    message with the same key is stored and answered once. `busy`: what happens if the agent is still answering the
    previous message.
    """

    message: NotBlank
    session_id: Name | None = None
    agent_id: Name | None = None
    busy: Policy = "enqueue"
    key: Name | None = None


class ChatReply(msgspec.Struct, frozen=True):
    """The result of a message: the agent's reply or, if the agent waits for a person's decision, `approvals`.

    `queued`: no process serves the agent now. The message is stored, and is answered when a process serves the agent;
    `note` says what to do. Pass `cursor` as `since` to read the events that follow.
    """

    state: Literal["done", "cancelled", "waiting", "queued"]
    reply: str | None
    session_id: str
    agent_id: str
    conversation_id: UUID
    run_id: UUID
    node_id: UUID | None
    cursor: str
    usage: dict[str, Any]
    approvals: list[Approval]
    note: str = ""


class ReadyChat(msgspec.Struct, frozen=True, kw_only=True):
    """The first event of a stream: the session, the conversation and the run, and the cursor at its start."""

    kind: Literal["ready"] = "ready"
    cursor: str
    session_id: str
    agent_id: str
    conversation_id: UUID
    run_id: UUID


class QueuedChat(msgspec.Struct, frozen=True, kw_only=True):
    """The last event of a stream if no process serves the agent.

    The message is stored, and is answered when a process serves the agent.
    """

    kind: Literal["queued"] = "queued"
    cursor: str
    run_id: UUID
    text: str


class EventPage(msgspec.Struct, frozen=True):
    """Events, in order. Pass `cursor` as `since` to get the events that follow."""

    events: list[Event]
    cursor: str


@operations.declare(
    "POST",
    "/api/chat",
    needs="write",
    or_status=202,
    errors=[NotFound, Busy, LimitReached, ModelFailed],
    response_format=EVENT_STREAM,
)
async def chat(call: ApiCall, body: ChatRequest) -> ChatReply | Response:
    """Send a message to an agent and get its answer; with `Accept: text/event-stream`, stream the events.

    If no process serves the agent, the response is 202 with the state `queued`, within two seconds; a stream ends with
    the event `queued`. The message is stored, and is answered when a process serves the agent.
    """
    call.principal.require("read")
    limit = call.engine.config.agents.max_seconds + MARGIN
    call.slot.stay(limit + MARGIN)  # before the message is stored: a refused request stores nothing
    call.engine.agents.check_message(body.message, body.busy)
    agent = body.agent_id or await call.engine.agents.choose()
    await call.engine.quotas.admit_message(user=call.principal.user, agent=agent, key=call.principal.key)
    if wants_stream(call.request):
        parts = _stream_turn(call, body, agent)
        return EventStream(parts, first=await anext(parts))
    async with _send_message(call, body, agent) as (sent, watch):
        session_id = await _session_of(call, body, sent)
        try:
            async with asyncio.timeout(limit):
                return await _await_reply(call, sent, agent, session_id, watch)
        except TimeoutError:
            raise TurnFailed(
                {
                    "code": "timed_out",
                    "what": f"there is no answer after {limit:g} seconds",
                    "why": "",
                    "next": f"The turn goes on where the agent is served: look at GET /api/runs/{sent.run_id}.",
                },
                run_id=str(sent.run_id),
                session_id=session_id,
            ) from None


@operations.declare(
    "GET", "/api/conversations/{id}/events", needs="read", errors=[NotFound], response_format=EVENT_STREAM
)
async def read_events(
    call: ApiCall, id: UUID, since: EventCursor | None = None, limit: Limit = 500
) -> EventPage | Response:
    """List the events of a conversation after a cursor; with `Accept: text/event-stream`, also stream new ones.

    To resume a stream that broke off, send the id of its last event in the header `Last-Event-ID`.
    """
    conversation = await call.authorization.conversation(id)
    if wants_stream(call.request):
        if conversation.agent is None:
            raise InvalidInput("this conversation has no agent", next="Ask without `Accept: text/event-stream`.")
        since = call.request.headers.get("last-event-id") or since
        parse_cursor(since or "0")  # before the response starts, so that an error can still be returned
        call.slot.stay(None)
        return EventStream(_stream_conversation(call, id, conversation.agent, since))
    events: list[Event] = []
    async with call.engine.agents.watch(id, None, since=since) as watch:
        while len(events) < limit and (event := await watch.next_now()) is not None:
            events.append(event)
        return EventPage(events, str(watch.cursor))


async def _await_reply(call: ApiCall, sent: Sent, agent: str, session_id: str, watch: Watch) -> ChatReply:
    """Wait until a turn ends, waits for an approval or is queued."""
    reply: str | None = None
    node: UUID | None = None
    approval_ids: list[UUID] = []
    async with aclosing(_follow_turn(call, sent, agent, watch)) as events:
        async for event in events:
            if isinstance(event, QueuedChat):
                call.status = HTTPStatus.ACCEPTED
                return ChatReply(
                    "queued", None, session_id, agent, sent.conversation, sent.run_id, None, event.cursor, {}, [],
                    event.text,
                )  # fmt: skip
            if event is None:
                continue
            state: Literal["done", "cancelled", "waiting"] | None = None
            if event.run_id == sent.run_id:
                if event.kind == "error":
                    raise TurnFailed(event.error or {}, run_id=str(sent.run_id), session_id=session_id)
                if event.kind == "answer":
                    reply, node = event.text, event.node_id
                elif event.kind == "approval" and event.approval_id is not None:
                    approval_ids.append(event.approval_id)
                elif event.kind == "done":
                    state = "cancelled" if event.state == "cancelled" else "done"
            waiting: list[Approval] = []
            if (
                approval_ids and not watch.has_more
            ):  # an agent requests its approvals together; other events can come between
                waiting, approval_ids = await _pending_approvals(call, approval_ids), []
            if waiting:
                state, call.status = "waiting", HTTPStatus.ACCEPTED
            if state is not None:
                return ChatReply(
                    state, reply, session_id, agent, sent.conversation, sent.run_id, node, event.cursor,
                    event.usage or {}, waiting,
                )  # fmt: skip
    raise ShuttingDown("the engine is closing", next="Try again when it is back: the turn continues.")


async def _pending_approvals(call: ApiCall, approval_ids: Sequence[UUID]) -> list[Approval]:
    found = [await call.engine.agents.approvals.get(id) for id in approval_ids]
    return [approval for approval in found if approval.state == "pending"]


async def _session_of(call: ApiCall, body: ChatRequest, sent: Sent) -> str:
    if body.session_id is not None and body.busy != "fork":
        return body.session_id
    return (await call.engine.conversations.get(sent.conversation)).session_id or ""


async def _follow_turn(
    call: ApiCall, sent: Sent, agent: str, watch: Watch, *, stops: bool = False
) -> AsyncGenerator[Event | QueuedChat | None]:
    """Yield the events of `follow_events`. If no process serves the agent, end with `QueuedChat`."""
    has_events, within = sent.held is not None, UNSERVED_AFTER  # a process that has just started gets this time
    if not has_events and await call.engine.agents.is_stranded(sent.run_id, agent, within=within):
        yield _queued_chat(agent, sent, watch)
        return
    async with aclosing(follow_events(call, watch, stops=stops)) as events:
        async for event in events:
            has_events = has_events or (event is not None and event.run_id == sent.run_id)
            if event is None and not has_events and await call.engine.agents.is_stranded(sent.run_id, agent):
                yield _queued_chat(agent, sent, watch)
                return
            yield event


def _queued_chat(agent: str, sent: Sent, watch: Watch) -> QueuedChat:
    return QueuedChat(cursor=str(watch.cursor), run_id=sent.run_id, text=str(unserved_agent(agent, sent.run_id)))


def _send_message(call: ApiCall, body: ChatRequest, agent: str) -> AbstractAsyncContextManager[tuple[Sent, Watch]]:
    return call.engine.agents.send_and_watch(
        agent,
        body.message,
        user=call.principal.user,
        session_id=body.session_id,
        key=body.key,
        busy=body.busy,
        adopts=call.principal.adopts,
    )


async def _stream_turn(call: ApiCall, body: ChatRequest, agent: str) -> AsyncGenerator[bytes]:
    """Stream a turn: `ready`, then the events of its run until it ends."""
    async with _send_message(call, body, agent) as (sent, watch):
        ready = ReadyChat(
            cursor=str(start_of(sent)),
            session_id=await _session_of(call, body, sent),
            agent_id=agent,
            conversation_id=sent.conversation,
            run_id=sent.run_id,
        )
        call.slot.stay(None)
        yield encode_event(ready.kind, ready.cursor, ready)
        async with aclosing(_follow_turn(call, sent, agent, watch, stops=True)) as events:
            async for event in events:
                if event is None:
                    yield SIGN_OF_LIFE
                elif isinstance(event, QueuedChat):
                    yield encode_event(event.kind, event.cursor, event)
                elif event.run_id == sent.run_id:
                    yield encode_event(event.kind, event.cursor, event)
                    if event.kind in ("done", "error"):
                        return


async def _stream_conversation(
    call: ApiCall, conversation: UUID, agent: str, since: str | None
) -> AsyncGenerator[bytes]:
    """Stream the events of a conversation."""
    async with (
        call.engine.agents.watch(conversation, agent, since=since) as watch,
        aclosing(follow_events(call, watch, stops=True)) as events,
    ):
        async for event in events:
            yield SIGN_OF_LIFE if event is None else encode_event(event.kind, event.cursor, event)
