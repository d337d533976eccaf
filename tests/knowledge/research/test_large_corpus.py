"""Research over a corpus that no prompt holds: in the short form 200,000 tokens, in the long form 10 million."""

import pytest

from holdfast.engine import Engine
from holdfast.knowledge.research import Budget
from tests.knowledge.research.scholar import Scholar, read_passages
from tests.knowledge.research.test_research import check_citations
from tests.knowledge.stored import StoredChunk, StoredDocument, store

WORDS = 340  # of a chunk: about 450 tokens by the estimate of the tests


def book(number: int, chunks: int, *, fact_at: int | None = None) -> StoredDocument:
    """A document; one of its chunks has the fact."""
    pages = [
        StoredChunk(
            (f"Fact {number} is that the lighthouse of isle {number} burns green oil. " if index == fact_at else "")
            + " ".join(f"w{(number * 7919 + index * 104_729 + word * 31) % 5000}" for word in range(WORDS)),
            section=(f"Part {index // 10}",),
            page=index + 1,
            vectors=[[((number + index * dimension) % 17) / 70 for dimension in range(384)]],
        )
        for index in range(chunks)
    ]
    return StoredDocument(f"book-{number}.txt", pages, title=f"Book {number}")


async def research(engine: Engine, model: Scholar, *, books: int, chunks: int) -> None:
    """Ask about facts in some of the books."""
    for start in range(0, books, 10):
        some = range(start, min(start + 10, books))
        documents = [book(n, chunks, fact_at=(n * 13) % chunks if n % 5 == 0 else None) for n in some]
        await store(engine, *documents, model="made-up")
    size = await engine.database.value("select sum(tokens) from chunk where tenant_id = $1")
    budget = Budget(200, 2_000_000)

    report = await engine.research.run("Which oil does the lighthouse of each isle burn?", budget=budget)

    assert int(size) > books * chunks * 350
    wanted = {f"Fact {n} is that the lighthouse of isle {n} burns green oil." for n in range(0, books, 5)}
    assert wanted <= {statement.text for statement in report.statements}
    assert await check_citations(engine, report) == len(report.statements)
    assert report.calls == len(model.requests) <= 200
    assert report.tokens == model.used <= 2_000_000
    assert report.all_passages == books * chunks
    read = {number for request in model.of("read") for number, _ in read_passages(request)}
    assert report.passages == len(read)


@pytest.mark.req("KNOW-04")
async def test_facts_are_found_in_200_000_tokens(engine: Engine, model: Scholar) -> None:
    await research(engine, model, books=10, chunks=50)


@pytest.mark.req("KNOW-04")
@pytest.mark.soak(minutes=6)
async def test_facts_are_found_in_10_million_tokens(engine: Engine, model: Scholar) -> None:
    await research(engine, model, books=100, chunks=250)
