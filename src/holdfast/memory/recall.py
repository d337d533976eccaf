"""Recall: finds and ranks the memories that match a query."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from holdfast.core.errors import InvalidInput
from holdfast.core.memory_settings import MemorySettings
from holdfast.core.shares import Shares
from holdfast.core.text import restore, store
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import language_of
from holdfast.memory.chunks import answering_range, asked_keys, chunk_weights, citation, stored_collections
from holdfast.memory.drafts import check_importance, check_metadata, check_moment, with_time_zone
from holdfast.memory.memory import Memory, memory_of, owner_ids
from holdfast.memory.owners import Owner, OwnerIds, Owners, Scope, agent, organization, user
from holdfast.memory.query import QueryPreparer
from holdfast.memory.usage import RecallUsage
from holdfast.memory.why_not import WhyNot, explain_hidden
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

MAX_LIMIT = 1000
EVERYTHING = 1_000_000
CHUNK_TYPE = "knowledge"  # the type of a chunk of a document
LIMITS: dict[Scope, int] = {"session": 10, "user": 5, "agent": 3, "organization": 5}

AT_ONCE = 100  # rows to convert before yielding to other tasks

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """The parts of a score. The score is their sum."""

    vector: float
    words: float
    neighbours: float
    conversation: float
    author: float
    date: float
    recency: float
    importance: float
    trust: float
    graph: float = 0.0

    @property
    def total(self) -> float:
        """The sum of the parts: the score."""
        relevance = self.vector + self.words + self.neighbours + self.conversation + self.author + self.date
        return relevance + self.recency + self.importance + self.trust + self.graph


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory and how well it matches the query. `citation` says where it is, if it is a part of a document."""

    memory: Memory
    score: float
    parts: ScoreParts | None = None  # set with `explain`
    citation: str | None = None


