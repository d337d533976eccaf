"""Citations: which passages a statement of a model cites, and whether it quotes them verbatim.

A model writes one statement per line, with the numbers of passages in brackets: `- The fee is 12 euros [3][7].` A line
with several groups of numbers is several statements. What stands in quotation marks must stand in a cited passage.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from holdfast.knowledge.research.passages import Passage
from holdfast.llm.language_rules import words

QUOTED_WORDS = 3  # a shorter quotation is a term, and is not looked up
QUOTED_HAN = 6  # characters of a quotation in Chinese
MOST_STATEMENTS = 400
SHARED_WORDS = 2  # of a statement and a note, for the same quotation to support both
LONGEST = 4000  # characters of one statement
LONGEST_RANGE = 20  # of numbers, as in [3-7]

_NUMBERS = (
    r"[\[\u3010\uff3b]\s*(?:passages?\s*)?#?\d{1,7}(?:\s*(?:[,;\u3001\uff0c-]|and|\u2013)\s*#?\d{1,7})*\s*"
    r"[\]\u3011\uff3d]"
)
_GROUP = re.compile(rf"(?:\s*{_NUMBERS})+(?:\s*[.。!?！？])?", re.IGNORECASE)  # noqa: RUF001
_MARKS = frozenset(".!?\u3002\uff01\uff1f")
_RANGE = re.compile(r"(\d{1,7})\s*[-\u2013]\s*#?(\d{1,7})|(\d{1,7})")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.+?)\s*#*\s*$")
_BULLET = re.compile(r"\s*(?:[-*\u2022]|\d{1,3}[.)])\s+")
_MISSING = re.compile(r"\s*(?:[-*]\s+)?\**MISSING\**\s*[:\uff1a]\s*(.+)", re.IGNORECASE)
_NOTHING = re.compile(r"\W*(?:none|nothing|n/a|无|没有)\W*", re.IGNORECASE)
_QUOTES = re.compile(
    r"\u201c([^\u201c\u201d]+)\u201d|\"([^\"]+)\"|\u300c([^\u300c\u300d]+)\u300d|\u00ab([^\u00ab\u00bb]+)\u00bb"
)
_HAN = re.compile("[\u3400-\u9fff]")
_ELLIPSIS = re.compile(r"\s*(?:\[?(?:\.\.\.|\u2026)\]?)\s*")
_SAME = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2013": "-",
        "\u2014": "-",
        "\u2011": "-",
        "\u00a0": " ",
    }
)


class Citation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a statement comes from: `document_text[start:end]` of a version of a document, in a chunk.

    With `quote`, the range is that of the quotation, which stands there verbatim; else that of the chunk.
    """

    number: int
    chunk: str
    document: str
    name: str
    start: int
    end: int
    version: int
    index: int
    title: str | None = None
    section: tuple[str, ...] = ()
    page: int | None = None
    last_page: int | None = None
    quote: str | None = None


class CitedStatement(msgspec.Struct, frozen=True, omit_defaults=True):
    """A statement with its citations, below a heading."""

    text: str
    citations: tuple[Citation, ...]
    heading: str | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the passages that it cites."""
        return tuple(dict.fromkeys(citation.number for citation in self.citations))


@dataclass(frozen=True, slots=True)
class UncitedStatement:
    """A statement that cannot be used, and why."""

    text: str
    why: str
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What a model wrote: statements with citations, others, and what it says is missing."""

    statements: tuple[CitedStatement, ...] = ()
    uncited: tuple[UncitedStatement, ...] = ()
    missing: tuple[str, ...] = ()


def parse_answer(text: str, passages: Mapping[int, Passage], *, is_cut: bool = False) -> ParsedAnswer:
    """Parse an answer. Only the numbers of `passages` count. `is_cut`: it broke off, so its last line is void."""
    statements: list[CitedStatement] = []
    uncited: list[UncitedStatement] = []
    missing: list[str] = []
    heading: str | None = None
    lines = text.splitlines()
    for line in lines[:-1] if is_cut else lines:
        if found := _HEADING.match(line):
            heading = _GROUP.sub("", found[1]).strip("* ")[:LONGEST] or None
        elif found := _MISSING.match(line):
            missing += [] if _NOTHING.fullmatch(found[1]) else [found[1].strip()[:LONGEST]]
        elif not _NOTHING.fullmatch(line) and any(letter.isalnum() for letter in line):
            for said, numbers in _split(_BULLET.sub("", line, count=1).strip()):
                checked = check(said, numbers, passages, heading)
                if isinstance(checked, CitedStatement):
                    statements.append(checked)
                else:
                    uncited.append(checked)
        if len(statements) + len(uncited) >= MOST_STATEMENTS:
            break
    return ParsedAnswer(tuple(statements), tuple(uncited), tuple(missing))


