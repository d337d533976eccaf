"""Agents, as everyone talks to them: a message goes in, events come out.

Whoever sends need not be where the agent is: the message is stored with the run that answers it, the agent's topic
tells whoever serves the agent, and what happens comes back by the conversation. Where the agent is served in the same
process, the run is taken as it is stored.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from uuid import UUID, uuid5

from holdfast.agents.announcements import Announcements
from holdfast.agents.approvals import Approval, Approvals, wake_runs
from holdfast.agents.definitions import DEFAULT_AGENT, Definitions, unknown_agent
from holdfast.agents.events import PER_RUN, Cursor, Event, parse_cursor
from holdfast.agents.journal import Past, Step, past_of
from holdfast.agents.presence import AgentPresence
from holdfast.agents.runner import Runner
from holdfast.agents.runs import Claim, Run, Runs, Sent
from holdfast.agents.watch import Watch
from holdfast.agents.watching import RETRIED, Watching
from holdfast.bus.log import Log
from holdfast.bus.messages import VERSION, ConversationMessage, headers_of
from holdfast.bus.wakes import Wakes
from holdfast.conversations.contexts import by_user
from holdfast.conversations.conversation import Conversation
from holdfast.conversations.conversations import Conversations
from holdfast.conversations.nodes import Node
from holdfast.conversations.refusals import unknown, unknown_session
from holdfast.conversations.turns import POLICIES, Policy
from holdfast.core.errors import AlreadyExists, Busy, HoldfastError, InvalidInput, NotFound, TooLarge, Unavailable
from holdfast.core.settings import AgentSettings
from holdfast.core.shares import Shares
from holdfast.core.text import store
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

KNOWN_FOR = 10.0  # seconds for which an agent is taken to be as it was
UNSERVED_AFTER = 1.2  # seconds that a process has to come, or come back, before it is said that nobody serves an agent
LOOK = 0.2  # seconds between two looks meanwhile

log = logging.getLogger(__name__)
sql = statements(__name__)


class Agents:
    """Talks to the agents of one tenant."""

    def __init__(
        self,
        database: Database,
        log: Log,
        wakes: Wakes,
        conversations: Conversations,
        definitions: Definitions,
        watching: Watching,
        settings: AgentSettings,
        *,
        places: Shares,
    ) -> None:
        self._database = database
        self._places = places  # of messages that are being stored
        self._log = log
        self._wakes = wakes
        self._conversations = conversations
        self._watching = watching
        self._settings = settings
        self._known: dict[str, tuple[str, float]] = {}  # topics, and until when they are taken for granted
        self.definitions = definitions
        self.announcements = Announcements(log)
        self.presence = AgentPresence(database)
        self.runs = Runs(database)
        self.runners: list[Runner] = []  # of this process
        self.approvals = Approvals(database, wakes)

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
        """Say something to an agent; it is durable when this returns, and answered by whoever serves the agent.

        `session_id`: where to go on, or the name of a new session. `key`: the same one twice is said once. `busy` says
        what happens when the agent still answers the message before: `enqueue`, `merge`, `reject`, `interrupt` or
        `fork`.
        `adopts`: a session of nobody's becomes the user's; without it only where it is their active session.
        """
        self.check_message(message, busy)
        async with self._places.hold():
            talk = await self.session(agent, user=user, session_id=session_id, adopts=adopts)
            return await self._say(talk, agent, message, user, key, busy)

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
        """Say something to an agent, and follow its answer: what it thinks, does, sees and says, until it is done.

        Unavailable where nobody serves the agent: the message is kept, and is answered once somebody does.
        """
        said = self.saying(agent, message, user=user, session_id=session_id, key=key, busy=busy, adopts=adopts)
        async with said as (sent, events):
            if await self.is_stranded(sent.run_id, agent, within=UNSERVED_AFTER):
                raise unserved(agent, sent.run_id)
            async for event in events:
                if event.run_id == sent.run_id:
                    yield event
                    if event.kind in ("done", "error"):
                        return

    @asynccontextmanager
    async def saying(
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
        """Say something to an agent, as `send` does, and watch the conversation from there on."""
        self.check_message(message, busy)
        async with AsyncExitStack() as stack:
            async with self._places.hold():
                topic = await self._topic(agent)
                talk = await self.session(agent, user=user, session_id=session_id, adopts=adopts)
                events = await stack.enter_async_context(self._watching.watch(talk.id, topic=topic, since=None))
                sent = await self._say(talk, agent, message, user, key, busy)
            if sent.conversation != talk.id or not sent.is_new:  # of what was said before, the rows know
                events = await stack.enter_async_context(
                    self.watch(sent.conversation, agent, since=str(start_of(sent)))
                )
            else:
                events.begin(start_of(sent))
            yield sent, events

    @asynccontextmanager
    async def watch(self, conversation: UUID, agent: str | None, *, since: str | None = None) -> AsyncGenerator[Watch]:
        """The events of a conversation, from a cursor on; without one, from its beginning.

        Only where it is with an agent, those who watch hear at once of what other processes do.
        """
        cursor = Cursor() if since is None else parse_cursor(since)
        topic = None
        if agent is not None:
            with suppress(NotFound):  # the agent was removed, its conversations stay
                topic = await self._topic(agent)
        async with self._watching.watch(conversation, topic=topic, since=cursor) as watch:
            yield watch

    async def now(self, conversation: UUID) -> Cursor:
        """Where somebody comes in who wants what happens from now on, and what a run under way has told."""
        row = await self._database.one(sql("now"), conversation)
        if row is None:
            raise unknown(conversation)
        return Cursor(row["revision"], row["number"] * PER_RUN)

    async def session(
        self, agent: str, *, user: str | None = None, session_id: str | None = None, adopts: bool = True
    ) -> Conversation:
        """The conversation of a session with an agent, made if there is none: the user's own, whoever else has the id.

        One that is nobody's becomes the user's: with `adopts`, or where it is the active session of theirs alone.
        """
        await self._topic(agent)
        if session_id is None:
            return await self._conversations.create(user=user, agent=agent)
        talk = await self._conversations.ensure(session_id, user=user, agent=agent, adopts=adopts)
        if user is None and talk.user is not None:
            raise unknown_session(session_id)
        if talk.agent is None:
            await self._database.run(sql("adopt_agent"), talk.id, store(agent))
        elif talk.agent != agent:
            raise InvalidInput(
                f"the session {session_id[:100]!r} is with the agent {talk.agent}",
                next="Talk to that one, or start a new session.",
            )
        return talk

    async def is_served(self, agent: str) -> bool:
        """Whether a process serves an agent now."""
        return any(runner.serves(agent) for runner in self.runners) or await self.presence.serves(agent)

    async def served(self) -> frozenset[str]:
        """The names of the agents that are served now."""
        return await self.presence.served()

    async def choose(self) -> str:
        """Whom to talk to where nobody was named: the only agent that is served, else the one called `default`."""
        served = await self.served()
        names = [each.name for each in await self.definitions.list() if each.kind != "ui" and each.name in served]
        chosen = likeliest(names)
        if chosen is not None:
            return chosen
        if names:
            raise InvalidInput(
                "it is not clear which agent is meant", why=f"several are served: {', '.join(names)}", next="Name one."
            )
        raise Unavailable("no agent is served", next="Start one with `holdfast up` or `holdfast up APP`.")

    async def is_stranded(self, run_id: UUID, agent: str, *, within: float = 0) -> bool:
        """Whether nobody works on a run and nobody serves its agent, and this stays so `within` some seconds."""
        end = time.monotonic() + within
        while not await self.is_served(agent):
            if not await self._database.value(sql("is_left"), run_id):
                return False
            if time.monotonic() >= end:
                return True
            await asyncio.sleep(LOOK)
        return False

    async def cancel(self, run_id: UUID) -> None:
        """Have a run stop; what it has said so far stays. One that has ended is no error."""
        run = await self.runs.get(run_id)
        outcome = await self.runs.stop(run_id)
        await wake_runs(self._database, self._wakes)
        if outcome == "stopped":
            await self._look(run.conversation)

    async def retry(self, run_id: UUID) -> Run:
        """Try a run again that failed or was cancelled."""
        run = await self.runs.retry(run_id)
        await wake_runs(self._database, self._wakes)
        await self._look(run.conversation)
        await self._tell_of_retry(run)
        return run

    async def decide(self, approval_id: UUID, *, approve: bool, by: str, comment: str = "") -> Approval:
        """Allow a call that waits for it, or not; the run goes on wherever the agent is served."""
        decided = await self.approvals.decide(approval_id, approve=approve, by=by, comment=comment)
        await self._look(decided.conversation)
        return decided

    async def past(self, run_id: UUID, *, since: int = 0, limit: int | None = None) -> Past:
        """What a run has done: its steps, the tools that it used, and what somebody was asked.

        `since` and `limit`: in its steps after this number, at most so many.
        """
        await self.runs.get(run_id)
        return await past_of(self._database, run_id, since=since, limit=limit)

    async def steps(self, run_id: UUID) -> Sequence[Step]:
        """What the model was sent in each step of a run and why, and what it replied."""
        return (await self.past(run_id)).steps

    async def _say(
        self, talk: Conversation, agent: str, message: str, user: str | None, key: str | None, busy: Policy
    ) -> Sent:
        fork = await self._forked(talk, key) if busy == "fork" and key is not None else None
        try:
            where = talk if fork is None else fork
            sent = await self._sent(where.id, agent, message, user, key, "reject" if busy == "fork" else busy)
        except Busy:
            if busy != "fork" or fork is not None:
                raise
            fork = await self._fork(talk, key)
            sent = await self._sent(fork.id, agent, message, user, key, "reject")
        if sent.topic is None:  # it was made before the agent was
            await self._conversations.attach(sent.conversation)
            await wake_runs(self._database, self._wakes)
        elif sent.held is not None:
            self.announcements.soon(sent.topic, sent.conversation)
        else:
            await self._log.announce(sent.topic, keys=[str(sent.conversation)])
        if busy == "interrupt":
            await self._look(sent.conversation)  # those that nobody held have ended
            await wake_runs(self._database, self._wakes)
        return sent

    async def _sent(
        self, conversation: UUID, agent: str, message: str, user: str | None, key: str | None, busy: Policy
    ) -> Sent:
        """Send a message, and have its run done at once where that can be in this process."""
        send = partial(self._send, conversation, agent, message, user, key, busy)
        runner = next((runner for runner in self.runners if runner.has_room(agent, user)), None)
        return await (send(None) if runner is None else runner.send(send, user))

    async def _send(
        self,
        conversation: UUID,
        agent: str,
        message: str,
        user: str | None,
        key: str | None,
        busy: Policy,
        claim: Claim | None,
    ) -> Sent:
        context = by_user(user)
        sent = await self.runs.send(
            conversation, agent, message, context=context, user=user, key=key, busy=busy, claim=claim
        )
        if sent.is_new:
            await self._watching.join()
            self._watching.node(Node(
                sent.node_id, conversation, conversation, sent.seq, str(context), message, {"role": "user"}, None, key,
                1, sent.revision, False, sent.at, sent.at,
            ))  # fmt: skip
        return sent

    async def _fork(self, talk: Conversation, key: str | None) -> Conversation:
        """A copy of a conversation, to go on with; the same key gives the same one."""
        if key is None:
            return await self._conversations.fork(talk.id)
        try:
            return await self._conversations.fork(talk.id, session_id=_fork_id(talk, key))
        except AlreadyExists:
            fork = await self._forked(talk, key)  # another forked it meanwhile
            if fork is None:
                raise
            return fork

    async def _forked(self, talk: Conversation, key: str) -> Conversation | None:
        """The copy of a conversation that was made for this key."""
        found = await self._conversations.find(session_id=_fork_id(talk, key), user=talk.user, app=talk.app)
        return found if found is not None and found.forked_from == talk.id else None

    async def _look(self, conversation: UUID) -> None:
        await self._watching.join()
        self._watching.look(conversation)

    async def _tell_of_retry(self, run: Run) -> None:
        """Have those look who watch from other processes: nothing of the conversation changes by it."""
        told = ConversationMessage(
            version=VERSION,
            conversation_id=run.conversation,
            agent_id="system",
            timestamp=datetime.now(UTC),
            docmem_node_id=run.conversation,
            node_id=run.trigger,
            action=RETRIED,
        )
        headers = headers_of(told, sequence=None)
        try:
            topic = await self._topic(run.agent)
            await self._log.publish(topic, key=str(run.conversation), value=told, headers=headers)
        except HoldfastError as error:  # the run is stored, and what it says is told
            log.warning("those who watch elsewhere do not hear that %s is tried again: %s", run.retry_of, error)

    async def _topic(self, agent: str) -> str:
        """The topic of an agent that can be talked to."""
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
        """Refuse a message that no agent takes."""
        if not isinstance(message, str) or not message.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput("the message is empty", next="Say something.")
        size = len(message.encode(errors="surrogatepass"))
        if size > self._settings.max_message_bytes:
            raise TooLarge(
                "the message is too large",
                why=f"it has {size} bytes, at most {self._settings.max_message_bytes} are taken",
                next="Send less, or raise agents.max_message_bytes.",
                size=size,
                limit=self._settings.max_message_bytes,
            )
        if busy not in POLICIES:
            raise InvalidInput(f"there is no policy {busy!r:.100}", next=f"Use one of {', '.join(POLICIES)}.")


def likeliest(names: Sequence[str]) -> str | None:
    """Of agents that are served, the one that is meant where none is named: the only one, else `default`."""
    return names[0] if len(names) == 1 else DEFAULT_AGENT if DEFAULT_AGENT in names else None


def unserved(agent: str, run_id: UUID) -> Unavailable:
    """Nobody serves the agent; what was said to it waits."""
    return Unavailable(
        f"nobody serves the agent {agent} now",
        why="the message is kept, and answered once somebody does",
        next="Start the program that declares it: `holdfast up APP`.",
        run_id=str(run_id),
    )


def start_of(sent: Sent) -> Cursor:
    """Where what answers a message begins."""
    return Cursor(sent.revision, sent.number * PER_RUN)


def _fork_id(talk: Conversation, key: str) -> str:
    return str(uuid5(talk.id, store(key)))
