"""Headings, paragraphs and lists from the lines of a page. It is pure: places and sizes come in as numbers."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from holdfast.knowledge.parsing.units import Block, BlockKind

LEADER = " \u2026 "  # between an entry of a table of contents and its page
LARGER = 1.15  # times the body's size: a heading
LEVELS = ((1.7, 1), (1.35, 2), (LARGER, 3))  # times the body's size, and the level of a heading
BOLD_LEVEL = 4
LONGEST_HEADING = 200  # characters
HEADING_LINES = 3
GAP = 1.3  # times the usual distance of lines: a new paragraph begins
FULL = 0.88  # of the width of its column: a line that is filled, and goes on in the next
EDGE_LINES = 3  # from the top and from the bottom, that may be headers and footers
APART = 1.6  # times the size: the distance of a header or footer from the text, at least
SAME_PLACE = 4.0  # points
SAME_ROW = 0.25  # of the size: the distance of the baselines of what is in one row, and of what has no blank between
JUSTIFIED = 3  # lines of a block, most of which end at the same place, whose longest one tells the width of its column
COLUMN = 3.0  # times the size: lines that begin so near to each other are of one column
INDENT = 0.7  # times the size: a line that begins so far right begins a paragraph

_DIGITS = re.compile(r"\d+|(?<!\w)[ivxlc]{1,6}(?!\w)", re.IGNORECASE)
_BULLET = re.compile(
    r"(?:[\u2022\u2023\u25aa\u25cf\u25e6\u25a0\u25a1\u2013\u2014\u00b7\u2043\u27a2\u2713\uf000-\uf0ffo*-]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+\S"
)
_CJK = re.compile("[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_END = re.compile("[.!?:;\u3002\uff01\uff1f\uff1a\uff1b][\"')\\]\u201d\u2019]*$")
_HYPHENS = ("-", "\u2010")
_WORD = re.compile(r"[^\W\d_]+")
_CAPTION = re.compile(
    r"(?:table|figure|fig\.|exhibit|chart|\u8868|\u56fe|\u5716)\s*[\dA-Z]+(?:[.-]\d+)*\s*[.:\u2014\u2013 ]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of a page and its place, in points from the lower left. `size` is that of its font."""

    text: str
    left: float
    right: float
    baseline: float
    last_baseline: float  # where a hyphenated word was put together: that of the line with its end
    size: float
    is_bold: bool = False
    ends_with_blank: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    """What is usual in a document. `repeated` are patterns of lines at the edge of pages: headers and footers.

    `bookmarks` are the levels of titles, by page and pattern.
    """

    body: float
    repeated: frozenset[str] = frozenset()
    bookmarks: dict[int, dict[str, int]] = field(default_factory=dict[int, dict[str, int]])


@dataclass(slots=True)
class _PageBlock:
    kind: BlockKind
    lines: list[PageLine]
    level: int = 0


def same_row(line: PageLine, after: PageLine) -> PageLine | None:
    """Return two lines as one if the second is at the right of the first: a raised figure, or a cell of a table."""
    gap = after.left - line.right
    if abs(line.last_baseline - after.baseline) > SAME_ROW * line.size or not -line.size < gap < COLUMN * line.size:
        return None
    between = "" if gap < SAME_ROW * line.size else " "
    return replace(
        line,
        text=line.text + between + after.text,
        right=after.right,
        last_baseline=after.last_baseline,
        size=max(line.size, after.size),
        is_bold=line.is_bold and after.is_bold,
        ends_with_blank=after.ends_with_blank,
    )


def pattern_of(text: str) -> str:
    """Return a line without what differs from page to page: numbers, letter case, blanks."""
    return _DIGITS.sub("#", " ".join(text.split())).casefold()


def lay_out(lines: Sequence[PageLine], profile: Profile, number: int) -> tuple[str, list[Block]]:
    """Return the text of a page and its blocks."""
    lines = _without_repeated(lines, profile)
    pitch = _pitch(lines)
    words = _whole_words(lines)
    blank_ends = sum(line.ends_with_blank for line in lines) > len(lines) // 10
    texts: list[str] = []
    blocks: list[Block] = []
    place = 0
    for part in _parts(lines, profile, profile.bookmarks.get(number, {}), pitch):
        text = _joined(part, words, _widths(part, lines), hangul_blank="" if blank_ends else " ")
        if part.kind == "heading":
            text = f"{'#' * part.level} {' '.join(text.split())}"
        texts.append(text)
        blocks.append(Block(part.kind, place, place + len(text), part.level))
        place += len(text) + 2
    return "\n\n".join(texts), blocks


