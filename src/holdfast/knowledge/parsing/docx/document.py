"""A document as units: its body is read block by block, its tables row by row."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast.knowledge.parsing.charts import add_graphic
from holdfast.knowledge.parsing.docx.blocks import BlockReader, Item, note_texts
from holdfast.knowledge.parsing.docx.inline import InlineReader, TooDeep
from holdfast.knowledge.parsing.docx.list_numbers import Numbering
from holdfast.knowledge.parsing.docx.styles import Styles, switched_on
from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits
from holdfast.knowledge.parsing.markdown_table import header, row
from holdfast.knowledge.parsing.package import Package, open_package
from holdfast.knowledge.parsing.safe_xml import NAMES, Element, child, events, forget, too_deep, tree
from holdfast.knowledge.parsing.unit_builder import MAX_UNIT, MIN_UNIT, UnitBuilder
from holdfast.knowledge.parsing.units import Unit

TAGS = ("p", "tbl", "tr", "oMathPara")
MOST_STYLES = (
    4  # parts of styles that are kept: documents of one template have equal ones, often larger than their text
)
LARGEST_STYLES = 256 * 1024  # bytes

_kept: OrderedDict[bytes, Styles] = OrderedDict()


def parse(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """The text of a document in portions. Headers, footers, comments and deleted text are left out."""
    with open_package(path, "DOCX", limits) as package:
        try:
            yield from _Document(package, first, limits).units()
        except TooDeep:
            raise too_deep(package.archive) from None


class _Document:
    def __init__(self, package: Package, first: int, limits: ParseLimits) -> None:
        self._package = package
        self._builder = UnitBuilder(first=first, limits=limits)
        styles = self._styles()
        self._inline = InlineReader(styles, limits.depth, self._note)
        self._reader = BlockReader(styles, Numbering(self._part("numbering")), self._inline)
        self._notes: dict[str, Mapping[str, str]] = {}
        self._labels: dict[tuple[str, str], str] = {}
        self._title = package.title()
        self._flow = _Flow(self._builder, self._title)

    def units(self) -> Iterator[Unit]:
        """The units of the body."""
        for item in self._items():
            if item.graphic is None:
                self._flow.add(item)
            else:
                self._flow.close()
                add_graphic(self._package, self._package.main, item.graphic, self._builder)
            yield from self._flow.ready()
        yield from self._flow.end()

    def _items(self) -> Iterator[Item]:
        archive, part = self._package.archive, self._package.main
        open_tags: list[str] = []
        above: dict[int, str] = {}
        held: list[Item] = []  # of a table that may be a frame around its only cell
        count = 0
        with archive.open(part) as stream:
            for kind, element in events(archive, stream, part, TAGS, ("start", "end")):
                name = NAMES[element.tag]
                if kind == "start":
                    open_tags.append(name)
                    continue
                open_tags.pop()
                if name == "w:tr" and open_tags == ["w:tbl"]:
                    texts, cells = self._reader.row(element, above)
                    if texts:
                        count += 1
                        if count == 1 and len(texts) == 1 and cells:
                            held = cells[0]
                        yield Item("table", "", count, (tuple(texts),))
                elif name == "w:tbl" and not open_tags:
                    if count == 1 and held:
                        self._flow.drop_table()
                        yield from held
                    else:
                        self._flow.close()
                    count, held, above = 0, [], {}
                elif name == "w:p" and not open_tags:
                    if _is_shown(element):
                        yield from self._reader.paragraph(element)
                elif name == "m:oMathPara" and not open_tags:
                    yield from self._reader.equations(element)
                else:
                    continue
                forget(element)

    def _note(self, kind: str, id: str) -> tuple[str, str] | None:
        """The label and the text of a note."""
        if kind not in self._notes:
            root = self._part(f"{kind}s")
            self._notes[kind] = {}  # a note inside of a note is none
            self._notes[kind] = note_texts(root, self._inline, kind) if root is not None else {}
        text = self._notes[kind].get(id)
        if text is None:
            return None
        count = sum(1 for each, _ in self._labels if each == kind) + 1
        return self._labels.setdefault((kind, id), f"{'' if kind == 'footnote' else 'e'}{count}"), text

    def _styles(self) -> Styles:
        part = self._package.first(self._package.main, "styles")
        if part is None:
            return Styles(None)
        content = self._package.archive.read(part)
        found = _kept.get(content)
        if found is None:
            found = Styles(tree(self._package.archive, part, content=content))
        if len(content) <= LARGEST_STYLES:
            _kept[content] = found
            _kept.move_to_end(content)
            if len(_kept) > MOST_STYLES:
                _kept.popitem(last=False)
        return found

    def _part(self, kind: str) -> Element | None:
        part = self._package.first(self._package.main, kind)
        return None if part is None else tree(self._package.archive, part)


def _is_shown(paragraph: Element) -> bool:
    """Whether a paragraph is not the placeholder of an empty content control, nor for programs before 2007."""
    parent = paragraph.getparent()
    if parent is None:
        return True
    name = NAMES[parent.tag]
    if name == "w:sdtContent" and (control := parent.getparent()) is not None:
        return not switched_on(child(control, "w:sdtPr", "w:showingPlcHdr"))
    return name != "mc:Fallback"


class _Flow:
    """Joins items to blocks, and cuts blocks into units."""

    def __init__(self, builder: UnitBuilder, title: str | None) -> None:
        self._builder = builder
        self._title = title
        self._lines: list[str] = []
        self._size = 0
        self._kind = ""
        self._level = 0  # of the outermost item of the list
        self._header = ""
        self._notes: list[str] = []
        self._units: list[Unit] = []
        self._below_title = 0

    def add(self, item: Item) -> None:
        """Add an item to the block that is open, or close that and add a block."""
        if item.note:
            self._notes.append(item.text)
            return
        if item.kind == "table":
            self._table(item)
            return
        if item.kind != self._kind or item.kind not in {"list", "code"}:
            self.close()
        if item.kind == "heading":
            self._heading(item)
        elif item.kind in {"list", "code"}:
            self._kind = item.kind
            self._line(self._indented(item) if item.kind == "list" else item.text)
        else:
            self._room(len(item.text))
            for portion in portions(item.text):
                self._builder.add(item.kind, portion)
                self._room(0)
        if item.kind not in {"list", "code"}:
            self._flush_notes()

    def close(self) -> None:
        """End the list, table or code block that is open."""
        if self._lines:
            text = "\n".join(self._lines)
            match self._kind:
                case "code":
                    fence = "```" if "```" not in text else "~~~~"
                    self._builder.add("code", f"{fence}\n{text}\n{fence}")
                case "table":
                    self._builder.add("table", text)
                case _:
                    self._builder.add("list", text)
        self._lines, self._size, self._kind = [], 0, ""
        self._flush_notes()

    def drop_table(self) -> None:
        """Forget the table that is open: it was a frame."""
        self._lines, self._size, self._kind = [], 0, ""

    def ready(self) -> Iterator[Unit]:
        """The units that are complete."""
        units, self._units = self._units, []
        yield from units

    def end(self) -> Iterator[Unit]:
        """The last units."""
        self.close()
        if self._builder.size or self._builder.number == 1:
            self._cut()
        yield from self.ready()

    def _heading(self, item: Item) -> None:
        """A heading. Below a title, all headings are one level deeper."""
        if self._builder.size >= MIN_UNIT and item.level <= 2:
            self._cut()
        self._room(len(item.text))
        self._builder.heading(item.text, item.level + self._below_title if item.level else 1)
        self._below_title = self._below_title or int(item.level == 0)

    def _table(self, item: Item) -> None:
        if self._kind != "table" or item.level == 1:
            self.close()
            self._kind = "table"
        for place, cells in enumerate(item.rows):
            if not self._lines and (item.level <= 1 and place == 0):
                self._header = header(cells)
                self._line(self._header)
            else:
                self._line(row(cells))
        if item.level == 0:  # a whole table, from a text box
            self.close()

    def _indented(self, item: Item) -> str:
        """The line of an item. The first item of a list is not indented, whatever its level is."""
        self._level = min(item.level, self._level) if self._lines else item.level
        indent = "    " * (item.level - self._level)
        return indent + item.text.replace("\n", f"\n{indent}  ")

    def _line(self, line: str) -> None:
        """Add a line; where the unit is full, go on in the next one, below the table's header again."""
        if self._builder.size + self._size + len(line) > MAX_UNIT and (self._lines or self._builder.size):
            kind = self._kind
            self.close()
            self._cut()
            self._kind = kind
            if kind == "table" and line != self._header:
                self._lines, self._size = [self._header], len(self._header) + 1
        self._lines.append(line)
        self._size += len(line) + 1

    def _room(self, size: int) -> None:
        if self._builder.size and self._builder.size + size > MAX_UNIT:
            self._cut()

    def _flush_notes(self) -> None:
        notes, self._notes = self._notes, []
        for text in notes:
            self._room(len(text))
            self._builder.add("paragraph", text)

    def _cut(self) -> None:
        unit = self._builder.unit(title=self._title)
        if unit is not None:
            self._units.append(unit)


def portions(text: str) -> Iterator[str]:
    """A text in portions that fit into a unit, cut at spaces where there are any."""
    while len(text) > MAX_UNIT:
        at = text.rfind(" ", MAX_UNIT // 2, MAX_UNIT)
        at = MAX_UNIT if at < 0 else at
        yield text[:at]
        text = text[at:].lstrip()
    yield text
