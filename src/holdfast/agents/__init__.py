"""Agents: they use a model, tools, skills and memory, receive messages through the log, and survive crashes.

`Agents` sends messages to agents and watches their events. `Serving` executes their runs in this process.
"""

from holdfast.agents.agents import Agents
from holdfast.agents.approvals import Approval, Approvals
from holdfast.agents.definitions import Agent, Definition, Definitions, Incoming, Limits
from holdfast.agents.events import Event
from holdfast.agents.runs import AgentRun, Runs, Sent
from holdfast.agents.serving import Serving

__all__ = [
    "Agent",
    "AgentRun",
    "Agents",
    "Approval",
    "Approvals",
    "Definition",
    "Definitions",
    "Event",
    "Incoming",
    "Limits",
    "Runs",
    "Sent",
    "Serving",
]
