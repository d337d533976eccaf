"""When a failed record is tried again, and when no more."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bus.retry_policy import FIRST_WAIT, LONGEST_WAIT, is_hopeless, wait_before

pytestmark = pytest.mark.req("BUS-01", "EDA-04")

chances = st.floats(0, 1)


@given(st.integers(1, 10_000), chances)
def test_a_wait_lies_between_half_and_all_of_what_it_may_be(attempt: int, chance: float) -> None:
    most = min(FIRST_WAIT * 2.0 ** min(attempt - 1, 100), LONGEST_WAIT)

    assert most / 2 <= wait_before(attempt, chance=chance).total_seconds() + 1e-6
    assert wait_before(attempt, chance=chance).total_seconds() <= most + 1e-6


def test_waits_double_until_they_are_longest() -> None:
    waits = [wait_before(attempt, chance=1).total_seconds() for attempt in range(1, 13)]

    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60, 60]


def test_those_who_fail_together_do_not_come_back_together() -> None:
    assert len({wait_before(5) for _ in range(20)}) > 10


@pytest.mark.parametrize(
    ("attempts", "minutes", "hopeless"), [(1, 0, False), (9, 59, False), (10, 0, True), (1, 60, True), (11, 61, True)]
)
def test_a_record_is_given_up_after_ten_attempts_or_an_hour(attempts: int, minutes: int, hopeless: bool) -> None:
    failing = timedelta(minutes=minutes)

    assert is_hopeless(attempts, failing, max_attempts=10, max_failing=timedelta(hours=1)) is hopeless
