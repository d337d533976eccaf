"""Tools: what agents can call, and users by hand; how they are run and who may use them is for admins."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.core.errors import AlreadyExists, Conflict, NotFound
from holdfast.server.fields import NotBlank, ToolName, WebAddress, matching, stated
from holdfast.server.operations import Call, Operations
from holdfast.skills.drafts import MAX_LABEL, METHODS, REFERENCE
from holdfast.skills.finding import MAX_LIMIT, MAX_QUERY
from holdfast.skills.permits import PERMISSIONS_SCHEMA
from holdfast.skills.request import Request
from holdfast.skills.service import METHOD
from holdfast.skills.tool import KINDS, LONGEST_TIMEOUT, Access, Entry, Kind, Mode, Origin, Tool
from holdfast.skills.tools import MAX_SHOWN_NAME

operations = Operations("tools")

MAX_PAGE = 200
LISTED, FOUND = 100, 10  # unless it is said how many

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=LONGEST_TIMEOUT)]
Version = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Query = Annotated[NotBlank, msgspec.Meta(max_length=MAX_QUERY)]
Label = Annotated[NotBlank, stated(maxLength=MAX_LABEL)]
Shown = Annotated[str, stated(maxLength=MAX_SHOWN_NAME)]
Method = Annotated[str, stated(enum=[*METHODS])]
ServiceMethod = Annotated[str, matching(METHOD)]
Permissions = Annotated[dict[str, Any], stated(**PERMISSIONS_SCHEMA)]


class ToolSummary(msgspec.Struct, frozen=True):
    """A tool in a list; of one that was searched for, how well it answers, and a skill that works with it."""

    name: str
    description: str
    kind: Kind
    access: Access
    source: str | None
    active: bool
    calls: int | None = None
    score: float | None = None
    skill: str | None = None


class ToolPage(msgspec.Struct, frozen=True):
    """Tools by name, and what the next page is asked for `after`; or what a search found, best first.

    `reduced` says why it was found by words alone, where it was.
    """

    tools: list[ToolSummary]
    cursor: str | None = None
    reduced: str = ""


class ToolDetail(msgspec.Struct, frozen=True):
    """A tool, with all that is registered of it; how it is run, and who may use it, is null to others than admins."""

    id: UUID
    name: str
    description: str
    parameters: dict[str, Any]
    kind: Kind
    access: Access
    mode: Mode | None
    idempotent: bool
    approve: bool
    timeout: float | None
    label: str
    app_name: str
    display_name: str
    origin: Origin
    source: str | None
    operation: str | None
    service: str | None
    active: bool
    version: int
    calls: int
    failures: int
    latency_ms: float | None
    created_at: datetime
    updated_at: datetime
    updated_by: str
    reference: str | None
    request: Request | None
    permissions: dict[str, Any] | None


class ToolChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool to register. `version` is the one that is changed, null where there is none yet.

    `endpoint` and `method` are a `rest` tool's; `request` says how its arguments are sent, where that is not in the
    body or the query. `reference` names a `function` as module:name, or a `java` class; `script` is of a kind that is
    one; `server` an `mcp_server`'s name; `service` its method on JSON-RPC. What is left out of a change stays as it is,
    but for a script.
    """

    description: str
    parameters: dict[str, Any]
    kind: Kind
    access: Access | UnsetType = UNSET
    mode: Mode | UnsetType | None = UNSET
    idempotent: bool | UnsetType = UNSET
    approve: bool | UnsetType = UNSET
    timeout: Seconds | UnsetType | None = UNSET
    endpoint: WebAddress | None = None
    method: Method | None = None
    request: Request | None = None
    reference: str = ""
    script: str | None = None
    server: str | None = None
    label: Label | UnsetType = UNSET
    display_name: Shown | UnsetType = UNSET
    app_name: Shown | UnsetType = UNSET
    permissions: Permissions | None = None
    service: ServiceMethod | UnsetType | None = UNSET
    active: bool | UnsetType = UNSET
    version: Version | None = None


FUNCTION_RULE = stated(
    anyOf=[
        {"properties": {"kind": {"enum": [kind for kind in KINDS if kind != "function"]}}},
        {"properties": {"reference": {"pattern": f"^({REFERENCE})?$"}}},
    ]
)


class ToolPermissions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What agents may do with a tool: `{"default": LEVEL, "agents": {NAME: LEVEL}}`, of none, read, write, execute."""

    permissions: Permissions
    version: Version | None = None


class ActiveChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether something is used."""

    active: bool
    version: Version | None = None


