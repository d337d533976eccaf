"""Questions to clients with a session. The answer can arrive in any process."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol

from holdfast.bus.notifications import until
from holdfast.core.text import loads, render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.legacy.sessions import McpSession
from holdfast.gateway.mcp.legacy.signals import Signals
from holdfast.postgres.sql import statements

LOOK: Final = 1.0  # seconds between two polls for an answer
LONGEST_ID: Final = 100  # characters of a question id

sql = statements(__name__)


class Answers(Protocol):
    """Waits for the answers to some questions."""

    async def wait(self, seconds: float) -> Mapping[str, Any]:
        """Return the answers by question id: all, or those that arrived in time."""
        ...


class StoredAnswers(Answers):
    """Answers that any process has stored."""

    def __init__(self, gateway: Gateway, session: McpSession, ids: Sequence[str]) -> None:
        self._database = gateway.engine.database
        self._session = session
        self._ids = ids
        self._woken = asyncio.Event()
        self._answers: dict[str, Any] = {}

    def wake(self) -> None:
        """Check now: an answer may have arrived."""
        self._woken.set()

    async def wait(self, seconds: float) -> Mapping[str, Any]:
        """Return the answers by question id: all, or those that arrived in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self._answers) < len(self._ids):
                    rows = await self._database.all(sql("answers"), self._session.key, list(self._ids))
                    self._answers = {row["id"]: loads(row["answer"]) for row in rows}
                    if len(rows) < len(self._ids):
                        await until(self._woken, LOOK)
        return self._answers


class Questions:
    """Stores the questions in sessions of one tenant while somebody waits for the answers."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._database = gateway.engine.database
        self._signals = Signals.of(gateway)

    @asynccontextmanager
    async def ask(self, session: McpSession, ids: Sequence[str]) -> AsyncGenerator[Answers]:
        """Store questions before they are sent, and yield their answers; delete the questions at the end."""
        answers = StoredAnswers(self._gateway, session, ids)
        async with self._signals.subscribe(session.key, "answers", answers.wake):
            try:
                for id in ids:
                    await self._database.run(sql("ask"), session.key, id)
                yield answers
            finally:
                await self._database.run(sql("forget_questions"), session.key, list(ids))

    async def answer(self, session: McpSession, message: Mapping[str, Any]) -> None:
        """Store a client's answer; ignore it if nobody asked."""
        id = message.get("id")
        if not isinstance(id, str) or len(id) > LONGEST_ID or not id.isascii() or not id.isprintable():
            return
        if await self._database.run(sql("answer"), session.key, id, render(message).decode()):
            await self._signals.notify(session.key, "answers")
