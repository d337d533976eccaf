"""HTML: the main content of a page as Markdown."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from holdfast.knowledge.parsing.encodings import find_encoding
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits
from holdfast.knowledge.parsing.markdown_table import table
from holdfast.knowledge.parsing.portions import Part, clean, units_of
from holdfast.knowledge.parsing.units import BlockKind, Unit

LARGEST = 128 * 1024 * 1024  # bytes: a page is parsed as a whole
DEEPEST = 10_000  # elements in elements; to parse deeper ones takes time that grows with the square of the depth
MAIN_SHARE = 0.4  # of the text of the page that its main element has at least
CONTENT_SHARE = 0.25  # of the text of a page that is content; with less, its navigation may be what it is about
MAX_SPAN = 100  # columns or rows of a cell
MAX_CELLS = 1_000_000  # of a table
MAX_INDENT = 8  # levels of a list that are shown

_SKIPPED_NAMES = """
    head script style noscript template svg nav iframe object embed canvas audio video map dialog button select
    option datalist textarea progress meter frame frameset noframes
"""
_SKIPPED = frozenset(_SKIPPED_NAMES.split())
_BLOCKS_NAMES = """
    address article aside blockquote body center details dd div dl dt fieldset figcaption figure footer form h1 h2
    h3 h4 h5 h6 header hgroup hr html legend li main menu ol p pre section summary table ul
