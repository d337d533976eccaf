"""Arguments of a tool: everything that an operation takes in its URL, headers, cookies and body, as one object."""

from dataclasses import dataclass, field
from typing import Any, cast

from holdfast.skills.sources.openapi.keywords import MAX_EXAMPLE, description_of
from holdfast.skills.sources.openapi.names import argument_name
from holdfast.skills.sources.openapi.schemas import Fragment, references_of


@dataclass(slots=True)
class OperationArguments:
    """Collects arguments one by one. The first of several with the same name keeps it."""

    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    required: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def add(self, name: str, place: str, schema: Any, *, required: bool) -> str:
        """Add an argument with a name in a place. Return the argument's name."""
        argument = argument_name(name, place, self.properties)
        self.properties[argument] = schema if isinstance(schema, dict) else {}
        if required:
            self.required.append(argument)
        return argument

    def fragment(self) -> Fragment:
        """Return the schema of all arguments."""
        schema: dict[str, Any] = {"type": "object", "properties": self.properties, "additionalProperties": False}
        if self.required:
            schema["required"] = self.required
        return Fragment(schema, references_of(schema), self.notes)


def with_description(schema: Any, element: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the description of its parameter or body, which overrides that of its type."""
    found: dict[str, Any] = dict(cast(dict[str, Any], schema)) if isinstance(schema, dict) else {}
    description = description_of(element.get("description"))
    if description is not None:
        found["description"] = description
    if element.get("deprecated") is True:
        found["deprecated"] = True
    example = element.get("example")
    is_scalar = isinstance(example, str | int | float) and 0 < len(str(example)) <= MAX_EXAMPLE
    if is_scalar and not found.keys() & {"examples", "enum", "const", "default"}:
        found["examples"] = [example]
    return found
