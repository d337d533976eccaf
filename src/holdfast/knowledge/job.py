"""A job: a version of a document that is ingested in the background."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID

from holdfast.core.errors import NotFound
from holdfast.core.text import restore
from holdfast.postgres.database import Row

JobState = Literal["pending", "running", "done", "failed", "superseded"]
JOB_STATES: tuple[JobState, ...] = get_args(JobState)


@dataclass(frozen=True, slots=True)
class IngestJob:
    """A job of a document. A new version of the document supersedes a job that has not ended.

    `units` are the pages, slides, sheets, chapters or portions that were read, of `total_units` if that is known.
    `chunks` are those that were read, `embedded` those of them that have their vectors. `attempts` counts how often a
    process began or continued the work since it last progressed.
    """

    id: UUID
    document: UUID
    name: str
    collection: str
    state: JobState
    error: str | None
    attempts: int
    units: int
    total_units: int | None
    chunks: int
    embedded: int
    size: int
    media_type: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def is_open(self) -> bool:
        """Whether it waits or is worked on."""
        return self.state in ("pending", "running")


def job_of(row: Row) -> IngestJob:
    """Convert a row of `ingest_job`, with the name and the collection of its document."""
    return IngestJob(
        id=row["id"],
        document=row["document_id"],
        name=restore(row["name"]),
        collection=restore(row["collection"]),
        state=row["state"],
        error=None if row["error"] is None else restore(row["error"]),
        attempts=row["attempts"],
        units=row["units"],
        total_units=row["total_units"],
        chunks=row["chunks"],
        embedded=row["embedded"],
        size=row["size"],
        media_type=row["media_type"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def unknown_job(id: UUID) -> NotFound:
    """Return the error for a job that is unknown."""
    return NotFound(f"there is no job {id}", next="List the jobs of the document.")
