"""`resources/list`, `resources/templates/list` and `resources/read`."""

import base64
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from holdfast.core.errors import NotFound, TooLarge
from holdfast.core.text import render
from holdfast.execution.outcomes import plain_of
from holdfast.gateway.builtin.knowledge import documents_of
from holdfast.gateway.builtin.resources import MARKDOWN, SKILL, skills_of
from holdfast.gateway.mcp.answers_of_servers import check_weight, objects_of
from holdfast.gateway.mcp.pages import PAGE, after_of, cursor_of
from holdfast.gateway.mcp.requests import Handler, McpRequest, Result
from holdfast.knowledge import Document
from holdfast.knowledge.document_uri import document_uri
from holdfast.mcp.content import ResourceContents
from holdfast.mcp.protocol import NO_RESOURCE, McpError
from holdfast.skills.resource import McpResource
from holdfast.skills.run import Run
from holdfast.skills.sources.mcp import with_scheme
from holdfast.skills.uri_templates import UriTemplate

TEXT = "text/plain"
BYTES = "application/octet-stream"
JSON = "application/json"
DOCUMENTS = "\x00"  # the start of a cursor among documents: no name of a skill has this character
MOST_DOCUMENTS = 1000

_SKILLS = UriTemplate(SKILL)


async def list_resources(request: McpRequest) -> Result:
    """List the resources with a fixed address, the skills that the caller may read, by name, then the newest documents.

    At most `MOST_DOCUMENTS` are listed: `list_documents` has all.
    """
    after = after_of(request)
    run = await request.gateway.run_for(request.caller)
    if after is not None and after.startswith(DOCUMENTS):
        listed, _, cursor = after.removeprefix(DOCUMENTS).partition(" ")
        return await _documents(request, run, int(listed) if listed.isdecimal() else MOST_DOCUMENTS, cursor or None)
    found: list[dict[str, Any]] = []
    if after is None:
        found = [_to_mcp(each) for each in await request.gateway.offerings.resources() if each.is_fixed]
        found += [dict(each) for source in await request.gateway.sources(request.caller) for each in source.resources]
    skills = await skills_of(request.gateway.engine, run, limit=PAGE + 1, after=after)
    found += [_skill(name, description) for name, description in skills[:PAGE]]
    if len(skills) > PAGE:
        return {"resources": found, "nextCursor": cursor_of(skills[PAGE - 1][0])}
    documents = await _documents(request, run, 0, None)
    return {**documents, "resources": [*found, *documents["resources"]]}


async def _documents(request: McpRequest, run: Run, listed: int, cursor: str | None) -> Result:
    """Return a page of documents; `listed` are on the pages before."""
    room = min(PAGE, MOST_DOCUMENTS - listed)
    if room <= 0:
        return {"resources": []}
    found, next = await documents_of(request.gateway.engine, run, limit=room, cursor=cursor)
    listed += len(found)
    has_more = next is not None and listed < MOST_DOCUMENTS
    more = {"nextCursor": cursor_of(f"{DOCUMENTS}{listed} {next}")} if has_more else {}
    return {"resources": list(map(_document, found)), **more}


async def list_templates(request: McpRequest) -> Result:
    """List the resource templates."""
    resources = await request.gateway.offerings.resources()
    found = [_to_mcp(each) for each in resources if not each.is_fixed]
    found += [dict(each) for source in await request.gateway.sources(request.caller) for each in source.templates]
    return {"resourceTemplates": found}


async def read_resource(request: McpRequest) -> Result:
    """Return the contents of a resource."""
    uri = request.text("uri")
    return await request.gateway.audited(request.caller, "resource.read", uri, lambda: _read(request, uri))


async def _read(request: McpRequest, uri: str) -> Result:
    offerings = request.gateway.offerings
    found = await offerings.find(uri)
    if found is None:
        return await _read_of_source(request, uri)
    resource, values = found
    run = await request.gateway.run_for(request.caller, request.client)
    try:
        given = await offerings.call(f"the resource {resource.name}", lambda: resource.read(run, values))
    except NotFound:
        raise _unknown(uri) from None
    return {"contents": _contents(uri, resource, given, request.gateway.engine.config.gateway.max_result_bytes)}


async def _read_of_source(request: McpRequest, uri: str) -> Result:
    """Return the contents of a resource of another MCP server."""
    for source in await request.gateway.sources(request.caller):
        address = source.address_there(uri)
        if address is None:
            continue
        run = await request.gateway.run_for(request.caller, request.client)
        found = await request.gateway.engine.mcp.request(source.backend, "resources/read", {"uri": address}, run)
        contents = [with_scheme(each, source.backend) for each in objects_of(found.get("contents"))]
        most = request.gateway.engine.config.gateway.max_result_bytes
        check_weight(f"the resource {uri:.200}", contents, most)
        return {**found, "contents": contents}
    raise _unknown(uri)


def _unknown(uri: str) -> McpError:
    return McpError(NO_RESOURCE, f"there is no resource {uri:.200}", {"uri": uri})


def _to_mcp(resource: McpResource) -> dict[str, Any]:
    """Return a resource in the format of MCP, without empty fields."""
    address = "uri" if resource.is_fixed else "uriTemplate"
    fields = {
        address: resource.uri,
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mimeType": resource.mime_type,
    }
    return {name: value for name, value in fields.items() if value}


def _skill(name: str, description: str) -> dict[str, Any]:
    fields = {"uri": _SKILLS.expand({"name": name}), "name": name, "mimeType": MARKDOWN}
    return {**fields, "description": description} if description else fields


def _document(document: Document) -> dict[str, Any]:
    fields = {
        "uri": document_uri(document.collection, document.name),
        "name": document.name,
        "title": document.title,
        "mimeType": MARKDOWN,
    }
    return {name: value for name, value in fields.items() if value}


def _contents(uri: str, resource: McpResource, given: object, most: int) -> list[dict[str, Any]]:
    parts = cast(Sequence[object], given) if _are_contents(given) else [given]
    contents = [_content(uri, resource, part) for part in parts]
    size = sum(len(each.text or each.blob or "") for each in contents)
    if size > most:
        raise TooLarge(
            f"the resource {uri:.200} is too large",
            why=f"it has {size} characters, at most {most} are given",
            limit=most,
        )
    return [msgspec.to_builtins(each) for each in contents]


def _are_contents(given: object) -> bool:
    """Whether a function returned several contents, and not one value that is a list."""
    kinds = (ResourceContents, str, bytes)
    return isinstance(given, list | tuple) and all(isinstance(each, kinds) for each in cast(Iterable[object], given))


def _content(uri: str, resource: McpResource, given: object) -> ResourceContents:
    match given:
        case ResourceContents():
            return given
        case str():
            return ResourceContents(uri, resource.mime_type or TEXT, text=given)
        case bytes():
            return ResourceContents(uri, resource.mime_type or BYTES, blob=base64.b64encode(given).decode())
        case _:
            return ResourceContents(uri, resource.mime_type or JSON, text=render(plain_of(given)).decode())


METHODS: dict[str, Handler] = {
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
}
