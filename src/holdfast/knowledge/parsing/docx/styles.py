"""What the styles of a document say about a paragraph."""

# ruff: noqa: RUF001  (names of styles in many languages)

import re
from dataclasses import dataclass
from typing import Literal

from holdfast.knowledge.parsing.safe_xml import Element, child, children, own, whole_number

StyleKind = Literal["text", "title", "heading", "code", "caption", "list"]

# Word writes the names of its built-in styles in English in every language; other programs may translate them.
HEADING = re.compile(
    r"^(?:heading|überschrift|titre|título|titulo|titolo|kop|overskrift|rubrik|otsikko|nagłówek|nadpis|címsor|titlu|"
    r"заголовок|επικεφαλίδα|başlık|标题|標題|見出し|제목)\s*(\d)$"
)
TITLES = frozenset({"title", "titel", "titre principal", "документ название", "标题", "標題", "表題", "제목"})
CODE = re.compile(
    r"^(?:(?:source|program|computer|code|sample) ?(?:code|block|listing|snippet|sample)|code|code ?text|"
    r"html preformatted|preformatted(?: text)?|verbatim|plain text|macro(?: text)?|listing code|quellcode|nur text)$"
)
CAPTIONS = frozenset(
    {"caption", "beschriftung", "légende", "leyenda", "epígrafe", "didascalia", "图注", "題注", "题注"}
)
LISTS = re.compile(r"^list (bullet|number)(?: (\d))?$")
MONOSPACED = re.compile(
    r"\b(?:courier|consolas|menlo|monaco|mono|monospace|lucida console|andale|inconsolata|fixedsys|source code|"
    r"fira code|cascadia|terminal|typewriter)\b|mono\b|mono ",
    re.IGNORECASE,
)
MAX_CHAIN = 32


@dataclass(frozen=True, slots=True)
class Style:
    """A style with what it inherits. `level` is that of a heading, from 1."""

    kind: StyleKind = "text"
    level: int = 0
    number_id: str | None = None
    number_level: int | None = None
    monospaced: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    parent: str | None
    outline: int | None
    number_id: str | None
    number_level: int | None
    font: str | None


PLAIN = Style()


class Styles:
    """The styles of a document, by id. Most documents use few of those that they have: one is read when it is used."""

    def __init__(self, root: Element | None) -> None:
        self._elements: dict[str, Element] = {}
        self._entries: dict[str, _Entry] = {}
        self._found: dict[str, Style] = {}
        self._runs: dict[str, bool] = {}
        self.default: str | None = None
        for each in children(root, "w:style"):
            id = own(each, "styleId")
            if id is not None:
                self._elements[id] = each
                if own(each, "type") == "paragraph" and own(each, "default") in {"1", "true", "on"}:
                    self.default = id

    def of(self, id: str | None) -> Style:
        """The style of a paragraph. One that names none has the default."""
        id = id or self.default
        if id is None or id not in self._elements:
            return PLAIN
        found = self._found.get(id)
        if found is None:
            found = self._found[id] = self._resolve(id)
        return found

    def monospaced(self, id: str | None) -> bool:
        """Whether a character style has a font of fixed width."""
        return id is not None and self._font(id)

    def _entry(self, id: str) -> _Entry | None:
        found = self._entries.get(id)
        if found is None and (element := self._elements.get(id)) is not None:
            found = self._entries[id] = self._read(id, element)
        return found

    def _read(self, id: str, element: Element) -> _Entry:
        name = child(element, "w:name")
        parent = child(element, "w:basedOn")
        properties = child(element, "w:pPr")
        return _Entry(
            name=((own(name, "val") if name is not None else None) or id).strip().casefold(),
            parent=own(parent, "val") if parent is not None else None,
            outline=integer(child(properties, "w:outlineLvl")),
            number_id=value(child(properties, "w:numPr", "w:numId")),
            number_level=integer(child(properties, "w:numPr", "w:ilvl")),
            font=font(child(element, "w:rPr")),
        )

    def _chain(self, id: str) -> list[_Entry]:
        chain: list[_Entry] = []
        current: str | None = id
        while current is not None and len(chain) < MAX_CHAIN and (entry := self._entry(current)) is not None:
            chain.append(entry)
            current = entry.parent
        return chain

    def _font(self, id: str) -> bool:
        return is_monospaced(next((entry.font for entry in self._chain(id) if entry.font), None))

    def _resolve(self, id: str) -> Style:
        chain = self._chain(id)
        kind, level = _kind(chain)
        number_id = next((entry.number_id for entry in chain if entry.number_id is not None), None)
        number_level = next((entry.number_level for entry in chain if entry.number_level is not None), None)
        if kind == "list" and number_level is None and level:
            number_level = level - 1
        return Style(kind, level, number_id, number_level, self._font(id))


def _kind(chain: list[_Entry]) -> tuple[StyleKind, int]:
    """The nearest style of the chain that says what it is."""
    for entry in chain:
        if entry.outline is not None:
            return ("heading", entry.outline + 1) if entry.outline < 9 else ("text", 0)
        if match := HEADING.match(entry.name):
            return "heading", int(match[1]) or 1
        if entry.name in TITLES:
            return "title", 1
        if entry.name in CAPTIONS:
            return "caption", 0
        if CODE.match(entry.name):
            return "code", 0
        if match := LISTS.match(entry.name):
            return "list", int(match[2] or 1)
    return "text", 0


def value(element: Element | None) -> str | None:
    """The `w:val` of a property."""
    return None if element is None else own(element, "val")


def integer(element: Element | None) -> int | None:
    """The `w:val` of a property as a number."""
    text = value(element)
    number = whole_number(text, -1)
    return number if number >= 0 else None


def switched_on(element: Element | None) -> bool:
    """Whether a property is set: it may say that it is not."""
    return element is not None and (own(element, "val") or "1").lower() not in {"0", "false", "off", "none"}


def font(properties: Element | None) -> str | None:
    """The font that properties of a run name."""
    fonts = child(properties, "w:rFonts")
    return None if fonts is None else own(fonts, "ascii") or own(fonts, "hAnsi") or own(fonts, "cs")


def is_monospaced(name: str | None) -> bool:
    """Whether a font has a fixed width, by its name."""
    return name is not None and MONOSPACED.search(name) is not None
