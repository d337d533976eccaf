"""A research as it is stored: its question, its budget, what was spent of it, its state and its report."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from holdfast.core.errors import NotFound
from holdfast.core.text import restore
from holdfast.knowledge.research.budget import Budget
from holdfast.knowledge.research.corpus import ResearchTarget
from holdfast.knowledge.research.report import ResearchReport
from holdfast.postgres.database import Row

ResearchState = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: frozenset[ResearchState] = frozenset({"done", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class ResearchRun:
    """A research. `calls`, `tokens` and `cost` are what it has used of its budget so far."""

    id: UUID
    user: str | None
    agent: str | None
    question: str
    target: ResearchTarget
    model: str
    budget: Budget
    calls: int
    tokens: int
    cost: float
    state: ResearchState
    events: int
    report: ResearchReport | None
    error: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def has_ended(self) -> bool:
        """Whether nobody works on it any more."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class ResearchClaim:
    """A research that this process holds, by the epoch of its lease."""

    run: ResearchRun
    epoch: int
    stop: bool = False
    claims: int = 1


@dataclass(frozen=True, slots=True)
class ResearchEvent:
    """How a research gets on. `data` has what was spent so far, too."""

    seq: int
    kind: str
    data: Mapping[str, Any]
    at: datetime


def run_of(row: Row) -> ResearchRun:
    """Convert a row of `research`."""
    report = row["report"]
    return ResearchRun(
        id=row["id"],
        user=None if row["user_name"] is None else restore(row["user_name"]),
        agent=None if row["agent"] is None else restore(row["agent"]),
        question=restore(row["question"]),
        target=msgspec.convert(row["target"], ResearchTarget),
        model=restore(row["model"]),
        budget=Budget(row["max_calls"], row["max_tokens"], row["max_cost"]),
        calls=row["calls"],
        tokens=row["tokens"],
        cost=row["cost"],
        state=row["state"],
        events=row["events"],
        report=None if report is None else msgspec.convert(report, ResearchReport),
        error=row["error"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
    )


def claim_of(row: Row) -> ResearchClaim:
    """Convert a row of `research` that this process has just claimed."""
    return ResearchClaim(run_of(row), row["epoch"], row["stop"], row["claims"])


def unknown_research(id: UUID) -> NotFound:
    """Return the error for a research that does not exist, or that the caller may not see."""
    return NotFound(f"there is no research {id}", next="`holdfast research ls` and `GET /api/research` list it.")
