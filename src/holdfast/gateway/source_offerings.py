"""The prompts and resources of MCP servers that are sources, under the names and addresses that callers use.

They are listed from the registry, so that a list waits for no server. A caller sees those of the sources of which it
sees a tool; an admin sees all.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine
from holdfast.gateway.views import ADMIN, CallerView
from holdfast.postgres.sql import statements
from holdfast.skills.request import Backend, McpServer
from holdfast.skills.sources.mcp import prefix_of, scheme_of, with_scheme
from holdfast.skills.uri_templates import UriTemplate

MAX_LISTED = 1000  # entries of one source in a list

Entry = Mapping[str, Any]

sql = statements(__name__)


@dataclass(frozen=True)
class SourceOffers:
    """What one source offers. `offers` are its lists, as its server wrote them."""

    backend: Backend
    offers: Mapping[str, Sequence[Entry]] = field(repr=False)

    @cached_property
    def prompts(self) -> Mapping[str, Entry]:
        """Its prompts, by the names that callers use."""
        prefix = prefix_of(self.backend.source, self.backend.mcp or McpServer())
        return {
            prefix + each["name"]: {**each, "name": prefix + each["name"]}
            for each in self._entries("prompts")
            if isinstance(each.get("name"), str)
        }

    @cached_property
    def resources(self) -> Sequence[Entry]:
        """Its resources, with the addresses that callers use."""
        return [with_scheme(each, self.backend) for each in self._entries("resources")]

    @cached_property
    def templates(self) -> Sequence[Entry]:
        """Its resource templates, with the addresses that callers use."""
        return [with_scheme(each, self.backend) for each in self._entries("resourceTemplates")]

    def name_there(self, name: str) -> str:
        """Return the name of a prompt on its server."""
        return name.removeprefix(prefix_of(self.backend.source, self.backend.mcp or McpServer()))

    def address_there(self, uri: str) -> str | None:
        """Return an address as its server knows it; None if it is not one of this source."""
        scheme = scheme_of(self.backend)
        if scheme:
            return uri[len(scheme) :] if uri.startswith(scheme) else None
        known = uri in self._addresses or any(each.match(uri) is not None for each in self._patterns)
        return uri if known else None

    @cached_property
    def _addresses(self) -> frozenset[str]:
        texts = [each.get("uri") for each in self.resources] + [each.get("uriTemplate") for each in self.templates]
        return frozenset(text for text in texts if isinstance(text, str))

    @cached_property
    def _patterns(self) -> Sequence[UriTemplate]:
        found: list[UriTemplate] = []
        for each in self.templates:
            with suppress(InvalidInput, TypeError):  # a template that we cannot read matches nothing
                found.append(UriTemplate(each["uriTemplate"]))
        return found

    def _entries(self, name: str) -> Sequence[Entry]:
        return self.offers.get(name, ())[:MAX_LISTED]


class SourceOfferings:
    """The offers of all sources of one tenant. They are read again when the registry has changed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._revision: int | None = None
        self._known: Sequence[SourceOffers] = ()

    async def seen_by(self, view: CallerView, revision: int) -> Sequence[SourceOffers]:
        """Return those that a caller sees; `revision` is the registry's."""
        if revision != self._revision:
            rows = await self._engine.database.all(sql("source_offers"))
            self._known = [
                SourceOffers(
                    msgspec.structs.replace(msgspec.convert(row["backend"], Backend), source=row["name"]), row["offers"]
                )
                for row in rows
            ]
            self._revision = revision
        if view.who.kind == ADMIN or not self._known:
            return self._known
        seen = {each.tool.backend.source for each in view.tools if each.tool.backend is not None}
        return [each for each in self._known if each.backend.source in seen]
