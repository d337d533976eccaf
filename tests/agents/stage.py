"""What tests of agents stand on: a model that plays its part, engines that serve agents, and those who watch."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

from holdfast import App
from holdfast.agents import AgentRun, Event, Sent, Serving
from holdfast.agents.broadcast import Watch
from holdfast.conversations import Node
from holdfast.core.config import Config
from holdfast.core.settings import LlmSettings
from holdfast.engine import Engine, open_engine
from holdfast.llm import Caller, ModelRequest, Piece
from holdfast.llm.scripted import Given, ScriptedModel

Part = Given | Callable[[ModelRequest], Given]
PATIENCE = 20  # seconds: a busy machine is no failure


class Player:
    """A model that says its parts one after another, then `Done.`; held, it stops in the middle of what it says."""

    name = "scripted"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self._parts: deque[Part] = deque()
        self._before: int | None = None
        self._released = asyncio.Event()

    def says(self, *parts: Part) -> None:
        """Learn more parts: answers as scripts have them, or functions of the request."""
        self._parts.extend(parts)

    def clear(self) -> None:
        """Forget the parts that were not said."""
        self._parts.clear()

    def hold(self, *, after: int = 0) -> None:
        """Stop after so many pieces of the next answer, until it is released."""
        self._before = after
        self._released.clear()

    def release(self) -> None:
        """Go on."""
        self._before = None
        self._released.set()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """The answer, piece by piece."""
        self.requests.append(request)
        part: Part = self._parts.popleft() if self._parts else "Done."
        come = 0
        async for piece in ScriptedModel([part(request) if callable(part) else part]).stream(request):
            if self._before is not None and come >= self._before:
                await self._released.wait()
            yield piece
            come += 1


class Stage:
    """Opens engines on one database, with a model of the test's own; what was opened last closes first."""

    def __init__(self, config: Config, model: Player) -> None:
        self.model = model
        self._config = config
        self._stack = AsyncExitStack()

    async def open(self, **settings: Any) -> Engine:
        """An engine; settings are named `agents_lease` for `agents.lease`."""
        return await self._stack.enter_async_context(open_engine(config=changed(self._config, settings)))

    async def serve(self, app: App, **settings: Any) -> Engine:
        """An engine that serves the agents of an app."""
        engine = await self.open(**settings)
        await self.serving(engine, app)
        return engine

    async def serving(self, engine: Engine, app: App) -> Serving:
        """Have an engine serve the agents of an app."""
        return await self._stack.enter_async_context(engine.serving(app))

    async def close(self) -> None:
        """Close everything."""
        self.model.release()
        await self._stack.aclose()


def changed(config: Config, settings: dict[str, Any]) -> Config:
    """Settings with some of them changed."""
    sections: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        section, _, key = name.partition("_")
        sections.setdefault(section, {})[key] = value
    return config.model_copy(
        update={name: getattr(config, name).model_copy(update=values) for name, values in sections.items()}
    )


def caller_of(model: Player) -> Callable[..., Caller]:
    """What the engine makes its caller with, so that this model is asked."""

    def make(settings: LlmSettings, **options: Any) -> Caller:
        return Caller(settings, models=[model], **options)

    return make


async def told(engine: Engine, agent: str, message: str, **options: Any) -> list[Event]:
    """Everything that a run tells."""
    async with asyncio.timeout(PATIENCE):
        return [event async for event in engine.agents.run(agent, message=message, **options)]


async def ended(engine: Engine, sent: Sent | AgentRun) -> list[Event]:
    """What a run that was asked for tells until it ends."""
    run = await engine.agents.runs.get(sent.run_id if isinstance(sent, Sent) else sent.id)
    async with asyncio.timeout(PATIENCE), engine.agents.watch(run.conversation, run.agent) as events:
        return await until(events, lambda event: event.run_id == run.id and event.kind in ("done", "error"))


async def until(events: Watch, is_last: Callable[[Event], bool]) -> list[Event]:
    """Events up to one."""
    seen: list[Event] = []
    async with asyncio.timeout(PATIENCE):
        async for event in events:
            seen.append(event)
            if is_last(event):
                return seen
    return seen


async def reached(engine: Engine, run_id: UUID, *states: str) -> AgentRun:
    """A run, once it is in one of these states."""
    async with asyncio.timeout(PATIENCE):
        while (run := await engine.agents.runs.get(run_id)).state not in states:  # noqa: ASYNC110 - the row alone knows
            await asyncio.sleep(0.01)
    return run


async def met(condition: Callable[[], bool]) -> None:
    """Wait until something in this process is so."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


def kinds(events: Iterable[Event]) -> list[str]:
    """What happened, in order, pieces of text as one."""
    found: list[str] = []
    for event in events:
        if event.kind != "token" or not found or found[-1] != "token":
            found.append(event.kind)
    return found


def of(events: Iterable[Event], kind: str) -> list[Event]:
    """The events of one kind."""
    return [event for event in events if event.kind == kind]


def answer(events: Iterable[Event]) -> str:
    """What the agent answered last."""
    return of(events, "answer")[-1].text


async def nodes(engine: Engine, conversation: UUID) -> list[Node]:
    """What was said in a conversation."""
    return [node for node in await engine.conversations.since(conversation, 0) if not node.deleted]


def calls(*wanted: tuple[str, dict[str, Any]], text: str = "", **more: Any) -> dict[str, Any]:
    """A part that calls tools."""
    return {"text": text, "calls": [{"name": name, "arguments": given} for name, given in wanted], **more}
