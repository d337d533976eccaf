"""The service for the graph: find entities and the paths between them, and merge duplicates."""

from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice, pairwise
from typing import Any, Literal
from uuid import UUID

import msgspec

from holdfast.core.cursors import Page, read_cursor, write_cursor
from holdfast.core.errors import Conflict, InvalidInput, NotFound
from holdfast.core.text import restore, store
from holdfast.core.threads import run_in_thread
from holdfast.memory.graph.duplicates import Alike, Named, find_duplicates
from holdfast.memory.graph.entity import key_of
from holdfast.memory.graph.extraction import query_keys
from holdfast.memory.graph.records import (
    Duplicate,
    EntityHit,
    GraphEntity,
    Merge,
    Neighbour,
    Path,
    PathHop,
    Paths,
    Relationship,
    Support,
    label_of,
    support_of,
)
from holdfast.memory.owners import Owner, OwnerIds, Owners, check_owner, organization
from holdfast.memory.recall import Filters, Recall
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements

MAX_LIMIT = 200
MAX_HOPS = 4
HUB = 300  # memories that name an entity: a path passes through none with more, which links everything to everything
STEPS = 60_000  # links that a search of paths follows
RECALLED = 20  # memories of each owner that a search by meaning considers
SUPPORTS = 3  # memories for each hop
EXCERPT = 300  # characters of a memory
COMPARED = 20_000  # entities that are compared to find duplicates
MOST_ABANDONED = 4  # comparisons that nobody waits for any more
PAGE = 500
_WHOLE_NAME = 1.0  # the score of a name that begins or ends with the query; less if only a part of the query is a name
_FIRST = UUID(int=0)
_LAST_LETTER = chr(0x10FFFF)

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class _Spaces:
    """Whose entities are visible, in the form of the statements."""

    owners: tuple[Owner, ...]
    ids: tuple[OwnerIds, ...]

    @property
    def columns(self) -> tuple[list[str], list[UUID]]:
        return [each.scope for each in self.ids], [each.id for each in self.ids]

    def owner(self, scope: str, id: UUID) -> Owner:
        return next(
            owner for owner, ids in zip(self.owners, self.ids, strict=True) if ids.scope == scope and ids.id == id
        )


