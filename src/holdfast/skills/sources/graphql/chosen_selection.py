"""Checks selections that people and models write, by the types of a schema, and prints them anew.

A selection has fields with constant arguments, aliases and inline fragments. It has neither variables, directives nor
named fragments. A connection without `first` and `last` gets `first`.
"""

from typing import TYPE_CHECKING, Any, cast

from holdfast.core.errors import InvalidInput
from holdfast.skills.sources.graphql.schema import OutputField, OutputType, OutputTypes

if TYPE_CHECKING:
    from graphql import language

MAX_CHARACTERS = 10_000
MAX_TOKENS = 5000
MAX_FIELDS = 500
MAX_LISTED = 60  # names of fields in an error
ITEMS = 5  # of a connection whose size nobody says


def check_selection(text: str, type: str, types: OutputTypes, *, deepest: int, argument: str = "fields") -> str:
    """Return the selection of a type, printed anew. An InvalidInput says which fields there are instead."""
    if len(text) > MAX_CHARACTERS:
        raise _error(argument, f"it has {len(text):,} characters", f"Use at most {MAX_CHARACTERS:,}.")
    return _Check(types, deepest, argument).selections(_parse(text, argument), type, 1)


def _parse(text: str, argument: str) -> "language.SelectionSetNode":
    from graphql.error import GraphQLError
    from graphql.language import OperationDefinitionNode, parse

    whole = text if text.lstrip().startswith("{") else f"{{ {text} }}"
    try:
        document = parse(whole, no_location=True, max_tokens=MAX_TOKENS)
    except (GraphQLError, RecursionError) as error:
        why = " ".join(str(getattr(error, "message", "it is nested too deeply")).split())[:200]
        raise _error(argument, f"it cannot be parsed: {why}", "Write it like { id owner { name } }.") from None
    first = document.definitions[0]
    if len(document.definitions) > 1 or not isinstance(first, OperationDefinitionNode):
        raise _error(argument, "it is more than one selection", "Write it like { id owner { name } }.")
    return first.selection_set


class _Check:
    """Checks one selection, and counts its fields."""

    def __init__(self, types: OutputTypes, deepest: int, argument: str) -> None:
        self._types = types
        self._deepest = deepest
        self._argument = argument
        self._fields = 0

    def selections(self, node: "language.SelectionSetNode", type: str, level: int) -> str:
        """Return the text of a selection set on a type."""
        from graphql.language import FieldNode, InlineFragmentNode

        if level > self._deepest:
            raise self._error(f"it is deeper than {self._deepest} levels", "Ask for less at a time.")
        if not node.selections:
            raise self._error(f"it asks for nothing of `{type}`", self._fields_of(type))
        parts: list[str] = []
        for each in node.selections:
            self._fields += 1
            if self._fields > MAX_FIELDS:
                raise self._error(f"it has more than {MAX_FIELDS} fields", "Ask for less at a time.")
            if each.directives:
                raise self._error("it has a directive", "Leave it out.")
            if isinstance(each, FieldNode):
                parts.append(self._field(each, type, level))
            elif isinstance(each, InlineFragmentNode):
                parts.append(self._fragment(each, type, level))
            else:
                raise self._error("it has a named fragment", "Write the fields themselves, or `... on Type { … }`.")
        return f"{{ {' '.join(parts)} }}"

    def _field(self, node: "language.FieldNode", type: str, level: int) -> str:
        name = node.name.value
        field = self._types[type].field(name)
        if field is None:
            raise self._error(f"`{type}` has no field `{name[:100]}`", self._fields_of(type))
        head = name if node.alias is None else f"{node.alias.value}: {name}"
        head += self._arguments(node, field, f"`{type}.{name}`")
        inner, below = node.selection_set, field.named
        if below not in self._types:
            if inner is not None:
                raise self._error(f"`{type}.{name}` has no fields", f"Write `{name}` alone.")
            return head
        if inner is None:
            raise self._error(f"`{type}.{name}` is an object", f"Say which of its fields. {self._fields_of(below)}")
        return f"{head} {self.selections(inner, below, level + 1)}"

    def _fragment(self, node: "language.InlineFragmentNode", type: str, level: int) -> str:
        name = type if node.type_condition is None else node.type_condition.name.value
        if name not in self._types or not self._objects(name) & self._objects(type):
            some = ", ".join(sorted(self._objects(type))[:MAX_LISTED])
            raise self._error(f"`{type}` can be no `{name[:100]}`", f"It can be: {some}.")
        return f"... on {name} {self.selections(node.selection_set, name, level)}"

    def _arguments(self, node: "language.FieldNode", field: OutputField, place: str) -> str:
        from graphql.language import print_ast

        parts: dict[str, str] = {}
        for each in node.arguments or ():
            name = each.name.value
            if name not in field.arguments:
                known = ", ".join(f"{known}: {kind}" for known, kind in field.arguments.items()) or "none"
                raise self._error(f"{place} has no argument `{name[:100]}`", f"Its arguments: {known[:500]}.")
            if name in parts:
                raise self._error(f"{place} has the argument `{name}` twice", "Leave one out.")
            if _has_variable(each.value):
                raise self._error(f"the argument `{name}` of {place} is a variable", "Write its value.")
            parts[name] = print_ast(each.value)
        connection = self._types.get(field.named, OutputType()).items is not None
        if connection and field.takes_size and not parts.keys() & {"first", "last"}:
            parts["first"] = str(ITEMS)
        missing = [name for name in field.required if name not in parts]
        if missing:
            kinds = ", ".join(f"{name}: {field.arguments[name]}" for name in missing)
            raise self._error(f"{place} lacks arguments", f"Give it {kinds[:500]}.")
        return f"({', '.join(f'{name}: {value}' for name, value in parts.items())})" if parts else ""

    def _objects(self, name: str) -> set[str]:
        type = self._types[name]
        return {*type.members} if type.is_abstract else {name}

    def _fields_of(self, type: str) -> str:
        found = self._types[type]
        names = [
            f"{name} {{ … }}" if each.named in self._types else name
            for name, each in found.fields.items()
            if not each.deprecated
        ]
        names += [f"... on {name} {{ … }}" for name in found.members] if not names else []
        more = len(names) - MAX_LISTED
        return f"Fields of `{type}`: {', '.join(names[:MAX_LISTED])}{f' and {more} more' if more > 0 else ''}."

    def _error(self, why: str, next: str) -> InvalidInput:
        return _error(self._argument, why, next)


def _has_variable(value: Any) -> bool:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        match each.kind:
            case "variable":
                return True
            case "list_value":
                waiting += cast(list[Any], each.values)
            case "object_value":
                waiting += [one.value for one in each.fields]
            case _:
                pass
    return False


def _error(argument: str, why: str, next: str) -> InvalidInput:
    return InvalidInput(f"the selection in `{argument}` is wrong", why=why, next=next)
