"""Notes: what a model finds in passages for a question, each with the passages that it comes from."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from holdfast.core.pace import Pace
from holdfast.knowledge.research.budget import Division, most_prompt_tokens
from holdfast.knowledge.research.calls import ResearchCalls
from holdfast.knowledge.research.citations import CitedStatement, ParsedAnswer, parse_answer
from holdfast.knowledge.research.corpus import Corpus
from holdfast.knowledge.research.passages import BatchLimit, Passage, batches, by_number, in_text_order
from holdfast.knowledge.research.prompts import reading_request
from holdfast.llm.tokens import TokenCounter

LOADED = 100  # chunks that are loaded at once

Item = TypeVar("Item")


@dataclass(slots=True)
class TakenNotes:
    """What was read: the notes, how many passages they come from, and how many were not read."""

    notes: list[CitedStatement] = field(default_factory=list[CitedStatement])
    passages: list[UUID] = field(default_factory=list[UUID])
    unread: int = 0
    refused: int = 0
    uncited: int = 0

    def add(self, other: "TakenNotes") -> None:
        """Add what a later round has read."""
        self.notes += other.notes
        self.passages += other.passages
        self.unread += other.unread
        self.refused += other.refused
        self.uncited += other.uncited


class PassageNumbers:
    """The numbers of all chunks that a research has found, in the order in which it found them."""

    def __init__(self) -> None:
        self._numbers: dict[UUID, int] = {}

    def __contains__(self, chunk: UUID) -> bool:
        return chunk in self._numbers

    def add(self, chunks: Sequence[UUID]) -> list[UUID]:
        """Give numbers to chunks. Return those that had none."""
        fresh = [chunk for chunk in dict.fromkeys(chunks) if chunk not in self._numbers]
        for chunk in fresh:
            self._numbers[chunk] = len(self._numbers) + 1
        return fresh

    def of(self, chunks: Sequence[UUID]) -> dict[UUID, int]:
        """Return the numbers of chunks."""
        return {chunk: self._numbers[chunk] for chunk in chunks}


class NoteTaker:
    """Reads passages with a model."""

    def __init__(
        self,
        question: str,
        corpus: Corpus,
        calls: ResearchCalls,
        *,
        numbers: PassageNumbers,
        division: Division,
        counter: TokenCounter,
        parallel: int,
    ) -> None:
        self._question = question
        self._corpus = corpus
        self._calls = calls
        self._numbers = numbers
        self._division = division
        self._counter = counter
        self._parallel = parallel
        empty = reading_request(question, [], max_tokens=division.output)
        fixed = most_prompt_tokens(empty, counter) + division.output
        self._limit = BatchLimit(division.prompt, max(1, division.request - fixed))

    async def read(self, round: int, chunks: Sequence[UUID]) -> TakenNotes:
        """Read chunks in batches, several at a time, until the budget is spent."""
        name = f"read:{round}"
        # Which batches the budget allowed is stored: a resumed run that could read more would write another report.
        stored: list[int] | None = await self._calls.stored(name)
        answers: dict[int, tuple[Sequence[Passage], ParsedAnswer | None]] = {}

        async def work(item: tuple[int, list[Passage]]) -> bool:
            place, batch = item
            request = reading_request(self._question, batch, max_tokens=self._division.output)
            answer = await self._calls.ask(f"{name}:{place}", request, self._division.combining)
            if answer is None:
                return stored is not None
            parsed = parse_answer(answer.text, by_number(batch), is_cut=answer.is_cut)
            answers[place] = batch, None if answer.is_refused else parsed
            read = sum(len(passages) for passages, _ in answers.values())
            await self._calls.tell(
                f"{name}:{place}", "read", round=round, passages=read, of=len(chunks), notes=len(parsed.statements)
            )
            return True

        async with aclosing(self._batches(chunks, stored)) as found:
            await in_parallel(found, work, most=self._parallel)

        async def places() -> list[int]:
            return sorted(answers)

        await self._calls.once(name, places)
        taken = TakenNotes()
        for _, (batch, parsed) in sorted(answers.items()):
            if parsed is None:
                taken.refused += len(batch)
            else:
                taken.notes += parsed.statements
                taken.uncited += len(parsed.uncited)
                taken.passages += [passage.chunk for passage in batch]
        taken.unread = len(chunks) - len(taken.passages) - taken.refused
        return taken

    async def _batches(
        self, chunks: Sequence[UUID], stored: Sequence[int] | None
    ) -> AsyncGenerator[tuple[int, list[Passage]]]:
        """Yield batches with their places, the best chunks first; those loaded together are in the text's order."""
        place, carried, pace = 0, list[Passage](), Pace()
        for start in range(0, len(chunks), LOADED):
            loaded = await self._corpus.passages(self._numbers.of(chunks[start : start + LOADED]))
            found = list(batches([*carried, *in_text_order(loaded)], self._counter, self._limit))
            is_last = start + LOADED >= len(chunks)
            carried = [] if is_last or not found else found.pop()
            for batch in found:
                if stored is None or place in stored:
                    yield place, batch
                place += 1
            await pace.rest()


async def each(items: Iterable[Item]) -> AsyncGenerator[Item]:
    """Yield items, for `in_parallel`."""
    for item in items:
        yield item


async def in_parallel(items: AsyncIterator[Item], work: Callable[[Item], Awaitable[bool]], *, most: int) -> None:
    """Do the work for items, at most so many at a time, until it returns False for one."""
    pending: set[asyncio.Future[bool]] = set()
    goes_on = True
    try:
        async for item in items:
            while goes_on and len(pending) >= most:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                results = [task.result() for task in done]
                goes_on = all(results)
            if not goes_on:
                break
            pending.add(asyncio.ensure_future(work(item)))
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)
