"""Adds files as documents: uploads what has changed, and follows the jobs that ingest it.

A file that fails is reported, and the others go on. What was uploaded is ingested by the server, also if the command
ends before.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.cli.api import Api
from holdfast.cli.document_files import DocumentFile
from holdfast.cli.ingest_progress import IngestProgress, NoProgress
from holdfast.core.errors import Forbidden, HoldfastError, Unauthenticated, Unavailable

LOOK = 0.5  # seconds between two looks at the jobs
MOST_FOLLOWED = 1000  # jobs in one look
AHEAD_JOBS = 500  # jobs and bytes that wait on the server before more is uploaded
AHEAD_BYTES = 256 * 1024 * 1024
PAGE = 200
OPEN = ("uploading", "pending", "running")
# Errors that every other file would get, too.
FATAL = (Forbidden, Unauthenticated, Unavailable)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where documents are added: the owner, the collection, and what is said about each of them."""

    scope: str
    owner: str | None
    collection: str
    metadata: Mapping[str, Any] | None = None
    source: str | None = None
    title: str | None = None

    @property
    def place(self) -> dict[str, Any]:
        """The owner and the collection, as the API takes them."""
        named = {} if self.owner is None else {"owner": self.owner}
        return {"scope": self.scope, "collection": self.collection, **named}


@dataclass(slots=True)
class AddedFiles:
    """What became of the files."""

    added: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # documents
    unchanged: list[str] = field(default_factory=list[str])
    failed: dict[str, str] = field(default_factory=dict[str, str])  # by name, with the reason


class DocumentUploads:
    """Uploads files to one destination."""

    def __init__(self, api: Api, destination: Destination, *, metadata_text: str | None) -> None:
        self._api = api
        self._destination = destination
        self._progress: IngestProgress = NoProgress()
        self._metadata_text = metadata_text
        self._known: dict[str, dict[str, Any]] = {}
        self._jobs: dict[str, tuple[DocumentFile, dict[str, Any]]] = {}  # open jobs, by id
        self._done_bytes = 0
        self._pages = self._chunks = self._ended = 0
        self._looked_at = time.monotonic()
        self.result = AddedFiles()

    @property
    def open_jobs(self) -> int:
        """How many jobs have not ended."""
        return len(self._jobs)

    async def add(self, files: Sequence[DocumentFile], progress: IngestProgress, *, wait: bool) -> None:
        """Add files one after the other; with `wait`, return when all are ingested."""
        self._progress = progress
        self._known = {each["name"]: each for each in await self._documents()}
        for file in files:
            try:
                await self._add_file(file, wait=wait)
            except FATAL:
                raise
            except HoldfastError as error:
                self._fail(file, error.why or error.what)
            except OSError as error:
                self._fail(file, error.strerror or str(error))
            self._show(file.name)
            if wait and self._jobs and time.monotonic() > self._looked_at + LOOK:
                await self._look()
            while wait and self._is_far_ahead():
                await self._wait()
        while wait and self._jobs:
            await self._wait()

    async def _add_file(self, file: DocumentFile, *, wait: bool) -> None:
        known = self._known.get(file.name)
        if known is not None and await self._is_unchanged(file, known):
            self.result.unchanged.append(file.name)
            self._end(file)
            return
        destination = self._destination
        answer = await self._api.send_file(
            "add_document",
            file.pieces,
            size=file.size,
            media_type=file.media_type,
            name=file.name,
            **destination.place,
            metadata=self._metadata_text,
            source=destination.source,
            title=destination.title,
        )
        job = answer["job"]
        if job is None:
            self.result.unchanged.append(file.name)
            self._end(file)
        else:
            self._jobs[job["id"]] = (file, job)
            if not wait:
                self.result.added.append(answer["document"])

    async def _is_unchanged(self, file: DocumentFile, known: Mapping[str, Any]) -> bool:
        """Whether a document has this content, and the options say nothing new about it."""
        told = self._destination
        given = {"metadata": told.metadata, "source": told.source, "title": told.title}
        is_told = all(value is None or known[name] == value for name, value in given.items())
        may_be = is_told and known["status"] == "ready" and known["size"] == file.size
        return may_be and known["hash"] == await asyncio.to_thread(file.hash)

    def _is_far_ahead(self) -> bool:
        return len(self._jobs) > AHEAD_JOBS or sum(file.size for file, _ in self._jobs.values()) > AHEAD_BYTES

    async def _wait(self) -> None:
        await asyncio.sleep(LOOK)
        await self._look()

    async def _look(self) -> None:
        """Look which jobs have ended."""
        self._looked_at = time.monotonic()
        ids = list(self._jobs)[:MOST_FOLLOWED]
        found = {each["id"]: each for each in (await self._api.call("follow_ingest_jobs", ids=ids))["jobs"]}
        for id in ids:
            file, _ = self._jobs[id]
            job = found.get(id)
            if job is None or job["state"] == "superseded":
                del self._jobs[id]
                self._fail(file, "it was removed or added again meanwhile")
            elif job["state"] in OPEN:
                self._jobs[id] = (file, job)
            else:
                del self._jobs[id]
                await self._end_job(file, job)
        self._show(next((file.name for file, job in self._jobs.values() if job["state"] == "running"), ""))

    async def _end_job(self, file: DocumentFile, job: Mapping[str, Any]) -> None:
        if job["state"] == "failed":
            self._fail(file, job["error"] or "it could not be ingested")
            return
        self._pages += job["units"]
        self._chunks += job["chunks"]
        self._end(file)
        self.result.added.append(await self._api.call("get_document", id=job["document"]))

    def _fail(self, file: DocumentFile, why: str) -> None:
        self.result.failed[file.name] = why
        self._end(file)

    def _end(self, file: DocumentFile) -> None:
        self._ended += 1
        self._done_bytes += file.size

    def _show(self, current: str) -> None:
        open_jobs = self._jobs.values()
        self._progress.show(
            done=self._done_bytes + sum(_share_of(job) * file.size for file, job in open_jobs),
            files=self._ended,
            pages=self._pages + sum(job["units"] for _, job in open_jobs),
            chunks=self._chunks + sum(job["chunks"] for _, job in open_jobs),
            current=current,
        )

    async def _documents(self) -> list[dict[str, Any]]:
        """Return the documents that are at the destination now."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = await self._api.call("list_documents", **self._destination.place, limit=PAGE, cursor=cursor)
            found += page["documents"]
            cursor = page["cursor"]
            if cursor is None:
                return found


def _share_of(job: Mapping[str, Any]) -> float:
    """Return how much of a job is done, from 0 to 1."""
    total = job["total_units"]
    read = min(1.0, job["units"] / total) if total else 0.0
    embedded = job["embedded"] / job["chunks"] if job["chunks"] else 0.0
    return read * (0.5 + 0.5 * embedded)
