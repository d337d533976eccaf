"""Stores sources: documents of back ends, whose operations are tools."""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from holdfast.core.errors import AlreadyExists, Conflict, Forbidden, InvalidInput, TooLarge
from holdfast.core.processes import ProcessCalls
from holdfast.core.text import restore, store
from holdfast.core.threads import run_in_thread
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements
from holdfast.skills.request import AuthScheme, Backend, BackendIdentity, McpServer
from holdfast.skills.sources.graphql.rules import SelectionRules
from holdfast.skills.sources.identity import check_pass_through
from holdfast.skills.sources.imports import SourceImports
from holdfast.skills.sources.mcp import NOTHING_KNOWN, scheme_of
from holdfast.skills.sources.proposals import Proposals, warnings_of
from holdfast.skills.sources.reports import (
    ChangedTool,
    FlaggedTool,
    SourceDetails,
    SourceEntry,
    SourceReport,
    SourceTool,
)
from holdfast.skills.sources.schedule import own_seconds, pause_of
from holdfast.skills.sources.selectable_types import SelectableTypes
from holdfast.skills.sources.settings import (
    SourceSettings,
    asks_service,
    check_location,
    check_settings,
    file_of,
    settings_of,
)
from holdfast.skills.sources.source import (
    Choice,
    ImportedDocument,
    PinPolicy,
    Skipped,
    SourceKind,
    unknown_source,
)
from holdfast.skills.sources.source_parser import MAX_TITLE, ParsedSource, parse_document, parse_in_pieces
from holdfast.skills.tools import Approves, Diff, Tools, author_of

MAX_DOCUMENT_BYTES = 50_000_000
LARGE_DOCUMENT_BYTES = 20_000  # larger ones are parsed in a process, which has limits and delays no other thread
MOST_ABANDONED = 4  # running imports whose callers gave up

# Returns the document of a back end of a kind (None: of any kind) at an address. Raises TooLarge above some bytes.
# Fetches a document: its kind, its location, its back end, its most bytes, and for which user.
Fetch = Callable[[SourceKind | None, str, Backend, int, str], Awaitable[bytes]]
Security = tuple[tuple[AuthScheme, ...], ...]

NOTHING_KNOWN_HASH = hashlib.sha256(NOTHING_KNOWN).digest()

sql = statements(__name__)
log = logging.getLogger(__name__)


class _DryRun(Exception):
    """Rolls back the transaction of a dry run, and carries its report."""

    def __init__(self, report: SourceReport) -> None:
        super().__init__()
        self.report = report


