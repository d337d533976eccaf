"""Fetches the documents of sources: a file on the web, or what a service tells about itself."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any, cast

from holdfast.core.errors import HoldfastError, InvalidInput, TimedOut, TooLarge, Unavailable
from holdfast.core.text import render
from holdfast.execution.documents import TIMEOUT, Documents
from holdfast.execution.mcp.discovery import describe
from holdfast.execution.mcp.http import IN_DOUBT
from holdfast.execution.mcp.runner import McpBackends, with_renewal
from holdfast.execution.rest.runner import HttpRunner, redact_error
from holdfast.execution.source_files import SourceFiles
from holdfast.mcp.protocol import McpError
from holdfast.skills.request import Backend, GraphqlOperation, RequestTemplate, RpcMethod
from holdfast.skills.run import Run
from holdfast.skills.sources.graphql.introspection import introspection_query
from holdfast.skills.sources.openrpc import DISCOVER
from holdfast.skills.sources.settings import asks_service, file_of
from holdfast.skills.sources.source import FetchedDocument, SourceKind, Validators
from holdfast.skills.tool import Tool

UNREADABLE = "If it cannot read its own files, ask an operator to add their folder to the setting execution.folders."
NOBODY = Run(None, None, None, None, None, DISCOVER, DISCOVER)
UNCHANGED = FetchedDocument(None)


class SourceDocuments:
    """Fetches documents for the sources of one tenant.

    `rpc` calls JSON-RPC services, `graphql` GraphQL services, and `mcp` MCP servers, with the tenant's secrets. `files`
    are those in the folder of the settings.
    """

    def __init__(
        self, documents: Documents, rpc: HttpRunner, graphql: HttpRunner, mcp: McpBackends, files: SourceFiles
    ) -> None:
        self._documents = documents
        self._rpc = rpc
        self._graphql = graphql
        self._mcp = mcp
        self._files = files

    async def fetch(self, kind: SourceKind | None, location: str, backend: Backend, limit: int, by: str = "") -> bytes:
        """Return the document of a back end, for whoever adds or changes its source: errors tell the reason.

        A program that is an MCP server is started anew. A service that needs consent is asked with that of the user
        `by`. Raise TooLarge if the document has more than `limit` bytes.
        """
        run = replace(NOBODY, user=by or None)
        try:
            if kind == "mcp":
                return await self._describe(backend, limit, run, restart=True)
            return await self._fetch(kind, location, backend, limit, run)
        except (Unavailable, TimedOut) as error:  # of these, callers get only what failed
            if error.why:
                error.what, error.why = f"{error.what}: {error.why}", ""
            raise

    async def fetch_if_changed(
        self, kind: SourceKind, location: str, backend: Backend, limit: int, known: Validators
    ) -> FetchedDocument:
        """Return the document of a back end, unless the server says that it is still the version `known`.

        A service that needs the consent of users is not asked: nobody has agreed to requests that no user makes.
        """
        needs_consent = backend.identity is not None and backend.identity.kind == "user"
        if needs_consent and (kind == "mcp" or asks_service(kind, location, backend)):
            return UNCHANGED
        if kind == "mcp":
            return FetchedDocument(await self._describe(backend, limit))
        if kind != "openapi" or file_of(location):
            return FetchedDocument(await self._fetch(kind, location, backend, limit))
        return await self._documents.fetch_if_changed(location, limit, known)

    async def _fetch(
        self, kind: SourceKind | None, location: str, backend: Backend, limit: int, run: Run = NOBODY
    ) -> bytes:
        if file := file_of(location):
            return await self._files.read(file, limit)
        if asks_service(kind, location, backend):
            ask = self._discover if kind == "jsonrpc" else self._introspect
            return await ask(location, backend, limit, run)
        return await self._documents.fetch(location, limit)

    async def _describe(self, backend: Backend, limit: int, run: Run = NOBODY, *, restart: bool = False) -> bytes:
        """Ask an MCP server what it has."""
        upstream, redaction = await self._mcp.upstream(backend, run if run.user else None)
        if restart:
            await self._mcp.servers.restart(upstream)
        try:
            async with asyncio.timeout(TIMEOUT):
                return await with_renewal(upstream, partial(describe, self._mcp.servers, limit=limit))
        except McpError as error:
            raise Unavailable(
                f"{upstream.name} does not list what it has",
                why=redaction.redact(f"{error.message} (code {error.code})"),
                next="Try again later, or look into the logs of that server.",
            ) from None
        except TimeoutError:
            next = "Try again later."
            raise TimedOut(f"{upstream.name} did not respond within {TIMEOUT:g} seconds", next=next) from None
        except HoldfastError as error:
            if error.next == IN_DOUBT:  # to list what a server has changes nothing
                error.next = UNREADABLE if upstream.program is not None else "Try again later."
            raise redact_error(error, redaction) from None

    async def _introspect(self, endpoint: str, backend: Backend, limit: int, run: Run) -> bytes:
        """Ask a GraphQL service for its schema."""
        operation = GraphqlOperation(introspection_query(), "IntrospectionQuery")
        request = RequestTemplate("POST", endpoint, graphql=operation)
        tool = Tool("introspection", "", {}, "graphql", "read", idempotent=True, request=request, backend=backend)
        result = await self._graphql.run(tool, {}, run, timeout=TIMEOUT)
        text = result.value if isinstance(result.value, str) else render(result.value).decode()
        if result.failed or '"__schema"' not in text:
            raise InvalidInput(
                f"the service at {endpoint:.200} does not describe its schema",
                why=f"the introspection query returned {text[:500]}",
                next="Pass its schema as a file, in SDL, and the address of the service as the base URL.",
            )
        document = text.encode()
        if len(document) > limit:
            raise TooLarge("the document is too large", why=f"it has more than {limit:,} bytes", limit=limit)
        return document

    async def _discover(self, endpoint: str, backend: Backend, limit: int, run: Run) -> bytes:
        """Ask a JSON-RPC service for its OpenRPC document."""
        request = RequestTemplate("POST", endpoint, rpc=RpcMethod(DISCOVER))
        tool = Tool(DISCOVER, "", {}, "jsonrpc", "read", idempotent=True, request=request, backend=backend)
        result = await self._rpc.run(tool, {}, run, timeout=TIMEOUT)
        found: Any = result.value
        if result.failed or not isinstance(found, dict):
            why = render(found).decode(errors="replace")[:500]
            raise InvalidInput(
                f"the service at {endpoint:.200} does not describe its methods",
                why=f"{DISCOVER} returned {why}",
                next="Pass its OpenRPC document as a file, and the address of the service as the base URL.",
            )
        document = render(cast(dict[str, Any], found))
        if len(document) > limit:
            raise TooLarge("the document is too large", why=f"it has more than {limit:,} bytes", limit=limit)
        return document
