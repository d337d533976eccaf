"""What a paragraph contains: its text, and what is anchored in it."""

# ruff: noqa: RUF001  (signs and Greek letters are the subject)

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.knowledge.parsing.docx.styles import Styles, font, is_monospaced, switched_on, value
from holdfast.knowledge.parsing.equations import latex
from holdfast.knowledge.parsing.safe_xml import NAMES, Element, child, children, descendants, own

# Elements that only wrap runs. Deleted text (`w:del`, `w:moveFrom`) is not among them.
WRAPPERS = frozenset(
    {"w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:fldSimple", "w:bdo", "w:dir", "w:sdtContent",
     "w:rubyBase", "w:ruby", "a:t", "mc:Choice", "mc:Fallback"}
)  # fmt: skip
# Characters of the fonts Wingdings and Symbol that carry meaning.
SIGNS = {
    "F0FE": "☒", "F0FD": "☒", "F0A8": "☐", "F06F": "☐", "F0FC": "✓", "F0FB": "✗", "F0E0": "→", "F0DF": "←", "F0B7": "•",
    "F0A7": "▪", "F0D8": "➢", "F0AE": "→", "F0B3": "≥", "F0A3": "≤", "F0B1": "±", "F0B0": "°", "F0B4": "×", "F061": "α",
    "F062": "β", "F067": "γ", "F064": "δ", "F06D": "μ", "F070": "π", "F073": "σ", "F057": "Ω",
}  # fmt: skip
CHECKED, UNCHECKED = "[x] ", "[ ] "
BOXES = re.compile(r"(\[[x ]\]) +")


class TooDeep(Exception):
    """Elements are nested deeper than the limit."""


@dataclass(slots=True)
class Inline:
    """The text of a paragraph. Display equations (`$$`) are on lines of their own."""

    text: str = ""
    equations: list[str] = field(default_factory=list[str])  # where the paragraph contains nothing else
    boxes: list[Element] = field(default_factory=list[Element])
    graphics: list[Element] = field(default_factory=list[Element])
    notes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # label and text
    monospaced: bool = False


class InlineReader:
    """Reads paragraphs. `note` gives the label and the text of a footnote or endnote."""

    def __init__(self, styles: Styles, depth: int, note: Callable[[str, str], tuple[str, str] | None]) -> None:
        self._styles = styles
        self._depth = depth
        self._note = note

    def read(self, element: Element, *, monospaced: bool = False) -> Inline:
        """The contents of a `w:p`. `monospaced` says whether its style is."""
        reading = _Paragraph(self._styles, self._depth, self._note, monospaced)
        reading.walk(element, 0)
        return reading.result()


