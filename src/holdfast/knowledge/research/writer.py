"""The writer of reports: combines notes until they fit into a prompt, and has a model write the report from them."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from holdfast.knowledge.research import prompts
from holdfast.knowledge.research.budget import Division, Leave, most_prompt_tokens, most_tokens
from holdfast.knowledge.research.calls import ResearchCalls
from holdfast.knowledge.research.citations import (
    CitedStatement,
    ParsedAnswer,
    UncitedStatement,
    parse_answer,
    with_quotes,
)
from holdfast.knowledge.research.corpus import Corpus, CorpusSize
from holdfast.knowledge.research.extract import PromptRoom, first_fitting, shorten_notes
from holdfast.knowledge.research.notes import TakenNotes, each, in_parallel
from holdfast.knowledge.research.passages import Passage
from holdfast.knowledge.research.report import ResearchReport
from holdfast.llm.tokens import TokenCounter

LEVELS = 6  # of combining notes
SHORTER = 0.7  # of a group's notes, at most: combined notes that are longer are shortened by rules
MOST_STATEMENTS = 60  # of a report that no model has written
MOST_MISSING = 20
EXTRACT = "extract"


class ReportWriter:
    """Writes the report of one research."""

    def __init__(
        self,
        question: str,
        corpus: Corpus,
        calls: ResearchCalls,
        *,
        division: Division,
        counter: TokenCounter,
        parallel: int,
    ) -> None:
        self._question = question
        self._corpus = corpus
        self._calls = calls
        self._division = division
        self._counter = counter
        empty = prompts.report_request(question, [], max_tokens=division.output)
        self._parallel = parallel
        self._sizes: dict[str, tuple[int, int]] = {}
        self._room = max(1, division.request - division.output - most_prompt_tokens(empty, counter))

    async def extract(
        self, statements: Sequence[CitedStatement], read: Sequence[Passage], size: CorpusSize
    ) -> ResearchReport:
        """Return a report of sentences that were taken from passages without a model."""
        missing = () if statements else ("No passage that was found has sentences about the question.",)
        report = ResearchReport(
            self._question, tuple(statements), missing=missing, passages=len(read), all_passages=size.chunks, by=EXTRACT
        )
        return await self._verified(report)

    async def write(self, taken: TakenNotes, size: CorpusSize, *, whole: bool) -> ResearchReport:
        """Write the report from notes. Without budget for it, the report consists of the notes.

        `whole`: all passages were to be read.
        """
        unread = _unread(taken, size, whole=whole)
        missing = list(unread)
        notes = await self._combine(taken.notes)
        fitting = self.fitting(notes)
        if len(fitting) < len(notes):
            missing.append(f"The budget was spent: {len(notes) - len(fitting)} notes are left out of the report.")
        parsed, by = await self._ask(fitting) if fitting else (ParsedAnswer(), "")
        if parsed is None:
            kept = shorten_notes(self._question, notes, most=MOST_STATEMENTS)
            missing = [
                *unread,
                "The budget was spent before a model could write the report: these are its notes.",
            ]
            if len(kept) < len(notes):
                missing.append(f"{len(notes) - len(kept)} notes are left out.")
            parsed = ParsedAnswer(tuple(kept))
        report = ResearchReport(
            self._question,
            parsed.statements,
            complete=not missing,
            missing=(*parsed.missing[:MOST_MISSING], *missing),
            dropped=len(parsed.uncited),
            dropped_notes=taken.uncited,
            passages=len(taken.passages),
            all_passages=size.chunks,
            by=by,
        )
        return await self._verified(report)

    def fitting(self, notes: Sequence[CitedStatement]) -> list[CitedStatement]:
        """Return notes that fit into one prompt: all, or those that share the most with the question."""
        room = PromptRoom(self._division.prompt, self._room)
        return list(notes) if self._fits(notes) else first_fitting(self._question, notes, self._size, room)

    # Combine

    async def _combine(self, notes: Sequence[CitedStatement]) -> list[CitedStatement]:
        """Have a model shorten notes, in groups and in several levels, until they fit into one prompt."""
        kept = list(notes)
        for level in range(LEVELS):
            if self._fits(kept):
                break
            groups = self._groups(kept)
            combined = await self._combine_groups(level, groups)
            kept = [note for place, group in enumerate(groups) for note in combined.get(place, group)]
            await self._calls.tell(f"combine:{level}", "combined", notes=len(kept), level=level)
            if len(combined) < len(groups):  # the budget is spent
                break
        return kept

    async def _combine_groups(
        self, level: int, groups: Sequence[list[CitedStatement]]
    ) -> dict[int, list[CitedStatement]]:
        """Combine each group, several at a time, until the budget is spent."""
        name = f"combine:{level}"
        stored: list[int] | None = await self._calls.stored(name)
        combined: dict[int, list[CitedStatement]] = {}

        async def work(place: int) -> bool:
            found = await self._combine_group(f"{name}:{place}", groups[place])
            if found is not None:
                combined[place] = found
            return found is not None

        await in_parallel(each(range(len(groups)) if stored is None else stored), work, most=self._parallel)

        async def places() -> list[int]:
            return sorted(combined)

        await self._calls.once(name, places)
        return combined

    async def _combine_group(self, step: str, group: list[CitedStatement]) -> list[CitedStatement] | None:
        """Return fewer notes that say the same, with the same citations. None if the budget is spent."""
        output = self._division.output
        request = prompts.combination_request(self._question, group, words=max(60, output // 2), max_tokens=output)
        answer = await self._calls.ask(step, request, self._division.ending)
        if answer is None:
            return None
        parsed = parse_answer(answer.text, await self._passages(group), is_cut=answer.is_cut)
        kept = with_quotes(parsed.statements, group) or group
        most = int(SHORTER * sum(self._size(note)[0] for note in group))
        if sum(self._size(note)[0] for note in kept) <= most:
            return kept
        return first_fitting(self._question, kept, self._size, PromptRoom(most, self._room))

    def _groups(self, notes: Sequence[CitedStatement]) -> list[list[CitedStatement]]:
        groups: list[list[CitedStatement]] = [[]]
        tokens = reserved = 0
        for note in notes:
            more, most = self._size(note)
            if groups[-1] and (tokens + more > self._division.prompt or reserved + most > self._room):
                groups.append([])
                tokens = reserved = 0
            groups[-1].append(note)
            tokens += more
            reserved += most
        return groups

    # Report

    async def _ask(self, notes: Sequence[CitedStatement]) -> tuple[ParsedAnswer | None, str]:
        """Have a model write the report, and once more those of its statements that cannot be used."""
        output, passages = self._division.output, await self._passages(notes)
        request = prompts.report_request(self._question, notes, max_tokens=output)
        answer = await self._calls.ask("report", request, Leave())
        if answer is None or answer.is_refused:
            return None, ""
        parsed = parse_answer(answer.text, passages, is_cut=answer.is_cut)
        stated = with_quotes(parsed.statements, notes)
        await self._calls.tell("report", "report", statements=len(parsed.statements), uncited=len(parsed.uncited))
        if parsed.uncited:
            again = await self._repair(notes, parsed.uncited, passages)
            stated += with_quotes(again, notes)
            left = max(0, len(parsed.uncited) - len(again))
            return ParsedAnswer(tuple(stated), parsed.uncited[:left], parsed.missing), self._calls.model
        return ParsedAnswer(tuple(stated), (), parsed.missing), self._calls.model

    async def _repair(
        self, notes: Sequence[CitedStatement], uncited: Sequence[UncitedStatement], passages: Mapping[int, Passage]
    ) -> Sequence[CitedStatement]:
        """Ask once more for statements that cannot be used. Return those that can be used now."""
        request = prompts.repair_request(self._question, notes, uncited, max_tokens=self._division.output)
        repaired = await self._calls.ask("repair", request, Leave())
        if repaired is None:
            return ()
        return parse_answer(repaired.text, passages, is_cut=repaired.is_cut).statements

    async def _passages(self, notes: Sequence[CitedStatement]) -> dict[int, Passage]:
        numbers = {UUID(each.chunk): each.number for note in notes for each in note.citations}
        return {passage.number: passage for passage in await self._corpus.passages(numbers)}

    async def _verified(self, report: ResearchReport) -> ResearchReport:
        """Drop what cites chunks that are gone: a document may have changed or been removed meanwhile."""
        cited = [UUID(each.chunk) for each in report.sources]
        there = {str(chunk) for chunk in await self._corpus.existing(cited)}
        kept: list[CitedStatement] = []
        for statement in report.statements:
            citations = tuple(each for each in statement.citations if each.chunk in there)
            if citations:
                kept.append(CitedStatement(statement.text, citations, statement.heading))
        gone = len(report.statements) - len(kept)
        if not gone and len(there) == len(set(cited)):
            return report
        missing = (
            (*report.missing, f"{gone} statements came from documents that have changed meanwhile.")
            if gone
            else report.missing
        )
        return msgspec.structs.replace(
            report, statements=tuple(kept), dropped=report.dropped + gone, complete=report.complete and not gone,
            missing=missing,
        )  # fmt: skip

    def _fits(self, notes: Sequence[CitedStatement]) -> bool:
        sizes = [self._size(note) for note in notes]
        return sum(most for _, most in sizes) <= self._room and sum(size for size, _ in sizes) <= self._division.prompt

    def _size(self, note: CitedStatement) -> tuple[int, int]:
        """Return the tokens of a note in a prompt: as they are counted, and as they are reserved."""
        shown = prompts.render_note(note) + "\n"
        found = self._sizes.get(shown)
        if found is None:
            found = self._sizes[shown] = (self._counter.count(shown), most_tokens(shown, self._counter))
        return found


def _unread(taken: TakenNotes, size: CorpusSize, *, whole: bool) -> list[str]:
    missing: list[str] = []
    if whole and len(taken.passages) < size.chunks:
        missing.append(
            f"The budget allows to read {len(taken.passages):,} of {size.chunks:,} passages: those that a search "
            "finds, and some of all parts."
        )
    if taken.unread:
        missing.append(f"The budget was spent: {taken.unread} passages that were chosen are not read.")
    if taken.refused:
        missing.append(f"The model refused to read {taken.refused} passages.")
    return missing
