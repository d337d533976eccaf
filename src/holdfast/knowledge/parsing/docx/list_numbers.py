"""The labels of numbered paragraphs: Word stores only which list they are in."""

import re
from dataclasses import dataclass, field

from holdfast.knowledge.parsing.docx.styles import integer, switched_on, value
from holdfast.knowledge.parsing.safe_xml import Element, child, children, own, whole_number

LEVELS = 9
PLACE = re.compile(r"%([1-9])")
ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x")),
    *((9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
CHINESE = "〇一二三四五六七八九"
CHINESE_FORMATS = frozenset(
    {"chineseCounting", "chineseCountingThousand", "ideographDigital", "japaneseCounting", "taiwaneseCounting",
     "taiwaneseCountingThousand", "japaneseDigitalTenThousand", "taiwaneseDigital"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a list. `restart` is the level (from 1) after which it begins anew: None for any above, 0 for none."""

    format: str = "decimal"
    text: str = "%1."
    start: int = 1
    restart: int | None = None
    legal: bool = False
    style: str | None = None


@dataclass(slots=True)
class _NumberedList:
    abstract: str
    levels: dict[int, Level]
    starts: dict[int, int] = field(default_factory=dict[int, int])


class Numbering:
    """The lists of a document, and the counters of each."""

    def __init__(self, root: Element | None) -> None:
        self._abstract: dict[str, dict[int, Level]] = {}
        self._lists: dict[str, _NumberedList] = {}
        self._counters: dict[str, list[int | None]] = {}
        self._started: set[tuple[str, int]] = set()
        self._linked: dict[str, str] = {}  # of numbering styles: style -> the abstract list that defines it
        links: dict[str, str] = {}
        for each in children(root, "w:abstractNum"):
            id = own(each, "abstractNumId") or ""
            self._abstract[id] = _levels(each)
            if style := value(child(each, "w:styleLink")):
                self._linked[style] = id
            if style := value(child(each, "w:numStyleLink")):
                links[id] = style
        for id, style in links.items():
            if (target := self._linked.get(style)) is not None and not self._abstract[id]:
                self._abstract[id] = self._abstract[target]
        for each in children(root, "w:num"):
            self._read(each)

    def level_of_style(self, number_id: str, style: str | None) -> int | None:
        """The level of a list that belongs to a paragraph style."""
        found = self._lists.get(number_id)
        if found is None or style is None:
            return None
        return next((place for place, level in found.levels.items() if level.style == style), None)

    def next(self, number_id: str, place: int) -> tuple[Level, str] | None:
        """Count a paragraph of a list: its level and its label, which is empty for a bullet."""
        found = self._lists.get(number_id)
        place = min(max(place, 0), LEVELS - 1)
        if found is None or (level := found.levels.get(place)) is None:
            return None
        counters = self._counters.setdefault(found.abstract, [None] * LEVELS)
        if place in found.starts and (number_id, place) not in self._started:
            self._started.add((number_id, place))
            counters[place] = found.starts[place]
        else:
            current = counters[place]
            counters[place] = level.start if current is None else current + 1
        for deeper in range(place + 1, LEVELS):
            restart = found.levels[deeper].restart if deeper in found.levels else None
            if restart is None or place + 1 <= restart != 0:
                counters[deeper] = None
        return level, "" if level.format in {"bullet", "none"} and "%" not in level.text else self._label(found, place)

    def _label(self, found: _NumberedList, place: int) -> str:
        counters = self._counters[found.abstract]
        shown = found.levels[place]

        def number(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            level = found.levels.get(at, Level())
            counter = counters[at]
            if counter is None:  # a level that was skipped counts as begun
                counter = counters[at] = level.start
            return formatted(counter, "decimal" if shown.legal else level.format)

        return PLACE.sub(number, shown.text).strip()

    def _read(self, element: Element) -> None:
        id, abstract = own(element, "numId"), value(child(element, "w:abstractNumId"))
        if id is None or abstract is None:
            return
        levels = dict(self._abstract.get(abstract, {}))
        starts: dict[int, int] = {}
        for override in children(element, "w:lvlOverride"):
            place = whole_number(own(override, "ilvl"), 0)
            if (start := integer(child(override, "w:startOverride"))) is not None:
                starts[place] = start
            if (level := child(override, "w:lvl")) is not None:
                levels[place] = _level(level)
        self._lists[id] = _NumberedList(abstract, levels, starts)


def formatted(number: int, form: str) -> str:
    """A number in a format of Word."""
    match form:
        case "lowerLetter":
            return _letters(number)
        case "upperLetter":
            return _letters(number).upper()
        case "lowerRoman":
            return _roman(number)
        case "upperRoman":
            return _roman(number).upper()
        case "decimalZero":
            return f"{number:02}"
        case "ordinal":
            return f"{number}."
        case "none" | "bullet":
            return ""
        case _ if form in CHINESE_FORMATS:
            return _chinese(number)
        case _:
            return str(number)


def _levels(element: Element) -> dict[int, Level]:
    found: dict[int, Level] = {}
    for each in children(element, "w:lvl"):
        if (place := whole_number(own(each, "ilvl"), LEVELS)) < LEVELS:
            found[place] = _level(each)
    return found


def _level(element: Element) -> Level:
    start, text = integer(child(element, "w:start")), child(element, "w:lvlText")
    return Level(
        format=value(child(element, "w:numFmt")) or "decimal",
        text=value(text) or "",
        start=1 if start is None else start,
        restart=integer(child(element, "w:lvlRestart")),
        legal=switched_on(child(element, "w:isLgl")),
        style=value(child(element, "w:pStyle")),
    )


def _letters(number: int) -> str:
    return chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 50) if number > 0 else ""


def _roman(number: int) -> str:
    if not 0 < number < 5000:
        return str(number)
    found = ""
    for size, sign in ROMAN:
        count, number = divmod(number, size)
        found += sign * count
    return found


def _chinese(number: int) -> str:
    if not 0 < number < 100:
        return str(number)
    tens, ones = divmod(number, 10)
    return ("" if tens < 2 else CHINESE[tens]) + ("十" if tens else "") + (CHINESE[ones] if ones or not tens else "")