class Sources:
    """Stores and finds the sources of one tenant. An import is all or nothing."""

    def __init__(
        self,
        database: Database,
        tools: Tools,
        fetch: Fetch,
        processes: ProcessCalls,
        *,
        check_seconds: float = 0,
        hold_suspicious: bool = False,
        pass_through: Collection[str] = (),
    ) -> None:
        self.check_seconds = check_seconds  # between two checks of a source without an interval; 0: none
        self._pass_through = pass_through  # hosts that may get callers' own tokens
        self.imports = SourceImports(database)
        self.proposals = Proposals(database, self.imports)
        self._hold_suspicious = hold_suspicious  # tools with warnings, also when a source is added
        self._database = database
        self._tools = tools
        self._fetch = fetch
        self._processes = processes
        self._types = SelectableTypes(database)

    async def add(
        self,
        name: str,
        *,
        kind: SourceKind | None = None,
        document: bytes | None = None,
        url: str | None = None,
        choice: Choice | None = None,
        base_url: str | None = None,
        auth: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        mcp: McpServer | None = None,
        reload_seconds: float | None = None,
        selection: SelectionRules | None = None,
        pin: PinPolicy = "hold",
        identity: BackendIdentity | None = None,
        by: str = "",
    ) -> SourceReport:
        """Import tools from a document, or from the one at `url`. With a document, `url` is where it was read.

        `kind`: what the document describes; None: as the document itself says. Without a document, a JSON-RPC service
        at `url` is asked for its methods (`rpc.discover`), and a GraphQL service for its schema (introspection), unless
        `base_url` names another address of the service. `selection` says what GraphQL tools ask for.
        `auth` maps the security schemes of the document to names of secrets. `{{secret:NAME}}` in `headers` stands for
        a secret, too. Calls go to `base_url` if it is given, and not to the document's own servers. With the kind
        `mcp`, the MCP server at `url` is asked for its tools, prompts and resources; `mcp` says more about it, or
        which program it is. A `url` `file:NAME` is a file in the folder of the settings. The document is checked for
        changes every `reload_seconds`, or as often as the settings say; 0: never. The definitions of its tools are
        pinned, and later changes held until somebody approves them, unless `pin` is `follow`. `identity` says what the
        back end learns about callers. An MCP server that needs consent is asked with that of `by`; without it, the
        source is stored without tools, so that users can connect.
        """
        if mcp is not None and kind is None:
            kind = "mcp"
        if kind == "mcp":
            mcp = msgspec.structs.replace(mcp or McpServer(), url=url or "")
        backend = Backend(
            base_url=base_url,
            auth=dict(auth or {}),
            headers=dict(headers or {}),
            timeout=timeout,
            mcp=mcp,
            identity=identity,
        )
        settings = SourceSettings(choice or Choice(), backend, reload_seconds, selection or SelectionRules(), pin=pin)
        settings = check_settings(name, settings, is_endpoint=kind == "graphql")
        if await self._database.one(sql("source"), name) is not None:  # fail before reading the document
            raise _name_taken_error(name)
        waits = False
        try:
            reading = await self._read(name, kind, settings, document, url or "", by=by)
        except Forbidden:
            if kind != "mcp" or identity is None or identity.kind != "user":
                raise
            waits = True  # until somebody connects, and reloads it with that consent
            reading = await self._read(name, kind, settings, NOTHING_KNOWN, url or "")
        if not waits and not reading.imported.tools and not reading.imported.offers:
            raise _no_tools_error(name, reading.imported)
        await self._check_pass_through(None, settings, reading)
        settings = _mark_by_hand(settings, reading, document)
        return await self._store(name, settings, reading, None, approves="all", by=by)

    async def reload(
        self,
        name: str,
        *,
        document: bytes | None = None,
        url: str | None = None,
        version: int | None = None,
        accept_address: bool = False,
        dry_run: bool = False,
        is_check: bool = False,
        by: str = "",
    ) -> SourceReport:
        """Read a source's document again, from its location, from `url`, or as given. Report what changed.

        Nothing is written if nothing changed, or in a `dry_run`. New tools, and tools whose definitions differ from the
        pinned ones, are held until somebody approves them, unless the source follows its document, or a person asks its
        service for the first time. A document that would send secrets to another address than before is refused, unless
        `accept_address` is set. `is_check`: the document was read from its location, to see whether it has changed.
        Then one without tools is refused if the source has some: it may be a page that stands in for the document.
        """
        row = await self._row(name, version)
        settings = settings_of(row["settings"])
        location = url or row["location"]
        if not accept_address and document is None:
            await self._check_service(row, settings, location)
        reading = await self._read(name, row["kind"], settings, document, location, by=by)
        if not accept_address:
            await self._check_address(row, settings, reading.imported)
        await self._check_pass_through(row, settings, reading)
        if is_check and row["tools"] and not reading.imported.tools:
            raise _all_gone_error(name, row["tools"])
        if not is_check:
            settings = _mark_by_hand(settings, reading, document)
        version = row["aggregate_version"]
        approves: Approves = "settings" if accept_address and reading.hash == row["document_hash"] else "none"
        if not is_check and row["document_hash"] == NOTHING_KNOWN_HASH:
            approves = "all"  # the person who reads its tools for the first time approves them
        return await self._store(
            name, settings, reading, version, approves=approves, dry_run=dry_run, is_check=is_check, by=by
        )

    async def change(
        self,
        name: str,
        *,
        version: int,
        choice: Choice | None = None,
        base_url: str | msgspec.UnsetType | None = msgspec.UNSET,
        auth: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | msgspec.UnsetType | None = msgspec.UNSET,
        mcp: McpServer | None = None,
        reload_seconds: float | msgspec.UnsetType | None = msgspec.UNSET,
        selection: SelectionRules | None = None,
        pin: PinPolicy | None = None,
        identity: BackendIdentity | msgspec.UnsetType | None = msgspec.UNSET,
        document: bytes | None = None,
        url: str | None = None,
        accept_address: bool = False,
        by: str = "",
    ) -> SourceReport:
        """Change the given settings; others are unchanged. If that changes the tools, read the document again.

        With a document, `url` is where it was read. For an MCP server, `url` is its new address, and `mcp` replaces
        what is known of it besides the address. For `accept_address`, see `reload`. If the document is the same as
        before, definitions differ because of this change, which approves them; otherwise they are held as by a reload.
        """
        row = await self._row(name, version)
        old = settings_of(row["settings"])
        asks = asks_service(row["kind"], row["location"], old.backend) and not old.by_hand and document is None
        if asks and isinstance(base_url, str):
            url = url or base_url  # the service is asked where it is called
        backend = Backend(
            base_url=old.backend.base_url if base_url is msgspec.UNSET else base_url,
            auth=old.backend.auth if auth is None else dict(auth),
            headers=old.backend.headers if headers is None else dict(headers),
            timeout=old.backend.timeout if timeout is msgspec.UNSET else timeout,
            mcp=_changed_server(old.backend.mcp, mcp, url),
            identity=old.backend.identity if identity is msgspec.UNSET else identity,
        )
        seconds = old.reload_seconds if reload_seconds is msgspec.UNSET else reload_seconds
        settings = replace(
            old,
            choice=choice or old.choice,
            backend=backend,
            reload_seconds=seconds,
            selection=selection or old.selection,
            pin=pin or old.pin,
        )
        settings = check_settings(name, settings, is_endpoint=row["kind"] == "graphql")
        is_same = (settings.choice, settings.selection) == (old.choice, old.selection)
        is_same = is_same and settings.backend.mcp == old.backend.mcp
        if row["kind"] == "openapi":  # its tools have paths below the base URL, those of others the whole address
            is_same = is_same and (backend.base_url is None) == (old.backend.base_url is None)
        else:
            is_same = is_same and backend.base_url == old.backend.base_url
        if is_same and document is None and url is None:
            await self._check_pass_through(row, settings, None)
            return await self._store(name, settings, None, version, by=by)
        if old.by_hand and document is None and url is None:
            raise InvalidInput(
                f"{name} cannot be changed without its document",
                why="the document was given, and the service may describe itself differently",
                next="Pass the document, too. To use what the service says of itself, reload the source first.",
            )
        location = url or row["location"]
        if not accept_address and document is None:
            await self._check_service(row, settings, location)
        reading = await self._read(name, row["kind"], settings, document, location, by=by)
        if not accept_address:
            await self._check_address(row, settings, reading.imported)
        await self._check_pass_through(row, settings, reading)
        settings = _mark_by_hand(settings, reading, document)
        approves: Approves = "settings" if reading.hash == row["document_hash"] else "none"
        return await self._store(name, settings, reading, version, approves=approves, by=by)

    async def get(self, name: str) -> SourceDetails:
        """Return a source, its tools and its skipped operations."""
        row = await self._row(name)
        tools = await self._database.all(sql("source_tools"), row["source_id"])
        altered = {each["name"] for each in await self._database.all(sql("altered_tools"), row["source_id"])}
        notes = row["report"].get("notes", {})
        entry = await self._entry(row)
        return SourceDetails(
            entry,
            tuple(
                SourceTool(
                    each["name"],
                    restore(each["operation"]),
                    each["access"],
                    each["active"],
                    each["gone"],
                    tuple(notes.get(restore(each["operation"]), ())),
                    "proposal" if each["held"] else "altered" if each["name"] in altered else None,
                    each["hash"],
                    warnings_of(each["warnings"]),
                )
                for each in tools
            ),
            _skipped_operations(row),
            _missing_auth((_security(each["security"]) for each in tools if not each["gone"]), entry.backend),
        )

    async def list(self) -> tuple[SourceEntry, ...]:
        """List all sources, by name."""
        return await self._entries(await self._database.all(sql("sources")))

    async def remove(
        self, name: str, *, force: bool = False, version: int | None = None, by: str = ""
    ) -> tuple[str, ...]:
        """Remove a source and its tools; return the names of the tools.

        Refuse while skills have one of the tools, unless `force` is set; then the skills lose them.
        """
        row = await self._database.one(sql("remove_source"), store(name), force, version, author_of(by))
        assert row is not None
        _refuse(row, name, version)
        if row["outcome"] == "linked":
            some = ", ".join(row["tools"][:5]) + (f" and {len(row['tools']) - 5} more" if len(row["tools"]) > 5 else "")
            raise AlreadyExists(
                f"the source {name} cannot be removed",
                why=f"skills use its tools: {some}",
                next="Unlink the tools, or use force to remove them from these skills.",
                tools=row["tools"],
            )
        return tuple(row["tools"])

    async def _read(
        self,
        name: str,
        kind: SourceKind | None,
        settings: SourceSettings,
        document: bytes | None,
        location: str,
        *,
        by: str = "",
    ) -> ParsedSource:
        """Fetch a document if it is not given, and parse it in a thread or in a process."""
        if location:
            check_location(location)
        if document is None:
            if not location and not (settings.backend.mcp and settings.backend.mcp.command):
                next = "Pass the document."
                raise InvalidInput(f"the document of {name} cannot be fetched", why="the source has no URL", next=next)
            document = await self._fetch(kind, location, settings.backend, MAX_DOCUMENT_BYTES, by)
        if len(document) > MAX_DOCUMENT_BYTES:
            why = f"it has {len(document)} bytes; the limit is {MAX_DOCUMENT_BYTES}"
            raise TooLarge(
                "the document is too large",
                why=why,
                next="Make a smaller document with only the operations that you need.",
            )
        arguments = (document, kind, settings, location)
        if len(document) > LARGE_DOCUMENT_BYTES:
            reading, *tools = await self._processes.call(parse_in_pieces, *arguments)
            return replace(reading, imported=replace(reading.imported, tools=tuple(tools)))
        read = partial(parse_document, *arguments)
        return await run_in_thread(read, name="source import", most_abandoned=MOST_ABANDONED)

    async def _check_scheme(self, tx: Transaction, name: str, server: McpServer) -> None:
        """Refuse an MCP server whose addresses begin like those of another: requests would go to the wrong one."""
        scheme = scheme_of(Backend(source=name, mcp=server))
        for row in await tx.all(sql("other_servers"), name) if scheme else ():
            if scheme == scheme_of(Backend(source=row["name"], mcp=msgspec.convert(row["mcp"], McpServer))):
                raise AlreadyExists(
                    f"the names of {name} would begin like those of the source {row['name']}",
                    why=f"the addresses of both would begin with {scheme}",
                    next="Choose another name or another prefix (--prefix).",
                )

    async def _check_service(self, row: Row, settings: SourceSettings, location: str) -> None:
        """Refuse to ask a service at a new address for its document: the question has the secrets of the source."""
        if asks_service(row["kind"], location, settings.backend):
            await self._check_origins(row, settings, {origin_of(location)})

    async def _check_address(self, row: Row, settings: SourceSettings, imported: ImportedDocument) -> None:
        """Refuse to send secrets to a new address: someone else may have replaced the document."""
        await self._check_origins(
            row, settings, {origin_of(each.tool.request.url) for each in imported.tools if each.tool.request}
        )

    async def _check_origins(self, row: Row, settings: SourceSettings, origins: AbstractSet[str]) -> None:
        """Refuse origins of a service that the source does not know yet, if it has secrets and no base URL."""
        has_credentials = bool(settings.secrets) or settings.backend.identity is not None
        if not has_credentials or settings.backend.base_url is not None:
            return
        old = settings_of(row["settings"]).backend
        known = {origin_of(each["url"]) for each in await self._database.all(sql("source_tools"), row["source_id"])}
        if asks_service(row["kind"], row["location"], old):
            known.add(origin_of(row["location"]))
        new_origins = origins - known - {origin_of(old.base_url)}
        if known and new_origins:
            name = row["name"]
            raise InvalidInput(
                f"{name} has a new address of its service: {', '.join(sorted(new_origins))[:300]}",
                why="the secrets of the source, or its callers' identity, would be sent there",
                next="If the change is intended, accept it (--accept-address) or pass the base URL.",
                origins=sorted(new_origins),
            )

    async def _check_pass_through(
        self, row: Row | None, settings: SourceSettings, reading: ParsedSource | None
    ) -> None:
        """Refuse to pass callers' tokens to an address that the operator has not allowed."""
        backend = settings.backend
        if backend.identity is None or backend.identity.kind != "pass_through":
            return
        if backend.base_url is not None:
            origins = {origin_of(backend.base_url)}
        elif reading is not None:
            origins = {origin_of(each.tool.request.url) for each in reading.imported.tools if each.tool.request}
        else:
            assert row is not None
            rows = await self._database.all(sql("source_tools"), row["source_id"])
            origins = {origin_of(each["url"]) for each in rows}
        kind = reading.kind if reading is not None else cast(Row, row)["kind"]
        check_pass_through(backend.identity, kind, origins, self._pass_through)

    async def _store(
        self,
        name: str,
        settings: SourceSettings,
        reading: ParsedSource | None,
        version: int | None,
        *,
        approves: Approves = "none",
        dry_run: bool = False,
        is_check: bool = False,
        by: str = "",
    ) -> SourceReport:
        """Store a source and its tools in one transaction. Without a `reading`, its tools are unchanged."""
        if settings.pin == "follow":
            approves = "all"
        given = {"settings": settings.to_json(), **(reading.columns() if reading else {})}

        async def work(tx: Transaction) -> tuple[SourceReport, Diff]:
            put = await tx.one(sql("put_source"), name, version is None, given, version, author_of(by))
            assert put is not None
            _refuse(put, name, version)
            if settings.backend.mcp is not None:
                await self._check_scheme(tx, name, settings.backend.mcp)
            diff, changed = Diff(), ()
            if reading is not None:
                imported = reading.imported
                diff = await self._tools.store_all(
                    put["source"],
                    imported.tools,
                    approves=approves,
                    holds_flagged=self._hold_suspicious,
                    by=by,
                    tx=tx,
                )
                if diff and put["outcome"] == "same":
                    touched = {**given, "imported": True}
                    await tx.run(sql("put_source"), name, False, touched, put["version"], author_of(by))
                if diff:
                    since, label = put["revision"], imported.version[:MAX_TITLE]
                    changed = await self.imports.record(tx, put["source"], diff, since=since, label=label, by=by)
                elif is_check:
                    await self.imports.forget_changes(tx, put["source"], name, by=by)
                if imported.types is not None:
                    await self._types.store(put["source"], imported.types, tx)
            report = await self._report(tx, name, put["source"], diff, changed)
            await self._schedule(tx, report.source, settings, was_read=reading is not None)
            report = replace(report, written=not dry_run and (put["outcome"] != "same" or bool(diff)), dry_run=dry_run)
            if dry_run:
                raise _DryRun(report)
            return report, diff

        try:
            report, diff = await self._database.atomically(work)
        except _DryRun as rehearsed:
            return rehearsed.report
        _log_suspicions(report, diff)
        return report

    async def _schedule(
        self, tx: Transaction, source: SourceEntry, settings: SourceSettings, *, was_read: bool
    ) -> None:
        """Schedule the checks of a source that was stored."""
        own = own_seconds(source.kind, source.location, settings)
        file = store(file_of(source.location)) or None
        pause = pause_of(own, self.check_seconds, source.location)
        await tx.run(sql("schedule_check"), source.id, own, file, pause, was_read)

    async def _report(
        self, tx: Transaction, name: str, id: UUID, diff: Diff, changed: Iterable[ChangedTool]
    ) -> SourceReport:
        row = await tx.one(sql("source"), name)
        assert row is not None
        entry = await self._entry(row, tx)
        rows = await tx.all(sql("source_tools"), id)
        security = (_security(each["security"]) for each in rows if not each["gone"])
        return SourceReport(
            entry,
            diff.added,
            tuple(changed),
            diff.removed,
            diff.deactivated,
            diff.unchanged,
            await self.proposals.held(tx, name),
            tuple(FlaggedTool(each["name"], warnings_of(each["warnings"])) for each in rows if each["warnings"]),
            _skipped_operations(row),
            _missing_auth(security, entry.backend),
            written=False,
            dry_run=False,
        )

    async def _row(self, name: str, version: int | None = None) -> Row:
        row = await self._database.one(sql("source"), store(name))
        if row is None:
            raise unknown_source(name)
        if version is not None and row["aggregate_version"] != version:
            raise _conflict(name, version, row["aggregate_version"])
        return row

    async def _entry(self, row: Row, tx: Transaction | None = None) -> SourceEntry:
        (entry,) = await self._entries([row], tx)
        return entry

    async def _entries(self, rows: Sequence[Row], tx: Transaction | None = None) -> tuple[SourceEntry, ...]:
        run = await self._database.within(tx)
        settings_by_id = {row["source_id"]: settings_of(row["settings"]) for row in rows}
        names = sorted({name for settings in settings_by_id.values() for name in settings.secrets})
        found = await run.all(sql("missing_secrets"), names) if names else []
        missing = {row["name"] for row in found}
        return tuple(_entry(row, settings_by_id[row["source_id"]], missing) for row in rows)


