"""What a process leases of a limit, and what it gives back; without a database."""

import pytest

from holdfast.quotas.leased_buckets import IDLE, SPARE_IDLE, Ask, SlotBucket, TokenBucket
from holdfast.quotas.limit import parse_limit

pytestmark = pytest.mark.req("MCP-07")


class Asked:
    """Counts how often a bucket says that it is due."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, bucket: object) -> None:
        self.times += 1


def tokens(rule: str) -> tuple[TokenBucket, Asked]:
    """A bucket of requests of the whole tenant."""
    asked = Asked()
    return TokenBucket(parse_limit(rule), (), asked), asked


def lease(bucket: TokenBucket | SlotBucket, now: float, *, left: float = 1e9) -> Ask | None:
    """Have a bucket ask a row that has so much left."""
    bucket.is_asked = False
    ask = bucket.ask(now)
    if ask is not None:
        granted = min(ask.wanted, left)
        bucket.receive(ask, granted, 3.0 if granted < ask.wanted else 0.0, now, now)
    return ask


def test_a_caller_who_calls_now_and_then_leases_little_and_seldom_waits() -> None:
    bucket, asked = tokens("tenant: 400 requests per minute")
    bucket.waiting = 1
    first = lease(bucket, 100)
    bucket.waiting = 0
    bucket.take(100)

    for second in range(1, 6):
        assert bucket.has_room(100 + second)
        bucket.take(100 + second)
    second_ask = lease(bucket, 106)

    assert first == Ask(11, 1)  # one for the call that waits, and a fortieth of what the bucket holds
    assert asked.times == 0
    assert second_ask is None
    bucket.take(106)
    assert asked.times == 1


@pytest.mark.parametrize(("burst", "most"), [(60_000, 500), (2000, 100)])
def test_a_busy_process_leases_for_half_a_second_and_at_most_a_twentieth(burst: int, most: int) -> None:
    bucket, asked = tokens(f"tenant: 60000 requests per minute, burst {burst}")
    leased, statements = 0, 0

    for tick in range(5000):  # a thousand calls a second
        now, due = 100 + tick / 1000, asked.times
        bucket.waiting = 0 if bucket.has_room(now) else 1
        if bucket.waiting:
            lease(bucket, now)
        bucket.take(now)
        if asked.times > due:
            lease(bucket, now)
            leased, statements = max(leased, bucket.tokens), statements + 1

    assert 0.8 * most <= leased <= most
    assert statements <= 5 * 1000 / most * 3


def test_what_is_not_used_goes_back_and_the_spare_later() -> None:
    bucket, _ = tokens("tenant: 400 requests per minute")
    bucket.waiting = 60
    lease(bucket, 100)
    bucket.waiting = 0
    bucket.take(100)

    soon = lease(bucket, 100 + IDLE + 0.1)
    late = lease(bucket, 100 + SPARE_IDLE + 0.1)

    assert soon == Ask(0, 0, 59)
    assert late == Ask(0, 0, 10)
    assert bucket.is_empty


def test_a_process_that_got_all_that_was_left_uses_it_before_it_refuses() -> None:
    bucket, _ = tokens("tenant: 400 requests per minute")
    bucket.waiting = 5
    lease(bucket, 100, left=2)
    bucket.waiting = 0

    assert bucket.has_room(100)
    assert bucket.refused_until == 101  # it asks again after a second at the latest
    bucket.take(100)
    bucket.take(100)
    error = bucket.refusal(100)
    assert not bucket.has_room(100)
    assert error.retry_after == 3


def test_a_changed_limit_ends_a_refusal() -> None:
    bucket, _ = tokens("tenant: 400 requests per minute")
    bucket.waiting = 1
    lease(bucket, 100, left=0)

    bucket.renew(parse_limit("tenant: 900 requests per minute"))

    assert bucket.refused_until == 0


def test_slots_are_renewed_before_their_lease_ends_and_go_back_after_a_peak() -> None:
    bucket = SlotBucket(parse_limit("tenant: 9 concurrent calls"), (), Asked(), lease=9)
    bucket.waiting = 3
    first = lease(bucket, 100)
    bucket.waiting = 0
    for _ in range(3):
        bucket.take(100)
    for _ in range(2):
        bucket.release()

    asks = [lease(bucket, 100 + second) for second in (0.5, 1.2, 2.4, 2.5, 6)]

    assert first == Ask(3, 0)
    assert asks == [None, None, Ask(1, 1), None, Ask(1, 1)]
    assert not bucket.has_room(100.1)


def test_slots_are_not_used_after_their_lease() -> None:
    bucket = SlotBucket(parse_limit("tenant: 9 concurrent calls"), (), Asked(), lease=9)
    bucket.waiting = 2
    lease(bucket, 100)
    bucket.waiting = 0

    assert bucket.has_room(108.9)
    assert not bucket.has_room(109.1)
