"""Records what ran in the sandbox: the code, the output, the exit code, and what it used."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from holdfast.core.ids import uuid7
from holdfast.core.text import restore, store
from holdfast.execution.outcomes import cut
from holdfast.execution.sandbox.sandbox import SandboxResult
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.run import Run

MAX_OUTPUT = 256 * 1024  # bytes of each stream that are stored

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class SandboxExecution:
    """A program that ran in the sandbox. `reason`: the limit that it passed, if it was stopped for one.

    `environment` is what the program had besides the sandbox's own variables.
    """

    id: UUID
    execution_id: UUID | None
    run_id: UUID | None
    sandbox_type: str
    code: str
    environment: Mapping[str, Any]
    stdout: str
    stderr: str
    exit_code: int
    reason: str | None
    execution_time_ms: float
    resource_usage: Mapping[str, Any]
    created_at: datetime


class SandboxExecutions:
    """The records of one tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(
        self, run: Run, result: SandboxResult, *, language: str, code: str, environment: Mapping[str, str]
    ) -> None:
        """Store what ran for a call of a tool."""
        ending = result.ending
        usage = {"cpu_seconds": round(ending.cpu_seconds, 3), "memory_bytes": ending.memory_bytes}
        await self._database.run(
            sql("record_sandbox_execution"),
            uuid7(),
            _uuid(run.call_id) if run.run_id is None else None,
            run.run_id,
            store(run.call_id),
            language,
            store(code),
            dict(environment),
            _stored(result.stdout),
            _stored(result.stderr),
            ending.exit_code,
            result.reason,
            1000 * ending.seconds,
            usage,
        )

    async def of(self, execution: UUID) -> list[SandboxExecution]:
        """Return what ran in the sandbox for an execution of a tool, oldest first."""
        return [_execution(row) for row in await self._database.all(sql("sandbox_executions"), execution)]


def _stored(output: bytes) -> str:
    return store(cut(output.decode(errors="replace"), MAX_OUTPUT))


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _execution(row: Row) -> SandboxExecution:
    return SandboxExecution(
        row["id"],
        row["execution_id"],
        row["run_id"],
        row["sandbox_type"],
        restore(row["code"]),
        row["environment"],
        restore(row["stdout"]),
        restore(row["stderr"]),
        row["exit_code"],
        row["reason"],
        row["execution_time_ms"],
        row["resource_usage"],
        row["created_at"],
    )