def edge_patterns(lines: Sequence[PageLine], body: float) -> dict[int, str]:
    """Return the patterns of lines that may be headers and footers, by their index.

    They are at the top or bottom, apart from the text, and no larger than it. Their place is part of the pattern.
    A line that the page has twice is none.
    """
    downwards = sorted(range(len(lines)), key=lambda place: -lines[place].baseline)
    edges = {*_apart(lines, downwards), *_apart(lines, downwards[::-1])}
    counts = Counter(pattern_of(line.text) for line in lines)
    found = {place: pattern_of(lines[place].text) for place in edges if lines[place].size < LARGER * body}
    return {
        place: f"{round(lines[place].baseline / SAME_PLACE)} {pattern}"
        for place, pattern in found.items()
        if counts[pattern] == 1
    }


def _apart(lines: Sequence[PageLine], inwards: Sequence[int]) -> Sequence[int]:
    """Return the first lines up to the last gap that is wider than between lines of a paragraph."""
    last = 0
    for count, (place, after) in enumerate(pairwise(inwards[: EDGE_LINES + 1]), 1):
        outer, inner = lines[place], lines[after]
        if abs(outer.baseline - inner.baseline) > APART * max(outer.size, inner.size):
            last = count
    return inwards[:last]


def _without_repeated(lines: Sequence[PageLine], profile: Profile) -> Sequence[PageLine]:
    """Return lines without headers and footers: those at the edges that other pages have in the same place."""
    if not profile.repeated:
        return lines
    patterns = edge_patterns(lines, profile.body)
    return [line for place, line in enumerate(lines) if patterns.get(place) not in profile.repeated]


def _pitch(lines: Sequence[PageLine]) -> float:
    """Return the usual distance from a line to the next, in sizes of the line."""
    found = [
        (above.last_baseline - below.baseline) / above.size
        for above, below in pairwise(lines)
        if above.size > 0 and abs(above.size - below.size) < 0.15 * above.size
    ]
    usual = [each for each in found if 0.7 < each < 2.5]
    return median(usual) if usual else 1.2


def _parts(lines: Sequence[PageLine], profile: Profile, bookmarks: dict[str, int], pitch: float) -> list[_PageBlock]:
    parts: list[_PageBlock] = []
    for place, line in enumerate(lines):
        level = _heading_level(line, profile, bookmarks, lines[place + 1] if place + 1 < len(lines) else None)
        last = parts[-1] if parts else None
        if level:
            if last is not None and last.kind == "heading" and _continues_heading(last, level, line, pitch):
                last.lines.append(line)
            else:
                parts.append(_PageBlock("heading", [line], level))
            continue
        kind: BlockKind = (
            "list" if _BULLET.match(line.text) else "caption" if _CAPTION.match(line.text) else "paragraph"
        )
        if last is None or last.kind == "heading" or _begins(kind, last, line, pitch):
            parts.append(_PageBlock(kind, [line]))
        else:
            last.lines.append(line)
    for part in parts:
        if part.kind == "heading" and (
            len(part.lines) > HEADING_LINES or sum(len(line.text) for line in part.lines) > LONGEST_HEADING
        ):
            part.kind, part.level = "paragraph", 0
    return parts


def _heading_level(line: PageLine, profile: Profile, bookmarks: dict[str, int], following: PageLine | None) -> int:
    """Return the level of a heading, or 0."""
    if bookmarks and (found := bookmarks.get(pattern_of(line.text))):
        return found
    if not profile.body or not _WORD.search(line.text) or len(line.text) > LONGEST_HEADING:
        return 0
    if len(_WORD.sub("", line.text)) > len(line.text) * 0.6:  # figures of a table
        return 0
    ratio = line.size / profile.body
    for least, level in LEVELS:
        if ratio >= least:
            return level
    is_like_one = line.is_bold and ratio > 0.95 and len(line.text) < LONGEST_HEADING / 2 and not _END.search(line.text)
    return (
        BOLD_LEVEL
        if is_like_one and (following is None or not following.is_bold) and not _BULLET.match(line.text)
        else 0
    )


