"""Memories, one by one: remembered, read, corrected, forgotten."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from holdfast.authorization import Name, OwnerName
from holdfast.core.errors import Conflict, NotFound, TooLarge
from holdfast.memory import Draft, Holding, Memory, MemoryRevision, Scope, Trust
from holdfast.memory.drafts import LONGEST_TTL, MAX_CONTENT_BYTES
from holdfast.server.fields import LEAST_SECONDS, Cursor, Moment, NamedOwner, NotBlank, present, stated
from holdfast.server.operations import Call, Operations
from holdfast.server.pages import listed, page_of

operations = Operations("memories")

MAX_AT_ONCE = 1000
MAX_AT_ONCE_BYTES = 1_000_000  # of all their texts: to index more may take longer than a request lasts

MAX_PAGE = 200

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Content = Annotated[NotBlank, msgspec.Meta(min_length=1, max_length=MAX_CONTENT_BYTES)]
Importance = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(ge=LEAST_SECONDS, le=LONGEST_TTL.total_seconds())]
Version = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Place = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class MemoryDraft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something to remember. `ttl` is in seconds; `conversation`, `seq`, `author` and `at`: where, by whom and when."""

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


Placed = Annotated[MemoryDraft, stated(anyOf=[{"properties": {"seq": {"type": "null"}}}, *present("conversation")])]


