"""Research without a language model: sentences of the documents, found by meaning and words."""

from collections.abc import AsyncIterator

import pytest

from holdfast.core.config import Config
from holdfast.embeddings.store import ModelFiles
from holdfast.engine import Engine, open_engine
from tests.knowledge.research.test_research import check_citations
from tests.knowledge.stored import StoredDocument, store

FEES = [
    "Mooring in the old harbour costs 12 euros for a night. Guests pay at the office. The office opens at eight.",
    "Boats longer than ten metres pay 20 euros for a night. Dogs are welcome on the piers.",
]
HISTORY = [
    "The harbour was built in 1873 by Wilhelm Brandt. A storm destroyed its first pier in 1911.",
    "Bakers sell bread.",
]


@pytest.fixture
async def engine(config: Config, models: list[ModelFiles]) -> AsyncIterator[Engine]:
    """An engine as it is without settings: no language model, and the embedding models."""
    async with open_engine(config=config) as engine:
        yield engine


@pytest.mark.req("KNOW-04")
async def test_the_offline_model_cites_the_sentences_that_answer(engine: Engine) -> None:
    await store(
        engine, StoredDocument("fees.md", FEES, title="Fees"), StoredDocument("history.md", HISTORY, title="History")
    )

    fees = await engine.research.run("What does mooring for a night cost?")
    built = await engine.research.run("Who built the harbour and when did the storm destroy the pier?")

    assert fees.statements[0].text == "Mooring in the old harbour costs 12 euros for a night."
    assert {"The harbour was built in 1873 by Wilhelm Brandt.", "A storm destroyed its first pier in 1911."} <= {
        each.text for each in built.statements
    }
    for report in (fees, built):
        assert (report.by, report.calls, report.tokens) == ("extract", 0, 0)
        assert await check_citations(engine, report) == len(report.statements)
        assert all(each.citations[0].quote == each.text for each in report.statements)
