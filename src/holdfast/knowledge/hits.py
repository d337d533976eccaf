"""What a search of documents returns."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from holdfast.memory.chunks import citation
from holdfast.memory.owners import Owner
from holdfast.memory.recall import ScoreParts


@dataclass(frozen=True, slots=True)
class PassageHit:
    """A chunk of a document, and how well it matches the query.

    `text` is `document_text[start:end]`: the passages of the chunk that match best. Read the document to get the whole
    chunk, and what is around it. `parts` add up to `score`; they are there if they were asked for.
    """

    id: UUID
    document: UUID
    name: str
    title: str | None
    collection: str
    source: str | None
    owner: Owner
    metadata: dict[str, Any]
    chunk: int
    section: tuple[str, ...]
    page: int | None
    last_page: int | None
    start: int
    end: int
    text: str
    score: float
    parts: ScoreParts | None = None

    @property
    def citation(self) -> str:
        """Where the text is, for people: `handbook.pdf, p. 12, characters 1042-2210`."""
        return citation(self.name, self.page, self.last_page, self.start, self.end)


class PassageHits(list[PassageHit]):
    """Hits, best first. `reduced` says why the search was degraded, without vectors; empty if it was not."""

    reduced: str = ""
