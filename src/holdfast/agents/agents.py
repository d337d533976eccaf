"""The interface to agents: send a message, receive events.

The sender and the agent can be in different processes. The engine stores the message with the run that answers it and
announces it on the agent's topic. A process that serves the agent takes the run, and its events come back through the
conversation. If the sender's process serves the agent, it claims the run when it stores it.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from uuid import UUID

from holdfast.agents.approvals import Approval, Approvals
from holdfast.agents.broadcast import RETRIED, Broadcast
from holdfast.agents.definitions import DEFAULT_AGENT, Definitions, unknown_agent
from holdfast.agents.events import PER_RUN, Cursor, Event, parse_cursor
from holdfast.agents.inbox import Inbox
from holdfast.agents.journal import RunHistory, RunStep, past_of
from holdfast.agents.presence import AgentPresence
from holdfast.agents.runs import AgentRun, Runs, Sent
from holdfast.agents.watch import Watch
from holdfast.bus.log import Log
from holdfast.bus.messages import VERSION, ConversationMessage, headers_of
from holdfast.bus.notifications import Notifications
from holdfast.conversations.conversation import Conversation
from holdfast.conversations.conversations import Conversations
from holdfast.conversations.errors import unknown_conversation, unknown_session
from holdfast.conversations.turn_claims import POLICIES, Policy, wake_queue
from holdfast.core.errors import HoldfastError, InvalidInput, NotFound, TooLarge, Unavailable
from holdfast.core.settings import AgentSettings
from holdfast.core.shares import Shares
from holdfast.core.text import store
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

KNOWN_FOR = 10.0  # seconds for which an agent's topic is cached
UNSERVED_AFTER = 1.2  # seconds that a process has to appear, or to come back, before an agent counts as not served
LOOK = 0.2  # seconds between two checks meanwhile

log = logging.getLogger(__name__)
sql = statements(__name__)


class Agents:
    """Sends messages to the agents of one tenant, and watches their events."""

    def __init__(
        self,
        database: Database,
        log: Log,
        *,
        notifications: Notifications,
        conversations: Conversations,
        definitions: Definitions,
        broadcast: Broadcast,
        settings: AgentSettings,
        places: Shares,
    ) -> None:
        self._database = database
        self._places = places  # limits how many messages are stored at once
        self._log = log
        self._notifications = notifications
        self._conversations = conversations
        self.broadcast = broadcast
        self._settings = settings
        self._known: dict[str, tuple[str, float]] = {}  # by agent: its topic, and until when it is cached
        self.definitions = definitions
        self.presence = AgentPresence(database)
        self.runs = Runs(database)
        self.inbox = Inbox(database, log, notifications, conversations, self.runs, broadcast)
        self.approvals = Approvals(database, notifications)

    async def send(
        self,
        agent: str,
        message: str,
        *,
        user: str | None = None,
        session_id: str | None = None,
        key: str | None = None,
        busy: Policy = "enqueue",
        adopts: bool = True,
    ) -> Sent:
        """Send a message to an agent. It is durable when this returns. A process that serves the agent answers it.

        `session_id`: the session to continue, or the name of a new one. `key`: an idempotency key; the message is sent
        once per key. `busy` says what happens while the agent still answers an earlier message: `enqueue`, `merge`,
        `reject`, `interrupt` or `fork`. `adopts`: a session without a user becomes this user's; otherwise only if it is
        their active session.
        """
        self.check_message(message, busy)
        async with self._places.hold():
            conversation = await self.session(agent, user=user, session_id=session_id, adopts=adopts)
            return await self.inbox.send(conversation, agent, message, user=user, key=key, busy=busy)

    async def run(
        self,
        agent: str,
        *,
        message: str,
        user: str | None = None,
        session_id: str | None = None,
        key: str | None = None,
        busy: Policy = "enqueue",
        adopts: bool = True,
    ) -> AsyncGenerator[Event]:
        """Send a message to an agent, and yield the events of its run until it ends.

        Raises Unavailable if no process serves the agent. The message is stored, and answered once one does.
        """
        exchange = self.send_and_watch(
            agent, message, user=user, session_id=session_id, key=key, busy=busy, adopts=adopts
        )
        async with exchange as (sent, events):
            if await self.is_stranded(sent.run_id, agent, within=UNSERVED_AFTER):
                raise unserved_agent(agent, sent.run_id)
            async for event in events:
                if event.run_id == sent.run_id:
                    yield event
                    if event.kind in ("done", "error"):
                        return

    @asynccontextmanager
    async def send_and_watch(
        self,
        agent: str,
        message: str,
        *,
        user: str | None = None,
        session_id: str | None = None,
        key: str | None = None,
        busy: Policy = "enqueue",
        adopts: bool = True,
    ) -> AsyncGenerator[tuple[Sent, Watch]]:
        """Send a message to an agent, as `send` does, and watch the conversation from there on."""
        self.check_message(message, busy)
        async with AsyncExitStack() as stack:
            async with self._places.hold():
                topic = await self._topic(agent)
                conversation = await self.session(agent, user=user, session_id=session_id, adopts=adopts)
                events = await stack.enter_async_context(self.broadcast.watch(conversation.id, topic=topic, since=None))
                sent = await self.inbox.send(conversation, agent, message, user=user, key=key, busy=busy)
            if sent.conversation != conversation.id or not sent.is_new:  # a fork or a repeated message: read the rows
                events = await stack.enter_async_context(
                    self.watch(sent.conversation, agent, since=str(start_of(sent)))
                )
            else:
                events.begin(start_of(sent))
            yield sent, events

    @asynccontextmanager
    async def watch(self, conversation: UUID, agent: str | None, *, since: str | None = None) -> AsyncGenerator[Watch]:
        """Watch the events of a conversation after a cursor, or from its beginning.

        Changes by other processes arrive at once only if the conversation has an agent.
        """
        cursor = Cursor() if since is None else parse_cursor(since)
        topic = None
        if agent is not None:
            with suppress(NotFound):  # the agent was removed, but its conversations stay
                topic = await self._topic(agent)
        async with self.broadcast.watch(conversation, topic=topic, since=cursor) as watch:
            yield watch

    async def now(self, conversation: UUID) -> Cursor:
        """Return the cursor for a watcher that starts now.

        It is after all changes so far, but before the deltas of unfinished runs.
        """
        row = await self._database.one(sql("now"), conversation)
        if row is None:
            raise unknown_conversation(conversation)
        return Cursor(row["revision"], row["number"] * PER_RUN)

    async def session(
        self, agent: str, *, user: str | None = None, session_id: str | None = None, adopts: bool = True
    ) -> Conversation:
        """Return the conversation of a session with an agent. Create it if there is none.

        Another user can have a session with the same id. A session without a user becomes this user's if `adopts` is
        set, or if it is the active session of this user alone.
        """
        await self._topic(agent)
        if session_id is None:
            return await self._conversations.create(user=user, agent=agent)
        conversation = await self._conversations.ensure(session_id, user=user, agent=agent, adopts=adopts)
        if user is None and conversation.user is not None:
            raise unknown_session(session_id)
        if conversation.agent is None:
            await self._database.run(sql("adopt_agent"), conversation.id, store(agent))
        elif conversation.agent != agent:
            raise InvalidInput(
                f"the session {session_id[:100]!r} is with the agent {conversation.agent}",
                next="Send the message to that agent, or start a new session.",
            )
        return conversation

    async def is_served(self, agent: str) -> bool:
        """Return whether a process serves an agent now."""
        return self.inbox.is_served(agent) or await self.presence.serves(agent)

    async def served(self) -> frozenset[str]:
        """Return the names of the agents that are served now."""
        return await self.presence.served()

    async def choose(self) -> str:
        """Return the agent to use if none is named: the only one that is served, or else `default`."""
        served = await self.served()
        names = [each.name for each in await self.definitions.list() if each.kind != "ui" and each.name in served]
        chosen = choose_agent(names)
        if chosen is not None:
            return chosen
        if names:
            raise InvalidInput(
                "the agent is ambiguous", why=f"several are served: {', '.join(names)}", next="Name one."
            )
        raise Unavailable("no agent is served", next="Start one with `holdfast up` or `holdfast up APP`.")

    async def is_stranded(self, run_id: UUID, agent: str, *, within: float = 0) -> bool:
        """Return whether no process holds a run or serves its agent. Waits up to `within` seconds for one."""
        end = time.monotonic() + within
        while not await self.is_served(agent):
            if not await self._database.value(sql("is_left"), run_id):
                return False
            if time.monotonic() >= end:
                return True
            await asyncio.sleep(LOOK)
        return False

    async def cancel(self, run_id: UUID) -> None:
        """Stop a run. What it has said so far stays. It is no error if the run has ended."""
        run = await self.runs.get(run_id)
        outcome = await self.runs.stop(run_id)
        await wake_queue(self._database, self._notifications)
        if outcome == "stopped":
            await self._look(run.conversation)

    async def retry(self, run_id: UUID) -> AgentRun:
        """Retry a run that failed or was cancelled."""
        run = await self.runs.retry(run_id)
        await wake_queue(self._database, self._notifications)
        await self._look(run.conversation)
        await self._announce_retry(run)
        return run

    async def decide(self, approval_id: UUID, *, approve: bool, by: str, comment: str = "") -> Approval:
        """Approve or deny a call that waits for an approval. The run continues in a process that serves the agent."""
        decided = await self.approvals.decide(approval_id, approve=approve, by=by, comment=comment)
        await self._look(decided.conversation)
        return decided

    async def past(self, run_id: UUID, *, since: int = 0, limit: int | None = None) -> RunHistory:
        """Return what a run has done: its steps, tool executions and approvals.

        `since`: only the steps after this number. `limit`: at most this many steps.
        """
        await self.runs.get(run_id)
        return await past_of(self._database, run_id, since=since, limit=limit)

    async def steps(self, run_id: UUID) -> Sequence[RunStep]:
        """Return the steps of a run: what the model was sent and why, and what it replied."""
        return (await self.past(run_id)).steps

    async def _look(self, conversation: UUID) -> None:
        await self.broadcast.join()
        self.broadcast.look(conversation)

    async def _announce_retry(self, run: AgentRun) -> None:
        """Make watchers in other processes read the rows: a retry changes nothing in the conversation."""
        message = ConversationMessage(
            version=VERSION,
            conversation_id=run.conversation,
            agent_id="system",
            timestamp=datetime.now(UTC),
            docmem_node_id=run.conversation,
            node_id=run.trigger,
            action=RETRIED,
        )
        headers = headers_of(message, sequence=None)
        try:
            topic = await self._topic(run.agent)
            await self._log.publish(topic, key=str(run.conversation), value=message, headers=headers)
        except HoldfastError as error:  # the run is stored, and its events are announced anyway
            log.warning("could not notify watchers in other processes of the retry of %s: %s", run.retry_of, error)

    async def _topic(self, agent: str) -> str:
        """Return the topic of an agent that accepts messages."""
        topic, until = self._known.get(agent, ("", 0.0))
        if time.monotonic() < until:
            return topic
        definition = await self.definitions.get(agent)
        if not definition.active or definition.kind == "ui":
            raise unknown_agent(agent)
        topic = f"{definition.kind}-{definition.name}"
        self._known[agent] = (topic, time.monotonic() + KNOWN_FOR)
        return topic

    def check_message(self, message: str, busy: str) -> None:
        """Raise an error if the message or the policy is not valid."""
        if not isinstance(message, str) or not message.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput("the message is empty", next="Send a text.")
        size = len(message.encode(errors="surrogatepass"))
        if size > self._settings.max_message_bytes:
            raise TooLarge(
                "the message is too large",
                why=f"it has {size} bytes, the limit is {self._settings.max_message_bytes}",
                next="Shorten the message, or raise agents.max_message_bytes.",
                size=size,
                limit=self._settings.max_message_bytes,
            )
        if busy not in POLICIES:
            raise InvalidInput(f"there is no policy {busy!r:.100}", next=f"Use one of {', '.join(POLICIES)}.")


def choose_agent(names: Sequence[str]) -> str | None:
    """Return the agent to use if none is named: the only one of `names`, or else `default`, if it is one of them."""
    return names[0] if len(names) == 1 else DEFAULT_AGENT if DEFAULT_AGENT in names else None


def unserved_agent(agent: str, run_id: UUID) -> Unavailable:
    """Return the error for an agent that nobody serves. The message waits."""
    return Unavailable(
        f"no process serves the agent {agent}",
        why="the message is stored, and is answered when a process serves the agent",
        next="Start the program that declares it: `holdfast up APP`.",
        run_id=str(run_id),
    )


def start_of(sent: Sent) -> Cursor:
    """Return the cursor at which the events of a message's answer begin."""
    return Cursor(sent.revision, sent.number * PER_RUN)