"""
_BLOCKS = frozenset(_BLOCKS_NAMES.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset({"ul", "ol", "menu"})
_SPACE = re.compile(r"[ \t\r\n\f]+")
_AROUND_BREAK = re.compile(r" ?\n ?")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_NESTING = re.compile(
    r"<(/?)(?:a|article|aside|b|big|blockquote|center|code|details|div|dl|em|fieldset|figure|font|form|i|main|ol|"
    r"section|small|span|strong|svg|table|u|ul)(?=[\s>/])",
    re.IGNORECASE,
)
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w:.-]+)", re.IGNORECASE)
_ROLES = frozenset({"navigation", "search", "menu", "menubar", "toolbar", "tablist", "dialog", "alertdialog"})
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source|brush:?)[-\s]([\w+#]+)")


def parse(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """Yield the portions of a page: of its main element, if it has one, without navigation and what is hidden."""
    size = path.stat().st_size
    if size > LARGEST:
        why = f"it has {size // 1_000_000:,} MB, more than {LARGEST // 1_000_000} MB"
        raise ParseError(f"{path.name} cannot be read", code="too_large", why=why, next="Divide the file.")
    yield from parse_text(path, _text(path), first=first, limits=limits)


def parse_text(path: Path, text: str, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """Yield the portions of a page, given its text."""
    if _depth(text) > DEEPEST:
        why = f"its elements are nested more than {DEEPEST:,} deep"
        raise ParseError(f"{path.name} cannot be read", code="too_deep", why=why, next="Save it as plain text.")
    tree = LexborHTMLParser(text)
    title = _title(tree)
    body = tree.body
    parts = parts_of(path, body) if body is not None else ()
    yield from units_of(path, parts, first=first, limits=limits, title=title, total=max(1, len(text) // (1 << 17)))


def _text(path: Path) -> str:
    data = path.read_bytes()
    declared = _CHARSET.search(data, 0, 4096)
    encoding = find_encoding(path)
    if declared and not encoding.startswith("utf"):
        name = declared[1].decode("ascii", errors="replace").lower()
        name = {
            "gb2312": "gb18030",
            "gbk": "gb18030",
            "iso-8859-1": "cp1252",
            "latin1": "cp1252",
            "shift_jis": "cp932",
            "big5": "big5hkscs",
        }.get(name, name)
        try:
            return clean(data.decode(name, errors="replace"))
        except LookupError:
            pass
    return clean(data.decode(encoding, errors="replace"))


def _depth(text: str) -> int:
    """Return about how deep elements are nested: those that end with a tag of their own."""
    steps = (-1 if slash else 1 for slash in _NESTING.findall(text))
    return max(accumulate(steps), default=0)


def _title(tree: Any) -> str | None:
    for selector in ("title", "h1"):
        found = tree.css_first(selector)
        if found is not None and (name := " ".join(found.text().split())):
            return name[:500]
    return None


def parts_of(path: Path, body: Any) -> list[Part]:
    """Return the parts of an element as Markdown, without navigation, unless there is little else."""
    body.strip_tags(["script", "style", "noscript", "template"], recursive=True)
    found = list(_Walk(path).parts(_main(body)))
    if sum(len(part.text) for part in found) < CONTENT_SHARE * len(" ".join(body.text().split())):
        found = list(_Walk(path, navigation=True).parts(body))
    return found


def _main(body: Any) -> Any:
    """Return the element with the main content: the only `main`, if most of the text is in it."""
    for selector in ("main, [role=main]", "article"):
        found = body.css(selector)
        if len(found) == 1 and len(found[0].text()) >= MAIN_SHARE * len(body.text()):
            return found[0]
    return body


@dataclass(slots=True)
class _OpenList:
    is_ordered: bool
    number: int = 1


@dataclass(slots=True)
class _Table:
    rows: list[list[str]] = field(default_factory=list[list[str]])
    spans: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])  # cells of rows above
    cells: int = 0
    in_cell: bool = False
    colspan: int = 1
    rowspan: int = 1
    outer: list[str] = field(default_factory=list[str])  # the text around it


class _Walk:
    """Walks through elements, without recursion: pages can be nested to any depth."""

    def __init__(self, path: Path, *, navigation: bool = False) -> None:
        self._path = path
        self._skipped = _SKIPPED - {"nav"} if navigation else _SKIPPED
        self._roles = frozenset[str]() if navigation else _ROLES
        self._inline: list[str] = []
        self._found: list[Part] = []
        self._lists: list[_OpenList] = []
        self._items: list[str] = []  # lines of the open list
        self._mark = ""  # of the item that begins
        self._quotes = 0
        self._tables: list[_Table] = []

    def parts(self, root: Any) -> Iterator[Part]:
        """Yield the parts of an element."""
        node, above = root.child, 0
        while node is not None:
            entered = self._enter(node)
            if self._found:
                yield from self._found
                self._found = []
            following = node.child if entered else None
            if following is not None:
                node, above = following, above + 1
                continue
            if entered:
                self._leave(node.tag)
            while node.next is None and above:
                node, above = node.parent, above - 1
                self._leave(node.tag)
            node = node.next
        self._flush()
        self._end_list()
        yield from self._found
        self._found = []

    def _enter(self, node: Any) -> bool:
        """Take an element or a text. Return whether what is in it is to be visited."""
        tag: str = node.tag
        if tag == "-text":
            self._inline.append(node.text_content or "")
            return False
        if tag in self._skipped or tag[0] in "-_!" or self._is_hidden(node):
            return False
        if tag == "br":
            self._inline.append("\n\x00")
        elif tag == "img" or tag == "input":
            return False
        elif tag == "table":
            return self._enter_table(node)
        elif self._tables and self._tables[-1].in_cell:
            if tag in _BLOCKS:
                self._inline.append(" ")
            return True
        elif self._tables and tag in ("tr", "td", "th", "caption"):
            return self._enter_row(tag, node)
        elif tag == "pre":
            return self._code(node)
        elif tag in ("code", "kbd", "samp", "tt"):
            self._inline.append("`")
        elif tag in _BLOCKS:
            self._enter_block(tag, node)
        return True

    def _enter_block(self, tag: str, node: Any) -> None:
        self._flush()
        if tag in _LISTS:
            self._lists.append(_OpenList(tag == "ol", _number(node, "start", 1)))
        elif tag == "li" and self._lists:
            opened = self._lists[-1]
            self._mark = f"{opened.number}. " if opened.is_ordered else "- "
            opened.number += 1
        elif tag == "blockquote":
            self._end_list()
            self._quotes += 1
        elif tag in _HEADINGS and self._lists and len(self._lists) == 1 and not self._items:
            self._mark = ""

    def _leave(self, tag: str) -> None:
        if self._tables and self._leave_in_table(tag):
            return
        if tag in ("code", "kbd", "samp", "tt"):
            self._inline.append("`")
        elif tag in _HEADINGS:
            self._flush("heading", _HEADINGS[tag])
        elif tag == "figcaption":
            self._flush("caption")
        elif tag in _BLOCKS:
            self._flush()
            if tag in _LISTS and self._lists:
                self._lists.pop()
                self._mark = ""
                if not self._lists:
                    self._end_list()
            elif tag == "blockquote":
                self._quotes = max(0, self._quotes - 1)

    def _is_hidden(self, node: Any) -> bool:
        attributes: dict[str, str | None] = node.attributes
        if not attributes:
            return False
        if "hidden" in attributes or attributes.get("aria-hidden") == "true":
            return True
        if (attributes.get("role") or "") in self._roles:
            return True
        style = attributes.get("style")
        return style is not None and _HIDDEN.search(style) is not None

    def _code(self, node: Any) -> bool:
        self._flush()
        text = node.text(deep=True).strip("\n").rstrip()
        if self._lists:
            self._mark_lines(text)
            return False
        if text:
            fence = "```"
            while fence in text:
                fence += "`"
            self._found.append(Part("code", f"{fence}{_language(node)}\n{text}\n{fence}"))
        return False

    def _enter_table(self, node: Any) -> bool:
        if not self._tables:
            self._flush()
            self._end_list()
        self._tables.append(_Table(outer=self._inline))
        self._inline = []
        return True

    def _enter_row(self, tag: str, node: Any) -> bool:
        found = self._tables[-1]
        self._inline = []
        if tag == "tr":
            found.rows.append([])
        elif tag in ("td", "th"):
            if not found.rows:
                found.rows.append([])
            found.in_cell = True
            found.colspan = min(MAX_SPAN, max(1, _number(node, "colspan", 1)))
            found.rowspan = min(MAX_SPAN, max(1, _number(node, "rowspan", 1)))
        return True

    def _leave_in_table(self, tag: str) -> bool:
        """Take the end of an element in a table. Return whether nothing more is to be done."""
        found = self._tables[-1]
        if tag in ("td", "th") and found.in_cell:
            self._cell(found)
        elif tag == "caption":
            if text := self._text():
                self._found.append(Part("caption", text))
        elif tag == "table":
            self._tables.pop()
            self._end_table(found)
        elif found.in_cell and tag in _BLOCKS:
            self._inline.append(" ")
        return True

    def _cell(self, found: _Table) -> None:
        text = self._text().replace("\n", " ")
        found.in_cell = False
        row, cells = len(found.rows) - 1, found.rows[-1]
        while (row, len(cells)) in found.spans:
            cells.append(found.spans.pop((row, len(cells))))
        for _ in range(found.colspan):
            for below in range(1, found.rowspan):
                found.spans[row + below, len(cells)] = text
            cells.append(text)
            found.cells += found.rowspan
        if found.cells > MAX_CELLS:
            why = f"a table has more than {MAX_CELLS:,} cells"
            raise ParseError(f"{self._path.name} cannot be read", code="too_large", why=why, next="Divide the table.")

    def _end_table(self, found: _Table) -> None:
        rows: list[list[str]] = []
        for number, cells in enumerate(found.rows):
            while (number, len(cells)) in found.spans:
                cells.append(found.spans.pop((number, len(cells))))
            if any(cells):
                rows.append(cells)
        self._inline = found.outer
        if self._tables and self._tables[-1].in_cell:  # a table in a cell is its text
            self._inline.append(" ".join(" ".join(filter(None, row)) for row in rows))
        elif len(rows) > 1 and max(map(len, rows)) > 1:
            self._found.append(Part("table", table(rows), header_lines=2))
        else:  # it only arranges what is in it
            self._found += [Part("paragraph", cell) for row in rows for cell in dict.fromkeys(row) if cell]

    def _flush(self, kind: BlockKind = "paragraph", level: int = 0) -> None:
        """End the open text as a block."""
        if not self._inline:
            return
        text = self._text()
        if not text:
            return
        if level:
            if self._lists and self._mark and not self._items:
                self._mark = ""
            self._end_list()
            self._found.append(Part("heading", f"{'#' * level} {text.replace(chr(10), ' ')}", level))
        elif self._lists:
            self._mark_lines(text)
        else:
            if self._quotes:
                text = "\n".join(f"> {line}" for line in text.split("\n"))
            self._found.append(Part(kind, text))

    def _mark_lines(self, text: str) -> None:
        indent = "  " * min(len(self._lists) - 1, MAX_INDENT)
        rest = "  " if not self._mark else " " * len(self._mark)
        lines = text.split("\n")
        self._items.append(f"{indent}{self._mark or rest}{lines[0]}")
        self._items += [f"{indent}{rest}{line}" for line in lines[1:]]
        self._mark = ""

    def _end_list(self) -> None:
        if self._items:
            self._found.append(Part("list", "\n".join(self._items)))
            self._items = []

    def _text(self) -> str:
        """Return the open text, with single blanks, and begin anew."""
        text = "".join(self._inline)
        self._inline = []
        if "\x00" in text:
            lines = (_SPACE.sub(" ", line).strip() for line in text.replace("\n\x00", "\x00").split("\x00"))
            return "\n".join(filter(None, lines)).replace("``", "")
        return _SPACE.sub(" ", text).strip().replace("``", "")


def _number(node: Any, attribute: str, default: int) -> int:
    value = node.attributes.get(attribute) or ""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 7 else default


def _language(node: Any) -> str:
    for each in (node, node.child):
        if each is not None and each.tag in ("pre", "code"):
            found = _LANGUAGE.search(each.attributes.get("class") or "")
            if found:
                return found[1]
    return ""
