"""Explain: why a call through the gateway is allowed or refused, check by check.

The checks are those of a call, made by the same functions: the view of the caller, the policies, the access rules, the
arguments. Nothing is called, counted or asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from time import time
from typing import Any, Literal

import msgspec

from holdfast.access.principals import Principal
from holdfast.core.errors import NotFound
from holdfast.execution.outcomes import Outcome
from holdfast.execution.policies.access import refusal
from holdfast.execution.policies.explanation import ExplainedStep, ExplainingPolicy
from holdfast.gateway.gateway import Gateway, unknown_tool
from holdfast.gateway.inventory import AgentGrant, ToolSnapshot
from holdfast.gateway.policies.arguments import ArgumentPolicy
from holdfast.gateway.policies.calls import GatewayCall
from holdfast.gateway.tool_search import resolve_call
from holdfast.gateway.views import ADMIN, CALL_TOOL, CallerView, Listed, ViewKey, permits, reaches, sees_own
from holdfast.skills.arguments import with_defaults
from holdfast.skills.offers import Offer
from holdfast.skills.permissions import cap_of, refusal_reason
from holdfast.skills.rules.rule_set import RuleCaller, RuleDecision, ToolRules
from holdfast.skills.tool import HeldFor, Tool, ToolEntry

Verdict = Literal["allowed", "refused", "asks", "depends"]

NOT_CHECKED = "no arguments were given, so that they are not checked"
HELD: Mapping[HeldFor, tuple[str, str]] = {
    "proposal": (
        "its source has changed its definition, and nobody has approved that yet",
        "Read the change, and approve it: `holdfast sources proposals {source}`",
    ),
    "altered": (
        "its definition was changed in the database, around the engine",
        "Restore it: `holdfast sources reload {source}`",
    ),
}


class ExplainedRule(msgspec.Struct, frozen=True):
    """An access rule about this caller and this tool. `matches`: null if the arguments decide.

    `decides`: it refuses the call. Only an admin gets `text`, and rules that do not decide.
    """

    name: str
    effect: Literal["allow", "deny"]
    on_trial: bool
    matches: bool | None
    decides: bool
    unmet: str
    because: str
    text: str | None


class Explanation(msgspec.Struct, frozen=True):
    """Whether a call is allowed, and what each check says, in their order.

    `asks`: a person is asked before each call. `depends`: the arguments decide. `next`: what to change.
    """

    tool: str
    verdict: Verdict
    why: str
    next: str
    steps: list[ExplainedStep]
    rules: list[ExplainedRule]


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is explained: a call of a tool that exists, by a caller with a view."""

    caller: Principal
    view: CallerView
    tool: Tool
    entry: ToolEntry | None  # None: the tool is the engine's own
    snapshot: ToolSnapshot
    listed: Listed | None  # None: the caller does not see it

    @property
    def who(self) -> ViewKey:
        """What the view depends on."""
        return self.view.who


async def explain_call(
    gateway: Gateway,
    caller: Principal,
    name: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    at: datetime | None = None,
    whole: bool = True,
) -> Explanation:
    """Explain a call. Without `whole`, nothing is said about a tool that the caller does not see."""
    view, snapshot = await gateway.tools(caller), await gateway.inventory.current()
    listed = view.by_name.get(name)
    if listed is not None and listed.name == CALL_TOOL and arguments is not None:
        called = resolve_call(view, arguments)
        if isinstance(called, Outcome) and (called.code != NotFound.code or arguments["name"] in view.by_name):
            step = ExplainedStep("arguments", False, called.text, "Correct the arguments.")
            return Explanation(name, "refused", step.what, step.next, [step], [])
        # As by the gateway, the tool that it calls is decided about, also if the caller does not see that.
        unseen = isinstance(called, Outcome)
        name, arguments = (arguments["name"], arguments.get("arguments", {})) if unseen else (called[0].name, called[1])
        listed = view.by_name.get(name)
    found = None if listed is None and not whole else await _find(gateway, snapshot, name, listed)
    if found is None:
        error = unknown_tool(name)
        step = ExplainedStep("tool", False, error.what, "An admin can explain more.") if not whole else _missing(error)
        return Explanation(name, "refused", step.what, step.next, [step], [])
    subject = _Subject(caller, view, found[0], found[1], snapshot, listed)
    theirs = await gateway.engine.rules.of(
        snapshot.rules, RuleCaller(caller.user, caller.agent, caller.key, caller.scopes)
    )
    rules, now = theirs.of(subject.tool), time() if at is None else at.timestamp()
    steps = await _steps_to_view(gateway, subject, rules)
    decision, checked = RuleDecision(), arguments
    if listed is not None:
        call = GatewayCall(listed, arguments or {}, caller, view, gateway.engine.config.gateway.timeout)
        for policy in gateway.engine.call_policies:
            if isinstance(policy, ExplainingPolicy):
                steps.append(await policy.explain(call))
        step, checked = await _arguments(call, arguments)
        steps.append(step)
    if checked is not None:
        checked = with_defaults(subject.tool, checked)
        decision = rules.decide(checked, now)
    steps.append(_rules(subject.tool, rules, decision, checked, now, whole=whole))
    if listed is not None:
        steps.append(_approval(listed, caller))
    shown = _shown_rules(rules, decision, checked, now, whole=whole)
    return _conclude(name, steps, shown, asks=listed is not None and listed.tool.approve)


