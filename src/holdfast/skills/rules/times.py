"""The times at which a rule applies: days, hours, and from when until when, by the clocks of a time zone. Pure."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from functools import lru_cache
from zoneinfo import ZoneInfo

from holdfast.core.errors import InvalidInput

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
UTC_ZONE = "UTC"

Moment = datetime | date


@dataclass(frozen=True, slots=True)
class RuleTimes:
    """Days of the week, hours of the day, and a period. Without one of them, it is any.

    Hours can pass midnight: `between 22:00 and 06:00` on Friday ends on Saturday. The end of hours and periods is not
    included. Local times are those of the clocks in `zone`: hours that clocks skip in spring do not occur, and those
    that they repeat in autumn occur twice.
    """

    days: frozenset[int] = frozenset()  # 0 is Monday
    hours: tuple[time, time] | None = None
    begin: Moment | None = None
    end: Moment | None = None
    zone: str = UTC_ZONE
    _known: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]], repr=False, compare=False)
    _since: datetime | None = field(init=False, repr=False, compare=False)
    _before: datetime | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        zone = find_zone(self.zone)
        object.__setattr__(self, "_since", None if self.begin is None else _instant(self.begin, zone))
        object.__setattr__(self, "_before", None if self.end is None else _instant(self.end, zone))
        if self._since is not None and self._before is not None and self._since >= self._before:
            raise InvalidInput("the period is empty: `until` is not after `from`")

    def covers(self, now: float) -> bool:
        """Whether the rule applies at a time, in seconds since 1970."""
        minute = int(now // 60)  # nothing is finer than a minute, so that one answer holds for all of its calls
        if self._known and self._known[0][0] == minute:
            return self._known[0][1]
        covers = self._covers(datetime.fromtimestamp(60 * minute, UTC))
        self._known[:] = [(minute, covers)]
        return covers

    def _covers(self, now: datetime) -> bool:
        if self._since is not None and now < self._since:
            return False
        if self._before is not None and now >= self._before:
            return False
        try:
            local = now.astimezone(find_zone(self.zone))
        except OverflowError:  # in the first or last hours of the calendar
            local = now
        day, clock = local.weekday(), local.time()
        if self.hours is not None:
            start, stop = self.hours
            if start < stop:
                if not start <= clock < stop:
                    return False
            elif clock < stop:
                day = (day - 1) % 7  # they began on the day before
            elif clock < start:
                return False
        return not self.days or day in self.days


@lru_cache(maxsize=1000)
def find_zone(name: str) -> ZoneInfo:
    """Return a time zone. Raise InvalidInput if there is none of this name."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise InvalidInput(
            f"there is no time zone {name!r:.100}",
            why="this machine knows none of this name",
            next="Use a name such as Europe/Berlin or UTC.",
        ) from None


def _instant(moment: Moment, zone: ZoneInfo) -> datetime:
    """Return when it is this date or time in a zone. A date begins at midnight."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    try:
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{moment} is too early or too late", next="Leave out `from` or `until`.") from None
