"""Outputs: what tools gave, where that is more than a row, a record or a model should hold."""

from uuid import UUID

from holdfast.core.text import store
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

sql = statements(__name__)


class Outputs:
    """Keeps outputs of executions, and finds them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, execution: UUID) -> tuple[str, bytes] | None:
        """The whole output of an execution, and of what kind it is; None where all of it is in its row."""
        row = await self._database.one(sql("output"), execution)
        return None if row is None else (row["content_type"], row["content"])

    async def put_aside(self, correlation_id: str, content: bytes, content_type: str) -> bool:
        """Keep what a worker cannot send, with the execution that waits for it; False where nobody wrote one down."""
        return bool(await self._database.run(sql("put_aside"), store(correlation_id), content, content_type))

    async def aside(self, correlation_id: str) -> bytes | None:
        """What a worker kept in this way."""
        return await self._database.value(sql("aside"), store(correlation_id))

    async def here(self, correlation_id: str) -> None:
        """Note that no worker has the execution, but this process: whoever comes after it does not wait for one."""
        await self._database.run(sql("call_here"), store(correlation_id))
