"""The retry policy for records and commands: how long to back off, and when to give up. Pure functions."""

import random
from datetime import timedelta

FIRST_WAIT = 0.1
LONGEST_WAIT = 60.0


def wait_before(attempt: int, *, chance: float | None = None) -> timedelta:
    """Return the back-off after a number of failed attempts: it doubles up to LONGEST_WAIT, with jitter."""
    spread = random.random() if chance is None else chance
    return timedelta(seconds=min(FIRST_WAIT * 2 ** min(attempt - 1, 20), LONGEST_WAIT) * (0.5 + spread / 2))


def is_hopeless(attempts: int, failing: timedelta, *, max_attempts: int, max_failing: timedelta) -> bool:
    """Whether to give up: after `max_attempts` attempts, or when it has been failing for `max_failing`."""
    return attempts >= max_attempts or failing >= max_failing
