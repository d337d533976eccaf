"""Presentations (PPTX, PPTM, also strict): a unit for each slide, with tables, charts, diagrams, notes and comments."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.knowledge.parsing.charts import add_graphic
from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits
from holdfast.knowledge.parsing.markdown_table import table
from holdfast.knowledge.parsing.package import Package, open_package, paragraphs
from holdfast.knowledge.parsing.presentation_text import TITLES, Bullets, TextLine, lines, paragraph, placeholder
from holdfast.knowledge.parsing.safe_xml import NAMES, Element, child, children, descendants, reference, too_deep, tree
from holdfast.knowledge.parsing.unit_builder import UnitBuilder
from holdfast.knowledge.parsing.units import Unit

FURNITURE = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})
MAX_SPAN = 256
MAX_CELLS = 100_000


def parse(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """The slides in their order, hidden ones too. Dates, footers and slide numbers are left out."""
    with open_package(path, "PPTX", limits) as package:
        yield from _Presentation(package, first, limits).units()


class _Presentation:
    def __init__(self, package: Package, first: int, limits: ParseLimits) -> None:
        self._package = package
        self._first = first
        self._limits = limits
        root = tree(package.archive, package.main)
        self._slides = [reference(each) for each in children(child(root, "p:sldIdLst"), "p:sldId")]
        self._builder = UnitBuilder(first=first, limits=limits, total=len(self._slides))
        self._bullets: dict[str | None, Bullets] = {}
        self._authors = self._comment_authors()

    def units(self) -> Iterator[Unit]:
        """The units, one for each slide."""
        slides, title = self._slides, self._package.title()
        start = min(max(self._first, 1), len(slides) + 1) - 1
        self._builder.skip(start)
        for number, id in enumerate(slides[start:], start + 1):
            part = self._package.target(self._package.main, id)
            if part is None:
                raise self._package.archive.damaged(f"its slide {number} is missing")
            _Slide(self._package, part, self._builder, self._bullets_of(part), self._limits.depth).add()
            self._add_notes(part)
            self._add_comments(part)
            unit = self._builder.unit(page=number, pages=len(slides), title=title)
            if unit is not None:
                yield unit
        if not slides and self._first <= 1:
            yield Unit(1, "", [], None, 0, title, 1)

    def _bullets_of(self, part: str) -> Bullets:
        layout = self._package.first(part, "slideLayout")
        if layout not in self._bullets:
            self._bullets[layout] = Bullets(self._package, layout)
        return self._bullets[layout]

    def _add_notes(self, part: str) -> None:
        notes = self._package.first(part, "notesSlide")
        if notes is None:
            return
        root = tree(self._package.archive, notes)
        texts: list[str] = []
        for shape in descendants(root, "p:sp"):
            place = placeholder(shape)
            if place is None or place.kind not in FURNITURE:
                texts += [line.text for line in lines(child(shape, "p:txBody"), [])]
        if texts:
            self._builder.add("paragraph", "Notes: " + "\n".join(texts))

    def _add_comments(self, part: str) -> None:
        for comments in self._package.targets(part, "comments"):
            for each in tree(self._package.archive, comments).iter("{*}cm", "{*}reply"):
                text = _comment(each)
                if text:
                    author = self._authors.get(each.get("authorId") or "", "")
                    details = ", ".join(filter(None, [author, each.get("dt") or each.get("created")]))
                    self._builder.add("paragraph", f"Comment ({details}): {text}" if details else f"Comment: {text}")

    def _comment_authors(self) -> dict[str, str]:
        """The authors of comments, with their initials."""
        found: dict[str, str] = {}
        for kind in ("commentAuthors", "authors"):
            for part in self._package.targets(self._package.main, kind):
                for each in tree(self._package.archive, part).iter("{*}cmAuthor", "{*}author"):
                    name, initials = each.get("name") or "", each.get("initials")
                    found[each.get("id") or ""] = f"{name} ({initials})" if initials else name
        return found


class _Slide:
    """The shapes of a slide."""

    def __init__(self, package: Package, part: str, builder: UnitBuilder, bullets: Bullets, depth: int) -> None:
        self._package = package
        self._part = part
        self._builder = builder
        self._bullets = bullets
        self._depth = depth

    def add(self) -> None:
        """Add the title, then the other shapes in their order."""
        shapes = child(tree(self._package.archive, self._part), "p:cSld", "p:spTree")
        if shapes is None:
            return
        title = next((each for each in descendants(shapes, "p:sp") if _is_title(each)), None)
        if title is not None:
            self._builder.heading(" ".join(line.text for line in lines(child(title, "p:txBody"), [])), 1)
        self._shapes(shapes, title, 0)

    def _shapes(self, group: Element, title: Element | None, depth: int) -> None:
        if depth > self._depth:
            raise too_deep(self._package.archive)
        for each in group:
            match NAMES[each.tag]:
                case "p:sp" if each is not title:
                    self._shape(each)
                case "p:grpSp":
                    self._shapes(each, title, depth + 1)
                case "p:graphicFrame":
                    self._frame(each)
                case "mc:AlternateContent":
                    self._alternative(each, title, depth + 1)
                case _:
                    pass

    def _alternative(self, element: Element, title: Element | None, depth: int) -> None:
        """The first alternative that has something for us."""
        for each in element:
            before = self._builder.size
            self._shapes(each, title, depth)
            if self._builder.size != before:
                return

    def _shape(self, shape: Element) -> None:
        place = placeholder(shape)
        if place is not None and place.kind in FURNITURE:
            return
        items: list[TextLine] = []
        for line in lines(_body(shape), self._bullets.styles(place)):
            if line.marker:
                items.append(line)
                continue
            self._list(items)
            items = []
            self._builder.add("paragraph", line.text)
        self._list(items)

    def _list(self, items: list[TextLine]) -> None:
        if items:
            outermost = min(item.level for item in items)
            texts = (f"{'    ' * (item.level - outermost)}{item.marker} {item.text}" for item in items)
            self._builder.add("list", "\n".join(texts))

    def _frame(self, frame: Element) -> None:
        data = child(frame, "a:graphic", "a:graphicData")
        if data is None:
            return
        for each in children(data, "a:tbl"):
            rows = _rows(each)
            if any(any(row) for row in rows):
                self._builder.add("table", table(rows))
        add_graphic(self._package, self._part, data, self._builder)


def _is_title(shape: Element) -> bool:
    place = placeholder(shape)
    return place is not None and place.kind in TITLES and any(lines(child(shape, "p:txBody"), []))


def _body(shape: Element) -> Element | None:
    """The text of a shape; shapes of extensions may name it otherwise."""
    return next((each for each in shape if NAMES[each.tag].rpartition(":")[2] in {"txBody", "txbx"}), None)


def _rows(element: Element) -> list[list[str]]:
    """The cells of a table. Merged cells repeat their text, so that every row can be read by itself."""
    rows: list[list[str]] = []
    count = 0
    for line in children(element, "a:tr"):
        cells: list[str] = []
        for cell in children(line, "a:tc"):
            above = rows[-1] if rows else []
            if cell.get("hMerge") in {"1", "true"} and cells:
                cells.append(cells[-1])
            elif cell.get("vMerge") in {"1", "true"} and len(above) > len(cells):
                cells.append(above[len(cells)])
            else:
                cells.append(" ".join(filter(None, map(paragraph, children(child(cell, "a:txBody"), "a:p")))))
            count += 1
            if count > MAX_CELLS:
                return rows
        rows.append(cells)
    return rows


def _comment(element: Element) -> str:
    """The text of a comment, without that of its replies."""
    text = next((each for each in element if NAMES[each.tag] == "p:text"), None)
    if text is not None:
        return " ".join((text.text or "").split())
    body = next((each for each in element if NAMES[each.tag].rpartition(":")[2] == "txBody"), None)
    return "\n".join(paragraphs(body)) if body is not None else ""
