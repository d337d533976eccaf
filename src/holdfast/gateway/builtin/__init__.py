"""The engine's own tools and resources: memory, knowledge, notes, conversations, skills and agents.

The run determines the owner: the user, and the agent if the caller acts for one. No caller can name another user, and a
caller who acts for an agent cannot name another agent.
"""

from holdfast.engine import Engine
from holdfast.gateway.builtin.agents import agent_tools
from holdfast.gateway.builtin.conversations import conversation_tools
from holdfast.gateway.builtin.knowledge import knowledge_tools
from holdfast.gateway.builtin.memory import memory_tools
from holdfast.gateway.builtin.research import research_tools
from holdfast.gateway.builtin.resources import own_resources
from holdfast.gateway.builtin.skills import skill_tools
from holdfast.gateway.tool_search import CALL, search_tool
from holdfast.skills.tool import Tool

__all__ = ["own_resources", "own_tools"]


def own_tools(engine: Engine) -> list[Tool]:
    """Return the tools that every tenant has: `search_tools` and `call_tool`, then the others by name."""
    tools = [
        *memory_tools(engine),
        *knowledge_tools(engine),
        *research_tools(engine),
        *conversation_tools(engine),
        *skill_tools(engine),
        *agent_tools(engine),
    ]
    return [search_tool(engine.finding), CALL, *sorted(tools, key=lambda tool: tool.name)]
