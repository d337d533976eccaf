"""Markdown: its text as it is written, and its blocks as CommonMark and GitHub's tables have them."""

import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits
from holdfast.knowledge.parsing.portions import PORTION, check_units, clean, estimated_total, open_text, too_long
from holdfast.knowledge.parsing.units import Block, BlockKind, Unit

CUT_FROM = 0.75  # of a portion: from then on it ends before a heading, if it can
LONGEST = 2 * PORTION  # characters; a table or a code block that is longer is cut between two lines
FRONT_MATTER = 1000  # lines

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_DELIMITERS = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_TITLE = re.compile(r"title\s*[:=]\s*(.+)$", re.IGNORECASE)
_MARKS = re.compile(r"[*_`]+|!?\[([^\]]*)\]\([^)]*\)")


def parse(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """Yield the portions of a Markdown file. Its title is that of its front matter, else its first heading."""
    total = estimated_total(path)
    for number, (text, blocks) in enumerate(_portions(path, limits), 1):
        check_units(path, number, limits)
        if number >= first:
            title = _title(text, blocks) if number == 1 else None
            yield Unit(number, text, blocks, title=title, total=max(total, number))


def _portions(path: Path, limits: ParseLimits) -> Iterator[tuple[str, list[Block]]]:
    scanner = Scanner()
    characters = 0
    with open_text(path, limits) as file:
        while line := file.readline(PORTION):
            characters += len(line)
            if characters > limits.characters:
                raise too_long(path, limits)
            line = clean(line)
            if scanner.size > CUT_FROM * PORTION and scanner.may_end_before(line):
                yield scanner.take()
            scanner.feed(line)
    if scanner.size:
        yield scanner.take()


class Scanner:
    """Finds the blocks of Markdown, line by line. Text is handed out in portions."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.size = 0  # characters that are not handed out
        self._blocks: list[Block] = []
        self._kind: BlockKind | None = None  # of the open block
        self._start = self._end = 0
        self._fence = ""  # the marks that the open code block began with
        self._fence_in_list = False
        self._comment = False  # inside an HTML comment
        self._front_matter = ""  # the marks that end it
        self._begun = False
        self._after_blank = True
        self._count = 0

    def may_end_before(self, line: str) -> bool:
        """Whether a portion may end before a line: at a heading, when it is full at a blank, when too long anywhere."""
        if self.size >= LONGEST:
            return True
        if self._fence or self._comment or self._front_matter:
            return False
        if self.size >= PORTION:
            return self._after_blank or self._kind in (None, "heading")
        return self._kind in (None, "heading", "paragraph") and _HEADING.match(line) is not None

    def take(self) -> tuple[str, list[Block]]:
        """Return the text so far with its blocks, and begin anew. A code block that is cut goes on."""
        kind = self._kind
        self._close()
        text = "".join(self._lines)
        start = len(text) - len(text.lstrip("\n"))
        text = text.rstrip()[start:]
        blocks = [
            Block(block.kind, max(0, block.start - start), min(len(text), block.end - start), block.level, block.path)
            for block in self._blocks
        ]
        self._lines, self._blocks, self.size = [], [], 0
        if self._fence or self._front_matter:
            self._open(kind or "code", 0)
        return text, [block for block in blocks if block.end > block.start]

    def feed(self, line: str) -> None:
        """Take the next line, with its end."""
        start, self.size = self.size, self.size + len(line)
        self._lines.append(line)
        self._count += 1
        text = line.rstrip()
        if self._goes_on(text, start):
            return
        if not text:
            self._blank()
            return
        was_blank, self._after_blank = self._after_blank, False
        begun, self._begun = self._begun, True
        if not begun and text in ("---", "+++") and self._count == 1:
            self._front_matter = text
            self._open("code", start)
        elif not self._begins_block(text, start, was_blank) and (
            self._kind is None or (was_blank and self._kind != "list")
        ):
            self._close()
            self._open("paragraph", start)
        self._end = start + len(text)

    def _goes_on(self, text: str, start: int) -> bool:
        """Take a line inside of front matter, code or a comment."""
        if self._front_matter:
            self._end = start + len(text)
            if text == self._front_matter or text == "..." or self._count > FRONT_MATTER:
                self._front_matter = ""
                self._close()
            return True
        if self._fence:
            self._end = max(self._end, start + len(text))
            mark = text.strip()
            if mark and len(mark) >= len(self._fence) and not mark.strip(self._fence[0]):
                self._fence = ""
                if not self._fence_in_list:
                    self._close()
            return True
        if self._comment:
            self._end = start + len(text)
            self._comment = "-->" not in text
            return True
        return False

    def _blank(self) -> None:
        if self._kind not in ("list", "code"):
            self._close()
        self._after_blank = True

    def _begins_block(self, text: str, start: int, was_blank: bool) -> bool:
        """Open the block that a line begins, or go on with the open one. Return False for text of a paragraph."""
        return (
            (self._kind == "list" and self._in_list(text, text[0], was_blank))
            or (text[0] in " \t`~#" and self._begins_code_or_heading(text, start))
            or ((was_blank or self._kind in (None, "code")) and self._is_indented_code(text, start))
            or (self._kind == "paragraph" and not was_blank and self._turns_paragraph(text, start))
            or (self._kind == "table" and not was_blank)
            or self._begins_list(text, start)
        )

    def _begins_code_or_heading(self, text: str, start: int) -> bool:
        if fence := _FENCE.match(text):
            self._fence, self._fence_in_list = fence[1], False
            self._close()
            self._open("code", start)
            return True
        if heading := _HEADING.match(text):
            self._close()
            self._blocks.append(Block("heading", start, start + len(text), len(heading[1])))
            return True
        return False

    def _is_indented_code(self, text: str, start: int) -> bool:
        if text.startswith(("    ", "\t")) and self._kind in (None, "code"):
            if self._kind is None:
                self._open("code", start)
            return True
        if self._kind == "code":
            self._close()
        return False

    def _turns_paragraph(self, text: str, start: int) -> bool:
        """Whether a line makes a heading or a table of the lines before it."""
        if text[0] in "=- " and _UNDERLINE.match(text):
            self._kind = None
            self._blocks.append(Block("heading", self._start, start + len(text), 1 if "=" in text else 2))
            return True
        if "-" in text and "|" in self._lines[-2] and _DELIMITERS.match(text):
            self._begin_table(start)
            return True
        return False

    def _begins_list(self, text: str, start: int) -> bool:
        first = text[0]
        if first in " *-_" and _RULE.match(text):
            self._close()
        elif first in " \t-*+0123456789" and _ITEM.match(text) and (self._kind != "paragraph" or first in "-*+1"):
            self._close()
            self._open("list", start)
            return True
        elif first == "<" and text.startswith("<!--") and "-->" not in text:
            self._comment = True
        return False

    def _in_list(self, text: str, first: str, was_blank: bool) -> bool:
        """Whether a line is part of the open list: an item, what is indented, or the rest of a paragraph."""
        if first in " \t":
            if fence := _FENCE.match(text):
                self._fence, self._fence_in_list = fence[1], True
            return True
        is_rule = _RULE.match(text) is not None
        if not is_rule and _ITEM.match(text):
            return True
        if was_blank or is_rule or first in ">|<" or _HEADING.match(text) or _FENCE.match(text):
            self._close()
            return False
        return True

    def _begin_table(self, start: int) -> None:
        """Open a table at the line before this one, which is its header."""
        header = start - len(self._lines[-2])
        if self._start < header:
            end = header - 1
            self._blocks.append(Block("paragraph", self._start, end))
        self._kind, self._start = "table", header

    def _open(self, kind: BlockKind, start: int) -> None:
        self._kind, self._start, self._end = kind, start, start

    def _close(self) -> None:
        if self._kind is not None and self._end > self._start:
            self._blocks.append(Block(self._kind, self._start, self._end))
        self._kind = None


def _title(text: str, blocks: list[Block]) -> str | None:
    """Return the title in the front matter, else the first heading if it is the highest."""
    if text.startswith(("---", "+++")) and blocks:
        for line in text[blocks[0].start : blocks[0].end].splitlines():
            if found := _TITLE.match(line):
                return found[1].strip().strip("\"'")[:500] or None
    for block in blocks:
        if block.kind == "heading":
            lines = text[block.start : block.end].strip("# \t\n").split("\n")
            name = _MARKS.sub(lambda match: match[1] or "", lines[0].strip()).strip()
            return name[:500] or None if block.level == 1 else None
    return None
