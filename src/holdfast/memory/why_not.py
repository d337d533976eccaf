"""Explains why a search does not return a memory."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from holdfast.core.memory_settings import RetentionSettings
from holdfast.memory.memory import Memory
from holdfast.memory.retention import retention

Reason = Literal[
    "returned",
    "unknown",
    "deleted",
    "scope",
    "buried",
    "expired",
    "superseded",
    "not yet valid",
    "faded",
    "filtered",
    "no embedding yet",
    "below the cut",
]


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a search did not return a memory, or that it did; with rank and score if the memory was scored."""

    reason: Reason
    detail: str
    rank: int | None = None
    score: float | None = None


def explain_hidden(memory: Memory, *, moment: datetime, now: datetime, settings: RetentionSettings) -> WhyNot | None:
    """Return why a memory is hidden from every search as of `moment`; None if it is not hidden."""
    if memory.buried:
        return WhyNot("buried", "it is buried; unbury it so that search finds it")
    if memory.expires_at is not None and memory.expires_at <= max(moment, now):
        return WhyNot("expired", f"it expired at {memory.expires_at:%Y-%m-%d %H:%M:%S}")
    if memory.valid_to is not None and memory.valid_to <= moment:
        successor = f"by {memory.superseded_by} " if memory.superseded_by else ""
        return WhyNot("superseded", f"it was superseded {successor}at {memory.valid_to:%Y-%m-%d %H:%M:%S}")
    if memory.valid_from > moment:
        return WhyNot("not yet valid", f"it is valid from {memory.valid_from:%Y-%m-%d %H:%M:%S}")
    left = retention_of(memory, moment=moment, settings=settings)
    if left < settings.faded_below:
        return WhyNot("faded", f"its retention {left:.4f} is below {settings.faded_below}; pin it to keep it")
    return None


def retention_of(memory: Memory, *, moment: datetime, settings: RetentionSettings) -> float:
    """Return the retention of a memory: 1.0 if it cannot fade. Only unpinned memories of users and agents fade."""
    if memory.pinned or memory.owner.scope not in ("user", "agent"):
        return 1.0
    return retention(
        moment - memory.last_accessed,
        half_life=timedelta(days=settings.half_life_days),
        importance=memory.importance,
        uses=memory.access_count,
    )
