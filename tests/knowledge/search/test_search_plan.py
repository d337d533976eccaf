"""A search looks up few rows, whatever the planner knows, or believes to know, of the tables."""

from typing import Any

import pytest

from holdfast.engine import Engine
from holdfast.memory import user
from holdfast.postgres.database import Database
from tests.knowledge.stored import StoredDocument, store

pytestmark = pytest.mark.req("KNOW-02", "ENG-04")

TOWNS = ["Oslo", "Bergen", "Tromso", "Bodo", "Alta", "Narvik", "Molde", "Skien", "Larvik", "Hamar"]
LONG = 1500  # chunks of the long document
SHORT = 1500  # documents of one chunk, of other owners
# Rows that were read by index, and whole tables that were read; the transaction's own.
READ = """
select coalesce(sum(seq_scan), 0)::int as whole, coalesce(sum(idx_tup_fetch), 0)::int as fetched
from pg_stat_xact_user_tables
where $1::uuid is not null and (relname ^@ 'chunk' or relname in ('document', 'entities', 'memory_entities'))
"""


def long_document() -> StoredDocument:
    """A document of which each chunk names a town and a person of its own."""
    texts = [f"Visitor {n} named Person{n} Smith came to {TOWNS[n % 10]} by train." for n in range(LONG)]
    return StoredDocument("visitors", texts, title="Visitors of Norway")


def short_documents() -> list[StoredDocument]:
    """Documents of one chunk, each of an owner of its own."""
    return [StoredDocument("note", [f"Note about Topic{n}."], owner=user(f"user {n}")) for n in range(SHORT)]


async def statement_of(engine: Engine, monkeypatch: pytest.MonkeyPatch, **limits: Any) -> tuple[Any, ...]:
    """The statement of a search, with its arguments."""
    sent: list[tuple[Any, ...]] = []
    real = Database.all

    def spy(self: Database, *args: Any) -> Any:
        sent.append(args)
        return real(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "all", spy)
        await engine.knowledge.search("Who came from Visitors of Norway to Oslo with Person77 Smith?", **limits)
    return next(args for args in sent if "search_knowledge" in args[0])


async def read_by(tx: Any, search: tuple[Any, ...]) -> tuple[int, int, int]:
    """How many rows a search finds, how many tables it reads whole, and how many rows it fetches."""
    [before] = await tx.all(READ)
    rows = await tx.all(*search)
    [after] = await tx.all(READ)
    return len(rows), after["whole"] - before["whole"], after["fetched"] - before["fetched"]


async def test_a_search_planned_while_tables_were_empty_looks_up_few_rows_when_they_are_not(
    words_only: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = await statement_of(words_only, monkeypatch)

    async with words_only.transaction() as tx:
        for _ in range(6):
            assert await tx.all(*search) == []
        await store(words_only, long_document(), tx=tx)
        found, whole, fetched = await read_by(tx, search)

    assert (found, whole) == (10, 0)
    assert fetched < 8000


@pytest.mark.parametrize(
    "limits", [{}, {"where": {}}, {"collections": ["default"]}], ids=["all", "where", "collection"]
)
async def test_statistics_of_many_short_documents_do_not_slow_down_a_long_one(
    words_only: Engine, monkeypatch: pytest.MonkeyPatch, limits: dict[str, Any]
) -> None:
    await store(words_only, *short_documents())
    async with words_only.postgres.owner() as owner:
        await owner.script("analyze")
    search = await statement_of(words_only, monkeypatch, **limits)
    reads: list[tuple[int, int, int]] = []
    async with words_only.transaction() as tx:
        await tx.all(*search)
        await store(words_only, long_document(), tx=tx)
        reads.append(await read_by(tx, search))
    async with words_only.postgres.owner() as owner:
        await owner.script("analyze")

    async with words_only.transaction() as tx:
        reads.append(await read_by(tx, search))

    assert [(found, whole) for found, whole, _ in reads] == [(10, 0), (10, 0)]
    assert all(fetched < 8000 for *_, fetched in reads), reads


async def test_an_owner_without_documents_costs_one_lookup(words_only: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await store(words_only, long_document())
    search = await statement_of(words_only, monkeypatch, owners=[user("nobody")])

    async with words_only.transaction() as tx:
        reads = await read_by(tx, search)

    assert reads == (0, 0, 0)
