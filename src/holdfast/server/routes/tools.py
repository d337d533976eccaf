"""Tools: every caller can list the active ones; how they run and who may use them needs the scope `admin`."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, replace

from holdfast.core.errors import AlreadyExists, Conflict, NotFound
from holdfast.server.fields import (
    CallSeconds,
    Limit,
    NotBlank,
    RegistryQuery,
    RegistryVersion,
    ShortName,
    ToolName,
    WebAddress,
    about,
    documented,
    matching,
)
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.skills.definition_scan import ToolWarning
from holdfast.skills.permissions import PERMISSIONS_SCHEMA
from holdfast.skills.registry_columns import MAX_LABEL, METHODS, REFERENCE
from holdfast.skills.request import RequestTemplate
from holdfast.skills.search import MAX_LIMIT
from holdfast.skills.service import METHOD
from holdfast.skills.tool import KINDS, Access, HeldFor, Kind, Mode, Origin, Tool, ToolEntry
from holdfast.skills.tools import MAX_SHOWN_NAME

operations = ApiOperations("tools")

LISTED, FOUND = 100, 10  # default limits of a list and of a search

Label = Annotated[NotBlank, documented(maxLength=MAX_LABEL)]
Shown = Annotated[str, documented(maxLength=MAX_SHOWN_NAME)]
Method = Annotated[str, documented(enum=[*METHODS])]
ServiceMethod = Annotated[str, matching(METHOD)]
Permissions = Annotated[dict[str, Any], documented(**PERMISSIONS_SCHEMA)]


class ToolSummary(msgspec.Struct, frozen=True):
    """A tool in a list. A search result has a `score`, and a `skill` that uses the tool, but no `calls`."""

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
    """Tools by name, or the results of a search, best first. If the search used words only, `reduced` says why.

    Pass `cursor` as `after` to get the next page; it is null on the last page and for a search.
    """

    tools: list[ToolSummary]
    cursor: str | None = None
    reduced: str = ""


class ToolDetail(msgspec.Struct, frozen=True):
    """A registered tool. Only an admin gets `reference`, `request` and `permissions`; for others they are null.

    `held`: nobody has approved its definition; it has a `proposal`, or plain SQL has `altered` it. Then it is neither
    shown nor called. `hash`: of the pinned definition of a tool from a source, `warnings`: what is suspicious in that.
    """

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
    request: RequestTemplate | None
    permissions: dict[str, Any] | None
    held: HeldFor | None
    hash: str | None
    warnings: tuple[ToolWarning, ...]


class ToolChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool to register. To change a tool, send its current `version`; for a new one, send null.

    `endpoint` and `method` are for a `rest` tool. `request` says how its arguments are sent, if not in the body or the
    query. `reference` is a `function` as module:name, or a `java` class. `script` is the code of a script. `server` is
    the name of an `mcp_server`. `service` is the JSON-RPC method. Omitted fields are unchanged, except `script`.
    """

    description: str
    parameters: dict[str, Any]
    kind: Kind
    access: Access | UnsetType = UNSET
    mode: Mode | UnsetType | None = UNSET
    idempotent: bool | UnsetType = UNSET
    approve: bool | UnsetType = UNSET
    timeout: CallSeconds | UnsetType | None = UNSET
    endpoint: WebAddress | None = None
    method: Method | None = None
    request: RequestTemplate | None = None
    reference: str = ""
    script: str | None = None
    server: str | None = None
    label: Label | UnsetType = UNSET
    display_name: Shown | UnsetType = UNSET
    app_name: Shown | UnsetType = UNSET
    permissions: Permissions | None = None
    service: ServiceMethod | UnsetType | None = UNSET
    active: bool | UnsetType = UNSET
    version: RegistryVersion | None = None


FUNCTION_RULE = documented(
    anyOf=[
        {"properties": {"kind": {"enum": [kind for kind in KINDS if kind != "function"]}}},
        {"properties": {"reference": {"pattern": f"^({REFERENCE})?$"}}},
    ]
)


class ToolPermissions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Permissions of a tool: `{"default": LEVEL, "agents": {NAME: LEVEL}, "users": LEVEL}`.

    A level is none, read, write or execute. `users` is for direct calls.
    """

    permissions: Permissions
    version: RegistryVersion | None = None


class ActiveChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a tool or a skill is enabled."""

    active: bool
    version: RegistryVersion | None = None


