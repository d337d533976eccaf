"""PDF: the text of each page, with headings and paragraphs as far as fonts and distances show them."""

import ctypes
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pypdfium2  # pyright: ignore[reportMissingTypeStubs]
import pypdfium2.raw  # pyright: ignore[reportMissingTypeStubs]

from holdfast.knowledge.parsing.errors import ParseError, ParseErrorCode
from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits
from holdfast.knowledge.parsing.pdf_layout import (
    LEADER,
    PageLine,
    Profile,
    edge_patterns,
    lay_out,
    pattern_of,
    same_row,
)
from holdfast.knowledge.parsing.units import Unit

pdfium = cast(Any, pypdfium2.raw)

SAMPLED = 24  # pages that tell the size of the body text, and which lines repeat on each page
REPEATED = 3  # sampled pages on which a line at the edge is a header or footer, at least
REPEATED_SHARE = 0.25
BOLD = 600  # weight of a font
BOOKMARKS = 20_000

_MEANINGLESS = re.compile(
    r"untitled|microsoft \w+ - |.*\.(docx?|pptx?|xlsx?|indd|dvi|tex|pdf|qxd|rtf|pages|odt|htm)$", re.IGNORECASE
)
_BLANKS = re.compile(r"[ \t\u00a0\u2000-\u200a\u202f\u3000]+")
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u00ad\u200b\u2060\ufeff\ufffe\uffff]")
_LEADERS = re.compile(r"(?:\s?[.\u2026_\u00b7]){5,}")  # between an entry of a table of contents and its page
_BOLD_NAME = re.compile(rb"bold|black|heavy|cmbx", re.IGNORECASE)
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ue000-\uf8ff\ufffd]")


