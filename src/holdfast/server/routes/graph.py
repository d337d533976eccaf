"""The knowledge graph: find entities and how they are related, and merge duplicates."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from holdfast.authorization import Name, OwnerName
from holdfast.core.errors import Conflict, NotFound
from holdfast.memory.graph.graph import MAX_HOPS, MAX_LIMIT
from holdfast.memory.graph.records import Duplicate, EntityHit, GraphEntity, Merge, Neighbour, Path, Support
from holdfast.server.fields import Cursor, NotBlank, about
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("knowledge")

GraphScope = Annotated[
    Literal["user", "agent", "organization"] | None, about("By default, the caller's and the organization's.")
]
OwnersName = Annotated[Name | None, about("The user or the agent, with `scope`.")]
EntityName = Annotated[NotBlank, msgspec.Meta(max_length=1000)]
Most = Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)]
Hops = Annotated[int, msgspec.Meta(ge=1, le=MAX_HOPS)]


class FoundEntities(msgspec.Struct, frozen=True):
    """Entities, best first."""

    entities: list[EntityHit]


class EntityView(msgspec.Struct, frozen=True):
    """An entity, the merges that make it up, and the newest memories and parts of documents that name it.

    Pass `cursor` to get the next page of these; it is null on the last page.
    """

    entity: GraphEntity
    merges: list[Merge]
    mentions: list[Support]
    cursor: str | None


class NeighbourList(msgspec.Struct, frozen=True):
    """What an entity is linked to: stated relations first, then what the most memories name together with it."""

    neighbours: list[Neighbour]


class PathList(msgspec.Struct, frozen=True):
    """Paths, the shortest first. `cut`: a limit ended the search, so that there may be more."""

    paths: list[Path]
    cut: bool


class NewMerge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two entities of one owner that are the same. The name of `keep` is kept; `other` becomes an alias."""

    keep: UUID
    other: UUID


class MergeMade(msgspec.Struct, frozen=True):
    """The id of a merge, by which it is undone, and the entity."""

    id: UUID
    entity: GraphEntity


class DuplicateList(msgspec.Struct, frozen=True):
    """Pairs of entities that may be the same, the most likely first."""

    duplicates: list[Duplicate]


@operations.declare("GET", "/api/graph/entities", needs="read")
async def search_entities(
    call: ApiCall, query: EntityName, scope: GraphScope = None, name: OwnersName = None, limit: Most = 10
) -> FoundEntities:
    """Find entities by name, or by the meaning of the memories and documents that name them."""
    owners = await call.authorization.graph_owners(_named(scope, name))
    return FoundEntities(await call.engine.graph.search(query, limit=limit, owners=owners))


@operations.declare("GET", "/api/graph/entities/{id}", needs="read", errors=[NotFound])
async def get_entity(call: ApiCall, id: UUID, limit: Most = 20, cursor: Cursor | None = None) -> EntityView:
    """Get an entity, its aliases, and what names it."""
    owners = await call.authorization.entity_owners(id)
    graph = call.engine.graph
    entity = await graph.entity(id, owners=owners)
    mentions = await graph.mentions(id, owners=owners, limit=limit, cursor=cursor)
    return EntityView(entity, await graph.merges(id, owners=owners), list(mentions), mentions.cursor)


@operations.declare("GET", "/api/graph/entities/{id}/neighbours", needs="read", errors=[NotFound])
async def entity_neighbours(call: ApiCall, id: UUID, limit: Most = 50) -> NeighbourList:
    """List what an entity is linked to."""
    owners = await call.authorization.entity_owners(id)
    return NeighbourList(await call.engine.graph.neighbours(id, owners=owners, limit=limit))


@operations.declare("GET", "/api/graph/paths", needs="read", errors=[NotFound])
async def find_paths(
    call: ApiCall,
    source: Annotated[EntityName, about("Name of the entity where the paths start.")],
    target: Annotated[EntityName, about("Name of the entity where the paths end.")],
    hops: Hops = 3,
    scope: GraphScope = None,
    name: OwnersName = None,
    limit: Most = 10,
) -> PathList:
    """Find how one entity relates to another, with the memories and documents that support each hop."""
    owners = await call.authorization.graph_owners(_named(scope, name))
    paths = await call.engine.graph.paths(source, target, hops=hops, owners=owners, limit=limit)
    return PathList(list(paths), paths.cut)


@operations.declare("GET", "/api/graph/duplicates", needs="read")
async def list_duplicates(
    call: ApiCall,
    scope: Literal["user", "agent", "organization"] = "organization",
    name: OwnersName = None,
    limit: Most = 50,
) -> DuplicateList:
    """List entities of one owner that may be the same."""
    [owner] = await call.authorization.graph_owners(OwnerName(scope, name))
    return DuplicateList(await call.engine.graph.duplicates(owner, limit=limit))


@operations.declare(
    "POST", "/api/graph/merges", needs="write", status=201, errors=[NotFound, Conflict], audit=["keep", "other"]
)
async def merge_entities(call: ApiCall, body: NewMerge) -> MergeMade:
    """Merge an entity into another. It can be undone."""
    await call.authorization.entity_to_change(body.keep)
    await call.authorization.entity_to_change(body.other)
    id = await call.engine.graph.merge(body.keep, body.other)
    return MergeMade(id, await call.engine.graph.entity(body.keep))


@operations.declare("DELETE", "/api/graph/merges/{id}", needs="write", status=204, errors=[NotFound], audit=True)
async def unmerge_entities(call: ApiCall, id: UUID) -> None:
    """Undo a merge. Each entity has its own links again."""
    await call.authorization.merge_to_change(id)
    await call.engine.graph.unmerge(id)


def _named(scope: Literal["user", "agent", "organization"] | None, name: str | None) -> OwnerName | None:
    return None if scope is None else OwnerName(scope, name)
