"""Memories: store, read, edit, supersede and delete them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from holdfast.authorization import Name, OwnerName
from holdfast.core.errors import Conflict, NotFound, TooLarge
from holdfast.memory import Draft, Memory, MemoryRevision, OwnerMemories, Scope, Trust
from holdfast.memory.drafts import LONGEST_TTL, MAX_CONTENT_BYTES
from holdfast.server.fields import (
    LEAST_SECONDS,
    MAX_PAGE,
    Cursor,
    Importance,
    Limit,
    Moment,
    NamedOwner,
    NotBlank,
    RowVersion,
    documented,
    present,
)
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.pages import page_of, page_of_items

operations = ApiOperations("memories")

MAX_AT_ONCE = 1000
MAX_AT_ONCE_BYTES = 1_000_000  # of all texts: indexing more can exceed the request timeout


Content = Annotated[NotBlank, msgspec.Meta(min_length=1, max_length=MAX_CONTENT_BYTES)]
Seconds = Annotated[float, msgspec.Meta(ge=LEAST_SECONDS, le=LONGEST_TTL.total_seconds())]
Place = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class MemoryDraft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A memory to store. `ttl` is in seconds. `conversation`, `seq`, `author` and `at` say where, who and when."""

    content: Content
    type: Name | None = None
    importance: Importance = 1.0
    ttl: Seconds | None = None
    trust: Trust = "user"
    metadata: dict[str, Any] = {}
    source: Name | None = None
    key: Name | None = None
    conversation: Name | None = None
    seq: Place | None = None
    author: Name | None = None
    at: Moment | None = None


Placed = Annotated[MemoryDraft, documented(anyOf=[{"properties": {"seq": {"type": "null"}}}, *present("conversation")])]


