"""What this server tells MCP clients besides its name and version: instructions and capabilities."""

from typing import Any, Final

INSTRUCTIONS: Final = (
    "Tools of this organization and of its agents: services, back ends, memory, notes, conversations, skills. "
    "The list may show only some: `search_tools` finds others by what they do, and `call_tool` calls them. "
    "`use_skill` gives instructions for a kind of task; `ask_agent` hands a task to an agent."
)

CAPABILITIES: Final[dict[str, Any]] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
