"""The score of a chunk, said once more in plain Python: what the functions have to agree with."""

import math
from collections import Counter

import pytest

from holdfast.core.config import Config
from holdfast.core.memory_settings import KnowledgeScoringSettings
from holdfast.core.words import terms
from holdfast.embeddings.store import Store
from holdfast.engine import Engine, open_engine
from holdfast.memory.chunks import answering_range, citation
from tests.knowledge.stored import StoredDocument, store

pytestmark = pytest.mark.req("KNOW-02", "MEM-12")

WEIGHTS = KnowledgeScoringSettings()
TEXTS = [
    "The lighthouse of Skagen was built in 1858 and is still in use.",
    "Fishing boats return to the harbour before noon.",
    "A storm damaged the lighthouse and two boats in the harbour in 1921, and nobody was hurt.",
    "灯塔建于一八五八年，今天仍在使用。",  # noqa: RUF001
    "The museum shows old lamps of the lighthouse.",
]


def expected_words(question: str, texts: list[str]) -> list[float]:
    """What the words of each text add to its score."""
    found = [set(terms(text)) for text in texts]
    counts = Counter(term for each in found for term in each)
    asked = [term for term in terms(question) if term in counts]
    idf = {term: math.log(1 + (len(texts) - counts[term] + 0.5) / (counts[term] + 0.5)) for term in asked}
    root = math.sqrt(max(sum(idf.values()), 1e-6))
    scores: list[float] = []
    for text, each in zip(texts, found, strict=True):
        weight, usual = (
            (WEIGHTS.words, WEIGHTS.english_length)
            if text.isascii()
            else (WEIGHTS.chinese_words, WEIGHTS.chinese_length)
        )
        long = 1 + 1.2 * math.sqrt(max(1, len(each) / usual))
        scores.append(weight * 2.2 / long * sum(idf[term] for term in asked if term in each) / root)
    return scores


@pytest.mark.parametrize("question", ["lighthouse harbour 1858", "Which boats were in the harbour?", "灯塔建于何年"])
async def test_vector_and_words_are_those_of_the_formula(engine: Engine, models: Store, question: str) -> None:
    assert models.find(engine.config.memory.embedding.model)
    await store(engine, *(StoredDocument(f"{n}", [text]) for n, text in enumerate(TEXTS)))
    language = "en" if question.isascii() else "zh"
    model = engine.embeddings.model(language)
    assert model is not None
    asked = await engine.embeddings.query(question, model)
    same = [text.isascii() == question.isascii() for text in TEXTS]
    vectors = await engine.embeddings.vectors(TEXTS)

    hits = await engine.knowledge.search(question, explain=True, limit=5)

    words = expected_words(question, TEXTS)
    assert asked is not None
    for hit in hits:
        place, vector = int(hit.name), vectors[int(hit.name)]
        assert hit.parts is not None
        assert vector is not None
        cosine = sum(a * b for a, b in zip(asked, vector, strict=False)) - engine.embeddings.unrelated(model)
        assert hit.parts.vector == pytest.approx(cosine if same[place] else 0, abs=2e-3)  # stored with 16 bits
        assert hit.parts.words == pytest.approx(words[place], abs=1e-6)
    assert {int(hit.name) for hit in hits} >= {place for place, each in enumerate(same) if each or words[place] > 0}


async def test_frequent_words_are_weighed_by_a_sample_and_select_if_there_are_no_others(
    config: Config, no_models: None
) -> None:
    documents = [StoredDocument(f"{n}", [f"the river flows {n % 7}", "the sea"], title="River") for n in range(300)]

    async def scores(**changed: int) -> list[dict[str, float]]:
        settings = config.memory.knowledge_scoring.model_copy(update=changed)
        memory = config.memory.model_copy(update={"knowledge_scoring": settings})
        async with open_engine(config=config.model_copy(update={"memory": memory})) as engine:
            if not await engine.knowledge.list():
                await store(engine, *documents)
            queries = ("river", "river sea 3", "sea 111")
            found = [await engine.knowledge.search(query, limit=50) for query in queries]
        return [{hit.text: hit.score for hit in hits} for hits in found]

    whole, sampled = await scores(), await scores(frequent=20)

    assert [set(each) for each in whole][:2] == [set(each) for each in sampled][:2]
    for exact, estimated in zip(whole, sampled, strict=True):
        for text, score in estimated.items():
            assert score == pytest.approx(exact.get(text, score), rel=0.15)


async def test_a_title_counts_less_the_more_chunks_have_it(words_only: Engine) -> None:
    await store(
        words_only,
        StoredDocument("one", ["first"], title="Annual Report"),
        StoredDocument("two", ["second", "third"], title="annual report"),
        StoredDocument("other", ["fourth"], title="Report"),
    )

    hits = await words_only.knowledge.search("what says the Annual Report?", explain=True)

    title = WEIGHTS.title / math.log2(1 + 3)
    found = {hit.text: hit.parts.graph for hit in hits if hit.parts is not None}
    assert found == {text: pytest.approx(title) for text in ("first", "second", "third")}


async def test_the_hop_is_the_best_way_that_leads_to_a_chunk(words_only: Engine) -> None:
    await store(
        words_only,
        StoredDocument("case", ["The falcon case was given to Nora Herbst by the court."]),
        StoredDocument("person", ["She studied law and lives by the sea."], title="Nora Herbst"),
        StoredDocument("list", ["Among the judges are Nora Herbst and others."]),
    )

    hits = await words_only.knowledge.search("falcon", explain=True)

    parts = {hit.name: hit.parts for hit in hits if hit.parts is not None}
    give = WEIGHTS.hop * WEIGHTS.hop_margin  # the only chunk with the word is the first and the last of the best
    assert parts["case"].graph == 0
    assert parts["person"].graph == pytest.approx(give / math.log2(1 + 1))
    assert parts["list"].graph == pytest.approx(give * WEIGHTS.mention / math.log2(1 + 3))


@pytest.mark.parametrize(
    ("nearness", "least", "found"),
    [
        ([], 0.0, (0, 100)),
        ([0.3], 0.9, (0, 100)),
        ([0.3, 0.5], 0.4, (40, 90)),
        ([0.3, 0.5], 0.2, (0, 90)),
        ([0.5, 0.3, 0.5], 0.5, (0, 100)),
    ],
)
def test_the_text_of_a_hit_is_of_the_passages_that_are_near(
    nearness: list[float], least: float, found: tuple[int, int]
) -> None:
    passages = {0: [0, 100], 1: [0, 100], 2: [0, 50, 40, 90], 3: [0, 40, 30, 70, 60, 100]}[len(nearness)]

    assert answering_range(100, passages, nearness, least=least) == found


def test_a_citation_names_pages_if_there_are_any() -> None:
    assert citation("a.pdf", 3, 4, 5, 9) == "a.pdf, pp. 3-4, characters 5-9"
    assert citation("a.pdf", 3, 3, 5, 9) == "a.pdf, p. 3, characters 5-9"
    assert citation("a.md", None, None, 5, 9) == "a.md, characters 5-9"
