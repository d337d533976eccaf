"""An investigation: the steps from a question to a report, for one research that this process holds.

Map (an overview, queries and a search), select, read in batches, follow up, combine, report. What could come out
differently a second time is stored by `ResearchCalls`: a resumed run goes the same way, and asks only for what is new.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from holdfast.knowledge.research import prompts, selection
from holdfast.knowledge.research.budget import FOLLOWED_FROM, PLANNED_FROM, SELECTED_FROM, Division
from holdfast.knowledge.research.calls import ResearchCalls, StoredAnswer
from holdfast.knowledge.research.corpus import Corpus, CorpusSize
from holdfast.knowledge.research.extract import extract_statements
from holdfast.knowledge.research.notes import NoteTaker, PassageNumbers, TakenNotes, each, in_parallel
from holdfast.knowledge.research.passages import Passage
from holdfast.knowledge.research.queries import MOST_QUERIES, fuse, parse_queries, split_question
from holdfast.knowledge.research.report import ResearchReport
from holdfast.knowledge.research.run import ResearchRun
from holdfast.knowledge.research.writer import ReportWriter
from holdfast.llm.model import ModelRequest

ROUNDS = 3  # of reading: the first one, and two that follow up
EXTRACTED = 60  # chunks from which sentences are taken without a model
SHORTEST_OVERVIEW = 200  # characters


class Investigation:
    """Answers the question of one research."""

    def __init__(
        self, run: ResearchRun, corpus: Corpus, calls: ResearchCalls, *, division: Division, parallel: int
    ) -> None:
        self._run = run
        self._corpus = corpus
        self._calls = calls
        self._division = division
        self._parallel = parallel
        self._numbers = PassageNumbers()
        self._readable = division.readable(run.budget)

    async def report(self) -> ResearchReport:
        """Carry out the investigation."""
        run, division = self._run, self._division
        size = msgspec.convert(await self._calls.once("corpus", self._corpus.size), CorpusSize)
        await self._calls.tell("corpus", "corpus", documents=size.documents, passages=size.chunks)
        writer = ReportWriter(
            run.question,
            self._corpus,
            self._calls,
            division=division,
            counter=await self._calls.counter(),
            parallel=self._parallel,
        )
        if self._calls.is_offline or not run.budget.calls:
            queries = split_question(run.question)
            found = await self._find(0, [run.question, *queries], size)
            passages = await self._load(found[:EXTRACTED])
            return await writer.extract(extract_statements(run.question, queries, passages), passages, size)
        chosen = await self._choose_all(size) if run.target.whole else None
        is_whole = chosen is not None
        if chosen is None:
            chosen = await self._choose(size)
        reader = NoteTaker(
            run.question,
            self._corpus,
            self._calls,
            numbers=self._numbers,
            division=division,
            counter=await self._calls.counter(),
            parallel=self._parallel,
        )
        taken = await reader.read(0, chosen)
        if not is_whole:
            await self._follow_up(reader, writer, taken, size)
        return await writer.write(taken, size, whole=run.target.whole)

    # Map and select

    async def _choose_all(self, size: CorpusSize) -> list[UUID] | None:
        """Return all chunks in the order of the text, if the budget suffices to read them."""

        async def find() -> list[str] | None:
            if not selection.may_fit_whole(size, self._readable):
                return None
            sizes = await self._corpus.all_chunks()
            return [str(each.chunk) for each in sizes] if selection.fits_whole(sizes, self._readable) else None

        found: list[str] | None = await self._calls.once("whole", find)
        if found is None:
            return None
        chunks = self._numbers.add(list(map(UUID, found)))
        await self._calls.tell("chosen", "chosen", passages=len(chunks), of=size.chunks)
        return chunks

    async def _choose(self, size: CorpusSize) -> list[UUID]:
        """Return chunks that a search finds and the model chooses, best first."""
        queries = await self._plan(size)
        await self._calls.tell("queries:0", "queries", queries=queries)
        found = await self._find(0, [self._run.question, *queries], size)
        await self._calls.tell("found:0", "found", passages=len(found))
        chosen = await self._select(await self._load(found))
        await self._calls.tell("chosen", "chosen", passages=len(chosen), of=size.chunks)
        return chosen

    async def _plan(self, size: CorpusSize) -> list[str]:
        """Return queries besides the question: by the model, if the budget allows it, else by rules."""
        question, division = self._run.question, self._division
        if self._run.budget.calls >= PLANNED_FROM:
            # A sixth of the budget is what a request may use: the overview takes a half of that at most.
            overview = size.overview[: max(SHORTEST_OVERVIEW, min(4 * division.prompt, division.request // 2))]
            request = prompts.plan_request(question, overview, most=MOST_QUERIES, max_tokens=division.output)
            answer = await self._ask("plan", request)
            if answer is not None and (queries := parse_queries(answer.text)):
                return queries
        return split_question(question)

    async def _find(self, round: int, queries: Sequence[str], size: CorpusSize) -> list[UUID]:
        """Return the chunks that queries find and that are not known yet, best first."""

        async def find() -> list[str]:
            limit = selection.found_by_query(self._readable, len(queries))
            rankings = [[str(chunk) for chunk in await self._corpus.find(query, limit)] for query in queries]
            found = fuse(rankings, most=selection.most_candidates(self._readable))
            if self._run.target.whole and not round:
                # Besides what the search finds, a look at all parts of the text.
                most = selection.most_spread(self._readable)
                found += map(str, await self._corpus.spread(-(-size.chunks // most), most))
            return found

        return self._numbers.add(list(map(UUID, await self._calls.once(f"found:{round}", find))))

    async def _select(self, passages: Sequence[Passage]) -> list[UUID]:
        """Return the candidates that are worth reading, best first, as many as can be read."""
        counter = await self._calls.counter()
        sizes = {passage.chunk: counter.count(passage.text) for passage in passages}
        chosen = passages
        if self._run.budget.calls >= SELECTED_FROM and sum(sizes.values()) > self._division.prompt:
            pages = selection.pages(passages, self._run.budget, self._division)
            answers: dict[int, str | None] = {}

            async def rank(place: int) -> bool:
                request = prompts.selection_request(self._run.question, pages[place], max_tokens=self._division.output)
                answer = await self._ask(f"select:{place}", request)
                answers[place] = None if answer is None or answer.is_refused else answer.text
                return True

            await in_parallel(each(range(len(pages))), rank, most=self._parallel)
            rest = passages[sum(map(len, pages)) :]
            chosen = selection.choose([answers[place] for place in range(len(pages))], pages, rest)

        async def decide() -> list[str]:
            most = max(self._division.prompt, int(selection.FIRST_ROUND * self._readable))
            return [str(passage.chunk) for passage in selection.within(chosen, most, sizes)]

        return list(map(UUID, await self._calls.once("chosen", decide)))

    # Follow up

    async def _follow_up(self, reader: NoteTaker, writer: ReportWriter, taken: TakenNotes, size: CorpusSize) -> None:
        """Search for what the notes do not say, and read that, too, as long as the budget allows it."""
        if self._run.budget.calls < FOLLOWED_FROM:
            return
        for round in range(1, ROUNDS):
            notes = writer.fitting(taken.notes)
            request = prompts.gaps_request(
                self._run.question, notes, most=MOST_QUERIES, max_tokens=self._division.output
            )
            answer = await self._ask(f"gaps:{round}", request)
            queries = [] if answer is None else parse_queries(answer.text)
            if not queries:
                return
            await self._calls.tell(f"queries:{round}", "queries", queries=queries)
            found = await self._find(round, queries, size)
            passages = await self._load(found[: selection.most_followed(self._readable)])
            if not passages:
                return
            taken.add(await reader.read(round, [passage.chunk for passage in passages]))

    async def _load(self, chunks: Sequence[UUID]) -> list[Passage]:
        return await self._corpus.passages(self._numbers.of(chunks))

    async def _ask(self, step: str, request: ModelRequest) -> StoredAnswer | None:
        """Ask the model, unless that would leave too little for the report."""
        return await self._calls.ask(step, request, self._division.combining)
