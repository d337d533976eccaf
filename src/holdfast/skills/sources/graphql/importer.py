"""Makes tools of the queries and mutations of a GraphQL schema. Pure.

A tool has the name of its field. If a query and a mutation have the same one, both get their kind as a prefix. The
arguments of a call are the variables of its operation, whose text is the same for all calls.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.skills.request import GraphqlOperation, RequestTemplate
from holdfast.skills.sources.graphql.chosen_selection import check_selection
from holdfast.skills.sources.graphql.default_selection import DefaultSelections
from holdfast.skills.sources.graphql.input_schemas import InputSchemas
from holdfast.skills.sources.graphql.introspection import read_introspection
from holdfast.skills.sources.graphql.rules import SelectionRules
from holdfast.skills.sources.graphql.schema import GraphqlSchema, OutputType, RootField, is_name, named, reachable
from holdfast.skills.sources.graphql.sdl import read_sdl
from holdfast.skills.sources.openapi.arguments import OperationArguments
from holdfast.skills.sources.openapi.keywords import compile_schema, short
from holdfast.skills.sources.openapi.operation_choice import OperationKey, chooser
from holdfast.skills.sources.openapi.pruning import Pruning
from holdfast.skills.sources.openapi.references import UnusablePart
from holdfast.skills.sources.source import Choice, ImportedDocument, ImportedTool, Skipped, check_operations
from holdfast.skills.tool import RESERVED, Tool

MAX_DESCRIPTION = 4000  # characters
MAX_NAME = 64
HASH = 6
MAX_SHOWN = 500  # characters of a selection in a description
MAX_ARGUMENTS = 500
MAX_TYPES_BYTES = 16 * 1024 * 1024  # of the types that callers can choose fields of
FIELDS = "fields"  # the argument with the selection of a caller
NOT_CHOSEN = "it was not chosen"
SUBSCRIPTION = "subscriptions are not supported: they do not end with one answer"

_ARGUMENT = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")


def import_graphql(
    source: str | Mapping[str, Any], choice: Choice, endpoint: str, rules: SelectionRules | None = None
) -> ImportedDocument:
    """Return the chosen queries and mutations of a schema as tools: of SDL, or of the answer to an introspection."""
    schema = read_sdl(source) if isinstance(source, str) else read_introspection(source)
    if not endpoint.startswith(("http://", "https://")):
        raise InvalidInput(
            "the document does not have the address of its service",
            why="a GraphQL schema does not contain it",
            next="Pass the address of the service: --graphql https://…",
        )
    check_operations(len(schema.operations) + len(schema.subscriptions))
    importer = _OperationImporter(schema, endpoint, rules or SelectionRules())
    chosen = chooser(choice, {})
    skipped: list[Skipped] = []
    tools: list[ImportedTool] = []
    names = _tool_names(schema.operations)
    seen: set[str] = set()
    for operation in schema.operations:
        key = OperationKey(operation.kind, operation.name, operation.name, (operation.kind,), None, None)
        if chosen.refusal(key) is not None:
            skipped.append(Skipped(operation.key, operation.key, NOT_CHOSEN, chosen=False))
            continue
        try:
            if operation.key in seen:
                raise UnusablePart(operation.key, "the schema has this operation twice")
            seen.add(operation.key)
            tools.append(importer.tool(operation, names[operation.key]))
        except UnusablePart as error:
            skipped.append(Skipped(operation.key, error.path, error.reason))
        except RecursionError:  # one operation must not fail the others
            skipped.append(Skipped(operation.key, operation.key, "its types are nested too deeply"))
    for name in schema.subscriptions:
        key = OperationKey("subscription", name, name, ("subscription",), None, None)
        is_chosen = chosen.refusal(key) is None and not choice.everything
        skipped.append(Skipped(f"subscription {name}", f"subscription {name}", SUBSCRIPTION, chosen=is_chosen))
    skipped += [
        Skipped(name, "", "it has a selection, but the schema has no such operation")
        for name in importer.unmet_overrides()
    ]
    return ImportedDocument(
        short(schema.description, 200), "", tuple(tools), (*skipped, *chosen.unmet()), types=importer.types(tools)
    )


class _OperationImporter:
    """Converts the operations of one schema to tools that call `endpoint`."""

    def __init__(self, schema: GraphqlSchema, endpoint: str, rules: SelectionRules) -> None:
        self._schema = schema
        self._endpoint = endpoint
        self._rules = rules
        self._inputs = InputSchemas(schema)
        self._pruning = Pruning(self._inputs.schemas)
        self._selections = DefaultSelections(schema.outputs, rules)
        self._reached = reachable(schema.outputs, [named(each.type) for each in schema.operations])
        self._offers_fields = len(msgspec.json.encode(self._reached)) <= MAX_TYPES_BYTES

    def unmet_overrides(self) -> list[str]:
        """Return the operations of the rules that the schema does not have."""
        known = {name for each in self._schema.operations for name in (each.name, each.key)}
        return [name for name in self._rules.operations if name not in known]

    def types(self, tools: list[ImportedTool]) -> Mapping[str, Any] | None:
        """Return the types that callers of these tools can choose fields of, as stored."""
        operations = [each.tool.request.graphql for each in tools if each.tool.request is not None]
        roots = [each.type for each in operations if each is not None and each.fields]
        return msgspec.to_builtins(reachable(self._reached, roots))

    def tool(self, operation: RootField, name: str) -> ImportedTool:
        """Return the tool of an operation. Raise UnusablePart if it cannot be one."""
        if not is_name(operation.name) or operation.name.startswith("__"):
            raise UnusablePart(operation.key, "its name is not one that GraphQL accepts")
        arguments, variables = self._arguments(operation)
        selection = self._selection(operation, arguments)
        fields = self._add_fields(operation, arguments, selection) if selection is not None else ""
        pruned = self._pruning.prune(arguments.fragment(), operation.key)
        try:
            compile_schema(pruned.schema)
        except ValueError as error:
            why = " ".join(str(error).partition("\n")[0].split())
            raise UnusablePart(operation.key, f"the schema of its arguments is invalid: {short(why, 300)}") from None
        request = RequestTemplate(
            "POST",
            self._endpoint,
            graphql=GraphqlOperation(
                _document(operation, variables, selection),
                operation.name,
                type=named(operation.type) if fields else "",
                selection=selection or "",
                fields=fields,
                deepest=self._rules.deepest,
                items=self._items(operation, variables),
            ),
        )
        is_query = operation.kind == "query"
        tool = Tool(
            name,
            _description(operation),
            pruned.schema,
            kind="graphql",
            access="read" if is_query else "execute",
            idempotent=is_query,
            request=request,
        )
        raw = {"type": operation.type, "arguments": {each.name: each.type for each in operation.arguments}}
        return ImportedTool(tool, operation.key, operation.name, raw, tuple(dict.fromkeys(pruned.notes)))

    def _arguments(self, operation: RootField) -> tuple[OperationArguments, dict[str, str]]:
        """Return the arguments of an operation, and the types of its variables."""
        arguments, variables = OperationArguments(), dict[str, str]()
        if len(operation.arguments) > MAX_ARGUMENTS:
            raise UnusablePart(operation.key, f"it has more than {MAX_ARGUMENTS} arguments")
        for each in operation.arguments:
            place = f"{operation.key}.{each.name}"
            try:
                if not _ARGUMENT.fullmatch(each.name):
                    raise UnusablePart(place, f"models do not accept the name {each.name[:100]!r} of an argument")
                if each.name in variables:
                    raise UnusablePart(place, "the operation has this argument twice")
                fragment = self._inputs.schemas.fragment(self._inputs.of(each, place), place)
            except UnusablePart as error:
                if each.is_required:
                    raise
                arguments.notes.append(f"{error.path}: left out, {error.reason}")
                continue
            arguments.notes += fragment.notes
            arguments.add(each.name, "variables", fragment.schema, required=each.is_required)
            variables[each.name] = each.type.removesuffix("!") if each.has_default else each.type
        return arguments, variables

    def _selection(self, operation: RootField, arguments: OperationArguments) -> str | None:
        """Return what the operation asks for of its result; None for a scalar."""
        type = named(operation.type)
        schema = self._schema
        rules = self._rules
        if type not in schema.outputs:
            if type in ("Boolean", "Float", "ID", "Int", "String") or type in schema.enums or type in schema.scalars:
                return None
            raise UnusablePart(operation.key, f"the schema has no type `{type[:100]}`")
        text = rules.operations.get(operation.key) or rules.operations.get(operation.name)
        if text is not None:
            try:
                return check_selection(
                    text, type, self._reached, deepest=rules.deepest, argument=f"the settings of {operation.name}"
                )
            except InvalidInput as error:
                raise UnusablePart(operation.key, f"{error.what}: {error.why}. {error.next}") from None
        found = self._selections.of(type)
        if found is None:
            raise UnusablePart(operation.key, f"`{type}` has no fields that can be asked for without arguments")
        if found.is_cut:
            arguments.notes.append(f"{operation.key}: it does not ask for all fields of `{type}`, there are too many")
        return found.text

    def _add_fields(self, operation: RootField, arguments: OperationArguments, selection: str) -> str:
        """Add the argument for a caller's own selection. Return its name."""
        if not self._offers_fields:
            arguments.notes.append(f"{operation.key}: callers cannot choose fields, the schema is too large")
            return ""
        default = selection if len(selection) <= MAX_SHOWN else f"{selection[:MAX_SHOWN].rpartition(' ')[0]} …"
        description = (
            f"Which fields of `{named(operation.type)}` to return, as a GraphQL selection without variables, such as "
            f"`{{ id owner {{ name }} }}`. A wrong field is answered with those that exist. Default: `{default}`"
        )
        return arguments.add(FIELDS, "selection", {"type": "string", "description": description}, required=False)

    def _items(self, operation: RootField, variables: Mapping[str, str]) -> int:
        """Return the page size that is sent for a connection if the caller gives none; 0: none."""
        type = self._schema.outputs.get(named(operation.type), OutputType())
        first = next((each for each in operation.arguments if each.name == "first"), None)
        is_paged = type.items is not None and first is not None and not first.has_default
        return self._rules.items if is_paged and variables.get("first") == "Int" else 0


