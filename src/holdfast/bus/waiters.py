"""Waits for answers to commands: each caller has a future, and all share one listener and one query."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager

from holdfast.bus.completions import Completion, completion_of, completions_channel
from holdfast.bus.feed_options import Listen
from holdfast.bus.notifications import POLL, until
from holdfast.core.background import Background
from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.core.text import store
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

LINGER = 5.0  # seconds to keep listening when no caller waits: usually the next one comes soon

AnswerFuture = asyncio.Future[Completion]

sql = statements(__name__)
log = logging.getLogger(__name__)


class Waiters:
    """Gives each waiting caller its answer. Waiting takes neither a thread nor a connection."""

    def __init__(self, database: Database, listen: Listen, background: Background) -> None:
        self._database = database
        self._listen = listen
        self._background = background
        self._expected: dict[str, set[AnswerFuture]] = {}

    @contextmanager
    def expect(self, correlation_id: str) -> Generator[AnswerFuture]:
        """Return a future for the answer. An answer that comes after this call is not missed."""
        future: AnswerFuture = asyncio.get_running_loop().create_future()
        self._expected.setdefault(correlation_id, set()).add(future)
        self._background.start(("waiters", id(self)), self._watch)
        try:
            yield future
        finally:
            waiting = self._expected[correlation_id]
            waiting.discard(future)
            if not waiting:
                del self._expected[correlation_id]

    async def query_answers(self) -> None:
        """Query all answers that callers wait for."""
        for row in await self._database.all(sql("answers"), [store(id) for id in self._expected]):
            completion = completion_of(row)
            for future in self._expected.get(completion.correlation_id, ()):
                if not future.done():
                    future.set_result(completion)

    async def _watch(self) -> None:
        while True:
            try:
                await self._follow()
            except HoldfastError as error:
                log.warning("could not query completions; retrying: %s", error)
                await asyncio.sleep(POLL)
            except asyncio.CancelledError:
                self._fail_waiting()
                raise
            if not self._expected:  # no await follows, so no caller can arrive in between
                return

    def _fail_waiting(self) -> None:
        """Fail the futures of callers that still wait: the engine is closed."""
        for future in [future for waiting in self._expected.values() for future in waiting]:
            if not future.done():
                closed = Unavailable(
                    "the engine is closed",
                    next="The command is still queued or running; get its result with a new engine.",
                )
                future.set_exception(closed)

    async def _follow(self) -> None:
        """Query whenever an answer arrives, until no caller has waited for LINGER seconds."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        async with self._listen(completions_channel(await self._database.tenant())) as woken:
            while self._expected or loop.time() < last + LINGER:
                if self._expected:
                    last = loop.time()
                    await self.query_answers()
                await until(woken)