class NewMemories(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Memories of one owner to store, all of them or none; without an owner they are the caller's."""

    memories: Annotated[list[Placed], msgspec.Meta(min_length=1, max_length=MAX_AT_ONCE)]
    owner: NamedOwner = OwnerName()


class MemoryEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to change of a memory. With a version it is done only if that is the current one."""

    content: Content | None = None
    type: Name | None = None
    importance: Importance | None = None
    ttl: Seconds | None = None
    trust: Trust | None = None
    metadata: dict[str, Any] | None = None
    version: Version | None = None


EDITABLE = tuple(name for name in MemoryEdit.__struct_fields__ if name != "version")


class Successor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is true instead, from now or from `at` on. With a version it is done only if that is the current one."""

    content: Content
    at: Moment | None = None
    version: Version | None = None


class Pinning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a memory is kept from fading."""

    pinned: bool = True


class Burial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a memory is kept from being recalled."""

    buried: bool = True


class MemoryList(msgspec.Struct, frozen=True):
    """Memories, in the order in which they were given."""

    memories: list[Memory]


class MemoryPage(msgspec.Struct, frozen=True):
    """Memories, the newest first, and the cursor that the next page is asked for with; null: there is none."""

    memories: list[Memory]
    cursor: str | None


class OwnerCount(msgspec.Struct, frozen=True):
    """Somebody who has memories, by the name that a search takes; the organization has none.

    `agent` and `user`: of a session, who brought the newest in and whose it is, where that is known. `count`: how many
    are recalled now, of at most 10,000 that are counted; `newest`: when the newest was made, recalled or not.
    """

    scope: Scope
    name: str | None
    agent: str | None
    user: str | None
    count: int
    newest: datetime


class MemoryOwners(msgspec.Struct, frozen=True):
    """Who has memories, and the cursor that the next page is asked for with; null: there is none.

    A page may be empty and have a cursor all the same.
    """

    owners: list[OwnerCount]
    cursor: str | None


class MemoryChain(msgspec.Struct, frozen=True):
    """Memories that took each other's place, in the order in which they became valid; at most 100 of them."""

    memories: list[Memory]


class MemoryHistory(msgspec.Struct, frozen=True):
    """Versions of a memory, the newest first, and the version that the next page is asked for `before`; null: none."""

    revisions: list[MemoryRevision]
    cursor: int | None


@operations.declare("POST", "/api/memories", needs="write", status=201, errors=[NotFound, Conflict])
async def remember(call: Call, body: NewMemories) -> MemoryList:
    """Remember texts; what is there already, by its key or its very words, is answered as it is."""
    owner = await call.authorization.owner_to_change(body.owner)
    for draft in body.memories:
        call.authorization.check_trust(draft.trust)
    _check_size(body.memories)
    drafts = [Draft(**msgspec.structs.asdict(draft)) for draft in body.memories]
    return MemoryList(await call.engine.memory.remember_many(owner, drafts))


@operations.declare("GET", "/api/memories", needs="read", errors=[NotFound, Conflict])
async def list_memories(
    call: Call,
    scope: Scope = "user",
    name: Name | None = None,
    agent: Name | None = None,
    also_past: bool = False,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> MemoryPage:
    """An owner's memories, the newest first; `also_past`: those too that are superseded, expired or buried."""
    owner = await call.authorization.owner(OwnerName(scope, name, agent))

    async def read(most: int, cursor: str | None) -> tuple[list[Memory], str | None]:
        page = await call.engine.memory.list(owner, also_past=also_past, limit=most, cursor=cursor)
        return page, page.cursor

    return MemoryPage(*await page_of(read, limit=limit, start=cursor))


# Names come before ids: the first path that fits is taken.
@operations.declare("GET", "/api/memories/owners", needs="read")
async def list_owners(
    call: Call, scope: Scope | None = None, limit: Limit = 50, cursor: Cursor | None = None
) -> MemoryOwners:
    """Who has memories: the organization, agents, users, and sessions, the newest of these first; of all, or one scope.

    An admin sees everybody; others see themselves and their sessions beside what everybody is told of.
    """
    page = await call.authorization.memory_owners(scope, limit=limit, cursor=cursor)
    return MemoryOwners([_counted(holding) for holding in page], page.cursor)


@operations.declare("GET", "/api/memories/{id}", needs="read", errors=[NotFound])
async def get_memory(call: Call, id: UUID) -> Memory:
    """A memory, whatever became of it, unless it was deleted."""
    return await call.authorization.memory(id)


@operations.declare("PATCH", "/api/memories/{id}", needs="write", errors=[NotFound, Conflict])
async def edit_memory(call: Call, id: UUID, body: Annotated[MemoryEdit, stated(anyOf=present(*EDITABLE))]) -> Memory:
    """Change what is given, and nothing else."""
    old = await call.authorization.memory_to_change(id)
    call.authorization.check_trust(body.trust)
    call.authorization.check_trust(old.trust if body.content is not None else None)
    return await call.engine.memory.edit(id, **msgspec.structs.asdict(body))


@operations.declare("DELETE", "/api/memories/{id}", needs="write", status=204, errors=[NotFound])
async def forget_memory(call: Call, id: UUID) -> None:
    """Delete a memory and all that was kept of it."""
    await call.authorization.memory_to_change(id)
    await call.engine.memory.forget(id)


@operations.declare("POST", "/api/memories/{id}/supersede", needs="write", status=201, errors=[NotFound, Conflict])
async def supersede_memory(call: Call, id: UUID, body: Successor) -> Memory:
    """Put a new memory in the place of one that is no longer true; the answer is the new one."""
    call.authorization.check_trust((await call.authorization.memory_to_change(id)).trust)
    return await call.engine.memory.supersede(id, body.content, at=body.at, version=body.version)


@operations.declare("POST", "/api/memories/{id}/pin", needs="write", errors=[NotFound])
async def pin_memory(call: Call, id: UUID, body: Pinning) -> Memory:
    """Keep a memory from fading and from being dropped, or let it go again."""
    await call.authorization.memory_to_change(id)
    return await call.engine.memory.pin(id, pinned=body.pinned)


@operations.declare("POST", "/api/memories/{id}/bury", needs="write", errors=[NotFound])
async def bury_memory(call: Call, id: UUID, body: Burial) -> Memory:
    """Keep a memory and recall it no more, or bring it back."""
    await call.authorization.memory_to_change(id)
    return await call.engine.memory.bury(id, buried=body.buried)


@operations.declare("GET", "/api/memories/{id}/history", needs="read", errors=[NotFound])
async def memory_history(call: Call, id: UUID, before: Version | None = None, limit: Limit = MAX_PAGE) -> MemoryHistory:
    """The versions that a memory has had, the newest first; `before`: those before a version."""
    await call.authorization.memory(id)

    async def read(most: int, before: int | None) -> list[MemoryRevision]:
        return await call.engine.memory.history(id, before=before, limit=most)

    return MemoryHistory(*await listed(read, lambda revision: revision.version, limit=limit, start=before))


@operations.declare("GET", "/api/memories/{id}/chain", needs="read", errors=[NotFound])
async def memory_chain(call: Call, id: UUID) -> MemoryChain:
    """A memory among those that took each other's place, the oldest first."""
    await call.authorization.memory(id)
    return MemoryChain(await call.engine.memory.chain(id))


def _check_size(drafts: Sequence[MemoryDraft]) -> None:
    size = sum(len(draft.content.encode(errors="surrogatepass")) for draft in drafts)
    if size > MAX_AT_ONCE_BYTES:
        raise TooLarge(
            "these memories are too much at once",
            why=f"their texts have {size:,} bytes, at most {MAX_AT_ONCE_BYTES:,} are taken",
            next="Send them in several requests.",
            size=size,
            limit=MAX_AT_ONCE_BYTES,
        )


def _counted(holding: Holding) -> OwnerCount:
    owner = holding.owner
    agent, user = (owner.agent, owner.user) if owner.scope == "session" else (None, None)
    return OwnerCount(owner.scope, owner.name or None, agent, user, holding.count, holding.newest)
