"""Imports OpenRPC documents: one tool per chosen method of a JSON-RPC service. Pure.

Arguments are the params of the method. A method of the form `host/service/action/version` keeps its name for JSON-RPC
callers of the gateway, too.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urljoin

from holdfast.core.errors import InvalidInput
from holdfast.skills.request import RequestTemplate, RpcMethod
from holdfast.skills.service import HASH, MAX_NAME, method_error, name_of
from holdfast.skills.sources.openapi.arguments import OperationArguments, with_description
from holdfast.skills.sources.openapi.documents import document_error
from holdfast.skills.sources.openapi.keywords import compile_schema, short
from holdfast.skills.sources.openapi.operation_choice import MARK, UNREADABLE, OperationKey, chooser
from holdfast.skills.sources.openapi.pruning import Pruning
from holdfast.skills.sources.openapi.references import References, UnusablePart
from holdfast.skills.sources.openapi.schemas import Schemas
from holdfast.skills.sources.source import Choice, ImportedDocument, ImportedTool, Skipped, check_operations
from holdfast.skills.tool import Tool

MAX_DESCRIPTION = 4000  # characters
DISCOVER = "rpc.discover"  # returns the document of a service; it is not one of its actions


def import_openrpc(
    root: Mapping[str, Any], choice: Choice, *, location: str = "", base_url: str | None = None
) -> ImportedDocument:
    """Return the chosen methods of a document as tools. Methods that cannot be a tool are skipped, with the reason."""
    methods: object = root.get("methods")
    if not isinstance(methods, list):
        raise document_error("methods", "it is not a list", "Pass an OpenRPC document.")
    check_operations(len(cast(list[Any], methods)))
    importer = _MethodImporter(dict(root), _endpoint(root, location, base_url))
    chosen = chooser(choice, root)
    tools: dict[str, ImportedTool] = {}
    skipped: list[Skipped] = []
    seen: set[str] = set()
    for number, entry in enumerate(cast(list[Any], methods)):
        place = f"methods.{number}"
        try:
            definition, _ = importer.references.follow(entry, place)
            name = definition.get("name")
            if not isinstance(name, str) or not name:
                raise UnusablePart(place, "it has no name")
            if name.startswith("rpc."):  # reserved by JSON-RPC
                continue
            key = OperationKey("", name, name, _tag_names(definition), definition.get(MARK), None)
            refusal = chosen.refusal(key)
            if refusal is not None:
                skipped.append(Skipped(name, place, refusal, chosen=refusal == UNREADABLE))
                continue
            if name in seen:
                raise UnusablePart(place, "the document has this method twice")
            seen.add(name)
            tool_name = name_of(name)
            if tool_name in tools:
                digest = hashlib.sha256(name.encode()).hexdigest()[:HASH]
                tool_name = f"{tool_name[: MAX_NAME - HASH - 1]}_{digest}"
            tools[tool_name] = importer.tool(definition, name, tool_name, place)
        except UnusablePart as error:
            skipped.append(Skipped(_name_in(entry) or place, error.path or place, error.reason))
    info: object = root.get("info")
    about = cast(dict[str, Any], info) if isinstance(info, dict) else {}
    title, version = (str(about.get(key) or "") for key in ("title", "version"))
    return ImportedDocument(title, version, tuple(tools.values()), (*skipped, *chosen.unmet()))


class _MethodImporter:
    """Converts the methods of one document to tools that call `endpoint`."""

    def __init__(self, root: dict[str, Any], endpoint: str) -> None:
        self.references = References(root)
        self._endpoint = endpoint
        schemas = Schemas(self.references, "3.1")  # JSON Schema, as OpenAPI 3.1 has it
        self._schemas = schemas
        self._pruning = Pruning(schemas)

    def tool(self, definition: Mapping[str, Any], method: str, name: str, place: str) -> ImportedTool:
        """Return the tool of a method. Raise UnusablePart if it cannot be one."""
        arguments = OperationArguments()
        positions: list[str] = []
        given: object = definition.get("params") or []
        if not isinstance(given, list):
            raise UnusablePart(f"{place}.params", "it is not a list")
        for number, entry in enumerate(cast(list[Any], given)):
            path = f"{place}.params.{number}"
            param, path = self.references.follow(entry, path)
            if not isinstance(param.get("name"), str):
                raise UnusablePart(path, "it has no name")
            fragment = self._schemas.fragment(param.get("schema", {}), f"{path}.schema")
            arguments.notes += fragment.notes
            schema = with_description(fragment.schema, param)
            argument = arguments.add(param["name"], "params", schema, required=param.get("required") is True)
            if argument != param["name"]:
                raise UnusablePart(path, f"models do not accept the name {param['name'][:100]!r} of a param")
            positions.append(argument)
        pruned = self._pruning.prune(arguments.fragment(), place)
        try:
            compile_schema(pruned.schema)
        except ValueError as error:
            why = " ".join(str(error).partition("\n")[0].split())
            raise UnusablePart(place, f"the schema of its params is invalid: {short(why, 300)}") from None
        by_position = definition.get("paramStructure") == "by-position"
        request = RequestTemplate(
            "POST", self._endpoint, rpc=RpcMethod(method, tuple(positions) if by_position else ())
        )
        tool = Tool(
            name,
            _description(definition, method),
            pruned.schema,
            kind="jsonrpc",
            request=request,
            service=method if method_error(method) is None else None,
        )
        return ImportedTool(tool, method, _line(definition.get("summary")), definition, tuple(pruned.notes))


def _endpoint(root: Mapping[str, Any], location: str, base_url: str | None) -> str:
    """Return the address that takes the calls: the given one, the document's first server, or where it was read."""
    if base_url is not None:
        return base_url
    servers: object = root.get("servers")
    entries = cast(list[Any], servers) if isinstance(servers, list) else []
    urls = [cast(dict[str, Any], each).get("url") for each in entries if isinstance(each, dict)]
    url = next((each for each in urls if isinstance(each, str) and each and "{" not in each), "")
    endpoint = urljoin(location, url) if url else location
    if not endpoint.startswith(("http://", "https://")):
        raise InvalidInput(
            "the document does not have the address of its service",
            why="none of its servers has an HTTP URL",
            next="Pass the address of the service as the base URL: --base-url https://…",
            path="servers",
        )
    return endpoint


def _tag_names(definition: Mapping[str, Any]) -> tuple[str, ...]:
    tags: object = definition.get("tags")
    entries = cast(list[Any], tags) if isinstance(tags, list) else []
    names = [cast(dict[str, Any], tag).get("name") if isinstance(tag, dict) else tag for tag in entries]
    return tuple(name for name in names if isinstance(name, str))


def _description(definition: Mapping[str, Any], method: str) -> str:
    summary, description = (str(definition.get(key) or "").strip() for key in ("summary", "description"))
    if summary and summary.rstrip(".").lower() not in description.lower():
        description = f"{summary}\n\n{description}".strip()
    return short(description or f"The method {method}", MAX_DESCRIPTION)


def _line(value: object) -> str:
    return " ".join(short(value, 200).split()) if isinstance(value, str) else ""


def _name_in(entry: object) -> str:
    name = cast(dict[str, Any], entry).get("name") if isinstance(entry, dict) else None
    return name[:200] if isinstance(name, str) else ""
