"""Whose things a caller may name: their own, and those of the agent that they speak for."""

from holdfast.core.errors import InvalidInput, NotFound
from holdfast.skills.run import Run


def user_of(run: Run) -> str:
    """The user for whom something is called."""
    if run.user is None:
        raise InvalidInput("there is no user here", next="Use a key that is somebody's.")
    return run.user


def agent_named(run: Run, agent: str) -> str:
    """An agent that the caller may name; for whoever speaks for an agent there is no other."""
    if run.agent is not None and agent != run.agent:
        raise NotFound(f"there is no agent {agent!r:.200}", next=f"You speak for {run.agent}: name that one.")
    return agent