@operations.declare("GET", "/api/tools", needs="read")
async def list_tools(
    call: Call,
    query: Query | None = None,
    source: Name | None = None,
    kind: Kind | None = None,
    limit: Limit | None = None,
    after: str | None = None,
) -> ToolPage:
    """Tools by name, or those that answer a `query`; to others than admins, those that are active."""
    if query is not None:
        return await _search(call, query, source=source, kind=kind, limit=limit or FOUND)
    active = None if call.authorization.is_admin else True
    most = limit or LISTED
    found = await call.engine.tools.list(limit=most + 1, after=after, source=source, kind=kind, active=active)
    page = [_summary(entry) for entry in found[:most]]
    return ToolPage(page, page[-1].name if len(found) > most else None)


@operations.declare("GET", "/api/tools/{name}", needs="read", errors=[NotFound])
async def get_tool(call: Call, name: str) -> ToolDetail:
    """A tool: what it takes, where it comes from, how often it was called."""
    return _detail(call, await call.authorization.tool(name))


@operations.declare("PUT", "/api/tools/{name}", needs="admin", errors=[NotFound, AlreadyExists, Conflict])
async def put_tool(call: Call, name: ToolName, body: Annotated[ToolChange, FUNCTION_RULE]) -> ToolDetail:
    """Register a tool, or change one; those of programs and of sources are changed there."""
    given = {field: getattr(body, field) for field in body.__struct_fields__}
    return _detail(call, await call.engine.tools.put(name, **given, by=call.principal.user))


@operations.declare(
    "DELETE", "/api/tools/{name}", needs="admin", status=204, errors=[NotFound, AlreadyExists, Conflict]
)
async def remove_tool(call: Call, name: str, version: Version | None = None) -> None:
    """Remove a tool that was registered; skills that worked with it do without."""
    await call.engine.tools.remove(name, version=version, by=call.principal.user)


@operations.declare("PUT", "/api/tools/{name}/permissions", needs="admin", errors=[NotFound, Conflict])
async def permit_tool(call: Call, name: str, body: ToolPermissions) -> ToolDetail:
    """Say what agents may do with a tool, wherever it comes from."""
    entry = await call.engine.tools.permit(name, body.permissions, version=body.version, by=call.principal.user)
    return _detail(call, entry)


@operations.declare("PUT", "/api/tools/{name}/active", needs="admin", errors=[NotFound, Conflict])
async def activate_tool(call: Call, name: str, body: ActiveChange) -> ToolDetail:
    """Have a tool be used or not, wherever it comes from."""
    entry = await call.engine.tools.activate(name, body.active, version=body.version, by=call.principal.user)
    return _detail(call, entry)


async def _search(call: Call, query: str, *, source: str | None, kind: Kind | None, limit: int) -> ToolPage:
    narrow = source is not None or kind is not None
    most = MAX_LIMIT if narrow else min(limit, MAX_LIMIT)
    found = await call.engine.finding.search(query, kinds=("tool",), limit=most)
    tools = await call.engine.tools.by_names([each.name for each in found])
    page = [
        ToolSummary(
            tool.name, tool.description, tool.kind, tool.access, source_of(tool), True, None, each.score, each.skill
        )
        for each in found
        if (tool := tools.get(each.name)) is not None
        and kind in (None, tool.kind)
        and source in (None, source_of(tool))
    ]
    return ToolPage(page[:limit], reduced=found.reduced)


def source_of(tool: Tool) -> str | None:
    """The name of the source that a tool comes from."""
    return None if tool.backend is None else tool.backend.source


def _summary(entry: Entry) -> ToolSummary:
    tool = entry.tool
    return ToolSummary(tool.name, tool.description, tool.kind, tool.access, entry.source, entry.active, entry.calls)


def _detail(call: Call, entry: Entry) -> ToolDetail:
    tool, told = entry.tool, call.authorization.is_admin
    return ToolDetail(
        id=entry.id,
        name=tool.name,
        description=tool.description,
        parameters=dict(tool.parameters),
        kind=tool.kind,
        access=tool.access,
        mode=tool.mode,
        idempotent=tool.idempotent,
        approve=tool.approve,
        timeout=tool.timeout,
        label=entry.label,
        app_name=entry.app_name,
        display_name=entry.display_name,
        origin=entry.origin,
        source=entry.source,
        operation=entry.operation,
        service=tool.service,
        active=entry.active,
        version=entry.version,
        calls=entry.calls,
        failures=entry.failures,
        latency_ms=entry.latency_ms,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        updated_by=entry.updated_by,
        reference=tool.reference if told else None,
        request=tool.request if told else None,
        permissions=dict(entry.permissions) if told else None,
    )
