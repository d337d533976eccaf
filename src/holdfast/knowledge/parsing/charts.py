"""Charts and diagrams (SmartArt) as text: the values that the file keeps of them."""

from collections.abc import Sequence

from holdfast.knowledge.parsing.markdown_table import table
from holdfast.knowledge.parsing.package import Package, paragraphs
from holdfast.knowledge.parsing.safe_xml import NAMES, Element, child, descendants, reference, tree, whole_number
from holdfast.knowledge.parsing.unit_builder import UnitBuilder

KINDS = {
    "areaChart": "area", "area3DChart": "area", "barChart": "bar", "bar3DChart": "bar", "bubbleChart": "bubble",
    "doughnutChart": "doughnut", "lineChart": "line", "line3DChart": "line", "ofPieChart": "pie", "pieChart": "pie",
    "pie3DChart": "pie", "radarChart": "radar", "scatterChart": "scatter", "stockChart": "stock",
    "surfaceChart": "surface", "surface3DChart": "surface",
}  # fmt: skip
MAX_POINTS = 10_000


def add_chart(package: Package, part: str, builder: UnitBuilder) -> None:
    """Add a chart: its title and kind, and a table of its values."""
    root = tree(package.archive, part)
    area = next(descendants(root, "c:plotArea"), None)
    title = child(root, "c:chart", "c:title")
    text = " ".join(paragraphs(title)) if title is not None else ""
    kind = next(
        (
            KINDS[name]
            for each in (area if area is not None else ())
            if (name := NAMES[each.tag].rpartition(":")[2]) in KINDS
        ),
        "",
    )
    label = f"{kind} chart".strip().capitalize()
    builder.add("caption", f"{text} ({label.lower()})" if text else label)
    if area is not None:
        rows = _rows(list(descendants(area, "c:ser")))
        if rows:
            builder.add("table", table(rows))


def add_diagram(package: Package, part: str, builder: UnitBuilder) -> None:
    """Add the texts of a SmartArt diagram as a list."""
    root = tree(package.archive, part)
    texts = (" ".join(paragraphs(point)) for point in descendants(root, "dgm:pt"))
    builder.add("list", "\n".join(f"- {text}" for text in texts if text))


def add_graphic(package: Package, part: str, data: Element, builder: UnitBuilder) -> None:
    """Add what an `a:graphicData` shows, if it is a chart or a diagram."""
    for each in data:
        name = NAMES[each.tag]
        if name.rpartition(":")[2] == "chart" and (found := package.target(part, reference(each))):
            add_chart(package, found, builder)
        elif name == "dgm:relIds" and (found := package.target(part, reference(each, "dm"))):
            add_diagram(package, found, builder)


def _rows(series: Sequence[Element]) -> list[list[str]]:
    names: list[str] = []
    columns: list[dict[int, str]] = []
    labels: dict[int, str] = {}
    for each in series:
        names.append(" ".join(_points(child(each, "c:tx")).values()))
        labels = labels or _points(child(each, "c:cat")) or _points(child(each, "c:xVal"))
        columns.append(_points(child(each, "c:val")) or _points(child(each, "c:yVal")))
    places = sorted({place for column in columns for place in column})
    rows = [[labels.get(place, ""), *(column.get(place, "") for column in columns)] for place in places]
    return [["", *names], *rows] if rows else []


def _points(element: Element | None) -> dict[int, str]:
    """The cached values of a reference, by their place."""
    if element is None:
        return {}
    found: dict[int, str] = {}
    for point in descendants(element, "c:pt"):
        place, value = whole_number(point.get("idx"), -1), child(point, "c:v")
        if place >= 0 and value is not None and value.text and len(found) < MAX_POINTS:
            found[place] = number(value.text)
    if not found:
        literal = next((each.text for each in descendants(element, "c:v") if each.text), None)
        return {0: literal} if literal else {}
    return found


def number(text: str) -> str:
    """A number as a spreadsheet shows it in general: up to 15 digits, no `.0`."""
    if text.isascii() and text.isdigit() and len(text) < 16:
        return text
    try:
        value = float(text)
    except ValueError:
        return text
    if value != value or value in (float("inf"), float("-inf")):
        return text
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.15g}"
