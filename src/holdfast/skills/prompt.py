"""Prompts of MCP: texts with arguments that a person selects for their model."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.skills.completers import Completer, CompletionSource, completers_of
from holdfast.skills.function_tools import Function
from holdfast.skills.resource import convert_texts, describe_function
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
            next_step = f"Use its arguments: {', '.join(known) or 'none'}."
            raise InvalidInput(f"the prompt {self.name} has no argument {unknown!r:.100}", next=next_step)
        missing = next((each.name for each in self.arguments if each.required and each.name not in values), None)
        if missing is not None:
            raise InvalidInput(f"the prompt {self.name} requires the argument {missing}", next=f"Pass {missing}.")
        return await self.function.run(run, convert_texts(self.function, values), name=f"holdfast prompt {self.name}")


def prompt_of(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    title: str = "",
    description: str | None = None,
    complete: Mapping[str, CompletionSource] | None = None,
) -> McpPrompt:
    """Return the prompt of a function. The function's parameters are its arguments."""
    tool = describe_function(
        function, "the prompt" if name is None else f"the prompt {name!r:.200}", has_name=name is not None
    )
    assert tool.function is not None
    prompt_name = tool.name if name is None else name
    if not _NAME.fullmatch(prompt_name):
        raise InvalidInput(
            f"the prompt {prompt_name!r:.200} cannot be declared",
            why="its name must have 1 to 128 letters, digits, dots, hyphens and underscores",
        )
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    arguments = tuple(
        PromptArgument(each.name, properties.get(each.name, {}).get("description", ""), each.required)
        for each in msgspec.structs.fields(tool.function.arguments)
    )
    names = [each.name for each in arguments]
    return McpPrompt(
        prompt_name,
        title,
        tool.description if description is None else description,
        arguments,
        tool.function,
        completers_of(f"the prompt {prompt_name}", complete or {}, names),
    )
