import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.words import author_terms
from holdfast.embeddings.language import language_of
from holdfast.engine import Engine
from holdfast.memory import Draft, Hit, Memories, Memory, Owner, user
from holdfast.memory.dates import mentions_time
from holdfast.memory.drafts import is_by_owner, text_with_author
from holdfast.memory.query import sentences_of
from holdfast.postgres.codecs import decode_halfvec, encode_halfvec
from tests.memory.conftest import OpenWith
from tests.memory.oracle import Remembered, scores

SENTENCES = [
    "I went to the lake with Bob last Friday", "The courier lost the parcel", "Tea at five, as always",
    "Anna moved to Oslo in May 2023", "我上周去了杭州", "她喜欢喝龙井茶", "Bob paints birds and lakes",
    "The invoice 4711 is still open", "Her sister plays the cello", "We met at the conference yesterday",
    "昨天的会议很长", "Coffee makes me nervous", "The lake was frozen in early January", "Parcel 12 arrived",
]  # fmt: skip
QUESTIONS = [
    "What did Bob do at the lake?", "When did Anna move?", "What do I drink?", "她喜欢喝什么？",  # noqa: RUF001
    "Is the invoice open? Where is parcel 12?", "What happened in May 2023?", "Who plays the cello in early January?",
    "我去了哪里？什么时候？", "lake", "zzz",  # noqa: RUF001
]  # fmt: skip
MOMENTS = [None, *(datetime(2023, month, 3, hour, tzinfo=UTC) for month in (1, 5) for hour in (0, 23))]
names = (user(f"ann-{number}") for number in count())

drafts = st.builds(
    Draft,
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6, unique=True).map(". ".join),
    importance=st.sampled_from([0.5, 0.7, 1.0]),
    trust=st.sampled_from(["system", "user", "agent", "tool", "untrusted"]),
    conversation=st.sampled_from([None, "one", "two"]),
    author=st.sampled_from([None, "Bob", "Anna Berg", "user", "王小明"]),
    at=st.sampled_from(MOMENTS),
)


def placed(drafts: Sequence[Draft]) -> list[dict[str, Any]]:
    """The drafts, each in a place of its own in its conversation."""
    return [
        {name: getattr(draft, name) for name in ("content", "importance", "trust", "conversation", "author", "at")}
        | {"seq": None if draft.conversation is None else 7 * number}
        for number, draft in enumerate(drafts)
    ]


async def expected(engine: Engine, owner: Owner, memories: Sequence[Memory], question: str) -> list[tuple[Any, ...]]:
    """Ids and parts by the oracle, best first; vectors are those that are stored."""
    model = engine.embeddings.model(language_of(question))
    assert model is not None
    async with engine.postgres.owner() as reader:
        read = "select memory_id, embedding::real[] from memory_vector where model = $1 and memory_id = any($2)"
        rows = await reader.all(read, model, [memory.id for memory in memories])
    stored = {row["memory_id"]: row["embedding"] for row in rows}
    asked = [await engine.embeddings.query(part, model) for part in (question, *sentences_of(question))]
    remembered = [
        Remembered(
            memory.id,
            text_with_author(memory.content, memory.author),
            language_of(text_with_author(memory.content, memory.author)),
            stored.get(memory.id),
            memory.conversation,
            memory.seq,
            memory.at,
            [] if memory.author is None else author_terms(memory.author),
            is_by_owner(memory.author, owner),
            mentions_time(memory.content),
            memory.importance,
            memory.trust,
        )
        for memory in memories
    ]
    vectors = [decode_halfvec(encode_halfvec(vector)) for vector in asked if vector is not None]
    now, weights = await engine.database.now(), engine.config.memory.scoring
    found = scores(question, vectors, engine.embeddings.unrelated(model), remembered, weights, now)
    return sorted(
        ((id, *parts) for id, parts in found.items()), key=lambda each: (sum(each[1:]), each[0]), reverse=True
    )


def told(hits: Sequence[Hit]) -> list[tuple[Any, ...]]:
    return [
        (
            hit.memory.id, hit.parts.vector, hit.parts.words, hit.parts.neighbours, hit.parts.conversation,
            hit.parts.author, hit.parts.date, hit.parts.recency, hit.parts.importance, hit.parts.trust,
        )
        for hit in hits
        if hit.parts is not None
    ]  # fmt: skip


@pytest.mark.req("MEM-04", "MEM-12")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given=st.lists(drafts, min_size=1, max_size=12), question=st.sampled_from(QUESTIONS))
async def test_the_statement_scores_as_the_formula_says(
    engine: Engine, memories: Memories, given: list[Draft], question: str
) -> None:
    owner = next(names)
    written = {memory.id: memory for memory in await memories.remember_many(owner, placed(given))}

    hits = await memories.search(owner, question, limit=1000, explain=True)
    wanted = await expected(engine, owner, list(written.values()), question)

    ours, theirs = {row[0]: row[1:] for row in told(hits)}, {row[0]: row[1:] for row in wanted}
    assert ours.keys() == theirs.keys()
    for id, parts in ours.items():
        assert parts == pytest.approx(theirs[id], abs=1e-6), written[id].content
    order, totals = [row[0] for row in told(hits)], {row[0]: sum(row[1:]) for row in wanted}
    assert all(totals[one] >= totals[two] - 1e-6 for one, two in pairwise(order))


@pytest.mark.req("MEM-12")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given=st.lists(drafts, min_size=1, max_size=12), question=st.sampled_from(QUESTIONS))
async def test_the_parts_of_a_score_add_up_to_it(words_only: Engine, given: list[Draft], question: str) -> None:
    owner = next(names)
    await words_only.memory.remember_many(owner, placed(given))

    explained = await words_only.memory.search(owner, question, explain=True)
    plain = await words_only.memory.search(owner, question)

    assert all(hit.parts and abs(hit.parts.total - hit.score) < 1e-6 for hit in explained)
    assert all(hit.parts is None for hit in plain)
    assert [hit.score for hit in plain] == sorted((hit.score for hit in plain), reverse=True)


@pytest.mark.req("MEM-04", "MEM-05")
async def test_weighing_a_pool_finds_what_weighing_all_finds(open_with: OpenWith) -> None:
    dice = random.Random(7)
    texts = [" ".join(dice.sample(SENTENCES, 2)) + f" {number}" for number in range(80)]
    start = datetime(2023, 5, 1, tzinfo=UTC)
    given: list[dict[str, Any]] = [
        {"content": text, "conversation": f"talk {number // 20}", "seq": number, "at": start + timedelta(hours=number)}
        for number, text in enumerate(texts)
    ]
    async with open_with() as whole, open_with(scoring={"pool_from": 10, "pool": 40}) as pooled:
        await whole.memory.remember_many(user("ann"), given)
        for question in QUESTIONS[:-1]:
            exact = await whole.memory.search(user("ann"), question, limit=5)
            near = await pooled.memory.search(user("ann"), question, limit=5)

            common = {hit.memory.id for hit in exact} & {hit.memory.id for hit in near}
            assert near[0].memory.id == exact[0].memory.id, question
            assert len(common) >= 4, question
