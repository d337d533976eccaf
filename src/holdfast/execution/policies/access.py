"""Access rules: refuses calls that the rules of the tenant deny."""

from collections.abc import Awaitable, Callable
from time import time
from typing import Any

from holdfast.core.errors import Forbidden
from holdfast.execution.outcomes import Outcome
from holdfast.execution.policies.policy import GovernedCall
from holdfast.skills.client import InputRequired
from holdfast.skills.rules.access_rules import AccessRules
from holdfast.skills.rules.grammar import DEFAULT
from holdfast.skills.rules.rule_set import ALLOWED, RuleCaller, RuleDecision


class AccessPolicy:
    """Decides by the rules of a tenant, in memory. It gets the arguments as they are sent to the tool."""

    def __init__(self, rules: AccessRules, clock: Callable[[], float] = time) -> None:
        self._rules = rules
        self._clock = clock

    async def apply(self, call: GovernedCall, proceed: Callable[[Any], Awaitable[Outcome]]) -> Outcome:
        """Proceed with a call that no rule refuses. Raise Forbidden, with the name of the rule, for others."""
        decision = ALLOWED if call.resumed else await self.decide(call)
        if decision is ALLOWED:
            return await proceed(call)
        counts = bool(decision.trials)
        try:
            if decision.rule is not None:
                raise refusal(call.tool.name, decision)
            return await proceed(call)
        except InputRequired:
            counts = False  # the client repeats the call, with its answers
            raise
        finally:
            if counts:
                self._note(call, decision)

    async def decide(self, call: GovernedCall) -> RuleDecision:
        """Decide about a call."""
        rules = self._rules.fresh or await self._rules.current()
        if rules.is_empty:
            return ALLOWED
        theirs = rules.known_caller(call.user, call.agent, call.key, call.scopes)
        if theirs is None:
            theirs = await self._rules.of(rules, RuleCaller(call.user, call.agent, call.key, call.scopes))
        return theirs.decide(call.tool, call.arguments, self._clock())

    def _note(self, call: GovernedCall, decision: RuleDecision) -> None:
        effect = "allowed" if decision.rule is not None else "denied"
        call.notes.extend(f"the rule {name}, on trial, would have {effect} it" for name in decision.trials)
        self._rules.note_trials(
            decision.trials, tool=call.tool.name, user=call.user, agent=call.agent, arguments=call.arguments
        )


def refusal(tool: str, decision: RuleDecision) -> Forbidden:
    """Return the error for a call that a rule refuses."""
    rule = decision.rule or ""
    if rule == DEFAULT:
        why, next = "no access rule allows it", "Ask an admin, who can allow it: `holdfast gateway rules add`."
    else:
        why = f"the access rule {rule} denies it" + (f". {decision.because}" if decision.because else "")
        next = "Continue without it, or ask an admin about this rule."
    return Forbidden(f"{tool} was not called", why=why, next=next, rule=rule)
