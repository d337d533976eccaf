"""A workbook as units: a sheet is one unit, or several where it is long."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.knowledge.parsing.charts import add_graphic
from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits
from holdfast.knowledge.parsing.markdown_table import table
from holdfast.knowledge.parsing.package import Package, open_package, paragraphs
from holdfast.knowledge.parsing.safe_xml import (
    NAMES,
    Element,
    child,
    children,
    descendants,
    reference,
    tree,
    whole_number,
)
from holdfast.knowledge.parsing.unit_builder import MAX_UNIT, UnitBuilder
from holdfast.knowledge.parsing.units import Unit
from holdfast.knowledge.parsing.xlsx.islands import Islands, Portion
from holdfast.knowledge.parsing.xlsx.number_formats import NumberFormat, number_format
from holdfast.knowledge.parsing.xlsx.shared_strings import SharedStrings, rich_text
from holdfast.knowledge.parsing.xlsx.sheet import SheetReader

PORTION = MAX_UNIT - 16 * 1024  # room for the header and for the pipes around empty cells


@dataclass(frozen=True, slots=True)
class _Sheet:
    name: str
    part: str
    kind: str


def parse(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """The visible sheets in order: tables, then charts, text boxes and comments. Formulas show their last value."""
    with open_package(path, "XLSX", limits) as package:
        yield from _Workbook(package, first, limits).units()


class _Workbook:
    def __init__(self, package: Package, first: int, limits: ParseLimits) -> None:
        self._package = package
        self._builder = UnitBuilder(first=first, limits=limits)
        root = tree(package.archive, package.main)
        properties = child(root, "s:workbookPr")
        since_1904 = properties is not None and (properties.get("date1904") or "") in {"1", "true", "on"}
        strings = SharedStrings(package.archive, package.first(package.main, "sharedStrings"))
        self._reader = SheetReader(package.archive, strings, self._formats(), since_1904=since_1904)
        self._sheets = list(self._visible(root))
        self._title = package.title()
        self._people = self._persons()

    def units(self) -> Iterator[Unit]:
        """The units of all sheets."""
        for page, sheet in enumerate(self._sheets, 1):
            self._builder.heading(sheet.name, 1)
            bare = self._builder.size
            begun = self._builder.number
            if sheet.kind == "worksheet":
                yield from self._tables(sheet.part, page)
            self._add_drawings(sheet.part)
            self._add_comments(sheet.part)
            if self._builder.size > bare or (self._builder.size and self._builder.number > begun):
                yield from self._cut(page)
            elif self._builder.number == begun:
                self._builder.drop()  # an empty sheet
        if self._builder.number == 1:
            yield from self._cut(1)

    def _tables(self, part: str, page: int) -> Iterator[Unit]:
        islands = Islands(PORTION)
        for line in self._reader.lines(part):
            for portion in islands.add(line):
                yield from self._portion(portion, page)
        for portion in islands.end():
            yield from self._portion(portion, page)

    def _portion(self, portion: Portion, page: int) -> Iterator[Unit]:
        text = table(portion.rows)
        if portion.goes_on or (self._builder.size > 0 and self._builder.size + len(text) > MAX_UNIT):
            yield from self._cut(page)
        for title in portion.titles:
            self._builder.add("paragraph", title)
        self._builder.add("table", text)

    def _cut(self, page: int) -> Iterator[Unit]:
        unit = self._builder.unit(page=page, pages=len(self._sheets), title=self._title)
        if unit is not None:
            yield unit

    def _visible(self, root: Element) -> Iterator[_Sheet]:
        related = self._package.relationships(self._package.main)
        for each in children(child(root, "s:sheets"), "s:sheet"):
            id = reference(each)
            if (each.get("state") or "visible") != "visible" or id not in related:
                continue
            part, kind = self._package.target(self._package.main, id), related[id].kind
            if kind not in {"worksheet", "chartsheet"}:
                continue
            if part is None:
                raise self._package.archive.damaged(f"its sheet `{each.get('name')}` is missing")
            yield _Sheet(each.get("name") or "", part, kind)

    def _formats(self) -> list[NumberFormat]:
        """The number formats of the cells' styles."""
        part = self._package.first(self._package.main, "styles")
        if part is None:
            return []
        root = tree(self._package.archive, part)
        codes: dict[int, str] = {}
        for each in children(child(root, "s:numFmts"), "s:numFmt"):
            codes[whole_number(each.get("numFmtId"), -1)] = each.get("formatCode") or ""
        formats: list[NumberFormat] = []
        for each in children(child(root, "s:cellXfs"), "s:xf"):
            place = whole_number(each.get("numFmtId"), 0)
            formats.append(number_format(place, codes.get(place)))
        return formats

    def _add_drawings(self, part: str) -> None:
        """Add the charts and text boxes of a sheet."""
        for drawing in self._package.targets(part, "drawing"):
            root = tree(self._package.archive, drawing)
            for each in root.iter("{*}graphicData", "{*}sp"):
                if NAMES[each.tag] == "a:graphicData":
                    add_graphic(self._package, drawing, each, self._builder)
                else:
                    self._builder.add("paragraph", "\n".join(paragraphs(each)))

    def _add_comments(self, part: str) -> None:
        threaded: set[str] = set()
        for comments in self._package.targets(part, "threadedComment"):
            for each in tree(self._package.archive, comments).iter("{*}threadedComment"):
                place = each.get("ref") or ""
                threaded.add(place)
                text = next((found.text for found in each.iter("{*}text") if found.text), "")
                author = self._people.get(each.get("personId") or "", "")
                self._comment(place, [author, each.get("dT") or ""], text)
        for comments in self._package.targets(part, "comments"):
            root = tree(self._package.archive, comments)
            authors = [each.text or "" for each in descendants(root, "s:author")]
            for each in descendants(root, "s:comment"):
                place, text = each.get("ref") or "", child(each, "s:text")
                index = whole_number(each.get("authorId"), len(authors))
                if place not in threaded and text is not None:
                    author = authors[index] if index < len(authors) else ""
                    self._comment(place, [author], rich_text(text))

    def _comment(self, place: str, details: list[str], text: str) -> None:
        line, known = " ".join(text.split()), ", ".join(filter(None, details))
        if line:
            self._builder.add("paragraph", f"Comment on {place}{f' ({known})' if known else ''}: {line}")

    def _persons(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in self._package.targets(self._package.main, "person"):
            for each in tree(self._package.archive, part).iter("{*}person"):
                found[each.get("id") or ""] = each.get("displayName") or ""
        return found