def _continues_heading(part: _PageBlock, level: int, line: PageLine, pitch: float) -> bool:
    above = part.lines[-1]
    distance = above.last_baseline - line.baseline
    return (
        level == part.level
        and abs(above.size - line.size) < 0.05 * above.size
        and 0 < distance < GAP * pitch * above.size
    )


def _begins(kind: BlockKind, part: _PageBlock, line: PageLine, pitch: float) -> bool:
    """Whether a line begins a block rather than going on with the last."""
    above = part.lines[-1]
    distance = above.last_baseline - line.baseline
    if kind == "caption":
        return True
    if kind == "list":
        return part.kind != "list" or distance > 2 * GAP * pitch * above.size
    if distance < -0.5 * above.size:  # a new column
        goes_on = len(part.lines) > 1 and above.right - above.left > FULL * (part.lines[-2].right - part.lines[-2].left)
        return not goes_on or bool(_END.search(above.text)) or abs(above.size - line.size) > 0.1 * above.size
    if distance > GAP * pitch * max(above.size, 1.0) or abs(above.size - line.size) > 0.1 * max(above.size, line.size):
        return True
    if part.kind == "list":
        return line.left < part.lines[0].left - 0.5 * line.size
    is_indented = line.left > above.left + INDENT * line.size and line.left < above.left + 5 * line.size
    return is_indented and bool(_END.search(above.text))


def _widths(part: _PageBlock, lines: Sequence[PageLine]) -> list[float]:
    """Return the width of the column that each line of a block is in."""
    columns: list[list[PageLine]] = [[]]
    for line in part.lines:
        if columns[-1] and line.baseline > columns[-1][-1].baseline + line.size:
            columns.append([])
        columns[-1].append(line)
    widths: list[float] = []
    for column in columns:
        left = min(line.left for line in column)
        widths += [_column_right(column, left, lines) - left] * len(column)
    return widths


def _column_right(column: Sequence[PageLine], left: float, lines: Sequence[PageLine]) -> float:
    """Return where a column ends: where the lines of a block in it do, if most do, else where the longest line does."""
    right = max(line.right for line in column)
    filled = sum(line.right - left > FULL * (right - left) for line in column[:-1])
    if len(column) > JUSTIFIED and filled * 2 > len(column):
        return right
    near = COLUMN * column[0].size
    return max([right, *(line.right for line in lines if abs(line.left - left) <= near)])


def _joined(part: _PageBlock, words: frozenset[str], widths: Sequence[float], *, hangul_blank: str) -> str:
    """Return the text of a block. A line that is filled goes on in the next; where it is short, the line ends."""
    pieces: list[str] = []
    for line, after, width in zip(part.lines, [*part.lines[1:], None], widths, strict=True):
        text = line.text
        if after is None:
            pieces.append(text)
        elif part.kind == "list" and _BULLET.match(after.text):
            pieces.append(text + "\n")
        elif text.endswith(_HYPHENS) and len(text) > 1 and text[-2].isalpha() and after.text[0].islower():
            pieces.append(text if _is_compound(text, after.text, words) else text[:-1])
        elif part.kind != "heading" and (line.right - line.left < FULL * width or LEADER in text):
            pieces.append(text + "\n")
        elif _CJK.match(text[-1]) or _CJK.match(after.text[0]):
            pieces.append(text)
        elif _HANGUL.match(text[-1]) and _HANGUL.match(after.text[0]) and not line.ends_with_blank:
            pieces.append(text + hangul_blank)
        else:
            pieces.append(text + " ")
    return "".join(pieces)


def _whole_words(lines: Sequence[PageLine]) -> frozenset[str]:
    """Return the words of a page without those that a line end divides."""
    found: list[str] = []
    is_divided = False
    for line in lines:
        words = _WORD.findall(line.text.casefold())
        begins_whole, is_divided = not is_divided, line.text.endswith(_HYPHENS)
        found += words[0 if begins_whole else 1 : -1 if is_divided else None]
    return frozenset(found)


def _is_compound(line: str, after: str, words: frozenset[str]) -> bool:
    """Whether a hyphen at the end of a line belongs to the word: the page has its parts, and not the whole."""
    begin, rest = _WORD.findall(line)[-1].casefold(), _WORD.match(after)
    if rest is None:
        return True
    second = rest[0].casefold()
    return begin + second not in words and begin in words and second in words
