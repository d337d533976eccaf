"""Reads the text of documents from their chunks, exactly: by section, page, chunk or characters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

import msgspec

from holdfast.core.errors import InvalidInput, NotFound
from holdfast.core.text import restore
from holdfast.core.threads import run_in_worker
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

LIMIT = 20_000  # characters of a reading by default
MAX_LIMIT = 200_000
MAX_SECTIONS = 10_000  # in an outline
MAX_AROUND = 1000  # chunks
MAX_CHUNK = 2**30
NEAR = 3  # headings that an error names, if there is none like the one that was asked for
NEAR_LENGTH = 80  # characters of such a heading
COMPARED = 2000  # headings that are compared to find these
MANY = 100  # chunks with marks, after which a worker computes where they lead
END = 2**61  # after the last character of every document

sql = statements(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading:
    """A part of a document's text: `text == document_text[start:end]`. `next`: where the rest begins, if it was cut."""

    document: UUID
    name: str
    version: int
    text: str
    start: int
    end: int
    first_page: int | None
    last_page: int | None
    section: tuple[str, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a document: from its heading to the next heading of the same or a higher level."""

    path: tuple[str, ...]
    level: int
    page: int | None
    start: int
    end: int

    @property
    def title(self) -> str:
        """The heading."""
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A chunk of a document, as searches return it: `text == document_text[start:end]`."""

    id: UUID
    index: int
    section: tuple[str, ...]
    page: int | None
    last_page: int | None
    start: int
    end: int
    tokens: int
    text: str


class Outline(list[Section]):
    """The sections of a document in order. `is_cut`: there are more than it has."""

    def __init__(self, sections: Sequence[Section], *, is_cut: bool = False) -> None:
        super().__init__(sections)
        self.is_cut = is_cut


class TextRange(NamedTuple):
    """A range of characters."""

    start: int
    end: int


class Mark(NamedTuple):
    """Where a page (level 0) or the section of a heading begins."""

    start: int
    page: int | None
    level: int
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSelection:
    """What to read: a section, a page, a chunk with those `around` it, or a range of characters."""

    section: str | Sequence[str] | None = None
    page: int | None = None
    chunk: int | None = None
    around: int = 0
    start: int | None = None
    end: int | None = None


class Readings:
    """Reads documents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, id: UUID, selection: TextSelection, *, limit: int = LIMIT) -> Reading:
        """Read what is selected; without a selection, from the beginning. At most `limit` characters."""
        _check(selection, limit)
        first, last = selection.start or 0, END if selection.end is None else selection.end
        if (selection.section, selection.page, selection.chunk) != (None, None, None):
            found = await self._range(id, selection)
            first, last = max(first, found.start), min(last, found.end)
        rows = await self._database.all(sql("read"), id, first, min(last, first + limit))
        if not rows:
            raise unknown_document(id)
        return _reading(id, rows, first, last, limit)

    async def chunks(self, id: UUID, *, limit: int, after: int = -1) -> list[DocumentChunk]:
        """Return the chunks after an index, in order."""
        _check_number("after", after, -1, MAX_CHUNK)
        rows = await self._database.all(sql("document_chunks"), id, after, limit)
        return [
            DocumentChunk(
                row["id"],
                row["chunk_index"],
                tuple(map(restore, row["section"])),
                row["first_page"],
                row["last_page"],
                row["char_start"],
                row["char_end"],
                row["tokens"],
                restore(row["content"]),
            )
            for row in rows
        ]

    async def outline(self, id: UUID) -> Outline:
        """Return the sections of a document."""
        return await self._from_marks(id, MAX_SECTIONS + 1, _outline)

    async def _range(self, id: UUID, selection: TextSelection) -> TextRange:
        chunk = selection.chunk
        if chunk is not None:
            around = selection.around
            row = await self._database.one(sql("chunk_range"), id, chunk - around, chunk + around, chunk)
            if row is None:
                raise unknown_document(id)
            if row["char_start"] is None:
                raise NotFound(f"the document has no chunk {chunk}", next="Read a chunk that a search returned.")
            return TextRange(row["char_start"], row["char_end"])
        return await self._from_marks(id, None, partial(_selected_range, selection))

    async def _from_marks(self, id: UUID, most: int | None, compute: Callable[[Sequence[Mark], int], T]) -> T:
        """Return what is computed from the marks of a document and its length: in a worker, if there are many."""
        rows = await self._database.all(sql("marks"), id, most)
        if not rows:
            raise unknown_document(id)
        work = partial(_computed, rows, compute)
        return await run_in_worker(work) if len(rows) > MANY else work()


def _computed(rows: Sequence[Row], compute: Callable[[Sequence[Mark], int], T]) -> T:
    marks: list[Mark] = []
    pages: set[int] = set()
    for row in rows:
        if row["marks"] is not None:
            for start, page, level, title in cast(list[list[Any]], msgspec.json.decode(row["marks"])):
                if level or page not in pages:  # overlapping chunks have both the page
                    marks.append(Mark(start, page, level, restore(title)))
                if not level:
                    pages.add(page)
    return compute(marks, rows[0]["characters"])


def _outline(marks: Sequence[Mark], length: int) -> Outline:
    found = sections(marks, length)
    return Outline(found[:MAX_SECTIONS], is_cut=len(found) > MAX_SECTIONS)


def _selected_range(selection: TextSelection, marks: Sequence[Mark], length: int) -> TextRange:
    """Return the range of the selected page or section."""
    if selection.page is not None:
        return page_range(marks, length, selection.page)
    section = selection.section
    assert section is not None
    return section_range(marks, length, [section] if isinstance(section, str) else list(section))


def sections(marks: Sequence[Mark], length: int) -> list[Section]:
    """Return the sections that begin at these marks, in a text of this length."""
    headings = [mark for mark in marks if mark.level > 0]
    ends = [length] * len(headings)
    open_: list[int] = []
    for place, mark in enumerate(headings):
        while open_ and headings[open_[-1]].level >= mark.level:
            ends[open_.pop()] = mark.start
        open_.append(place)
    found: list[Section] = []
    above: list[Mark] = []
    for mark, end in zip(headings, ends, strict=True):
        while above and above[-1].level >= mark.level:
            above.pop()
        above.append(mark)
        found.append(Section(tuple(each.title for each in above), mark.level, mark.page, mark.start, end))
    return found


def section_range(marks: Sequence[Mark], length: int, wanted: Sequence[str]) -> TextRange:
    """Return the range of the first section whose path ends like `wanted`; a number such as 4.2 is enough.

    Letter case and spaces do not matter. A heading that is equal comes before one that only begins alike.
    """
    found = sections(marks, length)
    keys = [_key(each) for each in wanted] or [""]
    headings = [_key(each.title) for each in found]
    for is_alike in (_is_equal, _has_number, _begins_like):
        for one, heading in zip(found, headings, strict=True):
            if not is_alike(heading, keys[-1]) or len(one.path) < len(keys):
                continue
            above = zip(one.path[-len(keys) : -1], keys[:-1], strict=True)
            if all(is_alike(_key(each), key) for each, key in above):
                return TextRange(one.start, one.end)
    near = ", ".join(f"{each[:NEAR_LENGTH]!r}" for each in _near_headings(found, headings, keys[-1]))
    raise NotFound(
        f"the document has no section {' > '.join(wanted)[:200]!r}",
        why="" if found else "it has no headings",
        next=f"Read its outline, and use a heading of it, such as {near}."
        if found
        else "Read it by characters: start and end.",
    )


def _near_headings(found: Sequence[Section], headings: Sequence[str], wanted: str) -> list[str]:
    """Return the titles of sections that may be meant; if none is similar, of the first ones."""
    titles = {heading[:NEAR_LENGTH]: each.title for each, heading in zip(found[:COMPARED], headings, strict=False)}
    words = {word for word in wanted[:NEAR_LENGTH].split() if len(word) > 1}
    sharing = [heading for heading in titles if not words.isdisjoint(heading.split())] if words else []
    near = get_close_matches(wanted[:NEAR_LENGTH], titles, n=NEAR) + sharing[:NEAR]
    return [titles[each] for each in list(dict.fromkeys(near or titles))[:NEAR]]


def page_range(marks: Sequence[Mark], length: int, page: int) -> TextRange:
    """Return the range of a page, slide or sheet."""
    pages = [mark for mark in marks if mark.level == 0]
    for place, mark in enumerate(pages):
        if mark.page == page:
            return TextRange(mark.start, pages[place + 1].start if place + 1 < len(pages) else length)
    if pages:
        why, next = f"its pages are {pages[0].page} to {pages[-1].page}", "Read one of these."
    else:
        why, next = "it has no pages", "Read it by section, or by characters: start and end."
    raise NotFound(f"the document has no page {page}", why=why, next=next)


def unknown_document(id: UUID) -> NotFound:
    """Return the error for a document that is unknown."""
    return NotFound(f"there is no document {id}", next="List the documents, or find one by its name.")


def _reading(id: UUID, rows: Sequence[Row], first: int, last: int, limit: int) -> Reading:
    length = rows[0]["characters"]
    last = min(last, length)
    first = min(first, last)
    stop = min(last, first + limit)
    parts: list[str] = []
    at = first
    section: tuple[str, ...] | None = None
    pages: list[int] = []
    blanks, blanks_from = "", first
    for row in rows:
        if row["content"] is None or row["char_start"] >= stop:
            continue
        if at < row["char_start"]:
            parts.append(_blanks(blanks, at - blanks_from, row["char_start"] - at))
            at = row["char_start"]
        blanks, blanks_from = restore(row["after"]), row["char_end"]
        if row["char_end"] <= at:
            continue
        piece = restore(row["content"])[at - row["char_start"] : stop - row["char_start"]]
        parts.append(piece)
        at += len(piece)
        section = tuple(map(restore, row["section"])) if section is None else section
        pages += [each for each in (row["first_page"], row["last_page"]) if each is not None]
    if at < stop:
        parts.append(_blanks(blanks, at - blanks_from, stop - at))
    return Reading(
        document=id,
        name=restore(rows[0]["name"]),
        version=rows[0]["version"],
        text="".join(parts),
        start=first,
        end=stop,
        first_page=min(pages, default=None),
        last_page=max(pages, default=None),
        section=section or (),
        next=stop if stop < last else None,
    )


def _blanks(blanks: str, start: int, length: int) -> str:
    """Return what stands between two chunks: the blanks after the first, as far as they are stored."""
    return blanks[start : start + length].ljust(length, "\n")


def _key(heading: str) -> str:
    return " ".join(heading.split()).casefold()


def _is_equal(heading: str, wanted: str) -> bool:
    return heading == wanted


def _has_number(heading: str, wanted: str) -> bool:
    number = heading.split(" ", 1)[0].rstrip(".):")
    return bool(number) and number == wanted.rstrip(".):") and any(each.isdigit() for each in number)


def _begins_like(heading: str, wanted: str) -> bool:
    return any(map(str.isalpha, wanted)) and (
        heading.startswith(wanted) or heading.partition(" ")[2].startswith(wanted)
    )


def _check(selection: TextSelection, limit: int) -> None:
    given = [name for name in ("section", "page", "chunk") if getattr(selection, name) is not None]
    if len(given) > 1:
        raise InvalidInput(f"both {given[0]} and {given[1]} were given", next="Pass one of them.")
    for name, least, most in (
        ("page", -END, END),
        ("chunk", 0, MAX_CHUNK),
        ("start", 0, END),
        ("end", 0, END),
        ("around", 0, MAX_AROUND),
    ):
        number = getattr(selection, name)
        if number is not None:
            _check_number(name, number, least, most)
    _check_number("limit", limit, 1, MAX_LIMIT)
    section: object = selection.section
    if not (section is None or isinstance(section, str) or _are_strings(section)):
        raise InvalidInput(f"the section {section!r:.100} is invalid", next="Pass a heading, or a list of headings.")
    if selection.start is not None and selection.end is not None and selection.end < selection.start:
        raise InvalidInput(f"the end {selection.end} is before the start {selection.start}", next="Pass a range.")


def _are_strings(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in cast(Sequence[object], value))


def _check_number(name: str, number: object, least: int, most: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        raise InvalidInput(f"the {name} {number!r:.100} is invalid", next=f"Use an integer from {least} to {most}.")
