"""Imports OpenAPI and Swagger documents: one tool per chosen operation."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from holdfast.skills.request import RequestTemplate
from holdfast.skills.sources.openapi.addresses import address, swagger_servers
from holdfast.skills.sources.openapi.arguments import OperationArguments
from holdfast.skills.sources.openapi.bodies import take_body
from holdfast.skills.sources.openapi.documents import OpenApiDocument
from holdfast.skills.sources.openapi.keywords import compile_schema, short
from holdfast.skills.sources.openapi.names import tool_names
from holdfast.skills.sources.openapi.operation_choice import MARK, UNREADABLE, OperationKey, chooser
from holdfast.skills.sources.openapi.parameters import list_parameters, take_parameters
from holdfast.skills.sources.openapi.pruning import Pruning
from holdfast.skills.sources.openapi.references import References, UnusablePart
from holdfast.skills.sources.openapi.schemas import Schemas
from holdfast.skills.sources.openapi.security import Security
from holdfast.skills.sources.openapi.swagger import upgrade
from holdfast.skills.sources.source import Choice, ImportedDocument, ImportedTool, Skipped, check_operations
from holdfast.skills.tool import Access, Tool

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
READING = frozenset({"GET", "HEAD", "QUERY"})
IDEMPOTENT = READING | {"PUT", "DELETE", "OPTIONS"}
UNSENT = frozenset({"TRACE", "CONNECT"})  # methods for the connection
MAX_DESCRIPTION = 4000  # characters
SHORT_DESCRIPTION = 1000
MAX_NOTES = 20


@dataclass(frozen=True, slots=True)
class DocumentOperation:
    """An operation, the entry of its path, and its place in the document."""

    method: str
    path: str
    definition: dict[str, Any]
    item: dict[str, Any]
    place: str

    @property
    def choice_key(self) -> OperationKey:
        """The properties by which it is chosen."""
        id, tags = self.definition.get("operationId"), self.definition.get("tags")
        tag_names = [tag for tag in cast(list[Any], tags if isinstance(tags, list) else []) if isinstance(tag, str)]
        id = id if isinstance(id, str) else ""
        return OperationKey(
            self.method, self.path, id, tuple(tag_names), self.definition.get(MARK), self.item.get(MARK)
        )


def import_document(document: OpenApiDocument, choice: Choice, *, base_url: str | None = None) -> ImportedDocument:
    """Return the chosen tools of a document. Operations that cannot be a tool are skipped, without an error."""
    importer = _Importer(document, base_url)
    skipped: list[Skipped] = []
    operations = list(importer.operations(skipped))
    check_operations(len(operations) + len(skipped))
    names = tool_names((operation.method, operation.path) for operation in operations)
    chosen = chooser(choice, document.root)
    tools: dict[str, ImportedTool] = {}
    for operation in operations:
        choice_key = operation.choice_key
        refusal = chosen.refusal(choice_key)
        if refusal is not None:
            skipped.append(Skipped(choice_key.key, operation.place, refusal, chosen=refusal == UNREADABLE))
            continue
        name = names[choice_key.key]
        try:
            if name in tools:
                raise UnusablePart(operation.place, f"{tools[name].operation} already has its name {name}")
            tools[name] = importer.tool(operation, name)
        except UnusablePart as error:
            skipped.append(Skipped(choice_key.key, error.path or operation.place, error.reason))
    return ImportedDocument(document.title, document.label, tuple(tools.values()), (*skipped, *chosen.unmet()))


class _Importer:
    """Converts the operations of one document to tools."""

    def __init__(self, document: OpenApiDocument, base_url: str | None) -> None:
        self._document = document
        self._base_url = base_url
        self._is_swagger = document.version == "2.0"
        self._references = References(document.root)
        self._schemas = Schemas(self._references, document.version)
        self._pruning = Pruning(self._schemas)
        self._security = Security(document.root, self._references, swagger=self._is_swagger)

    def operations(self, skipped: list[Skipped]) -> Iterator[DocumentOperation]:
        """Yield the operations in the document's order, and add invalid ones to `skipped`."""
        paths: dict[str, Any] = self._document.root.get("paths") or {}
        for path, entry in paths.items():
            if path.startswith("x-") or entry is None:
                continue
            place = f"paths.{path}"
            try:
                item = self._item(entry, place)
            except UnusablePart as error:
                skipped.append(Skipped(path, error.path, error.reason))
                continue
            others: Any = item.get("additionalOperations")
            others = cast(dict[str, Any], others if isinstance(others, dict) else {})
            found = [(method, item[method], f"{place}.{method}") for method in METHODS if method in item]
            found += [(method, other, f"{place}.additionalOperations.{method}") for method, other in others.items()]
            for method, operation, where in found:
                if isinstance(operation, dict):
                    yield DocumentOperation(method.upper(), path, cast(dict[str, Any], operation), item, where)
                else:
                    skipped.append(Skipped(f"{method.upper()} {path}", where, "it is not an object"))

    def _item(self, entry: Any, place: str) -> dict[str, Any]:
        item, _ = self._references.follow(entry, place)
        return {**item, **{key: value for key, value in entry.items() if key != "$ref"}} if item is not entry else item

    def tool(self, operation: DocumentOperation, name: str) -> ImportedTool:
        """Return the tool of an operation. Raise UnusablePart if it cannot be one."""
        definition, place, method = operation.definition, operation.place, operation.method
        if method in UNSENT or not (method.isascii() and method.isalpha() and len(method) <= 10):
            raise UnusablePart(place, f"tools cannot use the HTTP method {method[:20]}")
        parameters = list_parameters(operation.item, definition, place, self._references)
        body: dict[str, Any] | None = None
        arguments = OperationArguments()
        if self._is_swagger:
            parameters, body = upgrade(parameters, self._document.root, definition, arguments.notes)
        elif definition.get("requestBody") is not None:
            body, _ = self._references.follow(definition["requestBody"], f"{place}.requestBody")
        security, notes = self._security.alternatives(definition, place)
        arguments.notes += notes
        schemes = [scheme for alternative in security for scheme in alternative]
        request = RequestTemplate(
            method,
            self._url(operation, arguments.notes),
            take_parameters(parameters, operation.path, place, schemes, self._schemas, arguments),
            take_body(body, f"{place}.requestBody", self._schemas, arguments) if body is not None else None,
            security,
        )
        pruned = self._pruning.prune(arguments.fragment(), place)
        try:
            compile_schema(pruned.schema)
        except ValueError as error:
            why = " ".join(str(error).partition("\n")[0].split())
            raise UnusablePart(place, f"the schema of its arguments is invalid: {short(why, 300)}") from None
        access: Access = "read" if method in READING else "write"
        tool = Tool(
            name,
            _description(operation),
            pruned.schema,
            kind="rest",
            access=access,
            idempotent=method in IDEMPOTENT,
            request=request,
        )
        choice_key = operation.choice_key
        return ImportedTool(
            tool,
            choice_key.key,
            choice_key.id or _line(definition.get("summary")),
            definition,
            _limit_notes(pruned.notes),
        )

    def _url(self, operation: DocumentOperation, notes: list[str]) -> str:
        root = self._document.root
        if self._is_swagger:
            servers: list[tuple[Any, str]] = [(swagger_servers(root, operation.definition), "host")]
        else:
            servers = [
                (operation.definition.get("servers"), f"{operation.place}.servers"),
                (operation.item.get("servers"), f"paths.{operation.path}.servers"),
                (root.get("servers"), "servers"),
            ]
        location, base_url = self._document.location, self._base_url
        return address(servers, operation.path, location=location, base_url=base_url, notes=notes)


def _description(operation: DocumentOperation) -> str:
    summary, description = (_text(operation.definition.get(key)) for key in ("summary", "description"))
    if summary and summary.rstrip(".").lower() not in description.lower():
        both = f"{summary}\n\n{description}".strip()
        description = both if len(both) <= SHORT_DESCRIPTION else description or summary
    return short(description or summary or f"{operation.method} {operation.path}", MAX_DESCRIPTION)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _line(value: Any) -> str:
    return " ".join(short(_text(value), 200).split())


def _limit_notes(notes: list[str]) -> tuple[str, ...]:
    unique = list(dict.fromkeys(notes))
    more = len(unique) - MAX_NOTES
    return (*unique[:MAX_NOTES], f"and {more} more") if more > 0 else tuple(unique)
