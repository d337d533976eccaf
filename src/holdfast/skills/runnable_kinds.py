"""Checks whether a tool can run: its kind needs a runner. Other tools are neither registered nor offered."""

from collections.abc import Callable

from holdfast.core.errors import InvalidInput
from holdfast.skills.tool import KINDS, Kind, Mode, Tool

Runs = Callable[[Kind], bool]  # whether a kind has a runner


def every_kind(_: Kind) -> bool:
    """Accept every kind, for callers that only read and write rows."""
    return True


def can_run(kind: Kind, mode: Mode | None, runs: Runs) -> bool:
    """Whether a tool can run. A Java class with the mode `event` can, because a worker elsewhere runs it."""
    return runs(kind) or (kind == "java" and mode == "event")


def check_runnable(tool: Tool, runs: Runs) -> None:
    """Refuse a tool that cannot run here."""
    if can_run(tool.kind, tool.mode, runs):
        return
    known = ", ".join(kind for kind in KINDS if runs(kind))
    next = f"Use one of the kinds that run: {known}."
    if tool.kind == "java":
        next = "Set its mode to `event`, and start a worker that serves it. " + next
    raise InvalidInput(
        f"the tool {tool.name!r:.200} cannot run",
        why=f"this installation has no runner for the kind {tool.kind}",
        next=next,
    )
