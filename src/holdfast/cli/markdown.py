"""Renders streamed Markdown in the terminal: a block is redrawn until it is complete, then it stays."""

import re
from typing import TYPE_CHECKING, TextIO

from holdfast.cli.output import printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.markdown import Markdown

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


class MarkdownStream:
    """Writes Markdown texts to a terminal, one after another."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._block = ""  # the incomplete block
        self._is_first = True

    def feed(self, text: str) -> None:
        """Show more of the text."""
        self._block += printable(text.replace("\r\n", "\n"))
        *whole, self._block = blocks(self._block)
        for block in whole:
            self._settle(block)
        self._grow()

    def end(self) -> None:
        """End the text and write the rest of it permanently."""
        block, self._block = self._block, ""
        self._settle(block)
        self._is_first = True

    def _grow(self) -> None:
        from rich.live import Live

        if not self._block.strip():
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stderr=False)
            self._live.start()
        self._live.update(self._shown(self._block), refresh=True)

    def _settle(self, block: str) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if not block.strip():
            return
        if not self._is_first:
            self._console.print()
        self._is_first = False
        self._console.print(self._shown(block))

    def _shown(self, block: str) -> "Markdown":
        from rich.markdown import Markdown

        return Markdown(block.strip("\n"), hyperlinks=False)  # show URLs instead of hiding them behind link texts


def blocks(text: str) -> list[str]:
    """Split a text at blank lines into blocks. The last may be incomplete. Fenced code keeps its blank lines."""
    found: list[str] = []
    block: list[str] = []
    fence = ""
    *lines, rest = text.split("\n")  # the last line may be incomplete: it is not blank yet
    for line in lines:
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip(" `~"):
            fence = ""
        if not line.strip() and not fence and any(map(str.strip, block)):
            found.append("\n".join(block))
            block = []
        else:
            block.append(line)
    return [*found, "\n".join([*block, rest])]
