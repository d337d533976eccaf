"""Retention: what is left of a memory as time goes by."""

import math
from datetime import timedelta


def retention(age: timedelta, *, half_life: timedelta, importance: float, uses: int) -> float:
    """What is left of a memory: 1.0 when fresh, halving every half-life; what matters or is used fades slower.

    `age` counts from its last use. The half-life is that of importance 0.5 without use; `uses` stretch it by their
    logarithm. The statements `search_memories` and `fading` say the same in SQL.
    """
    stretched = half_life * (0.5 + importance) * (1 + math.log(1 + uses))
    return 2.0 ** -(max(age, timedelta(0)) / stretched)
