"""Splits the units of a document into chunks, at the boundaries that its structure has.

A chunk consists of whole pieces: headings, sentences of paragraphs, lines of lists, tables and code. Each piece is
tokenized once. A chunk is filled up to its size, then cut at the strongest boundary that leaves it well filled. The
next chunk begins with the last sentences of the previous one, unless it begins with a heading.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise

import msgspec

from holdfast.knowledge.chunk import Chunk, Heading
from holdfast.knowledge.parsing.units import Block, Unit
from holdfast.knowledge.tokenizer import Tokenizer

JOINT = "\n\n"  # between the texts of two units

# Boundaries before a piece, from weak to strong.
INSIDE, PIECE, BLOCK, HEADING = range(4)

CUT_AFTER = 0.7  # share of the size after which a chunk ends at a block rather than at a sentence
SENTENCE_AFTER = 0.35  # share of the size after which it ends at a sentence rather than within one
SECTION_AFTER = 0.5  # share of the size after which a heading begins a new chunk
LONGEST_PIECE = 1 / 8  # of the size: longer sentences and lines are cut at clauses, words or characters
WHOLE = 0.4  # share of the size up to which a chunk has one passage
CHARACTERS_PER_TOKEN = 10  # at most, without blanks: a model takes a word of 1,000 letters for one unknown token
MOST_BLANKS = 2000  # characters between two chunks that are kept
LONGEST_TITLE = 100  # characters of a title that are embedded
HARD_WRAPPED = 120  # characters of the longest line, up to which line ends in a paragraph are taken for wrapping

_MARKS = "\u3002\uff01\uff1f\uff1b"  # the full stop and other marks that end Chinese sentences
_CLOSING = "\"')\\]\u201d\u2019\u300d\u300f\uff09\u300b"
_NO_END = "".join(
    rf"(?<!\b{each}\.)"
    for each in (r"\w", r"e\.g", r"i\.e", "Mr", "Ms", "Dr", "St", "vs", "No", "Mrs", "Inc", "Ltd", "Fig")
)
# It begins with a set of characters: this makes the search six times as fast.
_SENTENCE = re.compile(
    rf"[.!?{_MARKS}](?:(?<=[{_MARKS}])[{_MARKS}]*[{_CLOSING}]*\s*|(?<=[.!?]){_NO_END}[{_CLOSING}]*\s+)"
)
_LINE = re.compile(r"\s*\n\s*")
_CLAUSE = re.compile(r"[,;:\uff0c\u3001\uff1a\uff1b][\"'\u201d\u2019)]*\s*|\s*\n\s*|\s+[-\u2013\u2014]+\s+")
_BLANKS = re.compile(r"\s+")


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """The smallest part of a text that is not cut: a sentence, a line, a heading. Ranges are of the document."""

    start: int
    end: int
    tokens: int
    boundary: int  # before it
    section: tuple[str, ...]
    level: int  # of a heading, else 0
    page: int | None


class _ChunkerState(msgspec.Struct, array_like=True):
    """All that a chunker knows between two units."""

    size: int
    overlap: int
    title: str | None
    index: int  # of the next chunk
    length: int  # of the document's text so far
    fresh: int  # the number of pending pieces that the previous chunk has too
    text: str  # of the pending pieces, to the end of the document so far
    pieces: list[Piece]
    headings: list[tuple[int, str]]  # those that the end of the text is under


class Chunker:
    """Splits a document's units into chunks of at most `size` tokens; a chunk shares `overlap` with the previous one.

    Together, chunks cover the text but for blanks at its edges. `state` and `restore` continue exactly where it was.
    """

    def __init__(self, tokenizer: Tokenizer, *, size: int, overlap: int, title: str | None = None) -> None:
        self._tokenizer = tokenizer
        self._longest = max(1, int(size * LONGEST_PIECE))
        self._state = _ChunkerState(size, overlap, title, 0, -len(JOINT), 0, "", [], [])

    @property
    def title(self) -> str | None:
        """The title of the document: as given, else as its first unit says."""
        return self._state.title

    def state(self) -> bytes:
        """Return what `restore` needs."""
        return msgspec.msgpack.encode(self._state)

    @classmethod
    def restore(cls, tokenizer: Tokenizer, state: bytes) -> "Chunker":
        """Return a chunker that continues after the units that were fed before `state`."""
        found = msgspec.msgpack.decode(state, type=_ChunkerState)
        chunker = cls(tokenizer, size=found.size, overlap=found.overlap)
        chunker._state = found
        return chunker

    def feed(self, unit: Unit) -> list[Chunk]:
        """Take the next unit, and return the chunks that are complete."""
        state = self._state
        state.title = state.title or unit.title
        state.text += unit.text if state.length < 0 else JOINT + unit.text
        offset = state.length + len(JOINT)
        state.length = offset + len(unit.text)
        state.pieces += self._pieces(unit, offset)
        return self._complete(last=False)

    def finish(self) -> list[Chunk]:
        """Return the chunks that are left after the last unit."""
        return self._complete(last=True)

    def _complete(self, *, last: bool) -> list[Chunk]:
        state = self._state
        base = state.length - len(state.text)
        chunks: list[Chunk] = []
        begin = 0  # the first piece of the next chunk
        while (cut := self._cut(begin, last=last)) is not None:
            following = state.pieces[cut].start if cut < len(state.pieces) else state.length
            chunks.append(self._chunk(state.pieces[begin:cut], base, following))
            begin = self._overlapping(begin, cut)
            state.fresh = cut
        del state.pieces[:begin]
        state.fresh -= begin
        first = state.pieces[0].start if state.pieces else state.length
        state.text = state.text[first - base :]
        return chunks

    def _cut(self, begin: int, *, last: bool) -> int | None:
        """Return the piece before which the chunk from `begin` ends, or None if it is not known yet."""
        pieces, size = self._state.pieces, self._state.size
        filled, best, rank = 0, None, -1
        for place in range(begin, len(pieces)):
            piece = pieces[place]
            if place > self._state.fresh and not pieces[place - 1].level:
                if piece.boundary == HEADING and filled >= size * SECTION_AFTER:
                    return place
                kind = min(piece.boundary, _strongest(filled / size))
                if kind >= rank:
                    best, rank = place, kind
            filled += piece.tokens
            if filled > size and place > self._state.fresh:
                return best if best is not None else place
        return len(pieces) if last and len(pieces) > self._state.fresh else None

    def _overlapping(self, begin: int, cut: int) -> int:
        """Return the first piece of the chunk that follows the one from `begin` to `cut`."""
        pieces, state = self._state.pieces, self._state
        if cut == len(pieces) or pieces[cut].boundary == HEADING:
            return cut
        most = min(state.overlap, state.size - pieces[cut].tokens)
        place, shared = cut, 0
        while place - 1 > begin and not pieces[place - 1].level and shared + pieces[place - 1].tokens <= most:
            place -= 1
            shared += pieces[place].tokens
        return place

    def _chunk(self, pieces: Sequence[Piece], base: int, following: int) -> Chunk:
        state = self._state
        start, end = pieces[0].start, pieces[-1].end
        text = state.text[start - base : end - base]
        pages: dict[int, int] = {}
        for piece in pieces:
            if piece.page is not None:
                pages.setdefault(piece.page, piece.start)
        headings = tuple(
            Heading(piece.level, piece.section[-1], piece.start, piece.page) for piece in pieces if piece.level
        )
        chunk = Chunk(
            index=state.index,
            text=text,
            start=start,
            end=end,
            section=_common([piece.section for piece in pieces if not piece.level] or [pieces[0].section]),
            first_page=min(pages, default=None),
            last_page=max(pages, default=None),
            tokens=sum(piece.tokens for piece in pieces),
            passages=_passages(pieces, whole=state.size * WHOLE),
            headings=headings,
            pages=tuple(pages.items()),
            after=state.text[end - base : min(following, end + MOST_BLANKS) - base],
        )
        state.index += 1
        return chunk

    def _pieces(self, unit: Unit, offset: int) -> list[Piece]:
        """Return the pieces of a unit, tokenized."""
        found: list[tuple[int, int, int, tuple[str, ...], int]] = []
        section = self._section()
        for block in _blocks(unit):
            if block.kind == "heading":
                section = self._enter(block.level or 1, unit.text[block.start : block.end])
                found.append((block.start, block.end, HEADING, section, block.level or 1))
                continue
            boundary = BLOCK
            for start, end in _parts(unit.text, block):
                found.append((start, end, boundary, (*section, *block.path), 0))
                boundary = PIECE
        counts = self._counts([unit.text[start:end] for start, end, *_ in found])
        pieces: list[Piece] = []
        for (start, end, boundary, section, level), tokens in zip(found, counts, strict=True):
            spans = [(start, end, tokens)] if tokens <= self._longest else self._split(unit.text, start, end)
            for number, (first, last, count) in enumerate(spans):
                strength, rank = (boundary, level) if number == 0 else (INSIDE, 0)
                pieces.append(Piece(offset + first, offset + last, count, strength, section, rank, unit.page))
        return pieces

    def _split(self, text: str, start: int, end: int) -> list[tuple[int, int, int]]:
        """Split a long sentence or line: at clauses, then at blanks, then anywhere. The time is linear."""
        spans: list[tuple[int, int]] = [(start, end)]
        tokens: list[int] = [self._longest + 1]
        for divide in (partial(_divided, text, ends=_CLAUSE), partial(_divided, text, ends=_BLANKS), self._slices):
            parts = (
                divide(*span) if count > self._longest else (span,) for span, count in zip(spans, tokens, strict=True)
            )
            spans = list(chain.from_iterable(parts))
            tokens = self._counts([text[first:last] for first, last in spans])
            if max(tokens) <= self._longest:
                break
        return _packed(spans, tokens, self._longest)

    def _counts(self, texts: list[str]) -> list[int]:
        counts = self._tokenizer.counts(texts)
        for place, (text, count) in enumerate(zip(texts, counts, strict=True)):
            if count * CHARACTERS_PER_TOKEN < len(text):
                counts[place] = max(count, -(-sum(map(len, text.split())) // CHARACTERS_PER_TOKEN))
        return counts

    def _slices(self, start: int, end: int) -> Iterable[tuple[int, int]]:
        return pairwise([*range(start, end, self._longest), end])

    def _section(self) -> tuple[str, ...]:
        return tuple(text for _, text in self._state.headings)

    def _enter(self, level: int, text: str) -> tuple[str, ...]:
        """Enter a section, and return its path."""
        headings = [(above, name) for above, name in self._state.headings if above < level]
        self._state.headings = [*headings, (level, heading_text(text))]
        return self._section()


def heading_text(text: str) -> str:
    """Return a heading without the marks of Markdown, on one line."""
    return " ".join(text.strip("# \t\r\n=-").split())[:300] or "\u2026"


def searchable_text(chunk: Chunk, title: str | None) -> str:
    """Return the text that a chunk's words are taken from: title, section path and text."""
    return "\n".join([*dict.fromkeys(each for each in (title, *chunk.section) if each), chunk.text])


