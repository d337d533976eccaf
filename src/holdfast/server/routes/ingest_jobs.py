"""Jobs: versions of documents that are ingested in the background, and their progress."""

from typing import Annotated
from uuid import UUID

import msgspec

from holdfast.core.errors import Conflict, NotFound
from holdfast.knowledge import IngestJob, JobState
from holdfast.server.fields import Cursor, Limit, about
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.pages import page_of

operations = ApiOperations("knowledge")

MOST_FOLLOWED = 1000


class JobPage(msgspec.Struct, frozen=True):
    """Jobs, newest first. Pass `cursor` to get the next page; it is null on the last page."""

    jobs: list[IngestJob]
    cursor: str | None


class FollowedJobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The jobs to follow."""

    ids: Annotated[list[UUID], msgspec.Meta(min_length=1, max_length=MOST_FOLLOWED)]


class JobList(msgspec.Struct, frozen=True):
    """Jobs, without those that are no more."""

    jobs: list[IngestJob]


@operations.declare("GET", "/api/knowledge/jobs", needs="read", errors=[NotFound])
async def list_ingest_jobs(
    call: ApiCall,
    state: Annotated[JobState | None, about("Only jobs in this state.")] = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> JobPage:
    """List jobs, newest first: of documents of the organization and your own; for an admin, of all."""
    owners = None if call.authorization.is_admin else (await call.authorization.reader()).owners
    collections = (await call.authorization.reader()).collections

    async def read(most: int, cursor: str | None) -> tuple[list[IngestJob], str | None]:
        page = await call.engine.knowledge.jobs(
            owners=owners, collections=collections, state=state, limit=most, cursor=cursor
        )
        return page, page.cursor

    return JobPage(*await page_of(read, limit=limit, start=cursor))


@operations.declare("POST", "/api/knowledge/jobs/progress", needs="read", errors=[NotFound])
async def follow_ingest_jobs(call: ApiCall, body: FollowedJobs) -> JobList:
    """Get the progress of several jobs."""
    reader = await call.authorization.reader()
    owners = None if call.authorization.is_admin else reader.owners
    return JobList(
        [
            *await call.engine.knowledge.jobs(
                ids=body.ids, owners=owners, collections=reader.collections, limit=MOST_FOLLOWED
            )
        ]
    )


@operations.declare("GET", "/api/knowledge/jobs/{id}", needs="read", errors=[NotFound])
async def get_ingest_job(call: ApiCall, id: UUID) -> IngestJob:
    """Get a job with its progress."""
    return await call.authorization.ingest_job(id)


@operations.declare("POST", "/api/knowledge/jobs/{id}/retry", needs="write", errors=[NotFound, Conflict])
async def retry_ingest_job(call: ApiCall, id: UUID) -> IngestJob:
    """Retry a job that has failed."""
    job = await call.authorization.ingest_job(id)
    await call.authorization.document_to_change(job.document)
    return await call.engine.knowledge.retry(id)
