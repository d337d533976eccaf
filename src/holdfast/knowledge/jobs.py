"""Lists jobs, waits for them and retries them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from uuid import UUID

from holdfast.bus.notifications import until
from holdfast.core.cursors import Page, read_cursor, write_cursor
from holdfast.core.errors import Conflict, InvalidInput
from holdfast.knowledge.documents import KnowledgeDocuments, check_limit, stored_collection
from holdfast.knowledge.job import JOB_STATES, IngestJob, JobState, job_of, unknown_job
from holdfast.memory import Owner
from holdfast.postgres.database import Database
from holdfast.postgres.listener import Wake
from holdfast.postgres.sql import statements

ENDED = "holdfast_ingested"  # the channel on which functions/ say that jobs have ended
POLL = 2.0  # maximum seconds between two looks at a job that somebody waits for

sql = statements(__name__)

Listen = Callable[[str], AbstractAsyncContextManager[Wake]]


class Jobs:
    """The jobs of a tenant."""

    def __init__(
        self, database: Database, *, documents: KnowledgeDocuments, listen: Listen, wake: Callable[[], None]
    ) -> None:
        self._database = database
        self._documents = documents
        self._listen = listen
        self.wake = wake  # starts the ingester's next step

    async def list(
        self,
        *,
        document: UUID | None = None,
        ids: Sequence[UUID] | None = None,
        owners: Sequence[Owner] | None = None,
        collections: Sequence[str] | None = None,
        state: JobState | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[IngestJob]:
        """Return jobs, newest first: of all documents or of one, of all owners or of some, in all states or in one."""
        check_limit(limit)
        if state is not None and state not in JOB_STATES:
            raise InvalidInput(f"the state {state!r:.100} is unknown", next=f"Use one of {', '.join(JOB_STATES)}.")
        before, _ = read_cursor(cursor)
        scopes, owner_ids = (None, None) if owners is None else await self._documents.scopes_and_ids(owners)
        within = None if collections is None else [stored_collection(each) for each in collections]
        rows = await self._database.all(
            sql("list_jobs"), document, scopes, owner_ids, state, before, limit + 1, ids, within
        )
        last = rows[limit - 1]["id"] if len(rows) > limit else None
        return Page([job_of(row) for row in rows[:limit]], None if last is None else write_cursor(last))

    async def get(self, id: UUID) -> IngestJob:
        """Return a job. The former jobs of a document are forgotten when it gets a new one."""
        row = await self._database.one(sql("job"), id)
        if row is None:
            raise unknown_job(id)
        return job_of(row)

    async def retry(self, id: UUID) -> IngestJob:
        """Run a failed job again, from where it was."""
        if await self._database.value(sql("retry_job"), id) is None:
            job = await self.get(id)
            raise InvalidInput(
                f"the job is {job.state}",
                why="only a failed job can be retried",
                next="Wait for it." if job.is_open else "Add the document again.",
            )
        self.wake()
        return await self.get(id)

    async def wait(self, id: UUID, document: UUID, name: str) -> None:
        """Wait until a job is done. Raises InvalidInput with the reason if it failed."""
        async with self._listen(ENDED) as woken:
            while True:
                row = await self._database.one(sql("job"), id)
                job = None if row is None else job_of(row)
                if job is None or job.state == "superseded":
                    await self._documents.get(document)  # raises NotFound if it was removed
                    raise Conflict(
                        f"the document {name[:200]!r} was added again before this version was ingested",
                        expected=1,
                        current=2,
                        why="the newer one counts",
                        next="Wait for that one.",
                    )
                if job.state == "done":
                    return
                if job.state == "failed":
                    raise InvalidInput(
                        f"the document {name[:200]!r} was not ingested",
                        why=job.error or "",
                        document=str(document),
                        job=str(id),
                    )
                await until(woken, POLL)
