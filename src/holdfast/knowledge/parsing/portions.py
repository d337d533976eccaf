"""Texts in portions of about 64 kB: a file of any size is never in memory as a whole."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from holdfast.knowledge.parsing.encodings import find_encoding
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.units import Block, BlockKind, Unit

PORTION = 64 * 1024  # characters
WIDEST = 4  # bytes of a character

_DIVIDE = "Divide the file."


def open_text(path: Path, limits: ParseLimits) -> TextIO:
    """Open a text file in its encoding; all line ends are read as `\\n`. Raises ParseError if it is too large."""
    if path.stat().st_size > WIDEST * limits.characters:
        raise too_long(path, limits)
    return path.open(encoding=find_encoding(path), errors="replace", newline=None)


def portions(path: Path, limits: ParseLimits, *, cut: Callable[[str], int] | None = None) -> Iterator[str]:
    """Yield the text of a file in portions without blank lines around them.

    `cut` returns where a full portion ends; by default at its last blank line, else line, else blank.
    """
    cut = cut or cut_at_blank_line
    characters = 0
    rest = ""
    with open_text(path, limits) as file:
        while piece := file.read(PORTION):
            characters += len(piece)
            if characters > limits.characters:
                raise too_long(path, limits)
            rest += clean(piece)
            while len(rest) > PORTION:
                place = cut(rest[:PORTION])
                if portion := trimmed(rest[:place]):
                    yield portion
                rest = rest[place:]
    if portion := trimmed(rest):
        yield portion


@dataclass(frozen=True, slots=True)
class Part:
    """A block with its text. If it has to be divided, its first `header_lines` are repeated: those of a table."""

    kind: BlockKind
    text: str
    level: int = 0
    path: tuple[str, ...] = ()
    header_lines: int = 0


def units_of(
    path: Path,
    parts: Iterable[Part],
    *,
    first: int,
    limits: ParseLimits,
    title: str | None = None,
    total: int | None = None,
) -> Iterator[Unit]:
    """Yield the parts of a file as units of about 64 kB. Parts are divided only if they are longer."""
    number, size, characters = 1, 0, 0
    open_parts: list[Part] = []
    for part in _divided(parts):
        characters += len(part.text)
        if characters > limits.characters:
            raise too_long(path, limits)
        if open_parts and size + len(part.text) > PORTION:
            check_units(path, number, limits)
            if number >= first:
                yield _unit(number, open_parts, title, total)
            number, size, open_parts = number + 1, 0, []
        open_parts.append(part)
        size += len(part.text) + 2
    if open_parts and number >= first:
        check_units(path, number, limits)
        yield _unit(number, open_parts, title, total)


def _divided(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        if len(part.text) <= PORTION:
            yield part
            continue
        lines = part.text.split("\n", part.header_lines)
        header = "".join(f"{line}\n" for line in lines[:-1]) if part.header_lines else ""
        header = header if len(header) < PORTION // 2 else ""
        rest, most = part.text[len(header) :], PORTION - len(header)
        while rest:
            place = cut_at_blank_line(rest[:most]) if len(rest) > most else len(rest)
            if piece := trimmed(rest[:place]):
                yield Part(part.kind, header + piece, part.level, part.path)
            rest = rest[place:]


def _unit(number: int, parts: list[Part], title: str | None, total: int | None) -> Unit:
    blocks: list[Block] = []
    place = 0
    for part in parts:
        blocks.append(Block(part.kind, place, place + len(part.text), part.level, part.path))
        place += len(part.text) + 2
    text = "\n\n".join(part.text for part in parts)
    return Unit(number, text, blocks, title=title if number == 1 else None, total=max(total or number, number))


def cut_at_blank_line(text: str) -> int:
    """Return the end of the last paragraph of a portion; without a good one, that of a line or of a word."""
    for mark in ("\n\n", "\n", " "):
        place = text.rfind(mark, len(text) // 2)
        if place >= 0:
            return place + len(mark)
    return len(text)


def clean(text: str) -> str:
    """Return a text without zeros, which the database cannot store."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


def trimmed(text: str) -> str:
    """Return a text without blank lines around it; it keeps the indentation of its first line."""
    text = text.rstrip()
    start = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, start) + 1 :]


def estimated_total(path: Path) -> int:
    """Return about how many portions a file has."""
    return max(1, round(path.stat().st_size / PORTION))


def check_units(path: Path, number: int, limits: ParseLimits) -> None:
    """Raise ParseError if a file has too many portions."""
    if number > limits.units:
        raise ParseError(
            f"{path.name} cannot be read",
            code="too_large",
            why=f"it has more than {limits.units:,} parts",
            next=f"{_DIVIDE} Or raise memory.knowledge.max_pages.",
        )


def too_long(path: Path, limits: ParseLimits) -> ParseError:
    """Return the error for a file with too much text."""
    return ParseError(
        f"{path.name} cannot be read",
        code="too_large",
        why=f"it has more than {limits.characters:,} characters",
        next=_DIVIDE,
    )