def _log_suspicions(report: SourceReport, diff: Diff) -> None:
    """Log which tools an import held, and what is suspicious in new definitions."""
    name, new = report.source.name, {*diff.added, *diff.changed, *diff.held}
    if diff.held:
        log.warning("the source %s has definitions that nobody has approved, of: %s", name, ", ".join(diff.held)[:1000])
    for tool in (*report.flagged, *report.held):
        if tool.name in new:
            for each in tool.warnings:
                log.warning(
                    "the tool %s of the source %s: %s in %s: %s", tool.name, name, each.code, each.where, each.what
                )


def _changed_server(old: McpServer | None, new: McpServer | None, url: str | None) -> McpServer | None:
    """Return an MCP server with its changes. Its address is only changed by another one, or by a command."""
    if old is None:
        return None
    server = new or old
    if server.command:
        return server
    return msgspec.structs.replace(server, url=url or old.url)


def _mark_by_hand(settings: SourceSettings, reading: ParsedSource, document: bytes | None) -> SourceSettings:
    """Return the settings of a source whose document was given, or read from its location."""
    by_hand = document is not None and asks_service(reading.kind, reading.location, settings.backend)
    return replace(settings, by_hand=by_hand)


def origin_of(url: str | None) -> str:
    """Return scheme, host and port of an address; an empty text for a path."""
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc}".lower() if parts.netloc else ""


