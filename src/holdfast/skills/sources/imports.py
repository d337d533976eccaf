"""The imports of a source: what each of them changed in its tools. The newest are kept.

A server decides how often its document changes, and how large it is. So the history of each source is limited.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from holdfast.core.errors import NotFound
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row, Statements, Transaction
from holdfast.postgres.sql import statements
from holdfast.skills.sources.reports import ChangedTool, ImportDetails, SourceImport, ToolDifference
from holdfast.skills.tools import Diff, author_of, check_limit

KEPT = 100  # imports of a source, and with them the former definitions of its tools
KEPT_BYTES = 100_000_000  # of the former and new definitions in them
KEPT_FOR = timedelta(hours=1)  # for which names of tools are kept: nodes that were idle read what has changed meanwhile
LAST_REVISION = 2**63 - 1

# Words for the columns of a tool that a document changes. Other columns keep their names.
_WORDS = {
    "api_endpoint": "address",
    "api_method": "method",
    "display_name": "title",
    "openapi_schema": "document",
    "schema_rest": "parameters",
}
# Words that are left out if one of the others is there.
_IMPLIED = {
    "title": {"description"},
    "request": {"address", "method", "parameters"},
    "document": {"address", "description", "method", "parameters", "request", "title"},
}
# The columns that define a tool for its callers.
_DEFINITION = (
    "description", "display_name", "api_method", "api_endpoint", "service", "access", "idempotent", "parameters",
    "schema_rest", "request",
)  # fmt: skip

sql = statements(__name__)


class SourceImports:
    """Records and finds the imports of one tenant's sources."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, name: str, *, limit: int = 100) -> list[SourceImport]:
        """List the imports that changed tools of a source, newest first."""
        check_limit(limit)
        rows = await self._database.all(sql("source_imports"), store(name), limit)
        return [_import(row) for row in rows]

    async def get(self, name: str, revision: int | None = None) -> ImportDetails:
        """Return an import with the former and the new definitions of the tools. None: the last import."""
        row = await self._database.one(sql("source_import"), store(name), revision)
        if row is None:
            which = "no import that changed tools" if revision is None else f"no import {revision}"
            next = f"`holdfast sources history {name}` lists them; at most the last {KEPT} are kept."
            raise NotFound(f"there is {which} of the source {name!r:.200}", next=next)
        what = await _changes_between(self._database, row["since"], row["revision"])
        changes = await self._database.all(sql("imported_tools"), row["since"], row["revision"])
        return ImportDetails(_import(row), tuple(_difference(each, what) for each in changes))

    async def record(
        self, tx: Transaction, source: UUID, diff: Diff, *, since: int, label: str, by: str
    ) -> tuple[ChangedTool, ...]:
        """Record an import that changed the registry after the revision `since`. Return the changed tools."""
        what = await _changes_between(tx, since, LAST_REVISION)
        counts = [len(each) for each in (diff.added, diff.changed, diff.removed, diff.deactivated, diff.held)]
        await tx.run(sql("record_import"), source, since, store(label), *counts, author_of(by))
        await tx.run(sql("forget_imports"), source, KEPT, KEPT_FOR)
        await tx.run(sql("empty_imports"), source, KEPT, KEPT_BYTES)
        return tuple(ChangedTool(name, what.get(name, ())) for name in diff.changed)

    async def forget_changes(self, tx: Transaction, source: UUID, name: str, *, by: str) -> None:
        """Forget earlier changes by automatic reloads that changed no tools, such as of the resources of a server."""
        await tx.run(sql("forget_source_changes"), source, store(name), author_of(by), KEPT_FOR)


async def _changes_between(run: Statements, since: int, until: int) -> Mapping[str, tuple[str, ...]]:
    """Return what changed in each changed tool, after one revision up to another."""
    rows = await run.all(sql("changed_tools"), since, until)
    return {row["name"]: _describe_changes(row["columns"], row["parameters"]) for row in rows}


def _import(row: Row) -> SourceImport:
    counts = (row["added"], row["changed"], row["removed"], row["deactivated"], row["held"])
    return SourceImport(row["revision"], restore(row["label"]), *counts, restore(row["update_user"]), row["at"])


def _difference(row: Row, what: Mapping[str, tuple[str, ...]]) -> ToolDifference:
    before, after = row["before"], row["after"]
    change = {"created": "added", "removed": "removed"}.get(row["operation"], "changed")
    if change == "changed" and before and after and after["gone"] and not before["gone"]:
        change = "deactivated"
    elif change == "changed" and before and after and after.get("held") and not before.get("held"):
        change = "held"
    name = restore(row["name"])
    differs = what.get(name, ()) if change == "changed" else ()
    return ToolDifference(name, change, differs, _definition(before), _definition(after))  # type: ignore[arg-type]


def _definition(row: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if row is None else {name: row[name] for name in _DEFINITION if row.get(name) is not None}


def _describe_changes(columns: Iterable[str], parameters: Iterable[str]) -> tuple[str, ...]:
    """Return what changed in a tool, in words, without what other words imply."""
    words = {_WORDS.get(column, column) for column in columns}
    words -= {word for word, others in _IMPLIED.items() if word in words and others & words}
    parameter_names = ", ".join(parameters)
    return tuple(
        sorted(
            f"parameters ({parameter_names})" if word == "parameters" and parameter_names else word for word in words
        )
    )
