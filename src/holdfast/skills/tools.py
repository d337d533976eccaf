"""Stores tools: those entered by hand, declared by apps, or imported from sources."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.core.errors import AlreadyExists, Conflict, HoldfastError, InvalidInput, NotFound
from holdfast.core.text import dumps, restore, store
from holdfast.core.threads import run_in_thread
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements
from holdfast.skills.definition_scan import ToolWarning, lookalikes, names_by_skeleton
from holdfast.skills.parameters import ParameterRow, schema_of
from holdfast.skills.permissions import check_permissions, refusal_reason
from holdfast.skills.registry_columns import (
    MAX_BY,
    MAX_LABEL,
    REQUESTED,
    check_text,
    check_tool,
    imported_item,
    tool_item,
)
from holdfast.skills.request import Backend, RequestTemplate
from holdfast.skills.runnable_kinds import RunnableKinds, can_run, check_runnable, every_kind
from holdfast.skills.sources.graphql.operation_text import check_operation
from holdfast.skills.tool import KINDS, RESERVED, SCRIPTS, Access, Kind, Mode, Tool, ToolEntry

if TYPE_CHECKING:
    from holdfast.skills.sources.source import ImportedTool

MAX_LISTED = 1000  # per page
REMEMBERED = 2000  # cached parsed tools
MAX_SHOWN_NAME = 200  # characters of app names and display names

# What an import approves: all definitions, those that only a change of the settings can have changed, or none.
Approves = Literal["all", "settings", "none"]
_CHANGES = ("added", "changed", "removed", "same", "deactivated", "held", "still held")  # in the order of a `Diff`

Stored = TypeVar("Stored", RequestTemplate, Backend)

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Diff:
    """What storing the tools of a source changed, by name.

    `deactivated`: the source no longer has them. They were not removed, because a skill or an agent uses them, or an
    administrator has changed them. `held`: nobody has approved their definitions; `still_held`: as before.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    deactivated: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    still_held: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.deactivated or self.held)