def _tool_names(operations: list[RootField]) -> dict[str, str]:
    """Return the names of tools, by the keys of their operations. They do not depend on the choice."""
    plain = {operation.key: operation for operation in operations}
    shared = Counter(operation.name for operation in plain.values())
    names: dict[str, str] = {}
    for key, operation in plain.items():
        name = operation.name
        if shared[name] > 1 or name in RESERVED:
            name = f"{operation.kind}_{name}"
        if len(name) > MAX_NAME or (name != operation.name and name in shared):
            digest = hashlib.sha256(key.encode()).hexdigest()[:HASH]
            name = f"{name[: MAX_NAME - HASH - 1]}_{digest}"
        names[key] = name
    return names


def _document(operation: RootField, variables: Mapping[str, str], selection: str | None) -> str:
    """Return the text of an operation. Its names and types come from the schema, and are names of GraphQL."""
    declared = ", ".join(f"${name}: {type}" for name, type in variables.items())
    given = ", ".join(f"{name}: ${name}" for name in variables)
    head = f"{operation.kind} {operation.name}{f'({declared})' if declared else ''}"
    return f"{head} {{ {operation.name}{f'({given})' if given else ''} {f'{selection} ' if selection else ''}}}"


def _description(operation: RootField) -> str:
    text = operation.description.strip() or f"The {operation.kind} {operation.name}"
    if operation.deprecated is not None:
        text = f"Deprecated: {short(operation.deprecated, 300)}\n\n{text}"
    return short(text, MAX_DESCRIPTION)
