"""Checks whether a tool can run: its kind needs a runner. Other tools are neither registered nor offered."""

from typing import Protocol

from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.skills.tool import KINDS, Kind, Mode, Tool


class RunnableKinds(Protocol):
    """Says which kinds of tools have a runner here."""

    def __call__(self, kind: Kind) -> bool:
        """Whether tools of a kind run, as far as it is known."""
        ...

    async def refusal(self, kind: Kind) -> HoldfastError | None:
        """Return why tools of a kind do not run, or None. This may try the kind, which takes some seconds."""
        ...


class EveryKind:
    """Accepts every kind, for callers that only read and write rows."""

    def __call__(self, kind: Kind) -> bool:
        """Accept it."""
        return True

    async def refusal(self, kind: Kind) -> HoldfastError | None:
        """Accept it."""
        return None


every_kind = EveryKind()


def can_run(kind: Kind, mode: Mode | None, runs: RunnableKinds) -> bool:
    """Whether a tool can run. A Java class with the mode `event` can, because a worker elsewhere runs it."""
    return runs(kind) or (kind == "java" and mode == "event")


async def check_runnable(tool: Tool, runs: RunnableKinds) -> None:
    """Refuse a tool that cannot run here."""
    what = f"the tool {tool.name!r:.200} cannot run"
    refusal = await runs.refusal(tool.kind)
    if refusal is not None:
        why = f"{refusal.what}: {refusal.why}" if refusal.why else refusal.what
        raise InvalidInput(what, why=why, next=refusal.next)
    if can_run(tool.kind, tool.mode, runs):
        return
    known = ", ".join(kind for kind in KINDS if runs(kind))
    next = f"Use one of the kinds that run: {known}."
    if tool.kind == "java":
        next = "Set its mode to `event`, and start a worker that serves it. " + next
    raise InvalidInput(what, why=f"this installation has no runner for the kind {tool.kind}", next=next)
