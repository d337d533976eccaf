"""Agents: they remember, use tools, talk over the log, and pick up after a crash.

`Agents` is how others talk to them; `Serving` does their work in this process.
"""

from holdfast.agents.agents import Agents
from holdfast.agents.approvals import Approval, Approvals
from holdfast.agents.definitions import Agent, Definition, Definitions, Incoming, Limits
from holdfast.agents.events import Event
from holdfast.agents.runs import Run, Runs, Sent
from holdfast.agents.serving import Serving

__all__ = [
    "Agent",
    "Agents",
    "Approval",
    "Approvals",
    "Definition",
    "Definitions",
    "Event",
    "Incoming",
    "Limits",
    "Run",
    "Runs",
    "Sent",
    "Serving",
]
