"""Outputs: results of tools that are too large for a row, a record or a model."""

from uuid import UUID

from holdfast.core.text import store
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

sql = statements(__name__)


class Outputs:
    """Stores and finds outputs of executions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, execution: UUID) -> tuple[str, bytes] | None:
        """Return the content type and the whole output of an execution; None if its row holds all of it."""
        row = await self._database.one(sql("output"), execution)
        return None if row is None else (row["content_type"], row["content"])

    async def put_aside(self, correlation_id: str, content: bytes, content_type: str) -> bool:
        """Store a worker's result that is too large to send with its execution. Return False if there is none."""
        return bool(await self._database.run(sql("put_aside"), store(correlation_id), content, content_type))

    async def read_aside(self, correlation_id: str) -> bytes | None:
        """Return a result that a worker stored with `put_aside`."""
        return await self._database.value(sql("aside"), store(correlation_id))

    async def mark_local(self, correlation_id: str) -> None:
        """Record that this process, and no worker, has the execution: nobody has to wait for a worker then."""
        await self._database.run(sql("call_here"), store(correlation_id))
