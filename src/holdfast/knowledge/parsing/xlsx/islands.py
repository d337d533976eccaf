"""The tables of a sheet: islands of cells, with empty cells around them."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Cells = Mapping[int, str]


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row of a sheet: texts by column, and which columns only continue a merged cell."""

    row: int
    cells: Cells
    continued: frozenset[int] = frozenset()

    def part(self, low: int, high: int) -> "SheetRow":
        """Return the part of this row that has these columns; there is text in each."""
        if len(self.cells) == high - low + 1:
            return self
        cells = {column: self.cells[column] for column in range(low, high + 1)}
        return SheetRow(self.row, cells, frozenset(column for column in self.continued if low <= column <= high))

    def beside(self, other: "SheetRow") -> "SheetRow":
        """Return this row with more of its columns."""
        return SheetRow(self.row, {**self.cells, **other.cells}, self.continued | other.continued)


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows of one table, of equal length. `titles` stand above it. `header` is repeated where the table goes on."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    goes_on: bool


@dataclass(slots=True, eq=False)
class _Island:
    first: int
    last: int
    low: int
    high: int
    lines: list[SheetRow] = field(default_factory=list[SheetRow])
    header: SheetRow | None = None  # of a table whose first rows were given out
    size: int = 0

    def add(self, line: SheetRow, low: int, high: int) -> None:
        if self.lines and self.lines[-1].row == line.row:
            line = self.lines.pop().beside(line)
        self.lines.append(line)
        self.size += sum(map(len, line.cells.values())) + 3 * len(line.cells)
        self.last, self.low, self.high = line.row, min(self.low, low), max(self.high, high)

    def absorb(self, other: "_Island") -> None:
        rows: dict[int, SheetRow] = {}
        for line in (*self.lines, *other.lines):
            former = rows.get(line.row)
            rows[line.row] = line if former is None else former.beside(line)
        self.lines = [rows[row] for row in sorted(rows)]
        self.header = self.header or other.header
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.size += other.size


class Islands:
    """Finds tables while the rows come: cells belong to the table that has their columns and ends in the row above."""

    def __init__(self, portion: int) -> None:
        self._portion = portion
        self._active: list[_Island] = []

    def add(self, line: SheetRow) -> Iterator[Portion]:
        """Add a row, below the ones before. Gives tables that are complete, and parts of long ones."""
        yield from self._ended(line.row - 1)
        self._active = list(self._grown(line))
        for island in self._active:
            if island.size > self._portion:
                yield from _portions(island)

    def end(self) -> Iterator[Portion]:
        """The tables that are open."""
        yield from self._ended(None)

    def _ended(self, before: int | None) -> Iterator[Portion]:
        ended = [each for each in self._active if before is None or each.last < before]
        if not ended:
            return
        self._active = [] if before is None else [each for each in self._active if each.last >= before]
        for island in sorted(ended, key=lambda each: (each.first, each.low)):
            yield from _portions(island)

    def _grown(self, line: SheetRow) -> Iterator[_Island]:
        """The open tables with a row more. They are ordered by column and do not overlap, before and after."""
        waiting = deque(self._active)
        last: _Island | None = None
        for low, high in _runs(line.cells):
            if last is None or last.high < low:
                if last is not None:
                    yield last
                while waiting and waiting[0].high < low:
                    yield waiting.popleft()
                touched = waiting and waiting[0].low <= high
                last = waiting.popleft() if touched else _Island(line.row, line.row, low, high)
            while waiting and waiting[0].low <= high:
                last.absorb(waiting.popleft())
            last.add(line.part(low, high), low, high)
        if last is not None:
            yield last
        yield from waiting


def _runs(cells: Cells) -> Iterator[tuple[int, int]]:
    """The stretches of columns without a gap."""
    columns = sorted(cells)
    if not columns:
        return
    if columns[-1] - columns[0] + 1 == len(columns):
        yield columns[0], columns[-1]
        return
    low = high = columns[0]
    for column in columns[1:]:
        if column != high + 1:
            yield low, high
            low = column
        high = column
    yield low, high


def _portions(island: _Island) -> Iterator[Portion]:
    lines = island.lines
    continued = [line for line in lines if len(line.continued) < len(line.cells)]  # else it repeats the row above
    columns = range(island.low, island.high + 1)
    if island.header is None:
        kept = [column for column in columns if any(_stands(line, column) for line in continued)]
    else:
        kept = list(columns)
    titles: list[str] = []
    if island.header is None:
        while len(continued) > 1 and len(kept) > 1 and len(continued[0].cells) - len(continued[0].continued) == 1:
            if not any(len(line.cells) - len(line.continued) > 1 for line in continued[1:]):
                break
            titles.append(next(iter(continued.pop(0).cells.values())))
        if titles:
            kept = [column for column in columns if any(_stands(line, column) for line in continued)]
    header = island.header or (continued[0] if continued else None)
    shown = continued if island.header is None else [island.header, *continued]
    rows = [[line.cells.get(column, "") for column in kept] for line in shown]
    goes_on = island.header is not None
    island.header, island.lines, island.size = header, [], 0
    if len(rows) > (1 if goes_on else 0):
        yield Portion(titles, rows, goes_on)


def _stands(line: SheetRow, column: int) -> bool:
    return column in line.cells and column not in line.continued
