# ruff: noqa: RUF001 - Chinese has signs of its own
import math
import time
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.memory.dates import DateSpan, date_value, find_dates, mentions_time

SUNDAY = datetime(2026, 11, 15, 12, tzinfo=UTC)


def named(question: str) -> list[str]:
    """The dates of a question, readable: a year of `*` is every year."""
    return [_shown(found) for found in find_dates(question, SUNDAY)]


def _shown(found: DateSpan) -> str:
    if found.yearly:
        ends = [f"*-{(day - 1) // 31 % 12 + 1:02}-{(day - 1) % 31 + 1:02}" for day in (found.first, found.last)]
    else:
        ends = [date.fromordinal(day).isoformat() for day in (found.first, found.last)]
    return ends[0] if ends[0] == ends[1] else " ".join(ends)


def on(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(hour=15, tzinfo=UTC)


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What happened on 7 May 2023?", "2023-05-07"),
        ("on May 7, 2023", "2023-05-07"),
        ("the 7th of may 2023", "2023-05-07"),
        ("on 2023-05-07", "2023-05-07"),
        ("2023/5/7 14:00", "2023-05-07"),
        ("May 7th", "*-05-07"),
        ("on Sept. 5?", "*-09-05"),
        ("May 2023", "2023-05-01 2023-05-31"),
        ("in February 2024", "2024-02-01 2024-02-29"),
        ("in September", "*-09-01 *-09-31"),
        ("early June", "*-06-01 *-06-10"),
        ("in mid-August", "*-08-11 *-08-20"),
        ("late in July 2023", "2023-07-21 2023-07-31"),
        ("at the end of February 2023", "2023-02-21 2023-02-28"),
        ("in 2022", "2022-01-01 2022-12-31"),
        ("Who won in spring 2022?", "2022-03-01 2022-05-31"),
        ("the winter of 2022", "2022-12-01 2023-02-28"),
        ("in the winter", "*-12-01 *-02-31"),
        ("last summer", "2026-06-01 2026-08-31"),
        ("last May", "2026-05-01 2026-05-31"),
        ("last December", "2025-12-01 2025-12-31"),
        ("yesterday", "2026-11-14"),
        ("the day before yesterday", "2026-11-13"),
        ("two days ago", "2026-11-13"),
        ("a couple of weeks ago", "2026-10-29 2026-11-04"),
        ("3 months ago", "2026-08-01 2026-08-31"),
        ("last Friday", "2026-11-13"),
        ("last Sunday", "2026-11-08"),
        ("last week", "2026-11-02 2026-11-08"),
        ("last weekend", "2026-11-07 2026-11-08"),
        ("last month", "2026-10-01 2026-10-31"),
        ("last year", "2025-01-01 2025-12-31"),
        ("in the past 3 weeks", "2026-10-25 2026-11-15"),
        ("today", "2026-11-15"),
    ],
)
def test_an_english_question_names_a_date(question: str, expected: str) -> None:
    assert named(question) == [expected]


