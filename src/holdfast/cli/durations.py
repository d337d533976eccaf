"""Parses lifetimes such as `30d` and `12h`."""

import re
from datetime import timedelta

from holdfast.core.errors import InvalidInput

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST = 100 * 365 * SECONDS["d"]


def lifetime(text: str) -> timedelta:
    """Parse a lifetime: a whole number above zero and a unit."""
    found = re.fullmatch(r"(\d{1,10})([smhdw])", text.strip(), re.ASCII)
    length = int(found[1]) * SECONDS[found[2]] if found else 0
    if not 0 < length <= LONGEST:
        raise InvalidInput(
            f"{text[:80]!r} is not a lifetime",
            why="a lifetime is a whole number and a unit (s, m, h, d or w), up to a hundred years",
            next="Write it like 30d or 12h.",
        )
    return timedelta(seconds=length)
