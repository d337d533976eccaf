"""The inbox: stores messages to agents, each with the run that answers it, and announces them on the agent's topic.

A runner of this process that serves the agent and has room claims the run with the statement that stores it. Otherwise,
a process that serves the agent takes the run when it reads the topic.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import UUID, uuid5

from holdfast.agents.broadcast import Broadcast
from holdfast.agents.runs import AgentRun, RunClaim, Runs, Sent
from holdfast.bus.log import Log
from holdfast.bus.notifications import Notifications
from holdfast.conversations.contexts import by_user
from holdfast.conversations.conversation import Conversation
from holdfast.conversations.conversations import Conversations
from holdfast.conversations.nodes import Node
from holdfast.conversations.turn_claims import Policy, wake_queue
from holdfast.core.errors import AlreadyExists, Busy
from holdfast.core.text import store
from holdfast.postgres.database import Database


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """A message to an agent. `busy` says what happens while the agent still answers an earlier message."""

    conversation: UUID
    agent: str
    text: str
    user: str | None
    key: str | None
    busy: Policy


class RunTaker(Protocol):
    """Executes runs in this process. A claim that it offered is started or withdrawn."""

    def serves(self, agent: str) -> bool:
        """Return whether it takes the runs of an agent."""
        ...

    def offer(self, agent: str, user: str | None) -> RunClaim | None:
        """Reserve a place for a run of an agent, and return the claim to store it with. None: it has no room."""
        ...

    def start(self, claim: RunClaim, run: AgentRun | None) -> None:
        """Execute the run that was stored with a claim. None: the run is not claimed, or there is none."""
        ...

    def withdraw(self, claim: RunClaim, error: BaseException) -> None:
        """Give up a claim because of an error. The run may be stored nevertheless."""
        ...


class Inbox:
    """Stores and announces the messages to one tenant's agents."""

    def __init__(
        self,
        database: Database,
        log: Log,
        notifications: Notifications,
        conversations: Conversations,
        runs: Runs,
        broadcast: Broadcast,
    ) -> None:
        self._database = database
        self._log = log
        self._notifications = notifications
        self._conversations = conversations
        self._runs = runs
        self._broadcast = broadcast
        self._takers: list[RunTaker] = []  # of this process

    @contextmanager
    def taken_by(self, taker: RunTaker) -> Generator[None]:
        """Offer runs to a taker inside the context."""
        self._takers.append(taker)
        try:
            yield
        finally:
            self._takers.remove(taker)

    def is_served(self, agent: str) -> bool:
        """Return whether this process serves an agent."""
        return any(taker.serves(agent) for taker in self._takers)

    async def send(
        self, conversation: Conversation, agent: str, text: str, *, user: str | None, key: str | None, busy: Policy
    ) -> Sent:
        """Store a message and its run, and announce it. With `fork`, a busy conversation is continued in a copy."""
        message = AgentMessage(conversation.id, agent, text, user, key, "reject" if busy == "fork" else busy)
        fork = await self._find_fork(conversation, key) if busy == "fork" and key is not None else None
        try:
            sent = await self._put(message if fork is None else replace(message, conversation=fork.id))
        except Busy:
            if busy != "fork" or fork is not None:
                raise
            sent = await self._put(replace(message, conversation=(await self._fork(conversation, key)).id))
        await self._announce(sent)
        if busy == "interrupt":
            await self._broadcast.join()
            self._broadcast.look(sent.conversation)  # interrupted runs that no process held have ended
            await wake_queue(self._database, self._notifications)
        return sent

    async def _put(self, message: AgentMessage) -> Sent:
        """Store a message. If this process has room for its run, the run starts, even if the caller stops waiting."""
        for taker in self._takers:
            claim = taker.offer(message.agent, message.user)
            if claim is not None:
                task = asyncio.create_task(self._store_and_start(message, taker, claim), name="sending")
                task.add_done_callback(_retrieve_exception)
                return await asyncio.shield(task)
        return await self._store(message, None)

    async def _store_and_start(self, message: AgentMessage, taker: RunTaker, claim: RunClaim) -> Sent:
        try:
            sent = await self._store(message, claim)
        except BaseException as error:
            taker.withdraw(claim, error)
            raise
        taker.start(claim, sent.held)
        return sent

    async def _store(self, message: AgentMessage, claim: RunClaim | None) -> Sent:
        context = by_user(message.user)
        sent = await self._runs.send(
            message.conversation,
            message.agent,
            message.text,
            context=context,
            user=message.user,
            key=message.key,
            busy=message.busy,
            claim=claim,
        )
        if sent.is_new:
            await self._broadcast.join()
            self._broadcast.deliver_node(Node(
                sent.node_id, sent.conversation, sent.conversation, sent.seq, str(context), message.text,
                {"role": "user"}, None, message.key, 1, sent.revision, False, sent.at, sent.at,
            ))  # fmt: skip
        return sent

    async def _announce(self, sent: Sent) -> None:
        if sent.topic is None:  # the conversation was created before the agent
            await self._conversations.attach(sent.conversation)
            await wake_queue(self._database, self._notifications)
        elif sent.held is not None:
            self._broadcast.wake_readers(sent.topic, sent.conversation)
        else:
            await self._log.announce(sent.topic, keys=[str(sent.conversation)])

    async def _fork(self, conversation: Conversation, key: str | None) -> Conversation:
        """Fork a conversation to continue in the copy. The same key returns the same fork."""
        if key is None:
            return await self._conversations.fork(conversation.id)
        try:
            return await self._conversations.fork(conversation.id, session_id=_fork_id(conversation, key))
        except AlreadyExists:
            fork = await self._find_fork(conversation, key)  # another caller forked it meanwhile
            if fork is None:
                raise
            return fork

    async def _find_fork(self, conversation: Conversation, key: str) -> Conversation | None:
        """Return the fork of a conversation that was made for this key."""
        found = await self._conversations.find(
            session_id=_fork_id(conversation, key), user=conversation.user, app=conversation.app
        )
        return found if found is not None and found.forked_from == conversation.id else None


def _fork_id(conversation: Conversation, key: str) -> str:
    return str(uuid5(conversation.id, store(key)))


def _retrieve_exception(task: "asyncio.Task[Sent]") -> None:
    if not task.cancelled():
        task.exception()  # the sender gets it, if it still waits