@pytest.mark.req("MEM-11")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("2023年5月7日他在哪里？", "2023-05-07"),
        ("2024年04月01日", "2024-04-01"),
        ("5月7号的会议", "*-05-07"),
        ("五月二十三日", "*-05-23"),
        ("二〇二三年十二月", "2023-12-01 2023-12-31"),
        ("５月７日", "*-05-07"),
        ("五月初", "*-05-01 *-05-10"),
        ("2023年5月中旬", "2023-05-11 2023-05-20"),
        ("12月下旬", "*-12-21 *-12-31"),
        ("2023年2月底", "2023-02-21 2023-02-28"),
        ("去年", "2025-01-01 2025-12-31"),
        ("去年3月", "2025-03-01 2025-03-31"),
        ("去年底", "2025-11-01 2025-12-31"),
        ("今年夏天", "2026-06-01 2026-08-31"),
        ("前年春天", "2024-03-01 2024-05-31"),
        ("上个月", "2026-10-01 2026-10-31"),
        ("上个月5号", "2026-10-05"),
        ("昨天", "2026-11-14"),
        ("前天晚上", "2026-11-13"),
        ("大前天", "2026-11-12"),
        ("上周", "2026-11-02 2026-11-08"),
        ("上周五", "2026-11-06"),
        ("上上个星期", "2026-10-26 2026-11-01"),
        ("这个周末", "2026-11-14 2026-11-15"),
        ("3天前", "2026-11-12"),
        ("三个月前", "2026-08-01 2026-08-31"),
        ("两年前", "2024-01-01 2024-12-31"),
        ("最近两周", "2026-11-01 2026-11-15"),
    ],
)
def test_a_chinese_question_names_a_date(question: str, expected: str) -> None:
    assert named(question) == [expected]


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    "question",
    [
        *("What may I do?", "May I ask?", "you may 7 times", "Where did they march?", "march 7 miles", "the Mayor"),
        *("What did June say?", "August is her son", "wait a second", "60 sec", "on the sun", "decide in time"),
        *("Python 3.11", "version 2023.5.1.2", "in 30 minutes", "2 hours ago", "555-2023", "ID 2024-1", "10.0.2023.1"),
        *("2000 people", "$2000?", "room 2023-05-0712", "the 31st of June", "June 31", "2023-13-01", "in 2030"),
        *("fall down", "spring water", "tomorrow", "next week", "", "before dinner"),
        *("电话13651039007", "坐3号线", "一个月", "十二个月", "一年", "明天", "下周", "13月", "二十月", "9999年"),
    ],
)
def test_what_is_no_date_or_yet_to_come_names_none(question: str) -> None:
    assert named(question) == []


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    "question",
    [
        *("What did she do fıve days ago?", "sıx weeks ago", "in the past nıne years", "sprıng 2023", "last wınter"),
        *("last Frıday", "in Aprıl", "mıd May 2023", "the begınnıng of June", "thıs year", "durıng 2022"),
    ],
)
def test_a_letter_that_is_another_in_capitals_names_a_date_or_none(question: str) -> None:
    assert len(named(question)) <= 1


@pytest.mark.req("MEM-04")
def test_a_question_names_several_dates_once_each() -> None:
    assert named("In December 2025, on 3 Jan 2026, or in December 2025?") == ["2025-12-01 2025-12-31", "2026-01-03"]


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    ("question", "day", "expected"),
    [
        ("on 7 May 2023", "2023-05-07", 1),
        ("on 7 May 2023", "2023-05-08", math.exp(-1 / 3)),
        ("on 7 May 2023", "2023-05-04", math.exp(-1)),
        ("on 7 May 2023", "2024-05-07", 0),
        ("May 7th", "2024-05-07", 1),
        ("May 7th", "1999-05-10", math.exp(-1)),
        ("January 1st", "2023-12-31", math.exp(-1 / 3)),
        ("in May 2023", "2023-05-31", 1),
        ("in May 2023", "2023-06-01", math.exp(-1 / 31)),
        ("early June", "2020-06-10", 1),
        ("early June", "2020-06-20", math.exp(-1)),
        ("in the winter", "2024-02-29", 1),
        ("in the winter", "2024-03-01", math.exp(-1 / 93)),
        ("in the winter", "2024-11-30", math.exp(-2 / 93)),  # every month has 31 days here
        ("May 2020 or June 2023", "2023-06-15", 1),
    ],
)
def test_a_moment_fits_the_days_that_are_named_and_less_those_around(question: str, day: str, expected: float) -> None:
    assert date_value(find_dates(question, SUNDAY), on(day)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize("filler", ["上", "2", "十", "May ", "early ", "last a few ", "1 "])
def test_a_text_of_any_shape_is_read_in_no_time(filler: str) -> None:
    text = filler * (1_000_000 // len(filler))
    start = time.process_time()

    find_dates(text, SUNDAY)
    mentions_time(text[:64_000])

    assert time.process_time() - start < 1


@pytest.mark.req("MEM-04")
def test_no_moment_fits_a_question_without_a_date() -> None:
    assert date_value(find_dates("Where does she live?", SUNDAY), SUNDAY) == 0


@pytest.mark.req("MEM-04")
@given(
    st.text(alphabet="0123456789 -/年月日号天周前上去今个一二十初lastMayJune,.", max_size=30),
    st.dates(date(1971, 1, 1)),
)
def test_whatever_is_asked_has_a_value_between_none_and_all(question: str, today: date) -> None:
    now = datetime.combine(today, datetime.min.time(), tzinfo=UTC)

    value = date_value(find_dates(question, now), now - timedelta(days=100))

    assert 0 <= value <= 1


@pytest.mark.req("MEM-04")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I went there yesterday", True),
        ("It starts next Friday", True),
        ("时间是下周六下午两点", True),
        ("她喜欢喝茶", False),
        ("She prefers tea", False),
        ("may be", False),
    ],
)
def test_a_text_may_tell_a_time(text: str, expected: bool) -> None:
    assert mentions_time(text) is expected
