"""The memories that all look for: ours, the bare rows of a table with its index, and their peers', loaded once."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from holdfast.core.memory_settings import MemorySettings
from holdfast.core.shares import shared_by_tenant
from holdfast.core.text import dumps, loads
from holdfast.embeddings import Embeddings
from holdfast.engine import Engine
from holdfast.memory import Memories
from holdfast.memory.owners import Owners
from holdfast.memory.recall import Recall
from holdfast.memory.usage import RecallUsage
from holdfast.postgres.codecs import decode_halfvec, encode_halfvec
from holdfast.postgres.tenancy import ensure_login
from parts.banks import Bank, Known

TOGETHER = 1000  # memories in one call, and rows in one copy

connect = cast(Callable[..., Awaitable[Any]], asyncpg.connect)


@dataclass(frozen=True, slots=True, eq=False)
class Tapped:
    """A tenant's statements; the last one that was sent is kept."""

    database: Any
    sent: list[tuple[str, tuple[object, ...]]]

    async def all(self, statement: str, *args: object) -> list[Any]:
        """Every row."""
        self.sent[:] = [(statement, args)]
        return await self.database.all(statement, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.database, name)


@dataclass(frozen=True, slots=True)
class Service:
    """Our service with other parts than the engine's; `sent` is the statement of its last search."""

    memories: Memories
    sent: list[tuple[str, tuple[object, ...]]]


@asynccontextmanager
async def service(
    engine: Engine, embeddings: Embeddings, settings: MemorySettings | None = None
) -> AsyncGenerator[Service]:
    """Our service with these embeddings and these settings."""
    settings = settings or engine.config.memory
    owners = Owners(engine.database, engine.identities)
    usage = RecallUsage()
    sent: list[tuple[str, tuple[object, ...]]] = []
    places = shared_by_tenant(engine.config.limits, "searches", 1000, setting="limits.searches")
    recall = Recall(
        cast(Any, Tapped(engine.database, sent)),
        owners=owners,
        embeddings=embeddings,
        usage=usage,
        settings=settings,
        places=places,
    )
    yield Service(
        Memories(engine.database, owners=owners, embeddings=embeddings, recall=recall, settings=settings), sent
    )
    await usage.close()


def scoring(engine: Engine, **weights: float) -> MemorySettings:
    """The engine's settings of memory with other weights."""
    settings = engine.config.memory
    return settings.model_copy(update={"scoring": settings.scoring.model_copy(update=weights)})


def by_meaning_alone(engine: Engine) -> MemorySettings:
    """Settings with which nothing but the vector orders what is found."""
    names = (
        "words",
        "neighbours",
        "around",
        "conversation",
        "author",
        "date",
        "when",
        "recency",
        "importance",
        "trust",
    )
    return scoring(engine, **dict.fromkeys(names, 0.0))


async def store(bank: Bank, memories: Memories, known: Known) -> None:
    """Write a bank through the service."""
    drafts = bank.drafts()
    for start in range(0, bank.size, TOGETHER):
        some = drafts[start : start + TOGETHER]
        known.learn([draft["content"] for draft in some], bank.vectors[start : start + TOGETHER])
        await memories.remember_many(bank.owner, some)
        known.forget()


@asynccontextmanager
async def raw(engine: Engine) -> AsyncGenerator[tuple[Any, UUID]]:
    """A connection as the role and under the security that our own statements have, and the tenant."""
    tenant = await engine.database.tenant()
    async with engine.postgres.owner() as owner:
        login = await ensure_login(owner, engine.place.owner_url, by_account=True)
        schema = await owner.value("select extnamespace::regnamespace::text from pg_extension where extname = 'vector'")
    connection = await connect(login, server_settings={"role": "holdfast_app", "holdfast.tenant": str(tenant)})
    await speak(connection, schema)
    yield connection, tenant
    await connection.close()


async def speak(connection: Any, schema: str) -> None:
    """Teach a connection what ours know: vectors, and JSON."""
    await connection.set_type_codec(
        "halfvec", schema=schema, encoder=encode_halfvec, decoder=decode_halfvec, format="binary"
    )
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=dumps, decoder=loads)


class Bare:
    """A table of vectors as people write it: an index by owner, and one over all vectors."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    @asynccontextmanager
    async def make(cls, url: str) -> AsyncGenerator["Bare"]:
        """Make it, empty."""
        connection = await connect(url)
        await connection.execute("create extension if not exists vector")
        await speak(connection, "public")
        await connection.execute(
            "create table bare (owner int not null, place int not null, shares text[] not null, embedding halfvec(384))"
        )
        yield cls(connection)
        await connection.close()

    async def store(self, bank: Bank) -> None:
        """Copy a bank."""
        rows = [(bank.number, place, bank.metadata(place)["in"], v) for place, v in enumerate(bank.vectors.tolist())]
        await self._connection.copy_records_to_table("bare", records=rows)

    async def index_owners(self) -> None:
        """Index it by owner, and let the planner know it."""
        await self._connection.execute("create index on bare (owner)")
        await self._connection.execute("vacuum analyze bare")

    async def index_vectors(self) -> None:
        """Index all vectors."""
        await self._connection.execute("create index on bare using hnsw (embedding halfvec_ip_ops)")

    async def exact(self, owner: int, vector: Sequence[float], share: str | None = None) -> list[int]:
        """The places of the ten nearest of an owner, or of a share of the owner's, by looking at each."""
        found = await self._connection.fetch(
            "select place from bare where owner = $1 and ($3::text is null or $3 = any(shares)) "
            "order by (embedding <#> $2) + 0 limit 10",
            owner,
            vector,
            share,
        )
        return [row["place"] for row in found]

    async def by_index(self, owner: int, vector: Sequence[float], share: str | None = None) -> list[int]:
        """The same by the index over all vectors, which goes on until it has ten."""
        async with self._connection.transaction():
            await self._connection.execute(
                "set local hnsw.iterative_scan = strict_order; set local enable_seqscan = off; "
                "set local enable_bitmapscan = off; set local enable_sort = off"
            )
            found = await self._connection.fetch(
                "select place from bare where owner = $1 and ($3::text is null or $3 = any(shares)) "
                "order by embedding <#> $2 limit 10",
                owner,
                vector,
                share,
            )
        return [row["place"] for row in found]
