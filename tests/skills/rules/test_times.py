"""The times of rules: days, hours, zones, and the hours that clocks skip and repeat."""

from datetime import UTC, datetime

import pytest

from holdfast.skills.rules.grammar import parse_rules

pytestmark = pytest.mark.req("MCP-07")


def covers(times: str, *moments: str) -> list[bool]:
    """Whether a rule with these times applies at these moments, which are in UTC."""
    (rule,) = parse_rules(f"a: deny {times}").rules
    return [rule.is_met({}, datetime.fromisoformat(each).replace(tzinfo=UTC).timestamp()) for each in moments]


def test_days_are_those_of_the_zone() -> None:
    # 2026-01-02 is a Friday. In Tokyo it begins nine hours earlier.
    assert covers("on fri", "2026-01-02T00:00", "2026-01-02T23:59", "2026-01-03T00:00") == [True, True, False]
    assert covers('on fri timezone "Asia/Tokyo"', "2026-01-01T14:59", "2026-01-01T15:00", "2026-01-02T15:00") == [
        False, True, False,
    ]  # fmt: skip
    assert covers("on sat-mon", "2026-01-02T12:00", "2026-01-03T12:00", "2026-01-05T12:00", "2026-01-06T12:00") == [
        False, True, True, False,
    ]  # fmt: skip


def test_hours_include_their_begin_and_not_their_end() -> None:
    moments = ("2026-01-02T08:59", "2026-01-02T09:00", "2026-01-02T16:59", "2026-01-02T17:00")

    assert covers("between 09:00 and 17:00", *moments) == [False, True, True, False]


def test_hours_over_midnight_are_of_the_day_on_which_they_begin() -> None:
    moments = ("2026-01-02T05:00", "2026-01-02T21:59", "2026-01-02T22:00", "2026-01-03T05:59", "2026-01-03T06:00")

    assert covers("on fri between 22:00 and 06:00", *moments) == [False, False, True, True, False]


def test_a_period_begins_at_midnight_of_the_zone_or_at_a_time_with_an_offset() -> None:
    berlin = 'from 2026-07-01 until 2026-07-02T12:00 timezone "Europe/Berlin"'

    assert covers(berlin, "2026-06-30T21:59", "2026-06-30T22:00", "2026-07-02T09:59", "2026-07-02T10:00") == [
        False, True, True, False,
    ]  # fmt: skip
    assert covers("from 2026-07-01T12:00+02:00", "2026-07-01T09:59", "2026-07-01T10:00") == [False, True]


def test_hours_that_clocks_skip_do_not_occur_and_those_that_they_repeat_occur_twice() -> None:
    # In Berlin it is 02:00 at no time of 2026-03-29, and twice on 2026-10-25.
    night = 'between 02:00 and 03:00 timezone "Europe/Berlin"'
    spring = [f"2026-03-29T{hour:02}:30" for hour in range(4)]
    autumn = [f"2026-10-25T{hour:02}:30" for hour in range(4)]

    assert covers(night, *spring) == [False, False, False, False]
    assert covers(night, *autumn) == [True, True, False, False]
    assert covers(night, "2026-03-28T01:30", "2026-03-30T00:30") == [True, True]


def test_the_ends_of_the_calendar_have_hours_too() -> None:
    moments = ("0001-01-01T00:00", "9999-12-31T23:59")

    for zone in ("Pacific/Kiritimati", "America/Los_Angeles"):
        assert len(covers(f'between 22:00 and 06:00 timezone "{zone}"', *moments)) == 2


def test_what_is_kept_of_one_minute_is_not_used_for_another() -> None:
    moments = ("2026-01-02T16:59", "2026-01-02T17:00", "2026-01-02T16:59")

    assert covers("between 09:00 and 17:00", *moments) == [True, False, True]
