"""Runners: each runs tools of one kind or of several kinds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.mcp.content import Block
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

JSON = "application/json"
IN_DOUBT = "It may have taken effect anyway: check before you call it again."


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool returned. `failed`: the value describes the failure, in the tool's own words.

    `whole` is the complete answer if `value` is only a part of it. `plain`: the value consists of JSON types, and needs
    no conversion. `content`: the tool returned content blocks, such as images, and `value` describes them. `mcp` is the
    result of an MCP server, which MCP clients get unchanged.
    """

    value: Any
    failed: bool = False
    whole: bytes | None = None
    content_type: str = JSON
    plain: bool = False
    content: tuple[Block, ...] | None = None
    mcp: Mapping[str, Any] | None = None


class OutcomeUnknown(Exception):
    """The process that ran the tool stopped: it is not known whether the call took effect."""


class ToolRunner(Protocol):
    """Runs tools of some kinds.

    It raises the errors that keep a tool from running, and those that the tool raises. The executor enforces the limits
    of time and output. Cancellation stops the work.
    """

    async def run(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Run a tool with checked arguments. The caller waits at most `timeout` seconds."""
        ...