async def _find(
    gateway: Gateway, snapshot: ToolSnapshot, name: str, listed: Listed | None
) -> tuple[Tool, ToolEntry | None] | None:
    """Return a tool by one of its names, with its entry if it is registered; None if there is none."""
    own = next((tool for tool in gateway.inventory.own if tool.name == name), None)
    if own is not None:
        return own, None
    known = snapshot.tools.get(name if listed is None else listed.tool.name)
    if known is None:
        known = next(
            (each for each in snapshot.tools.values() if name in (each.listed.name, each.entry.tool.service)), None
        )
    if known is not None:
        return known.entry.tool, known.entry
    try:
        entry = await gateway.engine.tools.get(name)
    except NotFound:
        return None
    return entry.tool, entry


async def _steps_to_view(gateway: Gateway, subject: _Subject, rules: ToolRules) -> list[ExplainedStep]:
    """Return the checks that decide whether the caller sees the tool."""
    tool, entry, who = subject.tool, subject.entry, subject.who
    steps = [ExplainedStep("tool", True, _about(tool, entry))]
    if entry is not None and entry.held is not None:
        why, next = HELD[entry.held]
        steps.append(ExplainedStep("active", False, why, next.format(source=entry.source)))
    elif entry is not None and not entry.active:
        enable = f"Enable it: `holdfast tools activate {tool.name}`"
        enable += f", or its source {entry.source}." if entry.source else "."
        steps.append(ExplainedStep("active", False, "it is disabled, or its source is", enable))
    elif entry is not None and tool.name not in subject.snapshot.tools:
        steps.append(
            ExplainedStep(
                "active", False, f"this server cannot run tools of the kind {tool.kind}", "Start a worker for it."
            )
        )
    else:
        steps.append(ExplainedStep("active", True, "it is active"))
    grant: AgentGrant | None = AgentGrant()
    if who.agent is not None:
        grant = await gateway.inventory.grant(who.agent, subject.snapshot)
        steps.append(
            ExplainedStep("agent", False, f"there is no agent {who.agent!r:.200}, or it is disabled", "Enable it.")
            if grant is None
            else ExplainedStep("agent", True, f"the caller acts for the agent {who.agent:.200}")
        )
    needed = "read" if tool.access == "read" else "write"
    has = ", ".join(sorted(subject.caller.scopes)) or "none"
    reached = sees_own(tool, who) if entry is None else reaches(tool, who)
    steps.append(
        ExplainedStep("scopes", True, f"it needs the scope {needed}; the caller has {has}")
        if reached
        else ExplainedStep(
            "scopes", False, f"it needs the scope {needed} or a skill to read; the caller has {has}", "Use another key."
        )
    )
    if entry is not None and grant is not None:
        steps.append(await _permissions(gateway, entry, who, grant))
    if rules.hidden_by is not None:
        error = refusal(tool.name, RuleDecision(rules.hidden_by))
        steps.append(
            ExplainedStep("listed", False, f"{error.why}, so that the tool looks missing", _change(rules.hidden_by))
        )
    elif subject.listed is None and all(step.passed for step in steps):  # a service that another tool's name hides
        steps.append(ExplainedStep("listed", False, "another tool has this name for the caller", "Use its other name."))
    return steps


async def _permissions(gateway: Gateway, entry: ToolEntry, who: ViewKey, grant: AgentGrant) -> ExplainedStep:
    """Return whether permissions let the caller call a tool, and where they come from."""
    tool, agent = entry.tool, who.agent
    permitted = permits(entry, who, grant.offers)
    if agent is None:
        if permitted:
            admin = who.kind == ADMIN
            what = "admins may call every active tool" if admin else "the tool's permissions let users call it"
            return ExplainedStep("permissions", True, what)
        what = f"it needs the access {tool.access}, and users have {entry.permissions.get('users', 'none')}"
        return ExplainedStep("permissions", False, what, f"`holdfast tools permit {tool.name} --users {tool.access}`")
    if permitted:
        return ExplainedStep(
            "permissions", True, await _grant_source(gateway, entry, agent, grant.offers.get(tool.name))
        )
    reason = refusal_reason(tool.access, "execute", entry.permissions, agent)
    what = reason.removesuffix(" Continue without it.") or "neither its definition nor a skill nor permissions give it"
    return ExplainedStep("permissions", False, what, f"`holdfast tools permit {tool.name} {agent} {tool.access}`")


async def _grant_source(gateway: Gateway, entry: ToolEntry, agent: str, offer: Offer | None) -> str:
    if offer is None:
        return f"the tool's permissions give {agent:.100} {cap_of(entry.permissions, agent)}"
    if offer.skill is None:
        return f"the definition of {agent:.100} names it"
    skill = (await gateway.engine.catalogs.of(agent)).skills.get(offer.skill)
    return f"the skill {'' if skill is None else skill.name} gives it to {agent:.100}"