def check(
    text: str, numbers: Sequence[int], passages: Mapping[int, Passage], heading: str | None = None
) -> CitedStatement | UncitedStatement:
    """Return a statement with its citations, if it cites a passage, and what it quotes stands in the cited passages."""
    cited = [passages[number] for number in dict.fromkeys(numbers) if number in passages]
    if not cited:
        why = "it cites no passage" if not numbers else "it cites passages that were not shown"
        return UncitedStatement(text, why, heading)
    places: dict[int, list[tuple[int, int]]] = {}
    for quote in quotations(text):
        for part in _ELLIPSIS.split(quote):
            found = next(((passage, at) for passage in cited if (at := locate(part, passage.text))), None)
            if found is None:
                return UncitedStatement(text, "it quotes what is not in the passages that it cites", heading)
            places.setdefault(found[0].number, []).append(found[1])
    citations = [citation for passage in cited for citation in _citations(passage, places.get(passage.number, ()))]
    return CitedStatement(text, tuple(citations), heading)


def with_quotes(statements: Sequence[CitedStatement], notes: Sequence[CitedStatement]) -> list[CitedStatement]:
    """Return statements whose citations are as exact as those of the notes that they come from.

    A citation of a whole passage becomes that of the quotation in the note that says most of the same.
    """
    quoted: dict[int, list[tuple[frozenset[str], Citation]]] = {}
    for note in notes:
        for each in note.citations:
            if each.quote is not None:
                quoted.setdefault(each.number, []).append((words(note.text), each))
    found: list[CitedStatement] = []
    for statement in statements:
        said = words(statement.text)
        citations = [_narrowed(each, said, quoted.get(each.number, ())) for each in statement.citations]
        found.append(CitedStatement(statement.text, tuple(dict.fromkeys(citations)), statement.heading))
    return found


def cite(passage: Passage, start: int, end: int) -> Citation:
    """Return the citation of a part of a passage's text."""
    return next(iter(_citations(passage, [(start, end)])))


def quotations(text: str) -> list[str]:
    """Return what stands in quotation marks and is long enough to be a quotation."""
    found = [str(next(filter(None, match.groups()))).strip(" .,;:\u3002\uff0c") for match in _QUOTES.finditer(text)]
    return [quote for quote in found if len(quote.split()) >= QUOTED_WORDS or len(_HAN.findall(quote)) >= QUOTED_HAN]


def locate(quote: str, text: str) -> tuple[int, int] | None:
    """Return where a quotation stands in a text, but for white space and the form of dashes and quotation marks."""
    wanted, _ = _flatten(quote.strip())
    flat, places = _flatten(text)
    at = flat.find(wanted) if wanted else -1
    return None if at < 0 else (places[at], places[at + len(wanted) - 1] + 1)


def _narrowed(citation: Citation, said: frozenset[str], quoted: Sequence[tuple[frozenset[str], Citation]]) -> Citation:
    if citation.quote is not None or not quoted:
        return citation
    shared, best = max(((len(said & terms), each) for terms, each in quoted), key=lambda found: found[0])
    return best if shared >= SHARED_WORDS else citation


def _flatten(text: str) -> tuple[str, list[int]]:
    """Return a text with single spaces and plain marks, and the place of each of its characters."""
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text.translate(_SAME)):
        if letter.isspace():
            if not letters or letters[-1] == " ":
                continue
            letter = " "  # noqa: PLW2901
        letters.append(letter)
        places.append(place)
    return "".join(letters), places


def _citations(passage: Passage, places: Collection[tuple[int, int]]) -> Iterator[Citation]:
    for start, end in places or [(0, len(passage.text))]:
        yield Citation(
            number=passage.number,
            chunk=str(passage.chunk),
            document=str(passage.document),
            name=passage.name,
            start=passage.start + start,
            end=passage.start + end,
            version=passage.version,
            index=passage.index,
            title=passage.title,
            section=passage.section,
            page=passage.page,
            last_page=passage.last_page,
            quote=passage.text[start:end] if places else None,
        )


def _split(line: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the statements of a line with their numbers: a statement ends after numbers at the end of a sentence."""
    begin, text, numbers = 0, "", list[int]()
    for group in _GROUP.finditer(line):
        text += line[begin : group.start()]
        numbers += _numbers(group[0])
        begin = group.end()
        mark = group[0].rstrip()[-1:]
        if mark in _MARKS:
            text += mark
        if text.rstrip()[-1:] in _MARKS and any(letter.isalnum() for letter in text):
            yield text.strip()[:LONGEST], numbers
            text, numbers = "", []
    text += line[begin:]
    if any(letter.isalnum() for letter in text):
        yield text.strip()[:LONGEST], numbers


def _numbers(group: str) -> Iterator[int]:
    for first, last, single in _RANGE.findall(group):
        if single:
            yield int(single)
        elif 0 <= int(last) - int(first) <= LONGEST_RANGE:
            yield from range(int(first), int(last) + 1)
