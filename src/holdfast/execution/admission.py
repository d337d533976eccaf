"""Admission: checks before each call whether an agent may call a tool through a skill, and gets its current version."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from holdfast.core.text import store
from holdfast.execution.usage import ToolUsage
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.arguments import ArgumentRefusal, check
from holdfast.skills.permissions import refusal_reason
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool
from holdfast.skills.tools import Tools

sql = statements(__name__)


class Admission:
    """Checks the registry before each call, and counts calls."""

    def __init__(self, database: Database, tools: Tools, usage: ToolUsage) -> None:
        self._database = database
        self._tools = tools
        self._usage = usage

    async def admit(
        self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, skill: UUID | None
    ) -> tuple[Tool, Mapping[str, Any]] | ArgumentRefusal:
        """Return the current version of the tool and arguments that fit it, or the reason why it may not be called.

        This holds no connection while the tool runs.
        """
        agent = None if run.agent is None else store(run.agent)
        row = await self._database.one(sql("admission"), tool.id, skill, agent)
        if row is None:
            return ArgumentRefusal(f"{tool.name} was not called: it was removed. Continue without it.")
        reason = _reason(row, run.agent, skill)
        if reason:
            return ArgumentRefusal(f"{tool.name} was not called: {reason}")
        if row["aggregate_version"] == tool.version:
            return tool, arguments
        return await self._reload(tool, arguments)

    def count(self, tool: UUID, *, failed: bool, latency_ms: float) -> None:
        """Count a call of a tool."""
        self._usage.note(self._database, tool, failed=failed, latency_ms=latency_ms)

    async def _reload(
        self, tool: Tool, arguments: Mapping[str, Any]
    ) -> tuple[Tool, Mapping[str, Any]] | ArgumentRefusal:
        """Return the changed tool. The time limit of the version that was disclosed still applies."""
        assert tool.id is not None
        found = await self._tools.current(tool.id)
        if found is None:
            return ArgumentRefusal(f"{tool.name} was not called: it was removed. Continue without it.")
        limits = [each.timeout for each in (tool, found) if each.timeout is not None]
        function = found.function or (tool.function if found.reference == tool.reference else None)
        current = replace(found, timeout=min(limits, default=None), function=function)
        checked = check(current, arguments)
        return checked if isinstance(checked, ArgumentRefusal) else (current, checked)


def _reason(row: Row, agent: str | None, skill: UUID | None) -> str:
    """Return why a tool may not be called; empty if it may."""
    if not row["active"]:
        return "it is disabled. Continue without it."
    if row["held"]:
        return "its definition has changed, and an admin has not approved it yet. Continue without it."
    if not row["disclosed"]:
        return "you no longer have the skill that it belongs to. Continue without it."
    if agent is None:
        return ""
    level = "execute" if skill is None else row["access_level"]
    return refusal_reason(row["access"], level, row["permissions"], agent)