async def _arguments(
    call: GatewayCall, given: Mapping[str, Any] | None
) -> tuple[ExplainedStep, Mapping[str, Any] | None]:
    """Return whether arguments are valid, and the arguments that the tool would get."""
    if given is None:
        return ExplainedStep("arguments", None, NOT_CHECKED), None
    passed: list[GatewayCall] = []

    async def proceed(call: GatewayCall) -> Outcome:
        passed.append(call)
        return Outcome.refusal("")

    outcome = await ArgumentPolicy().apply(call, proceed)
    if passed:
        return ExplainedStep("arguments", True, "they fit the tool"), passed[0].arguments
    return ExplainedStep("arguments", False, outcome.text, "Correct the arguments."), None


def _rules(
    tool: Tool,
    rules: ToolRules,
    decision: RuleDecision,
    arguments: Mapping[str, Any] | None,
    now: float,
    *,
    whole: bool,
) -> ExplainedStep:
    if decision.rule is None and arguments is None:
        decision, depends = _without_arguments(rules, now)
        if depends:
            return ExplainedStep("rules", None, "the arguments decide which access rules match", "Give arguments.")
    if decision.rule is not None:
        error = refusal(tool.name, decision)
        return ExplainedStep("rules", False, error.why, _change(decision.rule) if whole else error.next)
    return ExplainedStep("rules", True, "no access rule refuses it")


def _without_arguments(rules: ToolRules, now: float) -> tuple[RuleDecision, bool]:
    """Return what rules decide whatever the arguments are, and whether the arguments matter."""
    open_rules = [each for each in rules.trace(None, now) if not each.rule.on_trial]
    for each in open_rules:
        if each.is_met and each.rule.effect == "deny":
            return RuleDecision(each.rule.name, each.rule.because), False
    may_deny = any(each.is_met is None and each.rule.effect == "deny" for each in open_rules)
    denies = rules.default.effect == "deny" and not rules.default.on_trial
    if not denies or any(each.is_met and each.rule.effect == "allow" for each in open_rules):
        return RuleDecision(), may_deny
    if any(each.is_met is None and each.rule.effect == "allow" for each in open_rules):
        return RuleDecision(), True
    return RuleDecision("default"), False


def _approval(listed: Listed, caller: Principal) -> ExplainedStep:
    if not listed.tool.approve:
        return ExplainedStep("approval", True, "no person has to allow it")
    if caller.agent is not None:
        what = "a person has to allow each call, and nobody can be asked when an agent calls"
        return ExplainedStep("approval", False, what, "Have a person call it, with a key of their own.")
    return ExplainedStep("approval", None, "the person in front of the client is asked before each call")


def _shown_rules(
    rules: ToolRules, decision: RuleDecision, arguments: Mapping[str, Any] | None, now: float, *, whole: bool
) -> list[ExplainedRule]:
    decided = decision.rule or _without_arguments(rules, now)[0].rule
    if not whole:  # what the refusal of the call says
        return [
            ExplainedRule(each.name, each.effect, on_trial=False, matches=True, decides=True, unmet="",
                          because=each.because, text=None)
            for each in rules.rules if each.name == decided
        ]  # fmt: skip
    return [
        ExplainedRule(
            each.rule.name,
            each.rule.effect,
            each.rule.on_trial,
            each.is_met,
            each.rule.name == decided,
            each.unmet,
            each.rule.because,
            each.rule.text,
        )
        for each in rules.trace(arguments, now)
    ]


def _conclude(name: str, steps: list[ExplainedStep], rules: list[ExplainedRule], *, asks: bool) -> Explanation:
    """Return the explanation with the verdict: the first check that fails decides."""
    failed = next((step for step in steps if step.passed is False), None)
    if failed is not None:
        return Explanation(name, "refused", failed.what, failed.next, steps, rules)
    if any(step.passed is None and step.name == "rules" for step in steps):
        return Explanation(name, "depends", "the arguments decide", "Give arguments.", steps, rules)
    verdict: Verdict = "asks" if asks else "allowed"
    return Explanation(
        name, verdict, "a person is asked before each call" if asks else "every check passes", "", steps, rules
    )


def _missing(error: NotFound) -> ExplainedStep:
    return ExplainedStep("tool", False, error.what, "Names are exact. `holdfast tools ls` lists the tools.")


def _about(tool: Tool, entry: ToolEntry | None) -> str:
    if entry is None:
        return "it is one of the engine's own tools"
    origin = f" of the source {entry.source}" if entry.source else ""
    return f"it is a tool of the kind {tool.kind}{origin}, with the access {tool.access}"


def _change(rule: str) -> str:
    if rule == "default":
        return "Allow it with a rule: `holdfast gateway rules add`."
    return (
        f"Look at the rule with `holdfast gateway rules show {rule}`, and change it with `holdfast gateway rules set`."
    )