def parse(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """Yield a unit for each page. Raises ParseError, also if no page has text."""
    with closing(_open(path)) as document:
        pages = len(document)
        if pages > limits.units:
            why = f"it has {pages:,} pages, more than {limits.units:,}"
            raise _error(path, "too_large", why, "Divide the file, or raise memory.knowledge.max_pages.")
        read: dict[int, list[PageLine]] = {}
        profile = _profile(path, document, read)
        title = _title(document)
        characters = 0
        for number in range(first, pages + 1):
            lines = read.pop(number) if number in read else _lines(path, document, number)
            text, blocks = lay_out(lines, profile, number)
            characters += len(text)
            if characters > limits.characters:
                raise _error(
                    path, "too_large", f"it has more than {limits.characters:,} characters", "Divide the file."
                )
            yield Unit(
                number,
                text,
                blocks,
                page=number,
                pages=pages if number == 1 else None,
                title=title if number == 1 else None,
                total=pages,
            )
        if not characters and not any(_lines(path, document, number) for number in range(1, min(first, pages + 1))):
            raise _error(
                path,
                "no_text",
                "it has no text: scanned images need OCR, which is not built in",
                "Add a version with text, such as the output of an OCR program.",
            )


def _open(path: Path) -> Any:
    try:
        document: Any = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        code = cast(int | None, error.err_code)
        if code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise _error(path, "encrypted", "it is encrypted with a password", "Save it without a password.") from None
        raise _error(path, "damaged", "it is truncated or damaged", "Copy or download it again.") from None
    if not len(document):
        document.close()
        raise _error(path, "damaged", "it has no pages", "Copy or download it again.")
    return document


def _title(document: Any) -> str | None:
    found = " ".join(_INVISIBLE.sub("", document.get_metadata_value("Title")).split())
    return None if len(found) < 3 or _MEANINGLESS.match(found) else found[:500]


def _profile(path: Path, document: Any, read: dict[int, list[PageLine]]) -> Profile:
    """Return what lines are compared with. It is the same from wherever a read begins. `read` keeps the lines."""
    pages = len(document)
    step = max(1.0, pages / SAMPLED)
    # Neighbours: left and right pages can have other headers.
    sample = sorted({min(pages, int(place * step) + 1 + place % 2) for place in range(min(pages, SAMPLED))})
    sizes: Counter[float] = Counter()
    edges: Counter[str] = Counter()
    for number in sample:
        lines = read[number] = _lines(path, document, number)
        for line in lines:
            sizes[round(line.size, 1)] += len(line.text)
    body = max(sizes, key=lambda size: sizes[size], default=0.0)
    for lines in read.values():
        edges.update(set(edge_patterns(lines, body).values()))
    often = max(REPEATED, REPEATED_SHARE * len(sample))
    repeated = frozenset(pattern for pattern, count in edges.items() if count >= often)
    return Profile(body, repeated, _bookmarks(document))


def _bookmarks(document: Any) -> dict[int, dict[str, int]]:
    """Return the level of each title in the table of contents, by page."""
    found: dict[int, dict[str, int]] = {}
    for count, bookmark in enumerate(document.get_toc(max_depth=6)):
        if count >= BOOKMARKS:
            break
        destination = bookmark.get_dest()
        page = None if destination is None else destination.get_index()
        if page is not None:
            title = pattern_of(bookmark.get_title())
            found.setdefault(page + 1, {}).setdefault(title, min(6, bookmark.level + 1))
    return found


def _lines(path: Path, document: Any, number: int) -> list[PageLine]:
    """Return the lines of a page, in the order of reading that the file has."""
    try:
        page = document[number - 1]
    except pypdfium2.PdfiumError:
        raise _error(path, "damaged", f"its page {number} is damaged", "Copy or download it again.") from None
    with closing(page), closing(page.get_textpage()) as text_page:
        count: int = pdfium.FPDFText_CountChars(text_page)
        if count <= 0:
            return []
        buffer = (ctypes.c_ushort * (2 * count + 2))()
        written: int = pdfium.FPDFText_GetText(text_page, 0, count, buffer)
        data = bytes(memoryview(buffer)[: max(0, written - 1)])
        text = data.decode("utf-16-le", errors="replace")
        is_wide = len(text) * 2 != len(data)
        lines: list[PageLine] = []
        place = 0
        for raw in text.split("\r\n"):
            length = len(raw.encode("utf-16-le", errors="replace")) // 2 if is_wide else len(raw)
            line = _line(text_page, raw, place, length)
            if line is not None and lines and (row := same_row(lines[-1], line)):
                lines[-1] = row
            elif line is not None:
                lines.append(line)
            place += length + 2
        return lines


_x, _y = ctypes.c_double(), ctypes.c_double()
_name = ctypes.create_string_buffer(128)
_rectangle = pdfium.FS_RECTF()
_matrix = pdfium.FS_MATRIX()


def _line(text_page: Any, raw: str, place: int, length: int) -> PageLine | None:
    shown = raw.strip()
    if not shown or len(_UNREADABLE.findall(shown)) * 2 > len(shown):  # a font whose characters are not told
        return None
    start = place + len(raw) - len(raw.lstrip())
    end = place + length - (len(raw) - len(raw.rstrip())) - 1
    first = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, start)
    left, baseline = _origin(text_page, first)
    last = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, end)
    right = _right(text_page, last)
    middle = (start + end) // 2
    at = middle - place
    middle += next((step for step in (0, 1, -1, 2) if not raw[at + step : at + step + 1].isspace()), 0)
    middle = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, middle)
    text = _LEADERS.sub(LEADER, _BLANKS.sub(" ", _INVISIBLE.sub("", shown))).strip()
    if not text:
        return None
    return PageLine(
        text=text,
        left=min(left, right),
        right=max(left, right),
        baseline=baseline,
        last_baseline=_origin(text_page, last)[1] if "\ufffe" in raw else baseline,
        size=max(_size(text_page, first), _size(text_page, middle)),  # not that of a small raised figure
        is_bold=_is_bold(text_page, middle),
        ends_with_blank=raw[-1:] == " ",
    )


def _origin(text_page: Any, index: int) -> tuple[float, float]:
    """Return where a character begins, on its baseline."""
    if index < 0 or not pdfium.FPDFText_GetCharOrigin(text_page, index, _x, _y):
        return 0.0, 0.0
    return _x.value, _y.value


def _right(text_page: Any, index: int) -> float:
    """Return where a character ends."""
    if index < 0 or not pdfium.FPDFText_GetLooseCharBox(text_page, index, _rectangle):
        return 0.0
    return _rectangle.right


def _size(text_page: Any, index: int) -> float:
    """Return the size of a character's font as it is shown."""
    size: float = pdfium.FPDFText_GetFontSize(text_page, index)
    if pdfium.FPDFText_GetMatrix(text_page, index, _matrix):
        size *= math.hypot(_matrix.b, _matrix.d)
    return size


def _is_bold(text_page: Any, index: int) -> bool:
    """Whether a character's font is bold, by its weight or its name."""
    if pdfium.FPDFText_GetFontWeight(text_page, index) >= BOLD:
        return True
    length: int = pdfium.FPDFText_GetFontInfo(text_page, index, _name, len(_name), None)
    return 0 < length <= len(_name) and _BOLD_NAME.search(_name.value) is not None


def _error(path: Path, code: ParseErrorCode, why: str, next: str) -> ParseError:
    return ParseError(f"{path.name} cannot be read", code=code, why=why, next=next)
