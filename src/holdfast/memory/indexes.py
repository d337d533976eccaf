"""Vector indexes for tenants with many organizational memories, or many chunks of documents."""

import logging
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from holdfast.core.background import PeriodicJob
from holdfast.core.errors import DatabaseAway, HoldfastError
from holdfast.core.memory_settings import MemorySettings
from holdfast.postgres.database import OpenOwner, OwnerConnection, Row
from holdfast.postgres.sql import statements

FIRST = 60.0  # seconds before the first check: a short-lived process creates no index
EVERY = 600.0
LEAST_MEMORY, MOST_MEMORY = 64, 2048  # megabytes of maintenance_work_mem
LONGEST = 4000  # maximum dimensions of an indexed halfvec
OUTDATED = 1.2  # times as many vectors as are registered, or as few: they are registered again

Indexed = Literal["memory", "chunk"]
NAMES: Mapping[Indexed, str] = {"memory": "organization memories", "chunk": "chunks of documents"}

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexedVectors:
    """The vectors of a tenant by one model: of organizational memories, or of chunks."""

    indexed: Indexed
    tenant: UUID
    model: str
    dimensions: int
    count: int = 0

    @property
    def index(self) -> str:
        """The name of its index: at most 63 bytes, unique per tenant, model and dimensions."""
        checksum = zlib.crc32(f"{self.model}\0{self.dimensions}".encode())
        return f"{self.indexed}_nearest_{self.tenant.hex}_{checksum:08x}"

    @property
    def megabytes(self) -> int:
        """The memory to build its index without spilling: vectors with 16 bits per number, and their links."""
        return min(max(LEAST_MEMORY, self.count * (2 * self.dimensions + 600) // 1_000_000), MOST_MEMORY)


@dataclass(frozen=True, slots=True)
class IndexChanges:
    """The changes to make, in this order. A listed index is used by searches."""

    unlist: list[IndexedVectors]
    drop: list[str]
    make: list[IndexedVectors]
    list: list[IndexedVectors]


def plan_changes(
    many: Mapping[str, IndexedVectors],
    retained: Mapping[str, IndexedVectors],
    existing: Mapping[str, bool],
    listed: Mapping[str, IndexedVectors],
) -> IndexChanges:
    """Return the changes from the existing to the wanted indexes. All mappings are by index name.

    `many`: libraries that need an index. `retained`: these, and libraries that keep an existing index. `existing`:
    existing indexes, and whether each is valid. `listed`: indexes that searches use, with the number of vectors as it
    was registered. A killed process can leave an index that is invalid or not listed.
    """
    valid = {name for name, is_valid in existing.items() if is_valid}
    staying = valid & (many.keys() | retained.keys())
    settled = {name for name in listed.keys() & staying if not _is_outdated(listed[name], retained[name])}
    return IndexChanges(
        unlist=[listed[name] for name in sorted(listed.keys() - staying)],
        drop=sorted(existing.keys() - staying),
        make=[many[name] for name in sorted(many.keys() - staying)],
        list=[retained[name] for name in sorted((staying | many.keys()) - settled)],
    )


class Indexes(PeriodicJob):
    """Creates an index for a tenant with many organizational memories or chunks, and drops it when few are left."""

    def __init__(self, owner: OpenOwner, settings: MemorySettings) -> None:
        super().__init__("maintenance of vector indexes", pause=EVERY, first=FIRST)
        self._owner = owner
        self._from = settings.scoring.index_from

    async def tend(self) -> IndexChanges | None:
        """Create and drop indexes, and return the changes; None if another process is doing it.

        `create index concurrently` does not block writes and cannot run in a transaction, so a second connection holds
        the lock.
        """
        async with self._owner() as holder, holder.transaction():
            if not await holder.value(sql("lock_index_maintenance")):
                return None
            # The transaction keeps the snapshot of that statement until its next one, and the build would wait for it.
            await holder.script("select")
            async with self._owner() as owner:
                due = await self._due(owner)
                await self._apply(owner, due)
        return due

    async def step(self) -> None:
        """Create and drop indexes."""
        await self.tend()

    async def _due(self, owner: OwnerConnection) -> IndexChanges:
        # Hysteresis: an index is dropped below half the number at which it is created.
        retained = {
            library.index: library
            for row in await owner.all(sql("vectors_to_index"), max(1, self._from // 2))
            if (library := _library(row)).dimensions <= LONGEST
        }
        many = {name: library for name, library in retained.items() if library.count >= self._from}
        existing = {row["name"]: row["whole"] for row in await owner.all(sql("vector_indexes"))}
        listed = {library.index: library for library in map(_library, await owner.all(sql("listed_indexes")))}
        return plan_changes(many, retained, existing, listed)

    async def _apply(self, owner: OwnerConnection, due: IndexChanges) -> None:
        # No parallel workers: they build in shared memory, which is small in many containers.
        await owner.script("set search_path = public, extensions; set max_parallel_maintenance_workers = 0")
        for library in due.unlist:
            await owner.run(sql("unlist_index"), library.tenant, library.indexed, library.model)
        for name in due.drop:
            await owner.script(f"drop index concurrently if exists public.{name}")
        failed = {library.index for library in due.make if not await self._create(owner, library)}
        for library in due.list:
            if library.index not in failed:
                await owner.run(
                    sql("list_index"),
                    library.tenant,
                    library.indexed,
                    library.model,
                    library.dimensions,
                    library.count,
                )

    async def _create(self, owner: OwnerConnection, library: IndexedVectors) -> bool:
        """Create an index. Return False, and log a warning, if it fails, so that the others are still created."""
        try:
            await owner.script(f"set maintenance_work_mem = '{library.megabytes}MB'")
            statement: str = await owner.value(
                sql("vector_index"),
                library.index,
                library.indexed,
                library.tenant,
                library.model,
                library.dimensions,
            )
            await owner.script(statement)
        except DatabaseAway:
            raise
        except HoldfastError as error:
            log.warning(
                "could not create the vector index for the %s of %s, will retry: %s",
                NAMES[library.indexed],
                library.tenant,
                error,
            )
            return False
        log.info("created a vector index for the %d %s of %s", library.count, NAMES[library.indexed], library.tenant)
        return True


def _library(row: Row) -> IndexedVectors:
    return IndexedVectors(row["indexed"], row["tenant_id"], row["model"], row["dimensions"], row["vectors"])


def _is_outdated(registered: IndexedVectors, now: IndexedVectors) -> bool:
    return not registered.count / OUTDATED <= now.count <= registered.count * OUTDATED
