"""Plain text."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits
from holdfast.knowledge.parsing.portions import check_units, estimated_total, portions
from holdfast.knowledge.parsing.units import Block, BlockKind, Unit


def parse(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """Yield the portions of a text. Its blocks are paragraphs."""
    yield from _parse(path, "paragraph", first=first, limits=limits)


def parse_lines(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """Yield the portions of a text whose lines matter, such as JSON, YAML, XML, settings and logs."""
    yield from _parse(path, "code", first=first, limits=limits)


def _parse(path: Path, kind: BlockKind, *, first: int, limits: ParseLimits) -> Iterator[Unit]:
    total = estimated_total(path)
    for number, text in enumerate(portions(path, limits), 1):
        check_units(path, number, limits)
        if number >= first:
            yield Unit(number, text, paragraphs(text, kind), total=max(total, number))


def paragraphs(text: str, kind: BlockKind = "paragraph") -> list[Block]:
    """Return the parts of a text between blank lines as blocks."""
    blocks: list[Block] = []
    place = end = 0
    start = -1
    for line in text.split("\n"):
        if line and not line.isspace():
            if start < 0:
                start = place
            end = place + len(line)
        elif start >= 0:
            blocks.append(Block(kind, start, end))
            start = -1
        place += len(line) + 1
    if start >= 0:
        blocks.append(Block(kind, start, end))
    return blocks