@operations.declare("GET", "/api/tools", needs="read")
async def list_tools(
    call: ApiCall,
    query: RegistryQuery | None = None,
    source: Annotated[ShortName | None, about("Only tools of this source.")] = None,
    kind: Kind | None = None,
    limit: Limit | None = None,
    after: str | None = None,
) -> ToolPage:
    """List tools by name, or search them with `query`. Only an admin gets inactive and hidden ones."""
    if query is not None:
        return await _search(call, query, source=source, kind=kind, limit=limit or FOUND)
    active = None if call.authorization.is_admin else True
    most = limit or LISTED
    found = await call.engine.tools.list(limit=most + 1, after=after, source=source, kind=kind, active=active)
    hidden = await call.authorization.hidden_tools(entry.tool for entry in found)
    page = [_summary(entry) for entry in found[:most] if entry.tool.name not in hidden]
    return ToolPage(page, found[most - 1].tool.name if len(found) > most else None)


@operations.declare("GET", "/api/tools/{name}", needs="read", errors=[NotFound])
async def get_tool(call: ApiCall, name: str) -> ToolDetail:
    """Get a tool with its parameters, its origin and the number of its calls."""
    return _detail(call, await call.authorization.tool(name))


@operations.declare("PUT", "/api/tools/{name}", needs="admin", errors=[NotFound, AlreadyExists, Conflict])
async def put_tool(call: ApiCall, name: ToolName, body: Annotated[ToolChange, FUNCTION_RULE]) -> ToolDetail:
    """Register or change a tool. A tool of an app or of a source can only be changed there."""
    return _detail(call, await call.engine.tools.put(name, **asdict(body), by=call.principal.user))


@operations.declare(
    "DELETE", "/api/tools/{name}", needs="admin", status=204, errors=[NotFound, AlreadyExists, Conflict]
)
async def remove_tool(call: ApiCall, name: str, version: RegistryVersion | None = None) -> None:
    """Remove a registered tool, also from the skills that link it."""
    await call.engine.tools.remove(name, version=version, by=call.principal.user)


@operations.declare(
    "PUT", "/api/tools/{name}/permissions", needs="admin", errors=[NotFound, Conflict], audit=["permissions"]
)
async def permit_tool(call: ApiCall, name: str, body: ToolPermissions) -> ToolDetail:
    """Set the permissions of a tool, registered or from an app or a source."""
    return _detail(call, await call.engine.tools.permit(name, **asdict(body), by=call.principal.user))


@operations.declare("PUT", "/api/tools/{name}/active", needs="admin", errors=[NotFound, Conflict], audit=["active"])
async def activate_tool(call: ApiCall, name: str, body: ActiveChange) -> ToolDetail:
    """Enable or disable a tool, registered or from an app or a source."""
    return _detail(call, await call.engine.tools.activate(name, **asdict(body), by=call.principal.user))


async def _search(call: ApiCall, query: str, *, source: str | None, kind: Kind | None, limit: int) -> ToolPage:
    narrow = source is not None or kind is not None or not call.authorization.is_admin
    most = MAX_LIMIT if narrow else min(limit, MAX_LIMIT)
    found = await call.engine.finding.search(query, kinds=("tool",), limit=most)
    tools = await call.engine.tools.by_names([each.name for each in found])
    hidden = await call.authorization.hidden_tools(tools.values())
    page = [
        ToolSummary(
            tool.name, tool.description, tool.kind, tool.access, source_of(tool), True, None, each.score, each.skill
        )
        for each in found
        if (tool := tools.get(each.name)) is not None
        and kind in (None, tool.kind)
        and source in (None, source_of(tool))
        and tool.name not in hidden
    ]
    return ToolPage(page[:limit], reduced=found.reduced)


def source_of(tool: Tool) -> str | None:
    """Return the name of the source of a tool, if it has one."""
    return None if tool.backend is None else tool.backend.source


def _summary(entry: ToolEntry) -> ToolSummary:
    tool = entry.tool
    return ToolSummary(tool.name, tool.description, tool.kind, tool.access, entry.source, entry.active, entry.calls)


def _detail(call: ApiCall, entry: ToolEntry) -> ToolDetail:
    fields = {
        name: getattr(entry if hasattr(entry, name) else entry.tool, name) for name in ToolDetail.__struct_fields__
    }
    detail = ToolDetail(**fields)
    return detail if call.authorization.is_admin else replace(detail, reference=None, request=None, permissions=None)
