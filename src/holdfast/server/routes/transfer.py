"""Memories by the file, and the sweep that deletes what is over."""

import io
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated
from uuid import UUID

import msgspec
from starlette.responses import Response, StreamingResponse

from holdfast.authorization import Name, OwnerName
from holdfast.core.errors import Conflict, NotFound
from holdfast.memory import Owner, Scope
from holdfast.memory.sweep import Reason
from holdfast.memory.transfer import Imported
from holdfast.server.operations import JSON_LINES, Call, Operations

operations = Operations("memories")

LineNumber = Annotated[int, msgspec.Meta(ge=1, le=2**53)]


class SweepRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether to delete, or only to say what would be."""

    dry_run: bool = True


class SweptCount(msgspec.Struct, frozen=True):
    """How many memories of a scope were over, and why."""

    scope: Scope
    reason: Reason
    memories: int


class SweepReport(msgspec.Struct, frozen=True):
    """What was deleted, or would be with `dry_run`; the ids of the first of them."""

    dry_run: bool
    total: int
    counts: list[SweptCount]
    ids: list[UUID]


@operations.declare(
    "GET", "/api/memories/export", needs="read", errors=[NotFound, Conflict], response_format=JSON_LINES
)
async def export_memories(call: Call, scope: Scope = "user", name: Name | None = None, all: bool = False) -> Response:
    """The memories of an owner as lines of JSON, or, for an admin, `all` of a scope; a header comes first."""
    if all:
        call.principal.require("admin")
        whose: Owner | Scope = scope
    else:
        whose = await call.authorization.owner(OwnerName(scope, name))
    return StreamingResponse(_lines(call.engine.memory_transfer.export(whose)), media_type=JSON_LINES)


@operations.declare("POST", "/api/memories/import", needs="write", errors=[NotFound, Conflict], body_format=JSON_LINES)
async def import_memories(
    call: Call,
    body: bytes,
    scope: Scope | None = None,
    name: Name | None = None,
    agent: Name | None = None,
    line: LineNumber = 1,
) -> Imported:
    """Import what was exported: into one owner, or, for an admin who names none, to whose it was.

    A file larger than a request may be is sent in parts, each behind the header; `line` says where a part begins.
    """
    by_admin = call.authorization.is_admin
    into = None
    if scope is not None or not by_admin:
        into = await call.authorization.owner_to_change(OwnerName(scope or "user", name, agent))
    return await call.engine.memory_transfer.load(io.BytesIO(body), into=into, by_admin=by_admin, first_line=line)


@operations.declare("POST", "/api/memories/sweep", needs="admin")
async def sweep_memories(call: Call, body: SweepRequest) -> SweepReport:
    """Delete what has expired or faded, as is done from time to time anyway; unless told otherwise only say what."""
    swept = await call.engine.memory.sweep(dry_run=body.dry_run)
    counts = [SweptCount(scope, reason, count) for (scope, reason), count in sorted(swept.counts.items())]
    return SweepReport(body.dry_run, swept.total, counts, swept.ids)


async def _lines(exported: AsyncGenerator[str]) -> AsyncGenerator[str]:
    async with aclosing(exported):
        async for line in exported:
            yield line + "\n"
