"""Finds the dates in a query, and computes how well a moment matches them.

It reads English and Chinese: "7 May 2023", "early June", "last Friday", "去年夏天", "5月初", "3天前". A date with a
year, or relative to today, is a span of days. A date without a year is the same span in every year. A year alone, or a
weekday, that is still to come is ignored: nothing was said then.
"""

import math
import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

_LONGEST = 4096  # characters that are read
DAYS_OF_A_YEAR = 372  # twelve months of 31 days: the number of a day in the year is 31 * (month - 1) + day

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TO_TEN = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3}
_NUMBERS.update((word, number) for number, word in enumerate(_TO_TEN, 1))
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "春": 3, "夏": 6, "秋": 9, "冬": 12}
_DIGITS = {digit: number for number, digit in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_THIRDS = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
_THIRDS.update({"初": 0, "上旬": 0, "中": 1, "中旬": 1, "底": 2, "末": 2, "下旬": 2})
_UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}
_LENGTHS = {"day": 1, "week": 7, "month": 30, "year": 365}
_DAYS_BACK = {"今": 0, "昨": 1, "前": 2, "大前": 3}
_YEARS_BACK = {"今": 0, "去": 1, "前": 2}

# Also names of people, verbs and abbreviations: months only with a day, a year or a word that introduces a date.
_DOUBTFUL = re.compile(r"april|may|march|june|august|[a-z]{3,4}")
_VERBS = ("may", "march", "mar")
_TIME_WORDS = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|weeks?|weekend|months?|years?|(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)days?|january|february|march|april|june|july|august|september|october|november|december|morning|afternoon"
    r"|evening|recently|since|(?:19|20)\d\d)\b"
    r"|[昨今明前后]天|[上下这本]个?(?:周|月|星期|礼拜)|[去今明前]年|周[一二三四五六日末]|星期[一二三四五六日天]|最近|刚才"
    r"|[早晚]上|[上下中]午|[\d一二两三四五六七八九十](?:个?(?:月|星期|小时)|[天日号年周点])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A span of days in a query, from first to last: `date.toordinal` numbers, or numbers of days in every year."""

    first: int
    last: int
    yearly: bool = False

    @property
    def fade(self) -> float:
        """The distance in days at which the value falls to 1/e: the length of the span, at least 3."""
        return max(3.0, self.last - self.first + 1)


def find_dates(question: str, now: datetime) -> list[DateSpan]:
    """Return the dates in a query. Relative dates are resolved from `now`."""
    question = unicodedata.normalize("NFKC", question[:_LONGEST])
    found: dict[DateSpan, None] = {}
    for pattern, read in _READERS:
        for match in pattern.finditer(question):
            if date_span := _read_date(read, match, now.date()):
                found[date_span] = None
                start, end = match.span()
                question = question[:start] + "\0" * (end - start) + question[end:]  # matched once
    return list(found)


def date_value(dates: Sequence[DateSpan], at: datetime) -> float:
    """Return how well a moment matches: 1 within a span, decreasing before and after it; 0 without dates."""
    return max((math.exp(-_distance(span, at.date()) / span.fade) for span in dates), default=0.0)


def mentions_time(text: str) -> bool:
    """Whether a text mentions a time, and so may answer a question about when."""
    return _TIME_WORDS.search(text) is not None


def _read_date(read: "_Reader", match: re.Match[str], today: date) -> DateSpan | None:
    try:
        return read(match, today)
    except (ValueError, KeyError):  # no such day, as 31 June; or a word with a dotless i, which no table has
        return None


def _distance(span: DateSpan, day: date) -> int:
    """Return the distance of a day from a span, in days."""
    if not span.yearly:
        return max(0, span.first - day.toordinal(), day.toordinal() - span.last)
    place = _of_year(day.month, day.day)
    after = (place - span.first) % DAYS_OF_A_YEAR
    length = span.last - span.first
    return 0 if after <= length else min(after - length, DAYS_OF_A_YEAR - after)


def _of_year(month: int, day: int) -> int:
    return 31 * (month - 1) + day


def _days(first: date, last: date | None = None) -> DateSpan:
    return DateSpan(first.toordinal(), (last or first).toordinal())


def _back(today: date, days: int, length: int = 1) -> DateSpan:
    first = today - timedelta(days)
    return _days(first, first + timedelta(length - 1))