class Graph:
    """Finds entities, their neighbours, and the paths between them.

    Entities of several owners with the same key are one: a path may go through the organization's documents and a
    user's memories. Who is not among the `owners` is not seen. The default is the organization.
    """

    def __init__(self, database: Database, *, owners: Owners, recall: Recall) -> None:
        self._database = database
        self._owners = owners
        self._recall = recall

    async def search(self, query: str, *, limit: int = 10, owners: Sequence[Owner] | None = None) -> list[EntityHit]:
        """Find entities by their name, its beginning or its end, and by the meaning of the memories that name them.

        Meaning counts if no name begins or ends with the query.
        """
        _check_limit(limit)
        spaces = await self._spaces(owners)
        key = _key(query)
        if not key:
            return []
        end = key[::-1] if _is_han(key) else f"{key[::-1]} "
        rows = await self._database.all(
            sql("find_names"),
            *spaces.columns,
            key,
            key + _LAST_LETTER,
            end,
            end + _LAST_LETTER,
            [store(each) for each in query_keys(query)],
            limit,
        )
        scores: dict[str, tuple[float, Literal["name", "meaning"]]] = {
            row["canonical"]: (row["score"], "name") for row in rows
        }
        if all(score < _WHOLE_NAME for score, _ in scores.values()):
            for canonical, score in await self._find_by_meaning(query, spaces, limit):
                scores.setdefault(canonical, (score, "meaning"))
        entities = await self._describe(list(scores), spaces)
        hits = [EntityHit(entities[each], *scores[each]) for each in scores if each in entities]
        return sorted(hits, key=lambda hit: (hit.by != "name", -hit.score, -hit.entity.mentions))[:limit]

    async def entity(self, id: UUID, *, owners: Sequence[Owner] | None = None) -> GraphEntity:
        """Return an entity, with all names that are merged into it."""
        return (await self._entity(id, owners))[2]

    async def mentions(
        self, id: UUID, *, owners: Sequence[Owner] | None = None, limit: int = 20, cursor: str | None = None
    ) -> Page[Support]:
        """Return a page of the memories and parts of documents that name an entity, the newest first."""
        _check_limit(limit)
        spaces, canonical, _ = await self._entity(id, owners)
        before, _ = read_cursor(cursor)
        rows = await self._database.all(sql("mentions"), *spaces.columns, canonical, before, limit + 1)
        ids = [row["memory_id"] for row in rows[:limit]]
        supports = await self._supports(ids)
        return Page(
            [supports[each] for each in ids if each in supports], write_cursor(ids[-1]) if len(rows) > limit else None
        )

    async def neighbours(self, id: UUID, *, owners: Sequence[Owner] | None = None, limit: int = 50) -> list[Neighbour]:
        """Return what an entity is linked to: stated relations first, then what the most memories name with it."""
        _check_limit(limit)
        spaces, canonical, _ = await self._entity(id, owners)
        rows = await self._database.all(sql("neighbours"), *spaces.columns, canonical, limit, SUPPORTS)
        entities = await self._describe([row["canonical"] for row in rows], spaces)
        return [
            Neighbour(
                entities[row["canonical"]], row["type"] or None, row["forth"], row["count"], tuple(row["memories"])
            )
            for row in rows
            if row["canonical"] in entities
        ]

    async def paths(
        self,
        a: str | UUID,
        b: str | UUID,
        *,
        hops: int = 3,
        owners: Sequence[Owner] | None = None,
        limit: int = 10,
    ) -> Paths:
        """Find how one entity relates to another, given by name or id: paths of at most `hops`, the shortest first.

        The search is bounded: it follows at most 60,000 links, and passes through no entity that more than 300
        memories name. If that may have hidden a path, `cut` is true.
        """
        _check_limit(limit)
        if not isinstance(hops, int) or isinstance(hops, bool) or not 1 <= hops <= MAX_HOPS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"{hops!r:.100} hops are out of range", next=f"Use 1 to {MAX_HOPS}.")
        spaces = await self._spaces(owners)
        start, end = await self._end(a, spaces), await self._end(b, spaces)
        if start == end:
            raise InvalidInput("both ends of the path are the same entity", next="Pass two different entities.")
        rows = await self._database.all(sql("paths"), *spaces.columns, start, end, hops, limit, HUB, STEPS)
        paths = Paths(await self._with_supports([row["path"] for row in rows if row["path"] is not None], spaces))
        paths.cut = rows[0]["cut"]
        return paths

    async def merge(self, keep: UUID, other: UUID, *, owners: Sequence[Owner] | None = None) -> UUID:
        """Merge an entity into another of the same owner. Returns the id of the merge, by which it can be undone.

        It also holds for documents and memories that are added later.
        """

        async def work(tx: Transaction) -> UUID:
            rows = {row["id"]: row for row in await tx.all(sql("entities"), [keep, other])}
            for id in (keep, other):
                await self._check_visible(id, rows.get(id), owners)
            one, two = rows[keep], rows[other]
            if (one["scope"], one["owner"]) != (two["scope"], two["owner"]):
                raise InvalidInput(
                    "the entities belong to different owners",
                    why="a user's own entities are never joined with the organization's",
                    next="Merge entities of one owner. In a search over both, equal names are one entity anyway.",
                )
            await tx.run(sql("lock_space"), one["scope"], one["owner"])
            rows = {row["id"]: row for row in await tx.all(sql("entities"), [keep, other])}
            if rows[keep]["canonical"] == rows[other]["canonical"]:
                raise Conflict("the entities are one already", expected=2, current=1, next="Undo their merge first.")
            id: UUID = await tx.value(sql("merge"), keep, other)
            await tx.run(sql("settle"), [other])
            return id

        return await self._database.atomically(work)

    async def unmerge(self, merge_id: UUID, *, owners: Sequence[Owner] | None = None) -> tuple[UUID, UUID]:
        """Undo a merge, also one that a text states. Returns the ids of the two entities, each with its own links."""

        async def work(tx: Transaction) -> tuple[UUID, UUID]:
            merge = await tx.one(sql("merge_of"), merge_id)
            if merge is None or merge["undone_at"] is not None:
                raise _no_merge(merge_id)
            if owners is not None:
                spaces = await self._spaces(owners)
                if (merge["scope"], merge["owner"]) not in zip(*spaces.columns, strict=True):
                    raise _no_merge(merge_id)
            await tx.run(sql("lock_space"), merge["scope"], merge["owner"])
            parted = await tx.one(sql("unmerge"), merge_id)
            if parted is None:
                raise _no_merge(merge_id)
            await tx.run(sql("settle"), [parted["other_id"]])
            return parted["keep_id"], parted["other_id"]

        return await self._database.atomically(work)

    async def owner(self, id: UUID) -> Owner:
        """Return whose an entity is."""
        row = await self._database.one(sql("entities"), [id])
        if row is None:
            raise _no_entity(id)
        return await self._owners.owner(_ids(row["scope"], row["owner"]))

    async def merge_owner(self, merge_id: UUID) -> Owner:
        """Return whose entities a merge joins."""
        merge = await self._database.one(sql("merge_of"), merge_id)
        if merge is None or merge["undone_at"] is not None:
            raise _no_merge(merge_id)
        return await self._owners.owner(_ids(merge["scope"], merge["owner"]))

    async def merges(self, id: UUID, *, owners: Sequence[Owner] | None = None) -> list[Merge]:
        """Return the merges that make up an entity."""
        spaces, canonical, _ = await self._entity(id, owners)
        rows = await self._database.all(sql("merges"), *spaces.columns, canonical)
        return [
            Merge(
                row["id"],
                row["keep_id"],
                restore(row["keep"]),
                row["other_id"],
                restore(row["other"]),
                row["memory_id"],
                row["created_at"],
            )
            for row in rows
        ]

    async def duplicates(self, owner: Owner | None = None, *, limit: int = 50) -> list[Duplicate]:
        """Find entities of an owner that may be the same. Of the newest 20,000, all are compared."""
        _check_limit(limit)
        spaces = await self._spaces(None if owner is None else [owner])
        [ids] = spaces.ids
        rows = await self._database.all(sql("comparable"), ids.scope, ids.id, COMPARED)
        named = [Named(row["id"], row["key"], row["type"]) for row in rows]
        keys = {row["id"]: row["key"] for row in rows}
        # Seconds, in the worst case: too long for the worker, which others wait for.
        alike = await run_in_thread(
            partial(_first_duplicates, named, 2 * limit), name="comparison of entities", most_abandoned=MOST_ABANDONED
        )
        parted = await self._database.all(sql("parted"), [id for each in alike for id in (each.keep, each.other)])
        refused = {frozenset((row["keep_id"], row["other_id"])) for row in parted}
        entities = await self._describe([keys[id] for each in alike for id in (each.keep, each.other)], spaces)
        return [
            Duplicate(entities[keys[each.keep]], entities[keys[each.other]], each.reason)
            for each in alike
            if frozenset((each.keep, each.other)) not in refused
            and keys[each.keep] in entities
            and keys[each.other] in entities
        ][:limit]

    async def erase(self, owner: Owner) -> int:
        """Delete all entities of an owner, with their links. Returns how many. The memories stay."""
        ids = await self._owners.find_ids(owner)
        return await self._database.value(sql("erase"), ids.scope, ids.id)

    async def export(self, owner: Owner) -> AsyncGenerator[str]:
        """Yield the entities of an owner as JSON lines, each with its links, relationships and merges."""
        ids = await self._owners.find_ids(owner)
        after = _FIRST
        while True:
            rows = await self._database.all(sql("export_entities"), ids.scope, ids.id, after, PAGE)
            page = [row["id"] for row in rows]
            relationships = _by(await self._database.all(sql("export_relationships"), page), "source_id")
            merges = _by(await self._database.all(sql("export_merges"), page), "keep_id")
            for row in rows:
                yield _line(row, relationships[row["id"]], merges[row["id"]])
            if len(rows) < PAGE:
                return
            after = rows[-1]["id"]

    async def _spaces(self, owners: Sequence[Owner] | None) -> _Spaces:
        given = [organization()] if owners is None else list(dict.fromkeys(owners))
        if not given:
            raise InvalidInput("no owner was given", next="Pass at least one owner, such as organization().")
        for owner in given:
            check_owner(owner)
            if owner.scope == "session":
                raise InvalidInput("the memory of a session has no graph", next="Pass the user, agent or organization.")
        return _Spaces(tuple(given), tuple([await self._owners.find_ids(owner) for owner in given]))

    async def _entity(self, id: UUID, owners: Sequence[Owner] | None) -> tuple[_Spaces, str, GraphEntity]:
        """Return the visible spaces, the canonical key of an entity, and the entity. By default, its owner sees it."""
        row = await self._database.one(sql("entities"), [id])
        await self._check_visible(id, row, owners)
        assert row is not None
        spaces = await self._spaces(
            [await self._owners.owner(_ids(row["scope"], row["owner"]))] if owners is None else owners
        )
        found = await self._describe([row["canonical"]], spaces)
        if row["canonical"] not in found:
            raise _no_entity(id)
        return spaces, row["canonical"], found[row["canonical"]]

    async def _check_visible(self, id: UUID, row: Any, owners: Sequence[Owner] | None) -> None:
        if row is None:
            raise _no_entity(id)
        if owners is not None:
            spaces = await self._spaces(owners)
            if (row["scope"], row["owner"]) not in zip(*spaces.columns, strict=True):
                raise _no_entity(id)

    async def _end(self, given: str | UUID, spaces: _Spaces) -> str:
        """Return the canonical key of an end of a path."""
        if isinstance(given, UUID):
            row = await self._database.one(sql("entities"), [given])
            await self._check_visible(given, row, spaces.owners)
            assert row is not None
            return row["canonical"]
        key = _key(given)
        exact: str | None = await self._database.value(sql("exact_name"), *spaces.columns, key)
        if exact is not None:
            return exact
        end = key[::-1] if _is_han(key) else f"{key[::-1]} "
        rows = key and await self._database.all(
            sql("find_names"), *spaces.columns, key, key + _LAST_LETTER, end, end + _LAST_LETTER, [], 1
        )
        if not rows:
            raise NotFound(f"no entity is named {given[:100]!r}", next="Search for entities to see their names.")
        return rows[0]["canonical"]

    async def _find_by_meaning(self, query: str, spaces: _Spaces, limit: int) -> list[tuple[str, float]]:
        scores: dict[UUID, float] = {}
        for owner in spaces.owners:
            for hit in await self._recall.search(
                owner, query, Filters(min_importance=0), limit=RECALLED, explain=False
            ):
                scores[hit.memory.id] = hit.score
        if not scores:
            return []
        highest = max(scores.values()) or 1.0
        rows = await self._database.all(
            sql("find_by_memories"), *spaces.columns, list(scores), [each / highest for each in scores.values()], limit
        )
        return [(row["canonical"], row["score"]) for row in rows]

    async def _describe(self, canonicals: Iterable[str], spaces: _Spaces) -> dict[str, GraphEntity]:
        """Return entities by their canonical keys, without those that no visible memory names."""
        rows = await self._database.all(sql("describe"), *spaces.columns, list(dict.fromkeys(canonicals)))
        entities: dict[str, GraphEntity] = {}
        for canonical, group in groupby(rows, key=lambda row: row["canonical"]):
            names = list(group)
            first = names[0]
            mentions = sum(row["mentions"] for row in names)
            if mentions == 0:
                continue
            types = [row["type"] for row in names if row["type"] != "Name"]
            entities[canonical] = GraphEntity(
                first["id"],
                restore(first["name"]),
                types[0] if types else first["type"],
                next((restore(row["description"]) for row in names if row["description"]), None),
                tuple(restore(row["name"]) for row in names if row["key"] != first["key"]),
                mentions,
                spaces.owner(first["scope"], first["owner"]),
            )
        return entities

    async def _with_supports(self, paths: Sequence[Sequence[str]], spaces: _Spaces) -> list[Path]:
        """Add the relations and the memories to paths of canonical keys."""
        pairs = list(dict.fromkeys(pair for path in paths for pair in pairwise(path)))
        if not pairs:
            return []
        entities = await self._describe((key for path in paths for key in path), spaces)
        rows = await self._database.all(
            sql("hops"), *spaces.columns, [one for one, _ in pairs], [other for _, other in pairs], SUPPORTS
        )
        supports = await self._supports([id for row in rows for id in row["memories"]])
        hops: dict[tuple[str, str], PathHop] = {}
        for place, group in groupby(rows, key=_place_of):
            one, other = pairs[place - 1]
            found = list(group)
            relations = [
                Relationship(row["type"], row["forth"], row["description"] and restore(row["description"]))
                for row in found
                if row["type"]
            ]
            ids = list(dict.fromkeys(id for row in found for id in row["memories"]))[:SUPPORTS]
            if one in entities and other in entities and any(id in supports for id in ids):
                hops[one, other] = PathHop(
                    entities[one],
                    entities[other],
                    label_of(relations),
                    tuple(relations),
                    tuple(supports[id] for id in ids if id in supports),
                )
        steps = [list(pairwise(path)) for path in paths]
        return [Path(tuple(hops[pair] for pair in path)) for path in steps if all(pair in hops for pair in path)]

    async def _supports(self, ids: Sequence[UUID]) -> dict[UUID, Support]:
        rows = await self._database.all(sql("supports"), list(dict.fromkeys(ids)), EXCERPT)
        return {row["id"]: support_of(row) for row in rows}