def passage_texts(chunk: Chunk, title: str | None) -> list[str]:
    """Return the texts to embed, one for each passage: under the title, which says what "it" is.

    The section path is not in them: measured, it helps no set and costs room.
    """
    above = " ".join((title or "").split())[:LONGEST_TITLE]
    prefix = f"{above}\n" if above else ""
    return [prefix + chunk.text[start:end] for start, end in chunk.passages]


def _strongest(share: float) -> int:
    """Return the strongest kind of boundary that counts when this share of a chunk is filled."""
    return BLOCK if share >= CUT_AFTER else PIECE if share >= SENTENCE_AFTER else INSIDE


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the path of the section that contains all `paths`."""
    first, last = min(paths), max(paths)
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:length]


def _passages(pieces: Sequence[Piece], *, whole: float) -> tuple[tuple[int, int], ...]:
    """Return the halves of a chunk, cut at a boundary near the middle; one passage if it is short."""
    base, end = pieces[0].start, pieces[-1].end
    sums = list(accumulate(piece.tokens for piece in pieces))
    total = sums[-1]
    if total <= whole or len(pieces) == 1:
        return ((0, end - base),)

    def cost(place: int) -> float:
        bonus = {HEADING: 0.15, BLOCK: 0.1, PIECE: 0.03}.get(pieces[place].boundary, 0.0)
        return abs(sums[place - 1] / total - 0.5) - bonus + (1 if pieces[place - 1].level else 0)

    middle = min(range(1, len(pieces)), key=cost)
    return ((0, pieces[middle - 1].end - base), (pieces[middle].start - base, end - base))


def _blocks(unit: Unit) -> Iterator[Block]:
    """Yield the blocks of a unit, and what is between them as paragraphs."""
    place = 0
    for block in [*unit.blocks, Block("paragraph", len(unit.text), len(unit.text))]:
        start, end = max(block.start, place), min(block.end, len(unit.text))
        if between := _trimmed(unit.text, place, start):
            yield Block("paragraph", *between)
        if inside := _trimmed(unit.text, start, end):
            yield Block(block.kind, *inside, block.level, block.path)
        place = max(place, end)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    found = text[start:end]
    left = len(found) - len(found.lstrip())
    right = len(found.rstrip())
    return (start + left, start + right) if right > left else None


def _parts(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a paragraph, or the lines of another block."""
    is_prose = block.kind in ("paragraph", "caption")
    if not is_prose:
        return _divided(text, block.start, block.end, _LINE)
    lines = text[block.start : block.end].split("\n")
    if len(lines) == 1 or max(map(len, lines)) <= HARD_WRAPPED:
        return _divided(text, block.start, block.end, _SENTENCE)
    return chain.from_iterable(
        _divided(text, first, last, _SENTENCE) for first, last in _divided(text, block.start, block.end, _LINE)
    )


def _divided(text: str, start: int, end: int, ends: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range between matches of `ends`: marks belong to the part before, blanks to none."""
    place = start
    for match in ends.finditer(text, start, end):
        last = match.start() + len(match[0].rstrip())
        if last > place and text[place:last].strip():
            yield place, last
            place = match.end()
    if place < end:
        yield place, end


def _packed(spans: Sequence[tuple[int, int]], tokens: Sequence[int], most: int) -> list[tuple[int, int, int]]:
    """Join neighbouring spans up to `most` tokens."""
    packed: list[tuple[int, int, int]] = []
    for (start, end), count in zip(spans, tokens, strict=True):
        if packed and packed[-1][2] + count <= most:
            packed[-1] = (packed[-1][0], end, packed[-1][2] + count)
        else:
            packed.append((start, end, count))
    return packed
