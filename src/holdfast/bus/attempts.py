"""When a record or a command that failed is tried again, and when it is given up. Pure."""

import random
from datetime import timedelta

FIRST_WAIT = 0.1
LONGEST_WAIT = 60.0


def wait_before(attempt: int, *, chance: float | None = None) -> timedelta:
    """How long to wait after so many failed attempts: twice as long each time, and not all at the same moment."""
    spread = random.random() if chance is None else chance
    return timedelta(seconds=min(FIRST_WAIT * 2 ** min(attempt - 1, 20), LONGEST_WAIT) * (0.5 + spread / 2))


def is_hopeless(attempts: int, failing: timedelta, *, max_attempts: int, max_failing: timedelta) -> bool:
    """Whether to give up: after so many attempts, or when the first of them was so long ago."""
    return attempts >= max_attempts or failing >= max_failing
