"""Numbers as text: dates, percentages and units come from the number format of a cell."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

from holdfast.knowledge.parsing.charts import number

Shape = Literal["number", "percent", "date", "time", "both", "elapsed"]

BUILT_IN: Mapping[int, Shape] = {
    **dict.fromkeys((9, 10), "percent"),
    **dict.fromkeys((14, 15, 16, 17, 27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58), "date"),
    **dict.fromkeys((18, 19, 20, 21, 32, 33, 34, 35, 45, 47, 55, 56), "time"),
    22: "both",
    46: "elapsed",
}
TOKEN = re.compile(
    r'"([^"]*)"|\\(.)|\[\$([^\]-]*)(?:-[^\]]*)?\]|\[([^\]]*)\]|_.|\*.|AM/PM|A/P|General|E[+-]|(.)',
    re.IGNORECASE | re.DOTALL,
)
LAST_DAY = 2_958_465  # 9999-12-31
FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001  a cell has no time zone
FIRST_DAY_1904 = datetime(1904, 1, 1)  # noqa: DTZ001
SILENT = "()-+ "


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """What a format says about a number, and what it shows before and after it: `$`, ` kg`."""

    shape: Shape = "number"
    before: str = ""
    after: str = ""

    def show(self, text: str, *, since_1904: bool) -> str:
        """A stored number as text."""
        if self.shape == "number":
            shown = number(text)
            if not self.before and not self.after:
                return shown
            sign, shown = ("-", shown[1:]) if shown.startswith("-") else ("", shown)
            return f"{sign}{self.before}{shown}{self.after}"
        try:
            value = float(text)
        except ValueError:
            return text
        if self.shape == "percent":
            return f"{value * 100:.10g}%"
        return _moment(value, self.shape, since_1904=since_1904) or number(text)


GENERAL = NumberFormat()


def number_format(id: int, code: str | None) -> NumberFormat:
    """The format with this id, or with this code where the workbook defines it."""
    if code is None:
        return NumberFormat(BUILT_IN[id]) if id in BUILT_IN else GENERAL
    return _parsed(code)


def _parsed(code: str) -> NumberFormat:
    letters, before, after = "", "", ""
    digits = elapsed = False
    for match in TOKEN.finditer(code[:255]):
        quoted, escaped, currency, bracket, sign = match.groups()
        if sign == ";":
            break
        literal = quoted or escaped or currency or ""
        if bracket is not None:
            elapsed = elapsed or bracket.lower() in {"h", "hh", "m", "mm", "s", "ss"}
        elif sign is not None and sign in "0#?@":
            digits, after = True, ""
        elif sign is not None and sign.lower() in "ymdhsge%":
            letters += sign.lower()
        elif sign is not None and sign not in ".,/":
            literal = sign
        if literal.strip(SILENT):
            before, after = (before, after + literal) if digits else (before + literal, after)
    if elapsed:
        return NumberFormat("elapsed")
    if "%" in letters:
        return NumberFormat("percent")
    day, clock = (
        any(each in letters for each in "yd") or letters in {"m", "mm", "mmm", "mmmm"},
        any(each in letters for each in "hs"),
    )
    if day or clock:
        return NumberFormat("both" if day and clock else "date" if day else "time")
    if not digits:
        return GENERAL
    spaced = f" {after.strip()}" if after and after.strip()[:1].isalpha() else after
    return NumberFormat("number", before.strip(), spaced)


@lru_cache(4096)  # a column often has the same days
def _moment(value: float, shape: Shape, *, since_1904: bool) -> str | None:
    """A number of days as a date, a time or both, in ISO form."""
    if not 0 <= value <= LAST_DAY:
        return None
    seconds = round(value % 1 * 86400)
    if shape == "elapsed":
        whole = round(value * 86400)
        return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
    if shape == "time" and value < 1:
        return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if not since_1904:
        value = value if value >= 60 else value + 1  # Excel counts a 29 February 1900
    base = FIRST_DAY_1904 if since_1904 else FIRST_DAY
    try:
        moment = base + timedelta(days=int(value), seconds=seconds)
    except OverflowError:
        return None
    return f"{moment:%Y-%m-%d}" if seconds == 0 or shape == "date" else f"{moment:%Y-%m-%d %H:%M:%S}"
