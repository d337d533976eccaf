"""The report of a research: statements with citations, and what is missing."""

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.knowledge.research.citations import Citation, CitedStatement


class ResearchReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The report of a research. Every statement has a citation that resolves to a document, a page and characters.

    `complete`: the budget sufficed for all that was to be read. `missing`: what the documents or the budget left open.
    `dropped`: statements of the report that cited no passage, or quoted what is not there; `dropped_notes` those of
    notes. `passages`: how many of
    `all_passages` were read. `by`: the model, or `extract`
    if sentences were taken from the documents without a model.
    """

    question: str
    statements: tuple[CitedStatement, ...]
    complete: bool = True
    missing: tuple[str, ...] = ()
    dropped: int = 0
    dropped_notes: int = 0
    passages: int = 0
    all_passages: int = 0
    by: str = ""
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    @property
    def share(self) -> float:
        """The share of the passages that were read, from 0 to 1."""
        return self.passages / self.all_passages if self.all_passages else 0.0

    @property
    def sources(self) -> tuple[Citation, ...]:
        """The citations of all statements, each once, in their order."""
        found = {_place(each): each for statement in self.statements for each in statement.citations}
        return tuple(found.values())

    @property
    def text(self) -> str:
        """The report as Markdown, with its sources."""
        return "\n".join(_lines(self))


def _lines(report: ResearchReport) -> Iterator[str]:
    numbers = {_place(each): number for number, each in enumerate(report.sources, start=1)}
    heading: str | None = None
    if not report.statements:
        yield "The passages that were read do not answer the question."
    for statement in report.statements:
        if statement.heading is not None and statement.heading != heading:
            yield from ("", f"## {statement.heading}", "")
        heading = statement.heading
        cited = dict.fromkeys(numbers[_place(each)] for each in statement.citations)
        yield f"- {statement.text} {''.join(f'[{number}]' for number in cited)}"
    if report.missing:
        yield from ("", "## Missing", "", *(f"- {each}" for each in report.missing))
    if report.sources:
        yield from ("", "## Sources", "", *_sources(report.sources))


def _sources(sources: Sequence[Citation]) -> Iterator[str]:
    for number, source in enumerate(sources, start=1):
        yield f"{number}. {source_line(source)}"


def source_line(source: Citation) -> str:
    """Return a citation on one line: document, section, page, characters and what is quoted."""
    parts = [source.title or source.name]
    if source.section:
        parts.append(" / ".join(source.section))
    if source.page is not None:
        last = source.last_page
        parts.append(f"page {source.page}" if last in (None, source.page) else f"pages {source.page}-{last}")
    parts.append(f"characters {source.start}-{source.end}")
    quote = "" if source.quote is None else f": “{' '.join(source.quote.split())}”"
    return ", ".join(parts) + quote


def _place(citation: Citation) -> tuple[str, int, int]:
    return citation.chunk, citation.start, citation.end
