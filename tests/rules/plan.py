"""What is known of the plan of a statement, and arguments to ask for it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

ID = UUID(int=1)
LAST = UUID(int=2**128 - 1)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NOTHING = list[object]()
NO_NODES = (NOTHING,) * 9


@dataclass(frozen=True, slots=True)
class Plan:
    """What stands in the plan of a hot statement, and arguments to ask for it.

    `whole`: small tables that it may read whole; where it reads no others, nothing has to stand in the plan.
    """

    has: str
    args: tuple[object, ...] = ()
    whole: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cold:
    """Why a statement may read whole tables."""

    why: str
