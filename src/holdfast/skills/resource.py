"""A resource: something to read under an address of its own, or under each of many."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.skills.completers import Completer, Completing, completers_of
from holdfast.skills.function import Function, tool_of, unconverted
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool
from holdfast.skills.uri_templates import UriTemplate

OWN_SCHEME = "holdfast:"  # of the engine's own


@dataclass(frozen=True, slots=True)
class Resource:
    """What a function gives to whoever reads an address; its parameters are what the address fills in."""

    template: UriTemplate
    name: str
    title: str
    description: str
    mime_type: str | None
    function: Function
    completers: Mapping[str, Completer] = field(default_factory=dict[str, Completer])

    @property
    def uri(self) -> str:
        """Its address, or the template of its addresses."""
        return self.template.text

    @property
    def is_fixed(self) -> bool:
        """Whether it is one, under one address."""
        return not self.template.names

    async def read(self, run: Run, values: Mapping[str, str]) -> Any:
        """What the function gives."""
        return await self.function.run(run, fitted(self.function, values), name=f"holdfast resource {self.name}")


def resource_of(
    function: Callable[..., Any],
    uri: str,
    *,
    name: str | None = None,
    title: str = "",
    description: str | None = None,
    mime_type: str | None = None,
    complete: Mapping[str, Completing] | None = None,
) -> Resource:
    """The resource that a function is; InvalidInput where its parameters are not those of the address."""
    template = UriTemplate(uri)
    tool = described_by(function, f"the resource {uri}", named=name is not None)
    assert tool.function is not None
    _check(f"the resource {uri}", template, tool.function)
    return Resource(
        template,
        tool.name if name is None else name,
        title,
        tool.description if description is None else description,
        mime_type,
        tool.function,
        completers_of(f"the resource {uri}", complete or {}, template.names),
    )


def described_by(function: Callable[..., Any], what: str, *, named: bool) -> Tool:
    """What is to be told of a function, as of a tool; `named`: it has a name already."""
    try:
        return tool_of(function, name="named" if named else None)
    except InvalidInput as error:
        raise InvalidInput(f"{what} cannot be declared", why=error.why, next=error.next) from None


def fitted(function: Function, values: Mapping[str, str]) -> dict[str, Any]:
    """Texts as the types of a function have them; InvalidInput where one does not fit."""
    try:
        found = msgspec.convert(dict(values), function.arguments, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(unconverted(error)[1]) from None
    plain = msgspec.to_builtins(found)
    return {name: plain[name] for name in values}


def _check(what: str, template: UriTemplate, function: Function) -> None:
    fields = msgspec.structs.fields(function.arguments)
    taken = {each.name for each in fields}
    extra = next((name for name in template.names if name not in taken), None)
    if extra is not None:
        raise InvalidInput(f"{what} cannot be declared", why=f"its function takes no {extra}")
    lacking = next((each.name for each in fields if each.required and each.name not in template.names), None)
    if lacking is not None:
        raise InvalidInput(
            f"{what} cannot be declared",
            why=f"its function takes {lacking}, which is not in the address",
            next=f"Write {{{lacking}}} into the address, or give it a default.",
        )