class Tools:
    """Stores and finds the tools of one tenant. `runs` says which kinds can run."""

    def __init__(self, database: Database, runs: RunnableKinds = every_kind) -> None:
        self._database = database
        self.runs = runs
        self._parsed: OrderedDict[str, tuple[Mapping[str, Any], Tool]] = OrderedDict()

    async def put(
        self,
        name: str,
        *,
        description: str,
        parameters: Mapping[str, Any],
        kind: Kind,
        access: Access | UnsetType = UNSET,
        mode: Mode | UnsetType | None = UNSET,
        idempotent: bool | UnsetType = UNSET,
        approve: bool | UnsetType = UNSET,
        timeout: float | UnsetType | None = UNSET,
        endpoint: str | None = None,
        method: str | None = None,
        request: RequestTemplate | None = None,
        reference: str = "",
        script: str | None = None,
        server: str | None = None,
        label: str | UnsetType = UNSET,
        display_name: str | UnsetType = UNSET,
        app_name: str | UnsetType = UNSET,
        permissions: Mapping[str, Any] | None = None,
        service: str | UnsetType | None = UNSET,
        active: bool | UnsetType = UNSET,
        version: int | None = None,
        by: str = "",
    ) -> ToolEntry:
        """Create or change a tool. `version` is its expected version; None: it must not exist yet.

        `endpoint` and `method`, or the whole `request`, are for a `rest`, `graphql` or `jsonrpc` tool. `reference` is a
        `function` as module:name, or a `java` class. `script` is the text of a script, `server` the name of an
        `mcp_server`, `service` the JSON-RPC method. Omitted fields are unchanged, except a script that is no file of a
        skill.
        """
        entry = None if version is None else await self.get(name)
        before = Tool(name, "", {}) if entry is None else entry.tool
        if kind in SCRIPTS and kind == before.kind and before.reference and script is not None and not reference:
            path, _, skill = before.reference.partition(":")
            raise InvalidInput(
                f"the script of the tool {name} cannot be changed by itself",
                why=f"it is the file {path} of the skill {skill}",
                next="Change the file, and import the skill again. To change the other fields, omit the script.",
            )
        if kind == before.kind:
            request = request or before.request
            reference, server = (
                (reference, server or before.reference)
                if kind == "mcp_server"
                else (reference or before.reference, server)
            )
        if kind in REQUESTED:
            request = _request(request, method or ("" if kind == "rest" else "POST"), endpoint or "")
        of_skill = before.reference if kind == before.kind else ""
        runs = server if kind == "mcp_server" else script or of_skill if kind in SCRIPTS else reference
        tool = Tool(
            name,
            description,
            parameters,
            kind,
            before.access if access is UNSET else access,
            before.mode if mode is UNSET else mode,
            before.idempotent if idempotent is UNSET else idempotent,
            before.approve if approve is UNSET else approve,
            before.timeout if timeout is UNSET else timeout,
            request=request,
            reference=runs or "",
            service=before.service if service is UNSET else service,
        )
        await run_in_thread(lambda: _check(tool), name="holdfast tools")  # a large schema takes long
        await check_runnable(tool, self.runs)
        given = tool_item(
            tool,
            implementation_class=reference or None,
            mcp_server_name=server,
            script_content=script,
            **_texts(name, version=label, display_name=display_name, app_name=app_name),
        )
        if active is not UNSET:
            given["active"] = bool(active)
        if permissions is not None:
            given["permissions"] = check_permissions(permissions)
            await self._check_agents(given["permissions"], entry.permissions if entry else {})
        row = await self._one("put_tool", name, given, version, author_of(by))
        if row["outcome"] == "conflict" and version is None:
            raise AlreadyExists(
                f"the tool {name} already exists", next=f"Pass its version, {row['version']}, to change it."
            )
        if row["outcome"] == "service":
            raise service_taken_error(name, tool.service or "", f"the tool {row['source']}")
        _refuse(row, name, version, "Change")
        return await self.get(name)

    async def get(self, name: str) -> ToolEntry:
        """Return a tool."""
        row = await self._database.one(sql("tool"), store(name))
        if row is None:
            raise unknown_tool(name)
        return self.entry_of(row)

    async def by_names(self, names: Iterable[str]) -> dict[str, Tool]:
        """Return those of these tools that exist, active or not."""
        rows = await self._database.all(sql("tools_by_name"), [store(name) for name in names])
        return {tool.name: tool for tool in (self.parse_tool(row["told"]) for row in rows)}

    async def allowed(self, names: Sequence[str], *, agent: str) -> dict[str, Tool]:
        """Return those of these tools that an agent may call and that can run, in the given order."""
        if not names:
            return {}
        rows = {row["name"]: row for row in await self._database.all(sql("allowed_tools"), [*map(store, names)])}
        found = {name: self.parse_tool(rows[name]["told"]) for name in names if name in rows}
        return {
            name: tool
            for name, tool in found.items()
            if can_run(tool.kind, tool.mode, self.runs)
            and not refusal_reason(tool.access, tool.access, rows[name]["permissions"], agent)
        }

    async def current(self, id: UUID) -> Tool | None:
        """Return the current state of a tool, active or not."""
        row = await self._database.one(sql("current_tool"), id)
        return None if row is None else self.parse_tool(row["told"])

    async def list(
        self,
        *,
        limit: int = 100,
        after: str | None = None,
        source: str | None = None,
        kind: Kind | None = None,
        active: bool | None = None,
        skill: str | None = None,
    ) -> list[ToolEntry]:
        """List tools by name. `after` is the last name of the previous page."""
        check_limit(limit)
        if kind is not None and kind not in KINDS:
            raise InvalidInput(f"the kind {kind!r:.100} is unknown", next=f"Use one of {', '.join(KINDS)}.")
        rows = await self._database.all(
            sql("list_tools"), store(after or ""), limit, _store_optional(source), kind, active, _store_optional(skill)
        )
        return [self.entry_of(row) for row in rows]

    async def remove(self, name: str, *, version: int | None = None, by: str = "") -> None:
        """Remove a tool, also from the skills that have it."""
        row = await self._one("remove_tool", store(name), version, author_of(by))
        _refuse(row, name, version, "Remove")

    async def activate(self, name: str, active: bool, *, version: int | None = None, by: str = "") -> ToolEntry:
        """Activate or deactivate a tool of any origin."""
        return await self._administer(name, {"active": bool(active)}, version, by)

    async def permit(
        self, name: str, permissions: Mapping[str, Any], *, version: int | None = None, by: str = ""
    ) -> ToolEntry:
        """Set the permissions of a tool of any origin (see skills/permissions.py)."""
        checked = check_permissions(permissions)
        await self._check_agents(checked, (await self.get(name)).permissions)
        return await self._administer(name, {"permissions": checked}, version, by)

    async def store_all(
        self,
        source_id: UUID,
        tools: Sequence["ImportedTool"],
        *,
        approves: Approves = "all",
        holds_flagged: bool = False,
        by: str = "",
        tx: Transaction | None = None,
    ) -> Diff:
        """Replace the tools of a source by these.

        A tool keeps its name as long as the source has its operation. If another tool has the name of a new one, the
        source's name is put before it. Tools that the source no longer has are removed, or deactivated if a skill or an
        agent uses them or an administrator has changed them. Tools whose definitions nobody has approved are held:
        those that differ from the pinned ones, unless the import `approves` them. With `holds_flagged`, it approves
        none that has warnings.
        """
        _refuse_duplicates(tools)
        run = await self._database.within(tx)
        others = [*RESERVED, *(row["name"] for row in await run.all(sql("other_names"), source_id))]
        operations, names = [store(each.operation) for each in tools], [each.tool.name for each in tools]
        items, warnings = await run_in_thread(
            lambda: _columns(tools, names_by_skeleton(others)), name="holdfast tools"
        )  # takes a second for a thousand tools
        given = (operations, names, items, warnings, approves, holds_flagged, author_of(by))
        rows = await run.all(sql("store_tools"), source_id, *given)
        by_change: dict[str, list[str]] = {change: [] for change in _CHANGES}
        for row in rows:
            by_change[row["change"]].append(row["name"])
        return Diff(*(tuple(sorted(each)) for each in by_change.values()))

    def parse_tool(self, row: Mapping[str, Any]) -> Tool:
        """Return the tool of a `told` column; the same object as long as the column is unchanged."""
        known = self._parsed.get(row["tool_id"])
        if known is not None and known[0] == row:
            self._parsed.move_to_end(row["tool_id"])
            return known[1]
        tool = tool_of_row(row)
        self._parsed[row["tool_id"]] = (row, tool)
        self._parsed.move_to_end(row["tool_id"])
        if len(self._parsed) > REMEMBERED:
            self._parsed.popitem(last=False)
        return tool

    async def _check_agents(self, permissions: Mapping[str, Any], before: Mapping[str, Any]) -> None:
        """Refuse unknown agents in permissions; one of those `before` may have been removed since."""
        new_names = sorted({*permissions.get("agents", {})} - {*before.get("agents", {})})
        if not new_names:
            return
        known = {row["name"] for row in await self._database.all(sql("existing_agents"), [*map(store, new_names)])}
        unknown = next((name for name in new_names if name not in known), None)
        if unknown is not None:
            raise NotFound(
                f"there is no agent {unknown!r:.200}", next="`holdfast agents ls` and `GET /api/agents` list them."
            )

    async def _administer(self, name: str, given: Mapping[str, Any], version: int | None, by: str) -> ToolEntry:
        row = await self._one("administer_tool", store(name), given, version, author_of(by))
        _refuse(row, name, version, "Change")
        return await self.get(name)

    async def _one(self, statement: str, *args: object) -> Row:
        return cast(Row, await self._database.one(sql(statement), *args))

    def entry_of(self, row: Row) -> ToolEntry:
        """Return the tool of a row of `tool_entries`."""
        return ToolEntry(
            self.parse_tool(row["told"]),
            row["tool_id"],
            row["aggregate_version"],
            restore(row["version"]),
            restore(row["app_name"]),
            restore(row["display_name"]),
            row["origin"],
            row["source"],
            None if row["operation"] is None else restore(row["operation"]),
            row["permissions"],
            row["active"],
            row["calls"],
            row["failures"],
            row["latency_ms"],
            row["created_at"],
            row["update_ts"],
            restore(row["update_user"]),
            row["held"],
            row["hash"],
            msgspec.convert(row["warnings"] or (), tuple[ToolWarning, ...]),
        )