class _Paragraph:
    __slots__ = ("_depth", "_equations", "_fields", "_found", "_monospaced", "_note", "_parts", "_styles", "_widths")

    def __init__(
        self, styles: Styles, depth: int, note: Callable[[str, str], tuple[str, str] | None], monospaced: bool
    ) -> None:
        self._styles = styles
        self._depth = depth
        self._note = note
        self._monospaced = monospaced
        self._found = Inline()
        self._parts: list[str] = []
        self._equations: list[tuple[int, str]] = []  # place in the parts, and whether it is alone
        self._widths: set[bool] = set()  # of the fonts: fixed or not
        self._fields: list[bool] = []  # of the open fields: in the instruction or in the result

    def result(self) -> Inline:
        found = self._found
        alone = {place for place, _ in self._equations}
        if alone and not any(part.strip() for at, part in enumerate(self._parts) if at not in alone):
            found.equations = [equation for _, equation in self._equations]
            return found
        text = "".join(self._parts)
        found.text = BOXES.sub(r"\1 ", text) if CHECKED in text or UNCHECKED in text else text
        found.monospaced = self._widths == {True}
        return found

    def walk(self, element: Element, depth: int) -> None:
        if depth > self._depth:
            raise TooDeep
        for each in element:
            name = NAMES[each.tag]
            if name == "w:r":
                self._run(each, depth + 1)
            elif name in WRAPPERS:
                self.walk(each, depth + 1)
            elif name == "w:sdt":
                self._control(each, depth + 1)
            elif name == "m:oMath":
                self._equation(each, "$")
            elif name == "m:oMathPara":
                for equation in children(each, "m:oMath"):
                    self._equation(equation, "$$")
            elif name == "mc:AlternateContent":
                self._alternative(each, depth + 1, self.walk)

    def _run(self, run: Element, depth: int) -> None:
        if depth > self._depth:
            raise TooDeep
        properties = child(run, "w:rPr")
        if switched_on(child(properties, "w:vanish")):
            return
        for each in run:
            name = NAMES[each.tag]
            if name == "w:t":
                self._text(each.text or "", properties)
            elif (plain := PLAIN_TEXT.get(name)) is not None:
                self._parts.append(plain)
            else:
                self._special(each, name, depth + 1)

    def _special(self, element: Element, name: str, depth: int) -> None:
        """What a run contains beside text."""
        match name:
            case "w:fldChar":
                self._field(element)
            case "w:sym":
                self._parts.append(SIGNS.get((own(element, "char") or "").upper(), ""))
            case "w:footnoteReference" | "w:endnoteReference":
                self._reference(name, own(element, "id"))
            case "w:drawing" | "w:pict" | "w:object":
                self._drawing(element, depth)
            case "mc:AlternateContent":
                self._alternative(element, depth, self._drawn)
            case "w:ruby":
                self.walk(element, depth)
            case "m:oMath":
                self._equation(element, "$")
            case _:
                pass

    def _text(self, text: str, properties: Element | None) -> None:
        if len(self._fields) > 1 and any(self._fields[:-1]):
            return  # the result of a field inside of another's instruction
        self._parts.append(text)
        if text.strip():
            named = font(properties)
            style = value(child(properties, "w:rStyle"))
            fixed = is_monospaced(named) if named else self._monospaced or self._styles.monospaced(style)
            self._widths.add(fixed)

    def _field(self, element: Element) -> None:
        kind = own(element, "fldCharType")
        if kind == "begin":
            self._fields.append(True)
            box = child(element, "w:ffData", "w:checkBox")
            if box is not None:
                state = child(box, "w:checked")
                state = child(box, "w:default") if state is None else state
                self._parts.append(CHECKED if switched_on(state) else UNCHECKED)
        elif kind == "separate" and self._fields:
            self._fields[-1] = False
        elif kind == "end" and self._fields:
            self._fields.pop()

    def _control(self, element: Element, depth: int) -> None:
        """A content control: a check box, or text that is not the placeholder."""
        properties = child(element, "w:sdtPr")
        box = child(properties, "w14:checkbox")
        if box is not None:
            self._parts.append(CHECKED if switched_on(child(box, "w14:checked")) else UNCHECKED)
        elif not switched_on(child(properties, "w:showingPlcHdr")):
            for content in children(element, "w:sdtContent"):
                self.walk(content, depth)

    def _equation(self, element: Element, sign: str) -> None:
        text = latex(element)
        if text:
            self._equations.append((len(self._parts), text))
            self._parts.append(f"${text}$" if sign == "$" else f"\n$${text}$$\n")

    def _reference(self, name: str, id: str | None) -> None:
        note = self._note(name.removeprefix("w:").removesuffix("Reference"), id or "")
        if note is not None:
            self._parts.append(f"[^{note[0]}]")
            self._found.notes.append(note)

    def _alternative(self, element: Element, depth: int, walk: Callable[[Element, int], None]) -> None:
        """The first alternative that has something for us."""
        for each in element:
            before = self._amount()
            walk(each, depth)
            if self._amount() != before:
                return

    def _drawn(self, element: Element, depth: int) -> None:
        self._drawing(element, depth)
        if not self._found.boxes and not self._found.graphics:
            for run in (each for each in element if NAMES[each.tag] in {"w:t", "w:r"}):
                self._parts.append("".join(text.text or "" for text in descendants(run, "w:t")))

    def _drawing(self, element: Element, depth: int) -> None:
        if depth > self._depth:
            raise TooDeep
        for each in element:
            name = NAMES[each.tag]
            if name.rpartition(":")[2] == "txbxContent":
                self._found.boxes.append(each)
            elif name == "mc:AlternateContent":
                self._alternative(each, depth + 1, self._drawing)
            else:
                if name == "a:graphicData":
                    self._found.graphics.append(each)
                self._drawing(each, depth + 1)

    def _amount(self) -> tuple[int, int, int]:
        return len(self._parts), len(self._found.boxes), len(self._found.graphics)


PLAIN_TEXT = {"w:br": "\n", "w:tab": "\t", "w:ptab": "\t", "w:cr": "\n", "w:noBreakHyphen": "-", "w:softHyphen": ""}
