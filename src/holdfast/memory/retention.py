"""Retention: how much of a memory is left."""

import math
from datetime import timedelta


def retention(age: timedelta, *, half_life: timedelta, importance: float, uses: int) -> float:
    """Return the retention of a memory: 1.0 when fresh, halved after each half-life. Importance and use slow it down.

    `age` counts from the last use. `half_life` holds for a memory of importance 0.5 that was never used; `uses` extend
    it logarithmically. functions/half_lives.sql has the same formula for statements.
    """
    stretched = half_life * (0.5 + importance) * (1 + math.log(1 + uses))
    return 2.0 ** -(max(age, timedelta(0)) / stretched)