def _columns(tools: "Sequence[ImportedTool]", others: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the columns of imported tools, and their warnings, as JSON."""
    warnings = [(*each.warnings, *lookalikes(each.tool.name, others)) for each in tools]
    return [dumps(imported_item(each)) for each in tools], [dumps(msgspec.to_builtins(each)) for each in warnings]


def _check(tool: Tool) -> None:
    check_tool(tool)
    check_operation(tool)


def tool_of_row(row: Mapping[str, Any]) -> Tool:
    """Return the tool of a row. Unreadable values that plain SQL wrote are left out."""
    kind: Kind = row["implementation_type"]
    source: str | None = row["source"]
    rows = [ParameterRow(**each) for each in row["parameters"] if _is_readable(each["validation_schema"])]
    request = _convert(row["request"], RequestTemplate)
    if request is None and row["api_endpoint"] and row["api_method"]:
        request = RequestTemplate(row["api_method"].upper(), row["api_endpoint"])
    backend = None
    if source is not None:
        backend = msgspec.structs.replace(_convert(row["backend"], Backend) or Backend(), source=source)
    return Tool(
        row["name"],
        row["description"],
        schema_of(rows, row["schema_rest"]),
        kind,
        row["access"],
        row["mode"],
        row["idempotent"],
        row["approve"],
        row["timeout"],
        request=request,
        backend=backend,
        reference=row["implementation_class"] or row["mcp_server_name"] or "",
        service=row["service"],
        id=UUID(row["tool_id"]),
        version=row["aggregate_version"],
        tags=tuple(row["tags"]),
    )


def unknown_tool(name: str) -> NotFound:
    """Return the error for an unknown tool."""
    return NotFound(f"there is no tool {name!r:.200}", next="`holdfast tools ls` and `GET /api/tools` list them.")


def service_taken_error(name: str, method: str, whose: str) -> AlreadyExists:
    """Return the error for a method that another tool has."""
    return AlreadyExists(
        f"the tool {name} cannot have the service id {method}",
        why=f"{whose} already has it",
        next="Use another service id, or remove the other tool.",
    )


def check_limit(limit: int) -> None:
    """Refuse a limit below 1 or above the maximum."""
    if not 0 < limit <= MAX_LISTED:
        raise InvalidInput(f"the limit {limit} is out of range", next=f"Use 1 to {MAX_LISTED}.")


def author_of(by: str) -> str:
    """Return the author of a change, shortened to fit the column."""
    return store(by)[:MAX_BY]


def advice_for_declared(verb: str) -> str:
    """Return the advice for a tool or skill that an app declares."""
    if verb != "Remove":
        return f"{verb} it in the app."
    return "Remove it from the app. If no app declares it any more, deactivate it and then remove it."


def _texts(name: str, **columns: str | UnsetType) -> dict[str, str]:
    """Return the given texts of a tool that people read."""
    limits = {
        "version": ("label", MAX_LABEL, False),
        "display_name": ("display name", MAX_SHOWN_NAME, True),
        "app_name": ("app name", MAX_SHOWN_NAME, True),
    }
    return {
        column: check_text(f"the tool {name}", field, text, longest, empty=empty)
        for column, (field, longest, empty) in limits.items()
        if (text := columns[column]) is not UNSET
    }


def _request(request: RequestTemplate | None, method: str, endpoint: str) -> RequestTemplate:
    if request is None:
        return RequestTemplate(method.upper(), endpoint)
    return msgspec.structs.replace(request, method=(method or request.method).upper(), url=endpoint or request.url)


def _refuse(row: Row, name: str, version: int | None, verb: str) -> None:
    """Raise the error of an outcome that changed nothing."""
    refusal: HoldfastError
    match row["outcome"]:
        case "missing":
            refusal = unknown_tool(name)
        case "code":
            refusal = AlreadyExists(f"an app declares the tool {name}", next=advice_for_declared(verb))
        case "source":
            source = row["source"]
            refusal = AlreadyExists(
                f"the tool {name} comes from the source {source}",
                next=f"{verb} it in the document and reload the source with `holdfast sources reload {source}`.",
            )
        case "conflict":
            refusal = Conflict(f"the tool {name} has changed", expected=version or 0, current=row["version"])
        case _:
            return
    raise refusal


def _refuse_duplicates(tools: Sequence["ImportedTool"]) -> None:
    for what, names in (
        ("operation", [each.operation for each in tools]),
        ("name", [each.tool.name for each in tools]),
    ):
        seen: set[str] = set()
        duplicate = next((name for name in names if name in seen or seen.add(name)), None)
        if duplicate is not None:
            raise InvalidInput(
                "the tools cannot be stored",
                why=f"two of them have the {what} {duplicate!r:.200}",
                next="Make it unique in the document.",
            )


def _store_optional(name: str | None) -> str | None:
    return None if name is None else store(name)


def _is_readable(validation_schema: Any) -> bool:
    return validation_schema is None or isinstance(validation_schema, dict | bool)


def _convert(value: Any, kind: type[Stored]) -> Stored | None:
    try:
        return None if value is None else msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
