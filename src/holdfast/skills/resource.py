"""Resources: content that clients read under a URI, or under the URIs of a template."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.skills.completers import Completer, CompletionSource, completers_of
from holdfast.skills.function_tools import Function, conversion_error, tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool
from holdfast.skills.uri_templates import UriTemplate

OWN_SCHEMES = ("holdfast:", "knowledge:")  # of the engine's own resources


@dataclass(frozen=True, slots=True)
class McpResource:
    """A resource. Its function returns the content of a URI, and takes the URI's parameters."""

    template: UriTemplate
    name: str
    title: str
    description: str
    mime_type: str | None
    function: Function
    completers: Mapping[str, Completer] = field(default_factory=dict[str, Completer])

    @property
    def uri(self) -> str:
        """Its URI, or the template of its URIs."""
        return self.template.text

    @property
    def is_fixed(self) -> bool:
        """Whether it has only one URI."""
        return not self.template.names

    async def read(self, run: Run, values: Mapping[str, str]) -> Any:
        """Return the function's result."""
        return await self.function.run(run, convert_texts(self.function, values), name=f"holdfast resource {self.name}")


def resource_of(
    function: Callable[..., Any],
    uri: str,
    *,
    name: str | None = None,
    title: str = "",
    description: str | None = None,
    mime_type: str | None = None,
    complete: Mapping[str, CompletionSource] | None = None,
) -> McpResource:
    """Return the resource of a function. Raise InvalidInput if its parameters are not those of the URI."""
    template = UriTemplate(uri)
    tool = describe_function(function, f"the resource {uri}", has_name=name is not None)
    assert tool.function is not None
    _check(f"the resource {uri}", template, tool.function)
    return McpResource(
        template,
        tool.name if name is None else name,
        title,
        tool.description if description is None else description,
        mime_type,
        tool.function,
        completers_of(f"the resource {uri}", complete or {}, template.names),
    )


def describe_function(function: Callable[..., Any], what: str, *, has_name: bool) -> Tool:
    """Describe a function as a tool; `has_name`: the caller already has a name for it."""
    try:
        return tool_of(function, name="named" if has_name else None)
    except InvalidInput as error:
        raise InvalidInput(f"{what} cannot be declared", why=error.why, next=error.next) from None


def convert_texts(function: Function, values: Mapping[str, str]) -> dict[str, Any]:
    """Convert texts to the types of a function's parameters. Raise InvalidInput if one does not fit."""
    try:
        found = msgspec.convert(dict(values), function.arguments, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(conversion_error(error)[1]) from None
    plain = msgspec.to_builtins(found)
    return {name: plain[name] for name in values}


def _check(what: str, template: UriTemplate, function: Function) -> None:
    fields = msgspec.structs.fields(function.arguments)
    taken = {each.name for each in fields}
    extra = next((name for name in template.names if name not in taken), None)
    if extra is not None:
        raise InvalidInput(f"{what} cannot be declared", why=f"its function does not take {extra}")
    missing = next((each.name for each in fields if each.required and each.name not in template.names), None)
    if missing is not None:
        raise InvalidInput(
            f"{what} cannot be declared",
            why=f"its function takes {missing}, which is not in the URI",
            next=f"Add {{{missing}}} to the URI, or give the parameter a default.",
        )
