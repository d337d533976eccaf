"""The engine's own abilities: memory, notes, conversations, skills and agents, as tools and as resources.

Whose they are, the run says: the user's, and where the caller speaks for an agent, that agent's. Nobody can name
another user; whoever speaks for an agent cannot name another agent.
"""

from holdfast.engine import Engine
from holdfast.gateway.own.agents import agent_tools
from holdfast.gateway.own.conversations import conversation_tools
from holdfast.gateway.own.memory import memory_tools
from holdfast.gateway.own.resources import own_resources
from holdfast.gateway.own.skills import skill_tools
from holdfast.gateway.searching import CALL, search_tool
from holdfast.skills.tool import Tool

__all__ = ["own_resources", "own_tools"]


def own_tools(engine: Engine) -> list[Tool]:
    """The tools that every tenant has: first those that lead to all others, then by name."""
    tools = [
        *memory_tools(engine),
        *conversation_tools(engine),
        *skill_tools(engine.skills, engine.catalogs, engine.finding),
        *agent_tools(engine),
    ]
    return [search_tool(engine.finding), CALL, *sorted(tools, key=lambda tool: tool.name)]
