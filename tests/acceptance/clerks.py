"""Processes that serve agents, and what they and those who watch have seen."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from holdfast.agents import Event, Sent
from holdfast.agents.broadcast import Watch
from holdfast.core.errors import DatabaseAway
from holdfast.core.setting_sources import environment_name
from holdfast.engine import Engine
from tests.processes import Process, Processes
from tests.told import told

PATIENCE = 60  # seconds in which things must get on, on a busy machine, too
SHORT, LONG = 3, 600  # seconds of a lease: a busy machine keeps the one, and nobody waits for the other to run out
PROGRAMS = Path(__file__).parent / "programs"
MUCH = 5 * PATIENCE  # where much is to be done
UNFINISHED = "select count(*) filter (where finished_at is null), count(*) from runs where tenant_id = $1"
TOPIC, GROUP = "llm-support", "agent-support"

WHERE = "I live in Bonn. Where is AB-1?"
PAY = "Pay bill 7."
COMPARE = "Compare AB-1 and AB-2."
PARCELS = ("AB-1", "AB-2")
THOUGHT = "Let me see."
ANSWER = "It is on its way to you, and will be there on Monday."
SCRIPT: tuple[dict[str, Any], ...] = (
    {"by": "step"},
    {"when": "Where", "text": THOUGHT, "calls": [{"name": "track", "arguments": {"parcel": "AB-1"}}]},
    {"when": "Pay", "text": THOUGHT, "calls": [{"name": "pay", "arguments": {"bill": "7"}}]},
    {"when": "Compare", "text": THOUGHT, "calls": [{"name": "track", "arguments": {"parcel": p}} for p in PARCELS]},
    {"when": "Where|Pay|Compare", "text": ANSWER, "chunks": 5},
    {"when": "Hello", "text": "Good morning.", "repeat": True},
)
WHOLE = ("message", "thought", "action", "observation", "answer", "done")
CONTEXTS = ["text:user:ann", "text:agent:support", "text:agent:tool", "text:agent:support"]


class Clerks:
    """Starts processes that serve agents, and reads what they did."""

    def __init__(self, processes: Processes, folder: Path, settings: Mapping[str, object]) -> None:
        script = folder / "script"
        script.write_text("\n".join(map(json.dumps, SCRIPT)))
        given = {"llm.model": f"scripted:{script}", **settings}
        self._processes = processes
        self._folder = folder
        self._environment = {environment_name(name): str(value) for name, value in given.items()}
        self._environment["XDG_CACHE_HOME"] = str(folder / "cache")  # no model to embed with: words will do

    async def start(self, how: str = "", moment: str = "", *, lease: float | None = None) -> Process:
        """Start one, to be struck at a moment; it serves when this returns. Who is to be struck has a short lease."""
        seconds = lease or (SHORT if how in ("dies", "hangs") else LONG)
        named = {environment_name("agents.lease"): str(seconds)}
        process = self.run("clerk.py", *((how, moment) if how else ()), **named)
        await heard(process, "serves")
        return process

    def run(self, program: str, *arguments: str, **environment: str) -> Process:
        """Start a program beside them."""
        return self._processes.start(
            str(PROGRAMS / program), *arguments, environment={**self._environment, **environment}
        )

    @property
    def asked(self) -> list[str]:
        """The steps that the model was asked in."""
        return [line.split()[0] for line in self.lines("asked")]

    @property
    def used(self) -> list[str]:
        """The tools that were used."""
        return [line.split()[0] for line in self.lines("used")]

    def lines(self, file: str) -> list[str]:
        """What they wrote down."""
        path = self._folder / file
        return path.read_text().splitlines() if path.exists() else []

    async def wrote(self, file: str, number: int) -> None:
        """Wait until they wrote down so many lines."""
        async with asyncio.timeout(PATIENCE):
            while len(self.lines(file)) < number:  # noqa: ASYNC110 - other processes write
                await asyncio.sleep(0.02)


async def heard(process: Process, text: str) -> None:
    """Wait until it has said something."""
    await asyncio.to_thread(process.wait_for, text, timeout=PATIENCE)


async def gone(process: Process, *, within: float = PATIENCE) -> int:
    """Wait until it has ended."""
    return await asyncio.to_thread(process.wait, timeout=within)


@asynccontextmanager
async def watched(engine: Engine, sent: Sent) -> AsyncGenerator["Watcher"]:
    """Somebody who watches a conversation all the time, from its beginning."""
    async with asyncio.timeout(2 * PATIENCE), engine.agents.watch(sent.conversation, "support") as events:
        watcher = Watcher(events)
        watching = asyncio.create_task(watcher.watch())
        try:
            yield watcher
        finally:
            watching.cancel()
            await asyncio.wait([watching])


class Watcher:
    """Keeps what is told of a conversation."""

    def __init__(self, events: Watch) -> None:
        self._events = events
        self._news = asyncio.Condition()
        self.seen: list[Event] = []

    async def watch(self) -> None:
        """Keep everything, as it comes; when the database was away, go on."""
        while True:
            try:
                event = await anext(self._events)
            except DatabaseAway:
                await asyncio.sleep(0.1)
                continue
            async with self._news:
                self.seen.append(event)
                self._news.notify_all()

    async def until(self, *kinds: str, text: str = "", after: Event | None = None) -> Event:
        """Wait for the first event of a kind, or for pieces that have come to this text; after another event."""
        begins = 0 if after is None else self.seen.index(after) + 1

        def found() -> Event | None:
            said = ""
            for event in self.seen[begins:]:
                said = event.text if event.reset or event.kind != "token" else said + event.text
                if event.kind in kinds and text in said:
                    return event
            return None

        async with self._news:
            await self._news.wait_for(lambda: found() is not None)
        event = found()
        assert event is not None
        return event


def happened(events: Iterable[Event]) -> list[str]:
    """What happened, without pieces of text; checks that these are of what is said then, and that cursors rise."""
    kinds: list[str] = []
    said = ""
    last = (0, 0, 0)
    for event in events:
        revision, n, *part = map(int, event.cursor.split("."))
        now = (revision, n, part[0] if part else 0)
        assert now > last, f"{event} was told before, or should have been"
        last = now
        if event.kind == "token":
            said = event.text if event.reset else said + event.text
            continue
        if event.kind in ("thought", "answer"):
            assert event.text.startswith(said), f"{said!r} was streamed, and {event.text!r} was said"
            said = ""
        kinds.append(event.kind)
    return kinds


async def retold(engine: Engine, conversation: UUID) -> list[Event]:
    """What somebody is told who comes when the run has ended."""
    seen: list[Event] = []
    async with asyncio.timeout(PATIENCE), engine.agents.watch(conversation, None) as events:
        async for event in events:
            seen.append(event)
            if event.kind in ("done", "error"):
                break
    return seen


async def ended(engine: Engine, number: int = 0) -> None:
    """Wait until no run is left, after so many at least."""
    async with asyncio.timeout(MUCH):
        while True:
            row = await engine.database.one(UNFINISHED)
            assert row is not None
            if row[0] == 0 and row[1] >= number:
                return
            await asyncio.sleep(0.05)


async def drained(engine: Engine, group: str = GROUP) -> None:
    """Wait until an agent has read its topic, and says so."""
    async with asyncio.timeout(PATIENCE):
        while not (lags := await engine.log.lag(group)) or any(lag.lag for lag in lags):  # noqa: ASYNC110 - rows
            await asyncio.sleep(0.05)


async def ask(engine: Engine, message: str) -> Sent:
    """Say something to the agent."""
    return await engine.agents.send("support", message, user="ann", session_id="web-1")


async def check(engine: Engine, sent: Sent, watcher: Watcher, *, whole: Sequence[str] = WHOLE) -> None:
    """The turn ended once: for whoever watched or comes later, in the conversation, and on the agent's topic."""
    await drained(engine)
    run = await engine.agents.runs.get(sent.run_id)
    said = await engine.conversations.since(sent.conversation, 0)
    later = await retold(engine, sent.conversation)
    replies = [step.reply for step in await engine.agents.steps(run.id) if step.reply is not None]

    assert run.state == "done"
    assert run.output_tokens == sum(reply.usage.output_tokens for reply in replies), "each is counted once"
    assert [each.id for each in await engine.agents.runs.list()] == [run.id]
    assert [node.context for node in said] == CONTEXTS
    assert (run.answer, said[-1].content) == (said[-1].id, ANSWER)
    assert [each.sequence for each in await told(engine, TOPIC, sent.conversation)] == [1, 2, 3, 4]
    assert happened(watcher.seen) == list(whole)
    assert [kind for kind in happened(later) if kind in WHOLE] == list(WHOLE)
    assert {event.node_id for event in later if event.node_id} == {node.id for node in said}


async def survived(engine: Engine, clerks: Clerks, moment: str) -> None:
    """Ask one that dies at a moment, and see another end the turn, once and whole."""
    dying = await clerks.start("dies", moment)
    sent = await ask(engine, WHERE)

    async with watched(engine, sent) as watcher:
        assert await gone(dying) == -signal.SIGKILL, dying.stderr
        await clerks.start()
        await watcher.until("done", "error")
        await check(engine, sent, watcher)