def _entry(row: Row, settings: SourceSettings, missing: set[str]) -> SourceEntry:
    return SourceEntry(
        row["source_id"],
        row["name"],
        row["kind"],
        restore(row["location"]),
        restore(row["title"]),
        row["report"].get("label", ""),
        settings.choice,
        settings.backend,
        settings.selection,
        settings.pin,
        row["tools"],
        row["held"],
        row["skipped"],
        tuple(name for name in settings.secrets if name in missing),
        row["active"],
        row["aggregate_version"],
        0.0 if settings.by_hand else settings.reload_seconds,
        row["checked_at"],
        restore(row["error"] or ""),
        row["imported_at"],
        row["created_at"],
        row["update_ts"],
        restore(row["update_user"]),
    )


def _skipped_operations(row: Row) -> tuple[Skipped, ...]:
    return tuple(Skipped(*each) for each in row["report"].get("skipped", ()))


def _security(stored: Any) -> Security:
    return msgspec.convert(stored or (), Security)


def _missing_auth(security: Iterable[Security], backend: Backend) -> tuple[str, ...]:
    """Return the security schemes that lack a secret, of tools for which no alternative is complete."""
    missing: set[str] = set()
    for alternatives in security:
        missing_schemes = [
            {scheme.name for scheme in each if not backend.has_token_for(scheme)} - backend.auth.keys()
            for each in alternatives
        ]
        if missing_schemes and all(missing_schemes):
            missing.update(*missing_schemes)
    return tuple(sorted(missing))