class Hits(list[Hit]):
    """Search results, best first. `reduced` says why the search was degraded, without vectors; empty if it was not."""

    reduced: str = ""


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a search."""

    where: Mapping[str, Any] | None = None
    types: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    min_importance: float | None = None
    collections: Sequence[str] | None = None  # of documents; None for all

    def __post_init__(self) -> None:
        if self.where is not None:
            check_metadata(self.where)
        if self.min_importance is not None:
            check_importance(self.min_importance)
        types = cast(object, self.types)
        if types is not None and not (
            isinstance(types, list | tuple | set | frozenset)
            and all(isinstance(each, str) for each in cast(Collection[object], types))
        ):
            raise InvalidInput(f"the types {types!r:.100} are invalid", next="Pass a list of strings.")
        for moment in (self.since, self.until, self.as_of):
            check_moment(moment)
        stored_collections(self.collections)

    def arguments(self) -> tuple[object, ...]:
        """Return the filters as parameters of the statement."""
        types = None if self.types is None else [store(each) for each in self.types]
        moments = (None if each is None else with_time_zone(each) for each in (self.since, self.until, self.as_of))
        return types, dict(self.where or {}), *moments

    @property
    def with_documents(self) -> bool:
        """Whether chunks of documents can pass."""
        return (self.types is None or CHUNK_TYPE in self.types) and (
            self.collections is None or len(self.collections) > 0
        )


class Recall:
    """Searches memories."""

    def __init__(
        self,
        database: Database,
        *,
        owners: Owners,
        embeddings: Embeddings,
        usage: RecallUsage,
        settings: MemorySettings,
        places: Shares,
    ) -> None:
        self._database = database
        self._places = places  # a search keeps a core of the database busy: more at once would slow all down
        self._owners = owners
        self._embeddings = embeddings
        self._usage = usage
        self._settings = settings
        self._queries = QueryPreparer(database, embeddings)

    async def search(self, owner: Owner, query: str, filters: Filters, *, limit: int, explain: bool) -> Hits:
        """Return the memories of an owner that match `query`, best first."""
        ids = await self._owners.find_ids(owner)
        rows, reduced = await self._rows([(owner, ids, check_limit(limit))], query, filters)
        rows = _best(rows, limit)
        return await self._hits(rows, reduced, {(ids.scope, ids.id): owner}, explain=explain)

    async def context(
        self,
        query: str,
        *,
        of_session: Owner | None,
        user_name: str | None,
        agent_name: str | None,
        limits: Mapping[Scope, int] | None,
        filters: Filters,
        explain: bool,
    ) -> Hits:
        """Return the memories of all four scopes that match `query`, in one ranking. Each scope has its own limit."""
        wanted = {**LIMITS, **_check_limits(limits)}
        owners = [organization()]
        owners += [of_session] if of_session is not None else []
        owners += [user(user_name)] if user_name is not None else []
        owners += [agent(agent_name)] if agent_name is not None else []
        searched = [(each, await self._owners.find_ids(each), check_limit(wanted[each.scope])) for each in owners]
        found, reduced = await self._rows([each for each in searched if each[2] > 0], query, filters)
        rows = [
            row for scope in wanted for row in _best([row for row in found if row["scope"] == scope], wanted[scope])
        ]
        owners_by_id = {(ids.scope, ids.id): each for each, ids, _ in searched}
        places = {each.scope: place for place, each in enumerate(owners)}
        rows.sort(key=lambda row: (-row["score"], places[row["scope"]]))
        return await self._hits(rows, reduced, owners_by_id, explain=explain)

    async def why_not(self, memory: Memory, owner: Owner, query: str, filters: Filters, *, limit: int) -> WhyNot:
        """Explain why a memory is not among the first `limit` results of a search, or that it is."""
        check_limit(limit)
        now, ids = await self._database.now(), await self._owners.find_ids(owner)
        moment = now if filters.as_of is None else with_time_zone(filters.as_of)
        reason = None if await self._owns(ids, memory.owner) else WhyNot("scope", "it belongs to another owner")
        if memory.document is None:
            reason = reason or explain_hidden(memory, moment=moment, now=now, settings=self._settings.retention)
        reason = reason or await self._excluding_filter(memory, filters)
        if reason is not None:
            return reason
        rows, _ = await self._rows([(owner, ids, EVERYTHING)], query, filters, pool=limit)
        rows = _best(rows, EVERYTHING)
        rank, row = next(((n, row) for n, row in enumerate(rows, 1) if row["id"] == memory.id), (None, None))
        score = None if row is None else row["score"]
        if rank is not None and rank <= limit:
            return WhyNot("returned", f"it has rank {rank} of {len(rows)}", rank, score)
        if not memory.embedded and self._embeddings.model(language_of(memory.content)) is not None:
            return WhyNot("no embedding yet", "it was scored only by its words", rank, score)
        cut = f"; rank {limit} has the score {rows[limit - 1]['score']:.4f}" if 0 < limit <= len(rows) else ""
        where = (
            "it was not among the scored candidates"
            if rank is None
            else f"it has rank {rank} with the score {score:.4f}"
        )
        return WhyNot("below the cut", where + cut, rank, score)

    async def _owns(self, searched: OwnerIds, owner: Owner) -> bool:
        """Whether a search with the ids `searched` covers the memories of `owner`."""
        ids = await self._owners.find_ids(owner)
        return (ids.scope, ids.id) == (searched.scope, searched.id) and searched.agent in (None, ids.agent)

    async def _excluding_filter(self, memory: Memory, filters: Filters) -> WhyNot | None:
        """Return which filter excludes a memory; None if none does."""
        least = self._least_importance(memory.owner.scope, filters)
        moment = memory.at or memory.created_at
        if memory.importance < least:
            return WhyNot("filtered", f"its importance is {memory.importance}, below the minimum {least}")
        if filters.types is not None and memory.type not in filters.types:
            return WhyNot("filtered", f"its type is {memory.type}")
        if filters.since is not None and moment < with_time_zone(filters.since):
            return WhyNot("filtered", f"its time {moment:%Y-%m-%d %H:%M} is before the requested period")
        if filters.until is not None and moment >= with_time_zone(filters.until):
            return WhyNot("filtered", f"its time {moment:%Y-%m-%d %H:%M} is after the requested period")
        if memory.document is not None:
            return await self._excluding_filter_of_chunk(memory, filters)
        if filters.where and not await self._database.value(sql("matches_metadata"), memory.id, dict(filters.where)):
            return WhyNot("filtered", "its metadata does not match the filter")
        return None

    async def _excluding_filter_of_chunk(self, memory: Memory, filters: Filters) -> WhyNot | None:
        collections = stored_collections(filters.collections)
        row = await self._database.one(sql("matches_chunk"), memory.id, dict(filters.where or {}), collections)
        if row is not None and not row["in_collections"]:
            return WhyNot("filtered", "its document is in another collection")
        if row is not None and not row["has_metadata"]:
            return WhyNot("filtered", "the metadata of its document does not match the filter")
        if filters.as_of is not None and memory.created_at >= with_time_zone(filters.as_of):
            return WhyNot("not yet valid", f"its document was added at {memory.created_at:%Y-%m-%d %H:%M:%S}")
        return None

    def _least_importance(self, scope: Scope, filters: Filters) -> float:
        """Return the minimum importance of memories in a scope."""
        if filters.min_importance is not None:
            return filters.min_importance
        return 0.0 if scope == "session" else self._settings.long_term.min_importance

    async def _rows(
        self, searched: Sequence[tuple[Owner, OwnerIds, int]], query: str, filters: Filters, *, pool: int = 0
    ) -> tuple[list[Row], str]:
        prepared = await self._queries.prepare(query, tuple(ids.id for _, ids, _ in searched))
        settings = self._settings
        most = pool or max((limit for _, _, limit in searched), default=0)
        arguments: list[object] = [
            [ids.scope for _, ids, _ in searched],
            [ids.id for _, ids, _ in searched],
            [ids.agent for _, ids, _ in searched],
            [limit for _, _, limit in searched],
            [self._least_importance(ids.scope, filters) for _, ids, _ in searched],
            *prepared.arguments(),
            weights(settings, most),
            settings.retention.half_life_days,
            settings.retention.faded_below,
            *filters.arguments(),
        ]
        # A session has no documents. Whoever asks for what one agent stored asks for memories.
        readers = [(ids, limit) for _, ids, limit in searched if ids.scope != "session" and ids.agent is None]
        statement = sql("search")
        if readers and filters.with_documents:
            scoring = settings.scoring
            statement = sql("search_with_chunks")
            arguments += [
                [ids.scope for ids, _ in readers],
                [ids.id for ids, _ in readers],
                [limit for _, limit in readers],
                stored_collections(filters.collections),
                asked_keys(query),
                chunk_weights(settings.knowledge_scoring, most),
                [scoring.recency, scoring.importance, scoring.trust],
            ]
        async with self._places.hold():
            rows = await self._database.all(statement, *arguments)
        return rows, prepared.reduced

    async def _hits(
        self, rows: Sequence[Row], reduced: str, owners_by_id: Mapping[tuple[str, UUID], Owner], *, explain: bool
    ) -> Hits:
        hits = Hits()
        hits.reduced = reduced
        ids = [owner_ids(row) if row["agent_id"] or row["user_id"] else None for row in rows]
        others = [each for each in dict.fromkeys(ids) if each is not None]
        other_owners = dict(zip(others, await self._owners.from_ids(others), strict=True))
        chunks = {row["id"]: row for row in rows if row.get("document_id") is not None}
        least = min((row["score"] for row in chunks.values()), default=0.0)
        for number, (row, others_ids) in enumerate(zip(rows, ids, strict=True), 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)  # let other tasks run
            owner = owners_by_id[row["scope"], row["owner"]] if others_ids is None else other_owners[others_ids]
            parts = ScoreParts(*row["parts"])
            memory, cited = memory_of(row, owner), None
            if row["id"] in chunks:
                memory, cited = _passage(memory, row, least=least - (parts.total - parts.vector))
            hits.append(Hit(memory, parts.total, parts if explain else None, cited))
        self._usage.note(self._database, [hit.memory.id for hit in hits if hit.memory.document is None])
        return hits


def _best(rows: Sequence[Row], limit: int) -> list[Row]:
    """Return the best of memories and chunks: each are ordered by score already."""
    return sorted(rows, key=lambda row: -row["score"])[:limit]


def _passage(memory: Memory, row: Row, *, least: float) -> tuple[Memory, str]:
    """Return a chunk, reduced to the passages that match, and its citation."""
    start, end = answering_range(len(memory.content), row["passages"], row["nearness"], least=least)
    cited = citation(
        restore(row["name"]), row["first_page"], row["last_page"], row["char_start"] + start, row["char_start"] + end
    )
    return replace(memory, content=memory.content[start:end], document=row["document_id"]), cited


def weights(settings: MemorySettings, limit: int) -> list[float]:
    """Return the weights in the order of the statement, then the threshold and the size of the candidate pool."""
    scoring = settings.scoring
    return [
        scoring.words,
        scoring.english_length,
        scoring.chinese_length,
        scoring.neighbours,
        scoring.around,
        scoring.conversation,
        scoring.author,
        scoring.date,
        scoring.when,
        scoring.recency,
        scoring.importance,
        scoring.trust,
        scoring.pool_from,
        max(scoring.pool, limit),
    ]


def check_limit(limit: int) -> int:
    """Return a valid limit, or raise InvalidInput."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= MAX_LIMIT:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"the limit {limit!r:.100} is out of range", next=f"Use 0 to {MAX_LIMIT}.")
    return limit


def _check_limits(limits: Mapping[Scope, int] | None) -> Mapping[Scope, int]:
    if limits is not None and not (isinstance(limits, Mapping) and limits.keys() <= LIMITS.keys()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            f"the limits {limits!r:.100} are invalid", next=f"Pass a mapping from {', '.join(LIMITS)} to numbers."
        )
    return limits or {}
