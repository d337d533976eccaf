"""Prompts of MCP: texts with arguments that a person selects for their model."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.skills.completers import Completer, Completing, completers_of
from holdfast.skills.function_tools import Function
from holdfast.skills.resource import described_by, fitted
from holdfast.skills.run import Run

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt."""

    name: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt. Its function turns arguments into a text or messages."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]
    function: Function
    completers: Mapping[str, Completer] = field(default_factory=dict[str, Completer])

    async def get(self, run: Run, values: Mapping[str, str]) -> Any:
        """Return the function's result. Raise InvalidInput for a missing, unknown or unsuitable argument."""
        known = [each.name for each in self.arguments]
        unknown = next((name for name in values if name not in known), None)
        if unknown is not None:
            there = f"Use its arguments: {', '.join(known) or 'none'}."
            raise InvalidInput(f"the prompt {self.name} has no argument {unknown!r:.100}", next=there)
        lacking = next((each.name for each in self.arguments if each.required and each.name not in values), None)
        if lacking is not None:
            raise InvalidInput(f"the prompt {self.name} requires the argument {lacking}", next=f"Pass {lacking}.")
        return await self.function.run(run, fitted(self.function, values), name=f"holdfast prompt {self.name}")


def prompt_of(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    title: str = "",
    description: str | None = None,
    complete: Mapping[str, Completing] | None = None,
) -> McpPrompt:
    """Return the prompt of a function. The function's parameters are its arguments."""
    tool = described_by(function, "the prompt" if name is None else f"the prompt {name!r:.200}", named=name is not None)
    assert tool.function is not None
    named = tool.name if name is None else name
    if not _NAME.fullmatch(named):
        raise InvalidInput(
            f"the prompt {named!r:.200} cannot be declared",
            why="its name must have 1 to 128 letters, digits, dots, hyphens and underscores",
        )
    told: Mapping[str, Any] = tool.parameters.get("properties", {})
    arguments = tuple(
        PromptArgument(each.name, told.get(each.name, {}).get("description", ""), each.required)
        for each in msgspec.structs.fields(tool.function.arguments)
    )
    names = [each.name for each in arguments]
    return McpPrompt(
        named,
        title,
        tool.description if description is None else description,
        arguments,
        tool.function,
        completers_of(f"the prompt {named}", complete or {}, names),
    )
