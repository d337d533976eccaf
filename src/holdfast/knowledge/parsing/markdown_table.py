"""Rows of cells as a table with pipes."""

from collections.abc import Iterable, Sequence

_BREAKS = str.maketrans(
    {"\r": " ", "\n": " ", "\t": " ", "\v": " ", "\f": " ", "\x85": " ", "\u2028": " ", "\u2029": " "}
)


def cell(text: str) -> str:
    """The text of a cell on one line. Its pipes are escaped, and a backslash before a pipe or at the end is too."""
    line = text.strip()
    if not line.isprintable():  # as few are, and the rest is slower
        line = line.translate(_BREAKS)
    if "|" not in line and not line.endswith("\\"):
        return line
    return line.replace("\\", "\\\\").replace("|", "\\|")


def row(cells: Iterable[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cell(each) for each in cells)} |"


def rule(columns: int) -> str:
    """The line below the header."""
    return f"|{' --- |' * columns}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table whose first row is the header. Short rows are filled up with empty cells."""
    columns = max(map(len, rows), default=0)
    if not columns:
        return ""
    lines = [row([*each, *[""] * (columns - len(each))]) for each in rows]
    return "\n".join([lines[0], rule(columns), *lines[1:]])


def header(cells: Sequence[str]) -> str:
    """The first two lines of a table, for rows that follow one by one."""
    return f"{row(cells)}\n{rule(len(cells))}"
