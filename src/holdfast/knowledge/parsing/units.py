"""What a parser returns: a stream of units, each a text with its blocks."""

from typing import Literal

import msgspec

BlockKind = Literal["heading", "paragraph", "list", "table", "code", "caption"]


class Block(msgspec.Struct, frozen=True, array_like=True):
    """A part of a unit's text that belongs together: `text[start:end]`. A heading has a level from 1 to 6.

    `path` is where a block is that has no heading in the text, outermost first: the class and function of source code.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    path: tuple[str, ...] = ()


class Unit(msgspec.Struct, frozen=True, array_like=True):
    """A page, a slide, a sheet, a chapter, or a portion of a text without pages.

    `number` counts units from 1, so that a parser can start at any of them. `page` is what a reader calls it: the page
    of a PDF, the slide of a presentation, the sheet of a workbook; None for text without pages. `text` is Markdown:
    headings with `#`, tables with pipes, code in fences. `blocks` cover all of it but blank lines, in order.

    `pages` and `title` of the document are in its first unit, if the format has them. `total` is how many units there
    are: exact for pages, an estimate for portions of a text.
    """

    number: int
    text: str
    blocks: list[Block]
    page: int | None = None
    pages: int | None = None
    title: str | None = None
    total: int | None = None
