"""Export and import of memories, and the sweep that deletes expired and faded ones."""

import io
from typing import Annotated
from uuid import UUID

import msgspec
from starlette.responses import Response

from holdfast.authorization import Name, OwnerName
from holdfast.core.errors import Conflict, NotFound
from holdfast.memory import Owner, Scope
from holdfast.memory.import_export import ImportReport
from holdfast.memory.sweeper import Reason
from holdfast.server.attachments import json_lines
from holdfast.server.operations import JSON_LINES, ApiCall, ApiOperations

operations = ApiOperations("memories")

LineNumber = Annotated[int, msgspec.Meta(ge=1, le=2**53)]


class SweepRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether to delete memories, or only to report them (`dry_run`, the default)."""

    dry_run: bool = True


class SweptCount(msgspec.Struct, frozen=True):
    """How many memories of a memory scope have expired or faded."""

    scope: Scope
    reason: Reason
    memories: int


class SweepReport(msgspec.Struct, frozen=True):
    """The deleted memories or, with `dry_run`, those that would be deleted. `ids` has the first of them."""

    dry_run: bool
    total: int
    counts: list[SweptCount]
    ids: list[UUID]


@operations.declare(
    "GET", "/api/memories/export", needs="read", errors=[NotFound, Conflict], response_format=JSON_LINES, audit=True
)
async def export_memories(
    call: ApiCall, scope: Scope = "user", name: Name | None = None, all: bool = False
) -> Response:
    """Export an owner's memories as JSON lines, with a header; for an admin, `all` exports a whole memory scope."""
    call.details["scope"] = scope
    call.details |= {} if name is None else {"name": name}
    if all:
        call.principal.require("admin")
        owner: Owner | Scope = scope
    else:
        owner = await call.authorization.owner(OwnerName(scope, name))
    return json_lines(call.engine.memory_transfer.export(owner))


@operations.declare(
    "POST", "/api/memories/import", needs="write", errors=[NotFound, Conflict], body_format=JSON_LINES, audit=True
)
async def import_memories(
    call: ApiCall,
    body: bytes,
    scope: Scope | None = None,
    name: Name | None = None,
    agent: Name | None = None,
    line: LineNumber = 1,
) -> ImportReport:
    """Import exported memories into one owner; for an admin who names none, to their original owners.

    Send a file that is too large for one request in parts, each with the header as its first line. `line` is the number
    of the line before the first memory of the part, so that errors name the lines of the whole file.
    """
    by_admin = call.authorization.is_admin
    into = None
    if scope is not None or not by_admin:
        into = await call.authorization.owner_to_change(OwnerName(scope or "user", name, agent))
    return await call.engine.memory_transfer.load(io.BytesIO(body), into=into, by_admin=by_admin, first_line=line)


@operations.declare("POST", "/api/memories/sweep", needs="admin")
async def sweep_memories(call: ApiCall, body: SweepRequest) -> SweepReport:
    """Delete expired and faded memories now, which also happens regularly. The default is a dry run."""
    swept = await call.engine.memory.sweep(dry_run=body.dry_run)
    counts = [SweptCount(scope, reason, count) for (scope, reason), count in sorted(swept.counts.items())]
    return SweepReport(body.dry_run, swept.total, counts, swept.ids)
