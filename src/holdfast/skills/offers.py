"""Offers: tools as agents are told of them, and as they are called then."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from holdfast.llm.model import ToolSpec
from holdfast.skills.overlays import Overlay, overlaid
from holdfast.skills.tool import Tool


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that an agent may call: `shown` is what the model is told of it, `tool` what is called.

    `overlay` is what a call gets beside the model's arguments, `skill` what the agent has it by, None: always.
    """

    tool: Tool
    shown: Tool
    overlay: Overlay = field(default_factory=Overlay)
    skill: UUID | None = None

    @property
    def spec(self) -> ToolSpec:
        """The tool, as a model is told of it."""
        return self.shown.spec


def offer_of(tool: Tool, *configs: Mapping[str, Any], skill: UUID | None = None) -> Offer:
    """A tool under the configs of skill and agent, the strongest last."""
    shown, overlay = overlaid(tool, *configs)
    return Offer(replace(shown, parameters=tool.parameters), shown, overlay, skill)