class NewMemories(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Memories of one owner to store, all or none. The default owner is the caller."""

    memories: Annotated[list[Placed], msgspec.Meta(min_length=1, max_length=MAX_AT_ONCE)]
    owner: NamedOwner = OwnerName()


class MemoryEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to a memory. Omitted fields are unchanged. A stale `version` is a conflict."""

    content: Content | None = None
    type: Name | None = None
    importance: Importance | None = None
    ttl: Seconds | None = None
    trust: Trust | None = None
    metadata: dict[str, Any] | None = None
    version: RowVersion | None = None


EDITABLE = tuple(name for name in MemoryEdit.__struct_fields__ if name != "version")


class Successor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The text that replaces a memory, valid from now or from `at` on. A stale `version` is a conflict."""

    content: Content
    at: Moment | None = None
    version: RowVersion | None = None


class Pinning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a memory is pinned. A pinned memory does not fade."""

    pinned: bool = True


class Burial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a memory is buried. A buried memory is not recalled."""

    buried: bool = True


class MemoryList(msgspec.Struct, frozen=True):
    """Memories, in the order of the request."""

    memories: list[Memory]


class MemoryPage(msgspec.Struct, frozen=True):
    """Memories, newest first. Pass `cursor` to get the next page; it is null on the last page."""

    memories: list[Memory]
    cursor: str | None


class OwnerCount(msgspec.Struct, frozen=True):
    """An owner of memories, by its name for a search. The organization has no name.

    For a session, `agent` is the agent that stored the newest memory and `user` is the user of the session, if known.
    `count`: memories that can be recalled now, counted up to 10,000. `newest`: when the newest memory was created, even
    if it cannot be recalled.
    """

    scope: Scope
    name: str | None
    agent: str | None
    user: str | None
    count: int
    newest: datetime


class MemoryOwners(msgspec.Struct, frozen=True):
    """Owners of memories. Pass `cursor` to get the next page; it is null on the last page.

    A page can be empty and still have a cursor.
    """

    owners: list[OwnerCount]
    cursor: str | None


class MemoryHistory(msgspec.Struct, frozen=True):
    """Versions of a memory, newest first. Pass `cursor` as `before` to get the next page; null on the last page."""

    revisions: list[MemoryRevision]
    cursor: int | None


@operations.declare("POST", "/api/memories", needs="write", status=201, errors=[NotFound, Conflict])
async def remember(call: ApiCall, body: NewMemories) -> MemoryList:
    """Store memories. If a memory with the same key or the same words exists, return that one."""
    owner = await call.authorization.owner_to_change(body.owner)
    for draft in body.memories:
        call.authorization.check_trust(draft.trust)
    _check_size(body.memories)
    drafts = [Draft(**msgspec.structs.asdict(draft)) for draft in body.memories]
    return MemoryList(await call.engine.memory.remember_many(owner, drafts))


@operations.declare("GET", "/api/memories", needs="read", errors=[NotFound, Conflict])
async def list_memories(
    call: ApiCall,
    scope: Scope = "user",
    name: Name | None = None,
    agent: Name | None = None,
    also_past: bool = False,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> MemoryPage:
    """List an owner's memories, newest first; with `also_past`, include superseded, expired and buried ones."""
    owner = await call.authorization.owner(OwnerName(scope, name, agent))

    async def read(most: int, cursor: str | None) -> tuple[list[Memory], str | None]:
        page = await call.engine.memory.list(owner, also_past=also_past, limit=most, cursor=cursor)
        return page, page.cursor

    return MemoryPage(*await page_of(read, limit=limit, start=cursor))


# Fixed paths come before `{id}`: the first route that matches is used.
@operations.declare("GET", "/api/memories/owners", needs="read")
async def list_owners(
    call: ApiCall, scope: Scope | None = None, limit: Limit = 50, cursor: Cursor | None = None
) -> MemoryOwners:
    """List owners of memories: the organization, agents, users, then sessions, newest first; or one memory scope.

    An admin sees all owners. Other callers see the organization, agents, themselves and their own sessions.
    """
    page = await call.authorization.memory_owners(scope, limit=limit, cursor=cursor)
    return MemoryOwners([_owner_count(owner_memories) for owner_memories in page], page.cursor)


@operations.declare("GET", "/api/memories/{id}", needs="read", errors=[NotFound])
async def get_memory(call: ApiCall, id: UUID) -> Memory:
    """Get a memory, also if it is superseded, expired or buried."""
    return await call.authorization.memory(id)


@operations.declare("PATCH", "/api/memories/{id}", needs="write", errors=[NotFound, Conflict])
async def edit_memory(
    call: ApiCall, id: UUID, body: Annotated[MemoryEdit, documented(anyOf=present(*EDITABLE))]
) -> Memory:
    """Edit a memory. Omitted fields are unchanged."""
    old = await call.authorization.memory_to_change(id)
    call.authorization.check_trust(body.trust)
    call.authorization.check_trust(old.trust if body.content is not None else None)
    return await call.engine.memory.edit(id, **msgspec.structs.asdict(body))


@operations.declare("DELETE", "/api/memories/{id}", needs="write", status=204, errors=[NotFound], audit=True)
async def forget_memory(call: ApiCall, id: UUID) -> None:
    """Delete a memory and its history."""
    await call.authorization.memory_to_change(id)
    await call.engine.memory.forget(id)


@operations.declare("POST", "/api/memories/{id}/supersede", needs="write", status=201, errors=[NotFound, Conflict])
async def supersede_memory(call: ApiCall, id: UUID, body: Successor) -> Memory:
    """Supersede a memory that is no longer true, and return the new one."""
    call.authorization.check_trust((await call.authorization.memory_to_change(id)).trust)
    return await call.engine.memory.supersede(id, body.content, at=body.at, version=body.version)


@operations.declare("POST", "/api/memories/{id}/pin", needs="write", errors=[NotFound])
async def pin_memory(call: ApiCall, id: UUID, body: Pinning) -> Memory:
    """Pin or unpin a memory. A pinned memory does not fade, and is not deleted to make room."""
    await call.authorization.memory_to_change(id)
    return await call.engine.memory.pin(id, pinned=body.pinned)


@operations.declare("POST", "/api/memories/{id}/bury", needs="write", errors=[NotFound])
async def bury_memory(call: ApiCall, id: UUID, body: Burial) -> Memory:
    """Bury or unbury a memory. A buried memory is kept, but not recalled."""
    await call.authorization.memory_to_change(id)
    return await call.engine.memory.bury(id, buried=body.buried)


@operations.declare("GET", "/api/memories/{id}/history", needs="read", errors=[NotFound])
async def memory_history(
    call: ApiCall, id: UUID, before: RowVersion | None = None, limit: Limit = MAX_PAGE
) -> MemoryHistory:
    """List the versions of a memory, newest first; with `before`, those before a version."""
    await call.authorization.memory(id)

    async def read(most: int, before: int | None) -> list[MemoryRevision]:
        return await call.engine.memory.history(id, before=before, limit=most)

    return MemoryHistory(*await page_of_items(read, lambda revision: revision.version, limit=limit, start=before))


@operations.declare("GET", "/api/memories/{id}/chain", needs="read", errors=[NotFound])
async def memory_chain(call: ApiCall, id: UUID) -> MemoryList:
    """List the chain of supersessions of a memory, oldest first; at most 100 memories."""
    await call.authorization.memory(id)
    return MemoryList(await call.engine.memory.chain(id))


def _check_size(drafts: Sequence[MemoryDraft]) -> None:
    size = sum(len(draft.content.encode(errors="surrogatepass")) for draft in drafts)
    if size > MAX_AT_ONCE_BYTES:
        raise TooLarge(
            "these memories are too large for one request",
            why=f"their texts have {size:,} bytes, at most {MAX_AT_ONCE_BYTES:,} are taken",
            next="Send them in several requests.",
            size=size,
            limit=MAX_AT_ONCE_BYTES,
        )


def _owner_count(owner_memories: OwnerMemories) -> OwnerCount:
    owner = owner_memories.owner
    agent, user = (owner.agent, owner.user) if owner.scope == "session" else (None, None)
    return OwnerCount(owner.scope, owner.name or None, agent, user, owner_memories.count, owner_memories.newest)
