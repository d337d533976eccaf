"""Chapters of electronic books (XHTML) as blocks. A chapter that is not well-formed is read as browsers would."""

import re
from html import unescape
from typing import Any

from holdfast.knowledge.parsing.archive import Archive
from holdfast.knowledge.parsing.markdown_table import table
from holdfast.knowledge.parsing.safe_xml import OPTIONS, Element, etree, too_deep, whole_number
from holdfast.knowledge.parsing.unit_builder import UnitBuilder
from holdfast.knowledge.parsing.units import BlockKind

SKIPPED = frozenset(
    {"head", "script", "style", "template", "noscript", "svg", "rt", "rp", "audio", "video", "object", "iframe",
     "button", "input", "select", "textarea", "canvas"}
)  # fmt: skip
BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset",
     "figcaption", "figure", "footer", "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol",
     "p", "pre", "section", "form", "summary", "table", "ul", "h1", "h2", "h3", "h4", "h5", "h6", "caption"}
)  # fmt: skip
HEADINGS = {f"h{level}": level for level in range(1, 7)}
LISTS = frozenset({"ul", "ol", "menu"})
SPACE = re.compile(r"[ \t\r\n\f]+")
MAX_SPAN = 64


class _LocalNames(dict[object, str]):
    """The names of tags without their namespaces; an entity has none."""

    def __missing__(self, tag: object) -> str:
        return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""


LOCAL_NAMES = _LocalNames()


def add_chapter(archive: Archive, part: str, builder: UnitBuilder) -> None:
    """Add the blocks of a chapter."""
    root = _root(archive, archive.read(part))
    if root is not None:
        _Chapter(archive, builder).add(root)


def _root(archive: Archive, content: bytes) -> Element | None:
    try:
        return etree.fromstring(content, etree.XMLParser(**OPTIONS))
    except (etree.XMLSyntaxError, ValueError) as error:
        if "depth" in str(error):
            raise too_deep(archive) from error
    options = {"no_network": True, "huge_tree": False, "remove_comments": True, "remove_pis": True, "encoding": "utf-8"}
    if re.match(rb"\s*<\?xml[^>]*encoding", content[:200]) or b"charset" in content[:1024]:
        del options["encoding"]  # it says which it has
    try:
        found: Any = etree.fromstring(content, etree.HTMLParser(**options))
    except (etree.XMLSyntaxError, ValueError):
        return None  # an empty file
    return found


class _Chapter:
    def __init__(self, archive: Archive, builder: UnitBuilder) -> None:
        self._archive = archive
        self._builder = builder
        self._inline: list[str] = []

    def add(self, root: Element) -> None:
        """Add the blocks of a document."""
        self._walk(root, "paragraph", 0)
        self._flush("paragraph")

    def _walk(self, element: Element, kind: BlockKind, depth: int) -> None:
        """Add what an element contains: text is collected until a block begins or ends."""
        if depth > self._archive.limits.depth:
            raise too_deep(self._archive)
        self._inline.append(element.text or "")
        for each in element:
            name = local(each)
            if name in BLOCKS:
                self._flush(kind)
                self._block(each, name, depth + 1)
            elif name == "br":
                self._inline.append("\0")
            elif name == "img":
                self._image(each, kind)
            elif name == "math":
                self._inline.append(_equation(each))
            elif name == "":
                self._inline.append(entity(each))
            elif name not in SKIPPED:
                self._walk(each, kind, depth + 1)
            self._inline.append(each.tail or "")

    def _block(self, element: Element, name: str, depth: int) -> None:
        if name in HEADINGS:
            self._builder.heading(text_of(element), HEADINGS[name])
        elif name in LISTS:
            self._builder.add("list", "\n".join(_items(element, 0)))
        elif name == "table":
            self._table(element)
        elif name == "pre":
            text = "".join(element.itertext()).strip("\n")
            fence = "```" if "```" not in text else "~~~~"
            self._builder.add("code", f"{fence}\n{text}\n{fence}" if text.strip() else "")
        else:
            kind: BlockKind = "caption" if name in {"figcaption", "caption"} else "paragraph"
            self._walk(element, kind, depth)
            self._flush(kind)

    def _table(self, element: Element) -> None:
        caption = next((each for each in element if local(each) == "caption"), None)
        if caption is not None:
            self._builder.add("caption", text_of(caption))
        rows = _rows(element)
        if any(any(row) for row in rows):
            self._builder.add("table", table(rows))

    def _image(self, element: Element, kind: BlockKind) -> None:
        """The description of an image: a block by itself where the image is one."""
        text = " ".join((element.get("alt") or "").split())
        if text and not lines(self._inline):
            self._builder.add("caption" if kind == "caption" else "paragraph", text)
        elif text:
            self._inline.append(f" {text} ")

    def _flush(self, kind: BlockKind) -> None:
        text = lines(self._inline)
        self._inline = []
        self._builder.add(kind, text)


