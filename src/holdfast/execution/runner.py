"""Runners: what runs tools, a kind or several each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.mcp.content import Block
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

JSON = "application/json"
IN_DOUBT = "It may have taken effect all the same: look before it is called again."


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool gave; `failed`: it is what went wrong, in the tool's own words.

    `whole` is the answer as it came, where `value` is only a part of it. `plain`: the value was read from JSON, and can
    be written as such. `content`: it gave blocks, such as pictures, and `value` is what is told of them.
    """

    value: Any
    failed: bool = False
    whole: bytes | None = None
    content_type: str = JSON
    plain: bool = False
    content: tuple[Block, ...] | None = None


class Vanished(Exception):
    """Whoever ran the tool stopped meanwhile: it is not known whether it took effect."""


class Runner(Protocol):
    """Runs tools of some kinds.

    It raises what keeps a tool from being run, and what the tool raises. Time and output limits are the executor's;
    cancellation stops the work.
    """

    async def run(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Run a tool with arguments that were checked; `timeout` is how many seconds anybody waits for it."""
        ...
