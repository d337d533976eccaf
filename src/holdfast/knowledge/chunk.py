"""A chunk: the part of a document that is stored, searched and cited."""

import msgspec


class Heading(msgspec.Struct, frozen=True, array_like=True):
    """A heading of a document, which begins at the character `start` of its text."""

    level: int
    text: str
    start: int
    page: int | None = None


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """A part of a document's text: `text == document_text[start:end]`.

    The text of a document is the texts of its units, joined by a blank line. `section` is the path of headings above
    the chunk. `passages` are the character ranges within `text` that get a vector each: one for a short chunk, else
    its halves. `tokens` are counted by the tokenizer of the embedding model. `headings` begin in it: each heading
    of a document is in one chunk. `pages` are those that it has text of, each with its first character.
    `after` are the blanks between its end and what follows.
    """

    index: int
    text: str
    start: int
    end: int
    section: tuple[str, ...] = ()
    first_page: int | None = None
    last_page: int | None = None
    tokens: int = 0
    passages: tuple[tuple[int, int], ...] = ()
    headings: tuple[Heading, ...] = ()
    pages: tuple[tuple[int, int], ...] = ()
    after: str = ""
