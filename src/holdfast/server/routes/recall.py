"""Recall: search memories, and explain why a search does not return a memory."""

from typing import Annotated, Any, get_args
from uuid import UUID

import msgspec

from holdfast.authorization import Name, OwnerName
from holdfast.core.errors import Conflict, NotFound
from holdfast.memory import Hit, Hits, Scope, WhyNot
from holdfast.memory.query import MAX_QUESTION
from holdfast.memory.recall import MAX_LIMIT
from holdfast.server.fields import Importance, Moment, NamedOwner, NotBlank, documented
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.pages import within_a_page

operations = ApiOperations("memories")

Question = Annotated[NotBlank, msgspec.Meta(max_length=MAX_QUESTION)]
Limit = Annotated[int, msgspec.Meta(ge=0, le=MAX_LIMIT)]


class MemoryQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The query, the owner and the filters of a search."""

    query: Question
    owner: NamedOwner = OwnerName()
    limit: Limit | None = None
    where: dict[str, Any] | None = None
    types: list[Name] | None = None
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None
    min_importance: Importance | None = None
    collections: list[Name] | None = None


class Search(MemoryQuery, frozen=True, kw_only=True):
    """A search in the memories of one owner, by default the caller.

    `where` must be contained in the metadata. `since` and `until` limit when it was said. `as_of`: search what was
    valid at this time. `collections`: of documents, whose chunks are found among the memories; by default all.
    """

    explain: bool = False


class ContextSearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A search in all four memory scopes. The default user is the caller; null means no user."""

    query: Question
    session: Name | None = None
    user: Name | msgspec.UnsetType | None = msgspec.UNSET
    agent: Name | None = None
    limits: Annotated[dict[Scope, Limit], documented(propertyNames={"enum": [*get_args(Scope)]})] = {}
    where: dict[str, Any] | None = None
    types: list[Name] | None = None
    collections: list[Name] | None = None
    explain: bool = False


class Absence(MemoryQuery, frozen=True, kw_only=True):
    """A memory, and the search that did not return it."""

    id: UUID


class FoundMemories(msgspec.Struct, frozen=True):
    """Hits, best first. If the search used words only, `reduced` says why.

    `omitted`: the number of hits that were left out because the response would be too large.
    """

    hits: list[Hit]
    reduced: str
    omitted: int = 0


@operations.declare("POST", "/api/memories/search", needs="read", errors=[NotFound, Conflict])
async def search_memories(call: ApiCall, body: Search) -> FoundMemories:
    """Search the memories of an owner."""
    given = await _given(call, body, "owner", "query")
    return await _fitting_hits(
        await call.engine.memory.search(await call.authorization.owner(body.owner), body.query, **given)
    )


@operations.declare("POST", "/api/memories/context", needs="read", errors=[NotFound, Conflict])
async def memory_context(call: ApiCall, body: ContextSearch) -> FoundMemories:
    """Search the memories of the session, the user, the agent and the organization, in one ranking."""
    user = call.principal.user if body.user is msgspec.UNSET else body.user
    if user is not None:
        await call.authorization.owner(OwnerName("user", user))
    session = None if body.session is None else await call.authorization.owner(OwnerName("session", body.session))
    conversation = None if session is None else session.conversation
    given = await _given(call, body, "query", "user")
    return await _fitting_hits(
        await call.engine.memory.context(body.query, user=user, conversation=conversation, **given)
    )


@operations.declare("POST", "/api/memories/why-not", needs="read", errors=[NotFound, Conflict])
async def why_not(call: ApiCall, body: Absence) -> WhyNot:
    """Explain why a search does not return a memory, or say that it does."""
    owner = await call.authorization.owner(body.owner)
    await call.authorization.memory(body.id)
    given = await _given(call, body, "id", "owner", "query")
    return await call.engine.memory.why_not(body.id, owner, body.query, **given)


async def _given(call: ApiCall, body: MemoryQuery | ContextSearch, *without: str) -> dict[str, Any]:
    """Return the fields of a body except some, and the collections as far as the caller may read them."""
    given = {name: value for name, value in msgspec.structs.asdict(body).items() if name not in without}
    return {**given, "collections": await call.authorization.within(body.collections, of_agent=_agent_of(body))}


def _agent_of(body: MemoryQuery | ContextSearch) -> str | None:
    """Return the agent whose memories are searched, if any."""
    if isinstance(body, ContextSearch):
        return body.agent
    return body.owner.name if body.owner.scope == "agent" else None


async def _fitting_hits(hits: Hits) -> FoundMemories:
    fitting = await within_a_page(hits)
    return FoundMemories(fitting, hits.reduced, len(hits) - len(fitting))
