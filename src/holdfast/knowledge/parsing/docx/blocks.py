"""Paragraphs and tables of a document as items: what each is, and its text."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from holdfast.knowledge.parsing.docx.inline import CHECKED, UNCHECKED, Inline, InlineReader
from holdfast.knowledge.parsing.docx.list_numbers import Level, Numbering
from holdfast.knowledge.parsing.docx.styles import Style, Styles, integer, switched_on, value
from holdfast.knowledge.parsing.equations import latex
from holdfast.knowledge.parsing.safe_xml import NAMES, Element, child, children, descendants, own
from holdfast.knowledge.parsing.units import BlockKind

WRAPPERS = frozenset({"w:sdtContent", "w:customXml", "w:ins", "w:moveTo", "w:smartTag"})
MAX_SPAN = 256  # columns that a cell is repeated in
MAX_COLUMNS = 1024
# What code has and prose has not: it tells code from a letter that is set in Courier.
CODE_SIGNS = re.compile(r"[{}<>=|\\$#@^~`]|\(\)|\w\(|;\s*$|;\n|::|->|//|/\*|\w\[|\w\.\w+\(|\w_\w", re.MULTILINE)


class Item(NamedTuple):
    """A piece of a document. `level` is that of a heading, or of an item of a list; `rows` are those of a table."""

    kind: BlockKind
    text: str
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()
    graphic: Element | None = None
    note: bool = False


class BlockReader:
    """Reads paragraphs, tables and what contains them, in order: numbering counts as it goes."""

    def __init__(self, styles: Styles, numbering: Numbering, inline: InlineReader) -> None:
        self._styles = styles
        self._numbering = numbering
        self._inline = inline
        self._carried = ""  # text of paragraphs whose end was deleted, and large first letters
        self._in_code = False  # the paragraph before was code

    def blocks(self, container: Element) -> Iterator[Item]:
        """All items in an element."""
        for each in container:
            name = NAMES[each.tag]
            if name == "w:p":
                yield from self.paragraph(each)
            elif name == "w:tbl":
                yield from self._table(each)
            elif name == "w:sdt":
                if not switched_on(child(each, "w:sdtPr", "w:showingPlcHdr")):
                    for content in children(each, "w:sdtContent"):
                        yield from self.blocks(content)
            elif name in WRAPPERS:
                yield from self.blocks(each)
            elif name == "mc:AlternateContent":
                yield from self.blocks(each[0]) if len(each) else ()
            elif name == "m:oMathPara":
                yield from self.equations(each)

    def equations(self, element: Element) -> Iterator[Item]:
        """The equations of an `m:oMathPara`."""
        for each in children(element, "m:oMath"):
            yield Item("paragraph", f"$${latex(each)}$$")

    def paragraph(self, element: Element) -> Iterator[Item]:
        """A paragraph, then the text boxes, charts and notes in it."""
        properties = child(element, "w:pPr")
        id = value(child(properties, "w:pStyle"))
        style = self._styles.of(id)
        found = self._inline.read(element, monospaced=style.monospaced)
        if child(properties, "w:rPr", "w:del") is not None or _is_drop_cap(properties):
            self._carried += found.text
        else:
            if self._carried:
                found.text, self._carried = self._carried + found.text, ""
            numbered = self._number(properties, style, id)
            yield from self._shown(found, style, _outline(properties, style), numbered)
        for box in found.boxes:
            yield from self.blocks(box)
        for graphic in found.graphics:
            yield Item("paragraph", "", graphic=graphic)
        for label, text in found.notes:
            yield Item("paragraph", f"[^{label}]: {text}", note=True)

    def row(self, element: Element, above: dict[int, str]) -> tuple[list[str], list[list[Item]]]:
        """The texts of a row, and the items of its cells. `above`: the texts of cells merged downwards, by column."""
        properties = child(element, "w:trPr")
        if child(properties, "w:del") is not None:
            return [], []
        texts = [""] * min(integer(child(properties, "w:gridBefore")) or 0, MAX_SPAN)
        items: list[list[Item]] = []
        for cell in _cells(element):
            shape = child(cell, "w:tcPr")
            if child(shape, "w:cellDel") is not None or len(texts) > MAX_COLUMNS:
                continue
            column, merged = len(texts), child(shape, "w:vMerge")
            if merged is not None and value(merged) != "restart":
                text = above.get(column, "")
            else:
                inside = list(self.blocks(cell))
                items.append(inside)
                text = flat(inside)
                above.pop(column, None)
                if merged is not None:
                    above[column] = text
            sideways = child(shape, "w:hMerge")
            if sideways is not None and value(sideways) != "restart" and texts:
                text = texts[-1]
            texts += [text] * min(max(integer(child(shape, "w:gridSpan")) or 1, 1), MAX_SPAN)
        return texts, items

    def _table(self, element: Element) -> Iterator[Item]:
        above: dict[int, str] = {}
        read = [self.row(each, above) for each in _rows(element)]
        rows = [tuple(texts) for texts, _ in read if texts]
        if len(rows) == 1 and len(rows[0]) == 1:
            yield from next(items for _, items in read if items)[0]
        elif any(any(row) for row in rows):
            yield Item("table", "", rows=tuple(rows))

    def _number(self, properties: Element | None, style: Style, id: str | None) -> tuple[int, Level, str] | None:
        """The level and the label of a numbered paragraph."""
        direct = child(properties, "w:numPr")
        number_id = value(child(direct, "w:numId")) or style.number_id
        if number_id is None or number_id == "0":
            return None
        place = integer(child(direct, "w:ilvl"))
        if place is None:
            place = self._numbering.level_of_style(number_id, id) if direct is None else None
        place = place if place is not None else style.number_level or 0
        found = self._numbering.next(number_id, place)
        return None if found is None else (place, *found)

    def _shown(
        self, found: Inline, style: Style, level: int, numbered: tuple[int, Level, str] | None
    ) -> Iterator[Item]:
        label = numbered[2] if numbered else ""
        for equation in found.equations:
            yield Item("paragraph", f"$${equation}$$")
        if not found.text.strip():
            return
        text, in_code = tidy(found.text), self._in_code
        self._in_code = False
        if style.kind == "title":
            yield Item("heading", text, 0)
        elif level:
            yield Item("heading", f"{label} {text}" if label else text, level)
        elif style.kind == "code" or (
            found.monospaced and numbered is None and (in_code or CODE_SIGNS.search(found.text))
        ):
            self._in_code = True
            yield Item("code", found.text.replace("\t", "    ").rstrip())
        elif numbered is not None:
            place, shape, _ = numbered
            yield Item("list", f"{_marker(shape, label)} {text}", place)
        elif style.kind == "list":
            yield Item("list", f"- {text}", style.number_level or 0)
        elif text.startswith((CHECKED, UNCHECKED)):
            yield Item("list", f"- {text}")
        else:
            yield Item("caption" if style.kind == "caption" else "paragraph", text)


def tidy(text: str) -> str:
    """Text without tabs, and without spaces at the ends of its lines."""
    lines = (" ".join(line.split("\t")).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def flat(items: list[Item]) -> str:
    """Items as the text of one cell."""
    found: list[str] = []
    for item in items:
        if item.rows:
            found.append(" ".join(" ".join(filter(None, row)) for row in item.rows))
        elif item.kind == "list" and item.level:
            found.append(f"- {item.text}" if not item.text.startswith("- ") else item.text)
        elif item.text:
            found.append(item.text)
    return " ".join(found).replace("\n", " ")


def note_texts(root: Element, inline: InlineReader, kind: str) -> Mapping[str, str]:
    """The notes of a part (`w:footnote` or `w:endnote`), by id."""
    found: dict[str, str] = {}
    for each in children(root, f"w:{kind}"):
        id = next((text for name, text in each.attrib.items() if name.endswith("}id")), None)
        texts = (tidy(inline.read(paragraph).text) for paragraph in descendants(each, "w:p"))
        text = " ".join(filter(None, texts)).replace("\n", " ")
        if id is not None and text and not any(name.endswith("}type") for name in each.attrib):
            found[id] = text
    return found


def _outline(properties: Element | None, style: Style) -> int:
    """The level of a heading, or 0."""
    direct = integer(child(properties, "w:outlineLvl"))
    if direct is not None:
        return direct + 1 if 0 <= direct < 9 else 0
    return style.level if style.kind == "heading" else 0


def _is_drop_cap(properties: Element | None) -> bool:
    """Whether a paragraph is the large first letter of the next one."""
    frame = child(properties, "w:framePr")
    return frame is not None and own(frame, "dropCap") in {"drop", "margin"}


def _marker(level: Level, label: str) -> str:
    """What an item begins with: `-`, `3.`, or a bullet with the label that Word shows."""
    if not label:
        return "-"
    bare = label.rstrip(".)")
    return f"{bare}." if bare.isascii() and bare.isdigit() else f"- {label}"


def _rows(table: Element) -> Iterator[Element]:
    return _within(table, "w:tr")


def _cells(row: Element) -> Iterator[Element]:
    return _within(row, "w:tc")


def _within(element: Element, name: str) -> Iterator[Element]:
    for each in element:
        found = NAMES[each.tag]
        if found == name:
            yield each
        elif found in WRAPPERS or found == "w:sdt":
            yield from _within(each, name)
