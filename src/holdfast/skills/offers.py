"""Offers: tools as models see them and as the engine calls them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from holdfast.llm.model import ToolSpec
from holdfast.skills.overlays import Overlay, apply_configs
from holdfast.skills.tool import Tool


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that an agent may call. The model sees `shown`; the engine calls `tool`.

    `overlay` holds the arguments that a call gets in addition to the model's. `skill` is the skill that gives the agent
    the tool; None: the agent always has it.
    """

    tool: Tool
    shown: Tool
    overlay: Overlay = field(default_factory=Overlay)
    skill: UUID | None = None

    @property
    def spec(self) -> ToolSpec:
        """The specification that a model sees."""
        return self.shown.spec


def offer_of(tool: Tool, *configs: Mapping[str, Any], skill: UUID | None = None) -> Offer:
    """Return a tool with the configs of skill and agent; a later config overrides an earlier one."""
    shown, overlay = apply_configs(tool, *configs)
    return Offer(replace(shown, parameters=tool.parameters), shown, overlay, skill)