def _first_duplicates(named: Sequence[Named], limit: int) -> list[Alike]:
    return list(islice(find_duplicates(named), limit))


def _place_of(row: Row) -> int:
    return row["place"]


def _ids(scope: Any, owner: UUID) -> OwnerIds:
    return OwnerIds(scope, owner, None, None)


def _by(rows: Iterable[Any], column: str) -> defaultdict[UUID, list[Any]]:
    found: defaultdict[UUID, list[Any]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found


def _line(row: Any, relationships: Sequence[Any], merges: Sequence[Any]) -> str:
    line = {
        "id": row["id"],
        "name": restore(row["name"]),
        "key": row["key"],
        "type": row["type"],
        "description": row["description"] and restore(row["description"]),
        "merged_into": row["merged_into"],
        "created_at": row["created_at"],
        "memories": [{"id": id, "mentions": count} for id, count in zip(row["memories"], row["counts"], strict=True)],
        "relationships": [
            {
                "target": each["target_id"],
                "type": each["relation_type"],
                "weight": each["weight"],
                "description": each["description"] and restore(each["description"]),
                "memories": list(each["memories"]),
            }
            for each in relationships
        ],
        "merges": [
            {"id": each["id"], "other": each["other_id"], "memory": each["memory_id"], "undone_at": each["undone_at"]}
            for each in merges
        ],
    }
    return msgspec.json.encode(line).decode()


def _is_han(key: str) -> bool:
    return any(low <= letter <= high for letter in key[:1] for low, high in _HAN_RANGES)


_HAN_RANGES = tuple((part[0], part[2]) for part in ("\u3400-\u4dbf", "\u4e00-\u9fff", "\uf900-\ufaff"))


def _key(name: object) -> str:
    """Return the stored form of the key of a name that a caller gave."""
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r:.100} is not the name of an entity", next="Pass a string.")
    return store(key_of(name))


def _check_limit(limit: object) -> None:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"the limit {limit!r:.100} is out of range", next=f"Use 1 to {MAX_LIMIT}.")


def _no_entity(id: UUID) -> NotFound:
    return NotFound(f"there is no entity {id}", next="Search for the entity to get its id.")


def _no_merge(id: UUID) -> NotFound:
    return NotFound(f"there is no merge {id}", next="List the merges of the entity.")
