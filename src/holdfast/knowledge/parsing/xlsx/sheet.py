"""The rows of a sheet: cells as text, and merged cells with their text in every row and column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.knowledge.parsing.archive import Archive
from holdfast.knowledge.parsing.safe_xml import NAMES, Element, child, events, forget, whole_number
from holdfast.knowledge.parsing.xlsx.islands import SheetRow
from holdfast.knowledge.parsing.xlsx.number_formats import GENERAL, NumberFormat
from holdfast.knowledge.parsing.xlsx.shared_strings import SharedStrings, rich_text

REFERENCE = re.compile(r"^\$?([A-Z]{1,3})\$?(\d{1,7})$")
MERGED = re.compile(rb'<(?:\w+:)?mergeCell\b[^>]*?\bref\s*=\s*["\']([A-Z$0-9]+):([A-Z$0-9]+)["\']')
OVERLAP = 256
MAX_MERGED = 100_000
MAX_MERGED_CELLS = 10_000  # of one merged cell that is repeated; a larger one is shown once
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


@dataclass(frozen=True, slots=True)
class MergedCells:
    """A merged cell."""

    top: int
    left: int
    bottom: int
    right: int


class SheetReader:
    """Reads sheets of a workbook."""

    def __init__(
        self, archive: Archive, strings: SharedStrings, formats: Sequence[NumberFormat], *, since_1904: bool
    ) -> None:
        self._archive = archive
        self._strings = strings
        self._formats = formats
        self._since_1904 = since_1904

    def lines(self, part: str) -> Iterator[SheetRow]:
        """The rows that have text, in their order."""
        merged = _Merged(self._merged(part))
        row = 0
        with self._archive.open(part) as stream:
            for _, element in events(self._archive, stream, part, ("row",)):
                if NAMES[element.tag] != "s:row":
                    continue
                following = whole_number(element.get("r"), row + 1)
                if following <= row:
                    following = row + 1  # rows are in order; a file that breaks this is read as it comes
                yield from merged.between(row + 1, following)
                row = following
                cells = self._cells(element)
                forget(element)
                yield from merged.fill(row, cells)
        yield from merged.between(row + 1, None)

    def _cells(self, row: Element) -> dict[int, str]:
        cells: dict[int, str] = {}
        column = 0
        value = f"{row.tag[: row.tag.rfind('}') + 1]}v"
        for each in row:
            place = each.get("r")
            column = COLUMNS[place.rstrip("0123456789")] if place else column + 1
            text = self._text(each, value)
            if text:
                cells[column] = text
        return cells

    def _text(self, cell: Element, value: str) -> str:
        """The text of a cell. `value` is the tag of what it stores."""
        text: str | None = None
        for each in cell:
            if each.tag == value:
                text = each.text
                break
        kind = cell.get("t")
        if text is None:
            inline = child(cell, "s:is") if kind == "inlineStr" else None
            return _plain(rich_text(inline)) if inline is not None else ""
        if kind is None or kind == "n":
            index = whole_number(cell.get("s"), 0)
            form = self._formats[index] if index < len(self._formats) else GENERAL
            return form.show(text.strip(), since_1904=self._since_1904)
        match kind:
            case "s":
                index = whole_number(text, len(self._strings))
                return _plain(self._strings[index]) if index < len(self._strings) else ""
            case "b":
                return "TRUE" if text.strip() == "1" else "FALSE"
            case "d":
                return text.strip().replace("T", " ").removesuffix(" 00:00:00")
            case _:  # the text of a formula, or an error
                return _plain(text)

    def _merged(self, part: str) -> list[MergedCells]:
        """The merged cells. They are listed behind the rows, so the sheet is looked through before it is read."""
        found: list[MergedCells] = []
        with self._archive.open(part) as stream:
            rest = b""
            while block := stream.read(2**20):
                data = rest + block
                if b"mergeCell" in data:
                    end = 0
                    for match in MERGED.finditer(data):
                        end = match.end()
                        area = _range(match[1].decode(), match[2].decode())
                        if area is not None and len(found) < MAX_MERGED:
                            found.append(area)
                    rest = data[max(end, len(data) - OVERLAP) :]
                else:
                    rest = data[-OVERLAP:]
        return sorted(found, key=lambda each: (each.top, each.left))


class _Merged:
    """Fills the rows that merged cells reach into."""

    def __init__(self, ranges: list[MergedCells]) -> None:
        self._waiting = ranges[::-1]
        self._open: list[tuple[MergedCells, str]] = []

    def fill(self, row: int, cells: dict[int, str]) -> Iterator[SheetRow]:
        """The row with the text of merged cells, if it has any text."""
        continued: set[int] = set()
        if self._open:
            self._open = [each for each in self._open if each[0].bottom >= row]
        while self._waiting and self._waiting[-1].top <= row:
            area = self._waiting.pop()
            text = cells.get(area.left) if area.top == row else None
            if text:
                self._open.append((area, text))
        for area, text in self._open:
            for column in range(area.left, area.right + 1):
                if column not in cells:
                    cells[column] = text
                    if not (row == area.top and column == area.left):
                        continued.add(column)
        if cells:
            yield SheetRow(row, cells, frozenset(continued))

    def between(self, begin: int, end: int | None) -> Iterator[SheetRow]:
        """The rows that a file leaves out because they have no cells of their own."""
        row = begin
        while self._open and (end is None or row < end):
            yield from self.fill(row, {})
            row += 1


class _Columns(dict[str, int]):
    """The numbers of columns by their letters, from 1. Letters that no sheet has count as the first column."""

    def __missing__(self, letters: str) -> int:
        number = 0
        if len(letters) <= 3 and letters.isascii() and letters.isalpha():
            for letter in letters.upper():
                number = number * 26 + ord(letter) - 64
        if len(self) < 20_000:
            self[letters] = max(number, 1)
        return max(number, 1)


COLUMNS = _Columns()


def _range(begin: str, end: str) -> MergedCells | None:
    first, last = REFERENCE.match(begin), REFERENCE.match(end)
    if first is None or last is None:
        return None
    top, bottom = int(first[2]), int(last[2])
    left, right = COLUMNS[first[1]], COLUMNS[last[1]]
    cells = (bottom - top + 1) * (right - left + 1)
    return (
        MergedCells(top, left, bottom, right)
        if 1 < cells <= MAX_MERGED_CELLS and top <= bottom and left <= right
        else None
    )


def _plain(text: str) -> str:
    """Text on one line, with the characters that Excel writes as `_x000D_`."""
    if "_x" in text:
        text = ESCAPED.sub(lambda match: _character(int(match[1], 16)), text)
    text = text.strip()
    return text if text.isprintable() else " ".join(text.split())


def _character(code: int) -> str:
    return " " if code < 32 or 0xD800 <= code <= 0xDFFF else chr(code)