def _refuse(row: Row, name: str, version: int | None) -> None:
    """Raise the error of an outcome that changed nothing."""
    match row["outcome"]:
        case "missing":
            raise unknown_source(name)
        case "taken":
            raise _name_taken_error(name)
        case "conflict":
            raise _conflict(name, version or 0, cast(int, row["version"]))
        case _:
            return


def _no_tools_error(name: str, imported: ImportedDocument) -> InvalidInput:
    """Return the error for a document without tools, which would make a useless source."""
    chosen = [f"{each.operation}: {each.reason}" for each in imported.skipped if each.chosen]
    why = "; ".join(chosen[:3]) if chosen else "none of its operations is marked `x-ai-enabled: true` or selected"
    return InvalidInput(
        f"the document of {name} has no tools to import; nothing was stored",
        why=why,
        next="Mark operations in the document, or select some with --all, --operation, --tag or --path.",
        skipped=len(imported.skipped),
    )


def _all_gone_error(name: str, tools: int) -> InvalidInput:
    """Return the error for a document that has lost all tools, which may be a mistake of the server."""
    return InvalidInput(
        f"the document of {name} no longer has tools; the source is unchanged",
        why=f"a reload would remove all of its {tools} tools",
        next=f"If this is intended, run `holdfast sources reload {name}`.",
    )


def _name_taken_error(name: str) -> AlreadyExists:
    return AlreadyExists(
        f"the source {name} already exists", next=f"Reload its document with `holdfast sources reload {name}`."
    )


def _conflict(name: str, expected: int, current: int) -> Conflict:
    return Conflict(f"the source {name} has changed", expected=expected, current=current)