def lines(parts: list[str]) -> str:
    """Text with single spaces; its line breaks are zero characters, which XML cannot contain."""
    text = "".join(parts)
    if not text or text.isspace():
        return ""
    found = (SPACE.sub(" ", line).strip() for line in text.split("\0"))
    return "\n".join(line for line in found if line)


def text_of(element: Element) -> str:
    """The text of an element on one line."""
    return " ".join("".join(_texts(element)).replace("\0", " ").split())


def local(element: Element) -> str:
    """The name of an element without its namespace; empty for an entity."""
    return LOCAL_NAMES[element.tag]


def entity(element: Element) -> str:
    """The character of a named entity of HTML. An entity that the file defines itself is never expanded."""
    text = unescape(element.text or "")
    return "" if text.startswith("&") else text


def _texts(element: Element) -> list[str]:
    found = [element.text or ""]
    for each in element:
        name = local(each)
        if name == "br":
            found.append("\0")
        elif name == "img":
            found.append(each.get("alt") or "")
        elif name == "math":
            found.append(_equation(each))
        elif name == "":
            found.append(entity(each))
        elif name not in SKIPPED:
            found += [" ", *_texts(each), " "] if name in BLOCKS or name in {"td", "th", "tr"} else _texts(each)
        found.append(each.tail or "")
    return found


def _equation(element: Element) -> str:
    return element.get("alttext") or " ".join("".join(element.itertext()).split())


def _items(element: Element, level: int) -> list[str]:
    """The lines of a list."""
    found: list[str] = []
    number = whole_number(element.get("start"), 1)
    for each in element:
        name = local(each)
        if name in LISTS:  # not allowed, and common
            found += _items(each, level + 1)
        if name != "li":
            continue
        nested: list[str] = []
        parts = [each.text or ""]
        for inner in each:
            kind = local(inner)
            if kind in LISTS:
                nested += _items(inner, level + 1)
            elif kind == "":
                parts.append(entity(inner))
            elif kind not in SKIPPED:
                parts.append(" " if kind in BLOCKS or kind == "br" else "")
                parts += _texts(inner)
            parts.append(inner.tail or "")
        text = " ".join("".join(parts).replace("\0", " ").split())
        marker = f"{number}." if local(element) == "ol" else "-"
        if text:
            found.append(f"{'    ' * level}{marker} {text}")
        found += nested
        number += 1
    return found


def _rows(element: Element) -> list[list[str]]:
    """The cells of a table. A cell that spans rows or columns repeats its text."""
    rows: list[list[str]] = []
    above: dict[int, tuple[int, str]] = {}  # by column: for how many rows more, and what
    for line in element.iter("{*}tr", "tr"):
        if _table_of(line) is not element:
            continue
        cells: list[str] = []
        for cell in (each for each in line if local(each) in {"td", "th"}):
            _fill(cells, above)
            text, down, across = text_of(cell), _span(cell, "rowspan"), _span(cell, "colspan")
            for _ in range(across):
                if down > 1:
                    above[len(cells)] = down - 1, text
                cells.append(text)
        _fill(cells, above)
        rows.append(cells)
    return rows


def _fill(cells: list[str], above: dict[int, tuple[int, str]]) -> None:
    while (found := above.pop(len(cells), None)) is not None:
        left, text = found
        if left > 1:
            above[len(cells)] = left - 1, text
        cells.append(text)


def _span(cell: Element, key: str) -> int:
    return min(max(whole_number(cell.get(key), 1), 1), MAX_SPAN)


def _table_of(line: Element) -> Element | None:
    parent = line.getparent()
    while parent is not None and local(parent) != "table":
        parent = parent.getparent()
    return parent
