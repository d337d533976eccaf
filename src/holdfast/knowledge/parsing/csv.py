"""CSV and TSV as tables with pipes. Each portion begins with the header."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TextIO

from holdfast.knowledge.parsing import markdown_table, plain
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits
from holdfast.knowledge.parsing.portions import PORTION, check_units, clean, estimated_total, open_text, too_long
from holdfast.knowledge.parsing.units import Block, Unit

DELIMITERS = ",;\t|"
SAMPLE = 16 * 1024  # characters that tell the delimiter
LINES = 50
CONSISTENT = 0.8  # share of the lines of the sample that have the usual number of cells
LONGEST_ROW = 1_000_000  # characters
LONGEST_LINE = 1 << 20


def parse(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """Yield the portions of a table. A file without columns is read as plain text."""
    with open_text(path, limits) as file:
        sample = file.read(SAMPLE)
    delimiter = find_delimiter(sample)
    if delimiter is None:
        yield from plain.parse_lines(path, first=first, limits=limits)
        return
    quoting = csv.QUOTE_MINIMAL if _has_quotes(sample, delimiter) else csv.QUOTE_NONE
    total = estimated_total(path)
    with open_text(path, limits) as file:
        rows = _rows(path, file, delimiter, quoting, limits)
        for number, text in enumerate(_tables(rows), 1):
            check_units(path, number, limits)
            if number >= first:
                yield Unit(number, text, [Block("table", 0, len(text))], total=max(total, number))


def find_delimiter(sample: str) -> str | None:
    """Return the character between the cells: the one that gives most lines the same number of cells."""
    best, columns = None, 1.0
    lines = sample.split("\n")
    lines = [line for line in (lines[:-1] if len(lines) > 1 else lines)[:LINES] if line.strip()]
    for delimiter in DELIMITERS:
        try:
            counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        if not counts:
            continue
        usual = max(set(counts), key=counts.count)
        share = counts.count(usual) / len(counts)
        if usual > 1 and share >= CONSISTENT and usual * share > columns:
            best, columns = delimiter, usual * share
    return best


def _has_quotes(sample: str, delimiter: str) -> bool:
    """Whether quotes are around cells. In a TSV they may be part of the text."""
    return sample.startswith('"') or f'{delimiter}"' in sample or '\n"' in sample


def _rows(path: Path, file: TextIO, delimiter: str, quoting: Literal[0, 3], limits: ParseLimits) -> Iterator[list[str]]:
    characters = 0
    reader = csv.reader(_lines(file), delimiter=delimiter, quoting=quoting)
    try:
        for row in reader:
            length = sum(map(len, row))
            characters += length
            if characters > limits.characters:
                raise too_long(path, limits)
            if length > LONGEST_ROW:
                raise _damaged(path, reader.line_num, f"has more than {LONGEST_ROW:,} characters")
            if any(row):
                yield row
    except csv.Error as error:
        raise _damaged(path, reader.line_num, f"is no row of a table: {error}") from None


def _lines(file: TextIO) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE):
        yield clean(line)


def _tables(rows: Iterator[list[str]]) -> Iterator[str]:
    first = next(rows, None)
    if first is None:
        return
    header = markdown_table.header(first)
    lines, size = [header], len(header)
    for row in rows:
        line = markdown_table.row([*row, *[""] * (len(first) - len(row))])
        if len(lines) > 1 and size + len(line) > PORTION:
            yield "\n".join(lines)
            lines, size = [header], len(header)
        lines.append(line)
        size += len(line) + 1
    if len(lines) > 1 or size == len(header):
        yield "\n".join(lines)


def _damaged(path: Path, line: int, why: str) -> ParseError:
    return ParseError(
        f"{path.name} cannot be read",
        code="damaged",
        why=f"its line {line:,} {why}",
        next="Close its quotes, or save it as XLSX.",
    )
