"""The model of a GraphQL schema, as far as tools need it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

OperationKind = Literal["query", "mutation"]
TYPENAME = "__typename"  # a field of every type

_NAME = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,199}")
_WRAPPED = re.compile(r"[\[\]!]")


class OutputField(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A field of a type. `arguments` have their types; one that may be omitted has no `!` at the end."""

    type: str
    arguments: dict[str, str] = {}
    deprecated: bool = False

    @property
    def named(self) -> str:
        """Its type without lists and `!`."""
        return named(self.type)

    @property
    def required(self) -> list[str]:
        """The names of the arguments that have to be given."""
        return [name for name, kind in self.arguments.items() if kind.endswith("!")]

    @property
    def takes_size(self) -> bool:
        """Whether `first` is the size of a page: other fields have arguments of that name, too."""
        return self.arguments.get("first", "").removesuffix("!") == "Int"


class OutputType(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """An object, an interface or a union. `members` are the objects that an interface or a union can be."""

    fields: dict[str, OutputField] = {}
    members: tuple[str, ...] = ()
    is_abstract: bool = False

    def field(self, name: str) -> OutputField | None:
        """Return a field, or None."""
        return OutputField("String!") if name == TYPENAME else self.fields.get(name)

    @property
    def items(self) -> str | None:
        """The field with the items of a connection: `nodes` or `edges`; None: this is no connection."""
        if "pageInfo" not in self.fields:
            return None
        return next((name for name in ("nodes", "edges") if name in self.fields), None)


OutputTypes = Mapping[str, OutputType]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a field, or a field of an input type. `default` is what the service assumes."""

    name: str
    type: str
    description: str = ""
    has_default: bool = False
    default: Any = None
    deprecated: bool = False

    @property
    def is_required(self) -> bool:
        """Whether it has to be given."""
        return self.type.endswith("!") and not self.has_default


@dataclass(frozen=True, slots=True)
class InputType:
    """An input object. `is_one_of`: exactly one of its fields is given."""

    description: str
    fields: tuple[Argument, ...]
    is_one_of: bool = False


@dataclass(frozen=True, slots=True)
class EnumType:
    """An enum, and its values."""

    description: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RootField:
    """A field of the query or the mutation type. `deprecated`: the reason, or None."""

    kind: OperationKind
    name: str
    type: str
    description: str
    arguments: tuple[Argument, ...]
    deprecated: str | None = None

    @property
    def key(self) -> str:
        """What identifies it in its schema."""
        return f"{self.kind} {self.name}"


@dataclass(slots=True)
class GraphqlSchema:
    """A schema. `skipped` are operations that cannot be read, by key, with the reason."""

    operations: list[RootField] = field(default_factory=list[RootField])
    subscriptions: list[str] = field(default_factory=list[str])
    outputs: dict[str, OutputType] = field(default_factory=dict[str, OutputType])
    inputs: dict[str, InputType] = field(default_factory=dict[str, InputType])
    enums: dict[str, EnumType] = field(default_factory=dict[str, EnumType])
    scalars: dict[str, str] = field(default_factory=dict[str, str])  # descriptions
    description: str = ""


def named(type: str) -> str:
    """Return a type without lists and `!`."""
    return _WRAPPED.sub("", type)


def is_name(text: object) -> bool:
    """Whether a text is a name of GraphQL, of at most 200 characters."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def reachable(types: OutputTypes, roots: list[str]) -> dict[str, OutputType]:
    """Return the types that selections on some types can reach."""
    found: dict[str, OutputType] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name not in types:
            continue
        found[name] = each = types[name]
        waiting += [field.named for field in each.fields.values()]
        waiting += each.members
    return found
