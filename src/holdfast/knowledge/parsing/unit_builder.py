"""Units from blocks: texts with offsets, numbered, limited, and skipped up to where the reader starts."""

from typing import NamedTuple

from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.units import Block, BlockKind, Unit

MAX_UNIT = 64 * 1024  # characters of a unit, where a parser may cut
MIN_UNIT = 16 * 1024
INVISIBLE: dict[int, None] = dict.fromkeys(
    (0xAD, 0xFEFF, 0x2060)
)  # soft hyphens and the like would split words for a search


class _Piece(NamedTuple):
    kind: BlockKind
    text: str
    level: int


class UnitBuilder:
    """Collects the blocks of a unit, and makes units of them.

    Units before `first` count, but have no text: `unit` returns None for them.
    """

    def __init__(self, *, first: int, limits: ParseLimits, total: int | None = None) -> None:
        self._total = total
        self._first = first
        self._limits = limits
        self._number = 0
        self._characters = 0
        self._pieces: list[_Piece] = []
        self.size = 0  # characters of the pieces

    @property
    def number(self) -> int:
        """The number of the unit that is being built."""
        return self._number + 1

    def add(self, kind: BlockKind, text: str, level: int = 0) -> None:
        """Add a block, unless it is empty."""
        text = text.translate(INVISIBLE).strip("\n")
        if not text.strip():
            return
        self._pieces.append(_Piece(kind, text, level))
        self.size += len(text) + 2
        self._characters += len(text) + 2
        if self._characters > self._limits.characters:
            raise self._over(f"it has more than {self._limits.characters:,} characters of text")

    def heading(self, text: str, level: int) -> None:
        """Add a heading."""
        level = min(max(level, 1), 6)
        line = " ".join(text.split())
        if line:
            self.add("heading", f"{'#' * level} {line}", level)

    def drop(self) -> None:
        """Forget the blocks so far."""
        self._pieces, self.size = [], 0

    def skip(self, units: int) -> None:
        """Count units that need not be read."""
        self._number += units

    def unit(self, *, page: int | None = None, pages: int | None = None, title: str | None = None) -> Unit | None:
        """The unit of the blocks so far, and begin the next one."""
        self._number += 1
        if self._number > self._limits.units:
            raise self._over(f"it has more than {self._limits.units:,} pages or portions")
        pieces, self._pieces, self.size = self._pieces, [], 0
        if self._number < self._first:
            return None
        blocks: list[Block] = []
        at = 0
        for kind, text, level in pieces:
            blocks.append(Block(kind, at, at + len(text), level))
            at += len(text) + 2
        text = "\n\n".join(piece.text for piece in pieces)
        if self._number > 1:
            return Unit(self._number, text, blocks, page, total=self._total)
        return Unit(self._number, text, blocks, page, pages, title, self._total)

    def _over(self, why: str) -> ParseError:
        return ParseError("the file is not read", code="too_large", why=why, next="Split the document.")