def _month(year: int | None, month: int, third: int | None = None, length: int = 1) -> DateSpan:
    """Return a month, a third of it, or several months; without a year, of every year."""
    if year is None:
        first = _of_year(month, 1)
        if third is not None:
            return DateSpan(first + 10 * third, first + (9, 19, 30)[third], yearly=True)
        return DateSpan(first, first + 31 * length - 1, yearly=True)
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    start = date(year, month, 1)
    if third is not None:
        return _days(start + timedelta(10 * third), date(year, month, (10, 20, monthrange(year, month)[1])[third]))
    ends = date(year + (month + length - 1) // 12, (month + length - 1) % 12 + 1, 1)
    return _days(start, ends - timedelta(1))


def _day(year: int | None, month: int, day: int) -> DateSpan:
    date(year or 2000, month, day)  # raises ValueError if there is no such day
    if year is None:
        return DateSpan(_of_year(month, day), _of_year(month, day), yearly=True)
    return _days(date(year, month, day))


def _week(today: date, weeks: int, weekday: int | None = None) -> DateSpan | None:
    """Return the week, Monday to Sunday, of `weeks` weeks ago, or one day of it; None if that day is in the future."""
    monday = today.toordinal() - today.weekday() - 7 * weeks
    if weekday is None:
        return DateSpan(monday, monday + 6)
    return DateSpan(monday + weekday, monday + weekday) if monday + weekday <= today.toordinal() else None


def _ago(match: re.Match[str], today: date) -> DateSpan:
    number, unit = _number(match["number"]), _unit(match)
    match unit:
        case "day":
            return _back(today, number)
        case "week":
            return _back(today, 7 * number + 3, 7)
        case "month":
            return _month(today.year, today.month - number)
        case _:
            return _month(today.year - number, 1, length=12)


def _past(match: re.Match[str], today: date) -> DateSpan:
    days = _number(match["number"]) * _LENGTHS[_unit(match)]
    return _back(today, days, days + 1)


def _unit(match: re.Match[str]) -> str:
    return _UNITS.get(match["unit"], match["unit"].lower())


def _number(text: str) -> int:
    """Parse a number such as 7, seven, 七, 十二, 二十三 or 二〇二三."""
    text = text.lower()
    if text.isdecimal():
        return int(text)
    if text in _NUMBERS:
        return _NUMBERS[text]
    if "十" in text:
        tens, _, ones = text.partition("十")
        return 10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)
    return int("".join(str(_DIGITS[digit]) for digit in text))


def _optional(text: str | None) -> int | None:
    return None if text is None else _number(text)


def _third(match: re.Match[str]) -> int | None:
    return _THIRDS[match["third"].lower()] if match["third"] else None


def _english_date(match: re.Match[str], today: date) -> DateSpan | None:
    name, lead = match["month"].lower(), (match["lead"] or "").lower()
    day, year = match["day"] or match["day2"], _optional(match["year"])
    sure = year is not None or (match["nth"] or match["nth2"]) is not None
    capital = match["month"][0].isupper()
    if name in _VERBS and not capital and not sure:
        return None
    if _DOUBTFUL.fullmatch(name) and not (sure or lead or match["third"] or (day and capital)):
        return None
    month = _MONTHS.index(name[:3]) + 1
    if year is None and lead in ("last", "this"):
        year = today.year - (month > today.month or (lead == "last" and month == today.month))
    if day:
        return _day(year, month, int(day))
    return _month(year, month, _third(match))


def _english_season(match: re.Match[str], today: date) -> DateSpan | None:
    month, year, lead = _SEASONS[match["season"].lower()], _optional(match["year"]), (match["lead"] or "").lower()
    if year is None and lead in ("last", "this"):
        year = today.year - (month > today.month or (lead == "last" and month + 2 >= today.month))
    return _month(year, month, length=3) if year or lead else None


def _year(match: re.Match[str], today: date) -> DateSpan | None:
    year = int(match["year"])
    return _month(year, 1, length=12) if year <= today.year else None


def _english_last(match: re.Match[str], today: date) -> DateSpan | None:
    back, unit = match["lead"].lower() != "this", match["unit"].lower()
    match unit:
        case "week":
            return _week(today, int(back))
        case "weekend":
            days = (today.weekday() - 5) % 7 + (7 if back and today.weekday() >= 5 else 0)
            return _back(today, days, 2)
        case "month":
            return _month(today.year, today.month - back)
        case "year":
            return _month(today.year - back, 1, length=12)
        case _:
            return _back(today, (today.weekday() - _WEEKDAYS.index(unit[:3])) % 7 or 7 * back)


def _year_of(match: re.Match[str], today: date) -> int | None:
    return today.year - _YEARS_BACK[match["back"]] if match["back"] else _optional(match["year"])


def _chinese_date(match: re.Match[str], today: date) -> DateSpan:
    year, month = _year_of(match, today), _number(match["month"])
    if match["day"] or month > len(_MONTHS):
        return _day(year, month, _number(match["day"] or "1"))
    return _month(year, month, _third(match))


def _chinese_season(match: re.Match[str], today: date) -> DateSpan:
    return _month(_year_of(match, today), _SEASONS[match["season"]], length=3)


def _chinese_year(match: re.Match[str], today: date) -> DateSpan:
    first, length = {None: (1, 12), 0: (1, 2), 1: (5, 4), 2: (11, 2)}[_third(match)]
    return _month(_year_of(match, today), first, length=length)


