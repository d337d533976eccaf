"""Passages: the chunks that a research reads, with the numbers under which prompts show them and notes cite them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from holdfast.knowledge.research.budget import most_tokens
from holdfast.llm.tokens import TokenCounter

LONGEST_LABEL = 200

# All tags with which prompts of research quote text. Text from documents cannot contain them.
_OUR_TAG = re.compile(r"<(?=\s*/?\s*(?:question|documents|candidates|passage|notes|statements)\b)", re.IGNORECASE)

_PLAIN = str.maketrans({"<": "\u2039", ">": "\u203a", '"': "'"})  # in attributes of tags


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with its number. `text` is `document_text[start:end]`."""

    number: int
    chunk: UUID
    document: UUID
    name: str
    title: str | None
    version: int
    index: int
    section: tuple[str, ...]
    page: int | None
    last_page: int | None
    start: int
    end: int
    text: str

    @property
    def label(self) -> str:
        """Where the passage stands, on one line: document, section and page."""
        pages = "" if self.page is None else f"page {self.page}"
        if self.page is not None and self.last_page not in (None, self.page):
            pages = f"pages {self.page}-{self.last_page}"
        label = " · ".join(filter(None, [self.title or self.name, " / ".join(self.section), pages]))
        return one_line(label)[:LONGEST_LABEL]


def neutral(text: str) -> str:
    """Replace the `<` of our tags in a text by a character that looks similar, so that they are no tags."""
    return _OUR_TAG.sub("\u2039", text) if "<" in text else text


def quoted(tag: str, text: str, **attributes: object) -> str:
    """Put a text between tags that say what it is. Whatever it contains, it does not end there."""
    named = "".join(f' {name}="{one_line(str(value)).translate(_PLAIN)}"' for name, value in attributes.items())
    return f"<{tag}{named}>\n{neutral(text)}\n</{tag}>"


def one_line(text: str) -> str:
    """Return a text without line ends."""
    return " ".join(text.split())


def render_passage(passage: Passage) -> str:
    """Return a passage as a prompt shows it."""
    return quoted("passage", passage.text, number=passage.number, source=passage.label)


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """How large the text of one prompt may be: in tokens as they are counted, and as they are reserved."""

    tokens: int
    reserved: int


def batches(passages: Iterable[Passage], counter: TokenCounter, limit: BatchLimit) -> Iterator[list[Passage]]:
    """Yield passages in order, in batches that fit into one prompt each. A larger passage is a batch of its own."""
    batch: list[Passage] = []
    tokens = reserved = 0
    for passage in passages:
        shown = render_passage(passage)
        more, most = counter.count(shown), most_tokens(shown, counter)
        if batch and (tokens + more > limit.tokens or reserved + most > limit.reserved):
            yield batch
            batch, tokens, reserved = [], 0, 0
        batch.append(passage)
        tokens += more
        reserved += most
    if batch:
        yield batch


def in_text_order(passages: Sequence[Passage]) -> list[Passage]:
    """Sort passages by document and place."""
    return sorted(passages, key=lambda passage: (passage.document, passage.index))


def by_number(passages: Iterable[Passage]) -> Mapping[int, Passage]:
    """Return passages by their numbers."""
    return {passage.number: passage for passage in passages}
