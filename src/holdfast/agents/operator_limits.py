"""Ceilings: the limits and models that the operator allows for agents that tenants store.

Agents that an app declares belong to the operator and have no ceilings.
"""

import logging
from dataclasses import replace
from fnmatch import fnmatchcase

import msgspec

from holdfast.agents.definitions import Agent, Limits
from holdfast.core.errors import InvalidInput
from holdfast.core.settings import AgentSettings, LlmSettings

log = logging.getLogger(__name__)


class OperatorLimits:
    """The limits of the settings, and the models that they allow."""

    def __init__(self, agents: AgentSettings, llm: LlmSettings) -> None:
        self._most = {
            "steps": agents.max_steps,
            "tokens": agents.max_tokens,
            "seconds": agents.max_seconds,
            "cost": agents.max_cost or None,  # None: no limit
        }
        self._llm = llm

    def check(self, name: str, limits: Limits, model: str | None) -> None:
        """Raise InvalidInput if an agent could use more than the operator allows."""
        for what, most in self._most.items():
            wanted = getattr(limits, what)
            if wanted is not None and most is not None and wanted > most:
                raise InvalidInput(
                    f"the agent {name!r:.200} cannot be stored",
                    why=f"its limit of {what} is {wanted:g}, and the operator allows {most:g}",
                    next=f"Lower it, or have the operator raise agents.max_{what}.",
                )
        if not self.allows(model):
            raise InvalidInput(
                f"the agent {name!r:.200} cannot be stored",
                why=f"the operator does not allow the model {model!r:.100}",
                next=f"Name one of {', '.join(self._llm.allowed_models)}, or none for the one of the settings.",
            )

    def allows(self, model: str | None) -> bool:
        """Return whether an agent may use this model."""
        allowed = self._llm.allowed_models
        if model is None or not allowed or model in (self._llm.model, *self._llm.fallbacks):
            return True
        return any(fnmatchcase(model, pattern) for pattern in allowed)

    def apply(self, agent: Agent) -> Agent:
        """Return the agent within the ceilings, which may be lower than when it was stored."""
        lowered = {
            what: most
            for what, most in self._most.items()
            if most is not None and (wanted := getattr(agent.limits, what)) is not None and wanted > most
        }
        model = agent.model
        if not self.allows(model):
            log.warning("the agent %s uses the model of the settings: %s is no longer allowed", agent.name, model)
            model = None
        return replace(agent, limits=msgspec.structs.replace(agent.limits, **lowered), model=model)