def _chinese_month(match: re.Match[str], today: date) -> DateSpan:
    back = match["back"].count("上")
    if match["day"]:
        of = _month(today.year, today.month - back)
        return _back(date.fromordinal(of.first), 1 - _number(match["day"]))
    return _month(today.year, today.month - back, _third(match))


def _chinese_week(match: re.Match[str], today: date) -> DateSpan | None:
    back, day = match["back"].count("上"), match["weekday"]
    if day == "末":
        weekend = _week(today, back)
        return weekend and DateSpan(weekend.last - 1, weekend.last)
    return _week(today, back, None if day is None else "一二三四五六日天".index(day) - (day == "天"))


_Reader = Callable[[re.Match[str], date], DateSpan | None]

_N = r"[0-9]{1,2}|[一二三]?十[一二三四五六七八九]?|[一二两三四五六七八九]"
_HOW_MANY = r"(?P<number>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_MONTH = (
    "(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_YEAR = r"(?P<year>(?:19|20)\d\d)(?![\d:]|[.,/-]\d)"
_LEAD = r"\b(?:(?P<lead>in|of|during|since|until|around|before|after|between|last|this)\s+)?"
_THIRD = r"(?:(?:the\s+)?(?P<third>early|beginning|start|mid(?:dle)?|late|end)(?:\s+(?:in|of)|-)?\s*)?"


def _readers() -> Iterator[tuple[str, _Reader]]:
    """Yield patterns with their readers, the most specific first."""
    yield (
        r"(?<![\d.-])(?P<year>(?:19|20)\d\d)(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?![\d.-]*\d)",
        lambda match, _: _day(int(match["year"]), int(match["month"]), int(match["day"])),
    )
    day = r"(?:(?P<day>\d{1,2})(?P<nth>st|nd|rd|th)?(?:\s+of)?\s+)?"
    day2 = r"(?:\s+(?:the\s+)?(?P<day2>\d{1,2})(?P<nth2>st|nd|rd|th)?\b(?![:.,]\d))?"
    yield rf"{_LEAD}{_THIRD}(?<![\d.:]){day}\b{_MONTH}{day2}(?:,?\s+(?:of\s+)?{_YEAR})?", _english_date
    season = "(?P<season>spring|summer|autumn|fall|winter)"
    yield (
        rf"\b(?:(?P<lead>last|this|in|during|over)\s+(?:the\s+)?)?{season}\b(?:\s+(?:of\s+|in\s+)?{_YEAR})?",
        _english_season,
    )
    yield r"\bday before yesterday\b", lambda _, today: _back(today, 2)
    yield r"\b(?:yesterday|last night)\b", lambda _, today: _back(today, 1)
    yield r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b", lambda _, today: _back(today, 0)
    unit = "(?P<unit>day|week|month|year)s?"
    yield rf"\b{_HOW_MANY}\s+{unit}\s+ago\b", _ago
    yield rf"\b(?:last|past)\s+{_HOW_MANY}\s+{unit}\b", _past
    unit = r"(?P<unit>week(?:end)?|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    yield rf"\b(?P<lead>last|past|this)\s+{unit}", _english_last
    yield rf"\b(?:in|of|during|since|until|by|around|before|after|from|between|and|to|year)\s+{_YEAR}\b", _year
    yield rf"(?<![\d.,/$€£¥:-])\b{_YEAR}(?=\s*(?:[?.!,;)]|$))", _year

    year = r"(?:(?<!\d)(?P<year>\d{4}|[一二][〇零一二三四五六七八九]{3})|(?P<back>[今去]|(?<!大)前))年"
    third = "(?:的?(?P<third>上旬|中旬|下旬|[初中底末]))?"
    day = rf"(?:的?(?P<day>{_N})[日号]|{third})"
    yield rf"(?:{year}的?)?(?<!\d)(?P<month>{_N})月份?{day}", _chinese_date
    yield rf"(?:{year}的?)?(?P<season>[春夏秋冬])[天季]", _chinese_season
    yield rf"{year}{third}", _chinese_year
    yield rf"(?P<back>上{{1,3}}|这|本)个?月份?{day}", _chinese_month
    yield r"(?P<back>上{1,3}|这|本)个?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天末])?", _chinese_week
    yield r"(?P<back>大前|前|昨|今)(?:天|日|晚|早|夜)", lambda m, today: _back(today, _DAYS_BACK[m["back"]])
    unit = "个?(?P<unit>天|日|周|星期|礼拜|月|年)"
    yield rf"(?P<number>\d{{1,3}}|{_N}){unit}(?:以|之)?前", _ago
    yield rf"(?:最近|过去|近|这)(?P<number>\d{{1,3}}|{_N}){unit}", _past


_READERS = [(re.compile(pattern, re.IGNORECASE), read) for pattern, read in _readers()]
