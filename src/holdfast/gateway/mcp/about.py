"""What this server tells MCP clients about itself: name, version, instructions, capabilities."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final


def _version() -> str:
    try:
        return version("holdfast")
    except PackageNotFoundError:  # it runs from source
        return "0"


SERVER: Final[dict[str, Any]] = {"name": "holdfast", "title": "Holdfast", "version": _version()}

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
