"""Proposals: definitions of tools that sources have now, and that are held until somebody approves them."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from holdfast.core.errors import Conflict, InvalidInput, NotFound
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row, Statements, Transaction
from holdfast.postgres.sql import statements
from holdfast.skills.definition_scan import ToolWarning
from holdfast.skills.sources.definition_text import diff_text, differing_parts
from holdfast.skills.sources.imports import SourceImports
from holdfast.skills.sources.reports import DecidedProposals, HeldTool, Proposal, ProposalState
from holdfast.skills.sources.source import unknown_source
from holdfast.skills.tools import Diff, author_of, check_limit

HOLDING: tuple[ProposalState, ...] = ("open", "rejected")  # the tool is held
MOST = 10_000  # held tools in a report

sql = statements(__name__)


class Proposals:
    """Finds the held definitions of one tenant's tools, and decides about them."""

    def __init__(self, database: Database, imports: SourceImports) -> None:
        self._database = database
        self._imports = imports

    async def list(
        self, source: str | None = None, *, state: ProposalState | None = None, limit: int = 100
    ) -> list[Proposal]:
        """List proposals by source and tool. Without a `state`, those that hold a tool: open and rejected ones."""
        check_limit(limit)
        states = HOLDING if state is None else (state,)
        rows = await self._rows(self._database, source, states, limit)
        if not rows and source is not None and not await self._database.all(sql("source"), store(source)):
            raise unknown_source(source)
        return [_proposal(row) for row in rows]

    async def held(self, run: Statements, source: str) -> tuple[HeldTool, ...]:
        """Return the held tools of a source, for a report."""
        rows = await self._rows(run, source, HOLDING, MOST)
        return tuple(
            HeldTool(
                row["name"],
                "new" if row["old"] is None else "changed",
                differing_parts(row["old"], row["new"]),
                row["hash"],
                warnings_of(row["warnings"]),
            )
            for row in rows
        )

    async def approve(self, source: str, hashes: Mapping[str, str], *, by: str = "") -> DecidedProposals:
        """Use the held definitions of tools of a source, by name. `hashes` are those of the definitions that were seen.

        If one of the definitions has changed meanwhile, nothing is done.
        """
        return await self._decide(source, hashes, approves=True, by=by)

    async def reject(self, source: str, hashes: Mapping[str, str], *, by: str = "") -> DecidedProposals:
        """Reject the held definitions of tools of a source. The tools stay held until their definitions change."""
        return await self._decide(source, hashes, approves=False, by=by)

    async def _decide(self, source: str, hashes: Mapping[str, str], *, approves: bool, by: str) -> DecidedProposals:
        if not hashes:
            next = "Name tools, with the hashes of the definitions that you have seen."
            raise InvalidInput("nothing is decided", why="no tool is named", next=next)
        names = sorted(hashes)

        async def work(tx: Transaction) -> DecidedProposals:
            row = await tx.one(sql("source"), store(source))
            if row is None:
                raise unknown_source(source)
            given = [*map(store, names)], [hashes[name] for name in names]
            decided = cast(
                Row, await tx.one(sql("decide_proposals"), row["source_id"], *given, approves, author_of(by))
            )
            _refuse(decided, source)
            changes = dict(zip(decided["names"] or (), decided["changes"] or (), strict=True))
            added, changed = (tuple(name for name in changes if changes[name] == kind) for kind in ("added", "changed"))
            if diff := Diff(added, changed):
                label = row["report"].get("label", "")
                await self._imports.record(tx, row["source_id"], diff, since=decided["revision"], label=label, by=by)
            return DecidedProposals("approved" if approves else "rejected", tuple(names), tuple(sorted(changes)))

        return await self._database.atomically(work)

    async def _rows(
        self, run: Statements, source: str | None, states: tuple[ProposalState, ...], limit: int
    ) -> "list[Row]":
        return [*await run.all(sql("proposals"), None if source is None else store(source), [*states], limit)]


def warnings_of(stored: Any) -> tuple[ToolWarning, ...]:
    """Return the warnings of a column."""
    return msgspec.convert(stored or (), tuple[ToolWarning, ...])


def _proposal(row: Row) -> Proposal:
    return Proposal(
        restore(row["name"]),
        row["source"],
        "new" if row["old"] is None else "changed",
        row["state"],
        row["hash"],
        row["pinned"],
        differing_parts(row["old"], row["new"]),
        diff_text(row["old"], row["new"]),
        warnings_of(row["warnings"]),
        row["found_at"],
        restore(row["found_by"]),
        row["decided_at"],
        None if row["decided_by"] is None else restore(row["decided_by"]),
    )


def _refuse(row: Row, source: str) -> None:
    """Raise the error of an outcome that changed nothing."""
    some = ", ".join((row["tools"] or ())[:5])
    next = f"`holdfast sources proposals {source}` lists them."
    if row["outcome"] == "missing":
        raise NotFound(f"no definition of these tools of the source {source} is held: {some:.300}", next=next)
    if row["outcome"] == "taken":
        raise Conflict(
            f"the definitions were not approved: {some:.300}",
            expected=0,
            current=1,
            why="other tools have got these names since",
            next=f"Reload the source, which gives its tools other names: `holdfast sources reload {source}`.",
        )
    if row["outcome"] == "conflict":
        raise Conflict(
            f"the definitions were not decided about: {some:.300}",
            expected=0,
            current=1,
            why="the source has changed them since they were read",
            next=f"Read them again: {next}",
        )
