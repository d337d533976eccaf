"""The text of shapes: paragraphs and items of lists. A bullet may come from a layout or master."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.knowledge.parsing.equations import latex
from holdfast.knowledge.parsing.package import Package
from holdfast.knowledge.parsing.safe_xml import NAMES, Element, child, children, descendants, tree, whole_number

LEVELS = 9
LETTERS = "abcdefghijklmnopqrstuvwxyz"
BODY = frozenset({"body", "obj", "subTitle", "tbl", "chart", "dgm", "media", "clipArt", "pic", ""})
TITLES = frozenset({"title", "ctrTitle"})


@dataclass(frozen=True, slots=True)
class Placeholder:
    """What place of a layout a shape fills."""

    kind: str
    index: str


@dataclass(frozen=True, slots=True)
class TextLine:
    """A paragraph. `marker` is that of an item of a list, else empty."""

    text: str
    level: int
    marker: str


def placeholder(shape: Element) -> Placeholder | None:
    """The place that a shape fills, if it fills one."""
    for properties in shape:
        for each in properties:
            if NAMES[each.tag] == "p:nvPr" and (found := child(each, "p:ph")) is not None:
                return Placeholder(found.get("type") or "", found.get("idx") or "")
    return None


class Bullets:
    """Which paragraphs have bullets: what a shape inherits from its layout and master."""

    def __init__(self, package: Package, layout: str | None) -> None:
        master = package.first(layout, "slideMaster") if layout else None
        self._layout = tree(package.archive, layout) if layout else None
        self._master = tree(package.archive, master) if master else None
        self._found: dict[Placeholder, list[Element]] = {}

    def styles(self, place: Placeholder | None) -> Sequence[Element]:
        """The list styles that apply to a shape, nearest first."""
        if place is None:
            return []
        found = self._found.get(place)
        if found is None:
            found = self._found[place] = list(self._inherited(place))
        return found

    def _inherited(self, place: Placeholder) -> Iterator[Element]:
        kind = place.kind
        if (shape := _filling(self._layout, place, by_index=True)) is not None:
            if (style := child(shape, "p:txBody", "a:lstStyle")) is not None:
                yield style
            if not kind and (own := placeholder(shape)) is not None:
                kind = own.kind
        if (shape := _filling(self._master, Placeholder(kind or "body", ""), by_index=False)) is not None and (
            style := child(shape, "p:txBody", "a:lstStyle")
        ) is not None:
            yield style
        name = "p:titleStyle" if kind in TITLES else "p:bodyStyle" if kind in BODY else "p:otherStyle"
        if (style := child(self._master, "p:txStyles", name)) is not None:
            yield style


def lines(body: Element | None, inherited: Sequence[Element]) -> Iterator[TextLine]:
    """The paragraphs of a text body that are not empty."""
    own = child(body, "a:lstStyle")
    styles = [*([own] if own is not None else []), *inherited]
    counters: list[int | None] = [None] * LEVELS
    for each in children(body, "a:p"):
        properties = child(each, "a:pPr")
        level = properties.get("lvl") if properties is not None else None
        place = min(whole_number(level, 0), LEVELS - 1)
        text = paragraph(each)
        if not text:
            continue
        bullet = _bullet(properties, styles, place)
        counters[place + 1 :] = [None] * (LEVELS - place - 1)
        if bullet is None or NAMES[bullet.tag] != "a:buAutoNum":
            counters[place] = None
            yield TextLine(text, place, "" if bullet is None else "-")
            continue
        current = counters[place]
        number = whole_number(bullet.get("startAt"), 1) if current is None else current + 1
        counters[place] = number
        yield TextLine(text, place, _marker(number, bullet.get("type") or ""))


def paragraph(element: Element) -> str:
    """The text of an `a:p` on one line."""
    parts: list[str] = []
    for each in element:
        match NAMES[each.tag]:
            case "a:r" | "a:fld":
                text = child(each, "a:t")
                parts.append((text.text or "") if text is not None else "")
            case "a:br":
                parts.append(" ")
            case "mc:AlternateContent" | "m" | "m:oMathPara":  # `m` is of an extension of Office 2010
                parts += [f"${latex(equation)}$" for equation in descendants(each, "m:oMath")]
            case _:
                pass
    return " ".join("".join(parts).replace("\v", " ").replace("_x000D_", " ").split())


def _filling(root: Element | None, place: Placeholder, *, by_index: bool) -> Element | None:
    """The shape of a layout or master for a place."""
    shapes = child(root, "p:cSld", "p:spTree")
    same_kind: Element | None = None
    for shape in children(shapes, "p:sp"):
        own = placeholder(shape)
        if own is None:
            continue
        if by_index and place.index and own.index == place.index:
            return shape
        alike = own.kind == place.kind or {own.kind, place.kind} <= TITLES
        if same_kind is None and alike:
            same_kind = shape
    return same_kind if not (by_index and place.index) or place.kind else None


def _bullet(properties: Element | None, styles: Sequence[Element], place: int) -> Element | None:
    """The bullet of a paragraph: its own, or that of the nearest style that speaks of one."""
    sources = [properties, *(child(style, f"a:lvl{place + 1}pPr") for style in styles)]
    for source in sources:
        for each in source if source is not None else ():
            match NAMES[each.tag]:
                case "a:buNone":
                    return None
                case "a:buChar" | "a:buAutoNum" | "a:buBlip":
                    return each
                case _:
                    pass
    return None


def _marker(number: int, form: str) -> str:
    if form.startswith("arabic") or not form:
        return f"{number}."
    if form.startswith("alpha"):
        letter = LETTERS[(number - 1) % 26]
        return f"- {letter.upper() if 'Uc' in form else letter}."
    return f"- {number}."
