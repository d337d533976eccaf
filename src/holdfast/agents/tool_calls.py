"""Decides which calls of a step are made, which wait for a person, and which must not be repeated. Pure functions."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast
from uuid import UUID

from holdfast.agents.journal import RunExecution, RunHistory
from holdfast.agents.prompt_sections import AgentSkills
from holdfast.agents.text_calls import commands
from holdfast.core.text import dumps, parse
from holdfast.llm.model import ModelReply, ToolCall
from holdfast.skills.arguments import ArgumentRefusal, parse_arguments, unknown_tool
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
class RequestedCall:
    """A call that a reply asks for, with arguments or with the reason why it cannot be made."""

    id: str
    name: str
    arguments: dict[str, Any]
    refusal: ArgumentRefusal | None = None
    written: dict[str, Any] | None = None  # what the model wrote, if the call gets additional arguments

    @property
    def model_arguments(self) -> dict[str, Any]:
        """The arguments as the model wrote them."""
        return self.arguments if self.written is None else self.written


@dataclass(frozen=True, slots=True)
class CallResult:
    """What the model reads as the result of a call that is not executed now."""

    text: str
    failed: bool
    result: Any = None


@dataclass(frozen=True, slots=True)
class CallDecision:
    """What to do with a call: use a known result, run it, or ask a person for the given reason."""

    result: CallResult | None = None
    ask: Literal["listed", "unknown"] | None = None


RUN = CallDecision()


def requested_calls(
    reply: ModelReply, tools: Mapping[str, Offer], *, step: int, skills: AgentSkills | None = None
) -> list[RequestedCall]:
    """Return the calls of a reply, native ones and commands, each with a unique id. `skills` could bring more tools."""
    found: list[RequestedCall] = []
    taken: set[str] = set()
    for call in reply.calls[:MAX_CALLS]:
        id = _free(call.id or f"call-{step}", taken)
        found.append(_requested_call(id, call, tools, skills))
    if tools:
        shown = {name: offer.shown for name, offer in tools.items()}
        for command in commands(reply.text, shown, id=f"run-{step}"):
            call = command.call
            id = _free(call.id, taken)
            is_refused = command.refusal is not None and call.name in tools
            found.append(
                RequestedCall(id, call.name, _object(call.arguments), command.refusal)
                if is_refused
                else _requested_call(id, call, tools, skills)
            )
    return found[:MAX_CALLS]


def decide(
    call: RequestedCall,
    tool: Tool | None,
    *,
    step: int,
    token: int,
    listed: Collection[str],
    past: RunHistory,
) -> CallDecision:
    """Decide what to do with a call, given what its run has done.

    An execution that was started counts first, because the tool may have been removed or changed since.
    """
    answers = {each.reason: each for each in past.approvals if (each.step, each.call_id) == (step, call.id)}
    execution = started_execution(call, step=step, past=past)
    refusal = _refusal(call, tool)
    if execution is None and refusal is not None:
        return refusal
    if execution is not None and execution.status in ("done", "failed"):
        output = cast(dict[str, Any], execution.output or {})
        return CallDecision(
            result=CallResult(output.get("text", ""), execution.status == "failed", output.get("result"))
        )
    if is_awaited(execution):
        return RUN
    may_have_run = execution is not None and execution.token < token
    # Calls of an earlier attempt have other ids, so only the tool and the arguments identify a call.
    may_have_run |= any((each.tool, each.arguments) == (call.name, call.arguments) for each in past.doubtful)
    doubted = execution is not None and execution.status == "unknown"  # even if the tool is idempotent by now
    if doubted or (may_have_run and not (tool is not None and tool.idempotent)):
        again = answers.get("unknown")
        if again is None or again.state == "pending" or again.used:
            return CallDecision(ask="unknown")
        if again.state != "approved":
            return CallDecision(result=CallResult(_with(UNKNOWN, again.comment), True))
        return refusal or RUN
    if refusal is None and tool is not None and (tool.approve or tool.name in listed):
        allowed = answers.get("listed")
        if allowed is None or allowed.state == "pending":
            return CallDecision(ask="listed")
        if allowed.state != "approved":
            return CallDecision(result=CallResult(_with(DENIED, allowed.comment), True))
    return refusal or RUN


def started_execution(call: RequestedCall, *, step: int, past: RunHistory) -> RunExecution | None:
    """Return the execution that was started for a call, or None."""
    return next((each for each in past.executions if (each.step, each.call_id) == (step, call.id)), None)


def is_awaited(execution: RunExecution | None) -> bool:
    """Return whether a worker has a call. The process that continues the run waits for it and repeats nothing."""
    return execution is not None and execution.status == "running" and execution.correlation_id is not None


def key_of(call: RequestedCall, *, run: UUID, step: int, past: RunHistory) -> str:
    """Return the idempotency key of a call. A call that a person allowed to be repeated gets a new key."""
    execution = started_execution(call, step=step, past=past)
    if execution is not None and execution.correlation_id is not None and is_awaited(execution):
        return execution.correlation_id
    key = f"{run}:{step}:{call.id}"
    for each in past.approvals:
        if (each.step, each.call_id, each.reason, each.state) == (step, call.id, "unknown", "approved"):
            key = f"{key}:{each.id.hex[-12:]}"
    return key


def _refusal(call: RequestedCall, tool: Tool | None) -> CallDecision | None:
    """Return the decision for a call that cannot be made, or None."""
    if call.refusal is not None:
        return CallDecision(result=CallResult(call.refusal.text, True))
    return CallDecision(result=CallResult(f"there is no tool {call.name!r:.200}", True)) if tool is None else None


def _requested_call(id: str, call: ToolCall, tools: Mapping[str, Offer], skills: AgentSkills | None) -> RequestedCall:
    offer, written = tools.get(call.name), _object(call.arguments)
    if offer is None:
        skill = None if skills is None else skills.skill_with(call.name)
        return RequestedCall(id, call.name[:200], written, unknown_tool(call.name, tools, skill=skill))
    checked = parse_arguments(offer.shown, call.arguments, offer.overlay)
    if isinstance(checked, ArgumentRefusal):
        return RequestedCall(id, call.name, written, checked)
    return RequestedCall(id, call.name, checked, written=written)


def _object(raw: str) -> dict[str, Any]:
    """Return the arguments as an object for the record, or an empty object if that is not possible."""
    try:
        given: object = parse(raw.encode(errors="surrogatepass"), limit=100_000) if raw.strip() else {}
        dumps({"tool_calls": [{"arguments": given}]})  # as they are stored
    except Exception:  # noqa: BLE001 - a model may write anything
        return {}
    return cast(dict[str, Any], given) if isinstance(given, dict) else {}


def _free(id: str, taken: set[str]) -> str:
    """Return an id that no other call of the step has."""
    id = _UNPRINTABLE.sub("_", id[:200])  # it becomes part of keys
    free, number = id, 1
    while free in taken:
        number += 1
        free = f"{id}-{number}"
    taken.add(free)
    return free


def _with(text: str, comment: str | None) -> str:
    return f"{text} They said: {comment}" if comment else text
