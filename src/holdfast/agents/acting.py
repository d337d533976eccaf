"""Acting: which calls of a step are made, which wait for a person, and which must not be made again. Pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast
from uuid import UUID

from holdfast.agents.commands import commands
from holdfast.agents.journal import Execution, Past
from holdfast.agents.skill_section import Skilled
from holdfast.core.text import dumps, parse
from holdfast.llm.model import Reply, ToolCall
from holdfast.skills.arguments import Refusal, parse_arguments, unknown_tool
from holdfast.skills.offers import Offer
from holdfast.skills.tool import Tool

MAX_CALLS = 64  # in one reply

_UNPRINTABLE = re.compile(r"[^!-~]")

DENIED = "A person did not allow this call."
UNKNOWN = (
    "It is not known whether this call took effect: what made it stopped meanwhile. "
    "A person decided not to make it again."
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that a reply asks for: with arguments, or with the reason why it cannot be made."""

    id: str
    name: str
    arguments: dict[str, Any]
    refusal: Refusal | None = None
    written: dict[str, Any] | None = None  # what the model wrote, where a call gets more than that

    @property
    def said(self) -> dict[str, Any]:
        """The arguments as the model wrote them."""
        return self.arguments if self.written is None else self.written


@dataclass(frozen=True, slots=True)
class Told:
    """What the model reads of a call, without that anything is run for it now."""

    text: str
    failed: bool
    result: Any = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about a call: tell what is known, run it, or ask a person for a reason."""

    told: Told | None = None
    ask: Literal["listed", "unknown"] | None = None


RUN = Decision()


def wanted(reply: Reply, tools: Mapping[str, Offer], *, step: int, skills: Skilled | None = None) -> list[Wanted]:
    """The calls of a reply, native ones and commands, each with an id of its own; `skills` would bring more tools."""
    found: list[Wanted] = []
    taken: set[str] = set()
    for call in reply.calls[:MAX_CALLS]:
        id = _free(call.id or f"call-{step}", taken)
        found.append(_called(id, call, tools, skills))
    if tools:
        shown = {name: offer.shown for name, offer in tools.items()}
        for command in commands(reply.text, shown, id=f"run-{step}"):
            call = command.call
            id = _free(call.id, taken)
            refused = command.refusal is not None and call.name in tools
            found.append(
                Wanted(id, call.name, _object(call.arguments), command.refusal)
                if refused
                else _called(id, call, tools, skills)
            )
    return found[:MAX_CALLS]


def decide(
    call: Wanted,
    tool: Tool | None,
    *,
    step: int,
    token: int,
    listed: Collection[str],
    past: Past,
) -> Decision:
    """What to do about a call, as far as its run has come.

    What was begun counts first: the tool may be gone since, or be another.
    """
    answers = {each.reason: each for each in past.asked if (each.step, each.call_id) == (step, call.id)}
    begun = begun_of(call, step=step, past=past)
    refused = _refused(call, tool)
    if begun is None and refused is not None:
        return refused
    if begun is not None and begun.status in ("done", "failed"):
        output = cast(dict[str, Any], begun.output or {})
        return Decision(told=Told(output.get("text", ""), begun.status == "failed", output.get("result")))
    if is_awaited(begun):
        return RUN
    may_have_run = begun is not None and begun.token < token
    # An earlier attempt asked for the same: its model spoke of other calls, so that only tool and arguments tell.
    may_have_run |= any((each.tool, each.arguments) == (call.name, call.arguments) for each in past.doubtful)
    doubted = begun is not None and begun.status == "unknown"  # whatever the tool says of itself by now
    if doubted or (may_have_run and not (tool is not None and tool.idempotent)):
        again = answers.get("unknown")
        if again is None or again.state == "pending" or again.used:
            return Decision(ask="unknown")
        if again.state != "approved":
            return Decision(told=Told(_with(UNKNOWN, again.comment), True))
        return refused or RUN
    if refused is None and tool is not None and (tool.approve or tool.name in listed):
        allowed = answers.get("listed")
        if allowed is None or allowed.state == "pending":
            return Decision(ask="listed")
        if allowed.state != "approved":
            return Decision(told=Told(_with(DENIED, allowed.comment), True))
    return refused or RUN


def begun_of(call: Wanted, *, step: int, past: Past) -> Execution | None:
    """The execution that was begun for a call."""
    return next((each for each in past.executions if (each.step, each.call_id) == (step, call.id)), None)


def is_awaited(begun: Execution | None) -> bool:
    """Whether a worker has a call: whoever goes on with the run waits for it, and nothing is done again."""
    return begun is not None and begun.status == "running" and begun.correlation_id is not None


def key_of(call: Wanted, *, run: UUID, step: int, past: Past) -> str:
    """What a call is known by, again and again; one that a person allowed to be made again is another."""
    begun = begun_of(call, step=step, past=past)
    if begun is not None and begun.correlation_id is not None and is_awaited(begun):
        return begun.correlation_id
    key = f"{run}:{step}:{call.id}"
    for each in past.asked:
        if (each.step, each.call_id, each.reason, each.state) == (step, call.id, "unknown", "approved"):
            key = f"{key}:{each.id.hex[-12:]}"
    return key


def _refused(call: Wanted, tool: Tool | None) -> Decision | None:
    """Why a call cannot be made, if it cannot."""
    if call.refusal is not None:
        return Decision(told=Told(call.refusal.text, True))
    return Decision(told=Told(f"there is no tool {call.name!r:.200}", True)) if tool is None else None


def _called(id: str, call: ToolCall, tools: Mapping[str, Offer], skills: Skilled | None) -> Wanted:
    offer, written = tools.get(call.name), _object(call.arguments)
    if offer is None:
        skill = None if skills is None else skills.skill_with(call.name)
        return Wanted(id, call.name[:200], written, unknown_tool(call.name, tools, skill=skill))
    checked = parse_arguments(offer.shown, call.arguments, offer.overlay)
    if isinstance(checked, Refusal):
        return Wanted(id, call.name, written, checked)
    return Wanted(id, call.name, checked, written=written)


def _object(raw: str) -> dict[str, Any]:
    """The arguments for the record, where they can be shown as an object."""
    try:
        given: object = parse(raw.encode(errors="surrogatepass"), limit=100_000) if raw.strip() else {}
        dumps({"tool_calls": [{"arguments": given}]})  # as they are kept
    except Exception:  # noqa: BLE001 - a model may write anything
        return {}
    return cast(dict[str, Any], given) if isinstance(given, dict) else {}


def _free(id: str, taken: set[str]) -> str:
    """An id that no other call of the step has."""
    id = _UNPRINTABLE.sub("_", id[:200])  # it becomes part of keys
    free, number = id, 1
    while free in taken:
        number += 1
        free = f"{id}-{number}"
    taken.add(free)
    return free


def _with(text: str, comment: str | None) -> str:
    return f"{text} They said: {comment}" if comment else text
