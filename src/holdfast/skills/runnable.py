"""Which tools can be run. Who runs them says which kinds have a runner; no other tool is registered or offered."""

from collections.abc import Callable

from holdfast.core.errors import InvalidInput
from holdfast.skills.tool import KINDS, Kind, Mode, Tool

Runs = Callable[[Kind], bool]  # whether a kind has a runner


def every_kind(_: Kind) -> bool:
    """Whoever only reads and writes rows runs none of them, and asks for nothing."""
    return True


def can_run(kind: Kind, mode: Mode | None, runs: Runs) -> bool:
    """Whether a call can come to anything: a Java class is run by a worker elsewhere, which is waited for."""
    return runs(kind) or (kind == "java" and mode == "event")


def check_runnable(tool: Tool, runs: Runs) -> None:
    """Refuse a tool that nothing here can run."""
    if can_run(tool.kind, tool.mode, runs):
        return
    known = ", ".join(kind for kind in KINDS if runs(kind))
    next = f"Use one of the kinds that run: {known}."
    if tool.kind == "java":
        next = "Give it the mode `event`, and start a worker that serves it. " + next
    raise InvalidInput(
        f"the tool {tool.name!r:.200} cannot be used", why=f"tools of the kind {tool.kind} cannot run here", next=next
    )
