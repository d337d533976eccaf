"""What every embedder promises, in this process and behind an endpoint."""

import asyncio
import math
from collections.abc import AsyncIterator

import pytest

from holdfast.core.memory_settings import EmbeddingSettings
from holdfast.embeddings import Embedder, Vector
from holdfast.embeddings.known_models import KNOWN
from holdfast.embeddings.onnx import OnnxEmbedder, OnnxModel
from holdfast.embeddings.pool import EmbeddingPool
from holdfast.embeddings.remote import EmbeddingEndpoint, RemoteModel
from tests.embeddings.conftest import endpoint, pool
from tests.embeddings.endpoint import FakeEndpoint
from tests.embeddings.models import ENGLISH, english, models

__all__ = ["endpoint", "english", "models", "pool"]

pytestmark = pytest.mark.req("EMB-01", "EMB-03")

PREFIX = KNOWN[ENGLISH].query_prefix
TEXTS = [
    "She prefers green tea over coffee.",
    "The database was moved to another region last Tuesday, and nobody noticed until the invoices were late.",
    "ok",
    "他明天去北京出差。",
    "Ann's brother plays chess on Sundays with two friends from work " * 4,
]
ODD = [
    "",
    " ",
    "\n\t  ",
    "\0",
    "before\0after",
    "\ud83d",
    "half \udc00 a pair",
    "👩‍👩‍👧‍👦🇩🇪",
    "\u202eabc",
    "a" * 100_000,
]


@pytest.fixture(params=["onnx", "remote"])
async def embedder(request: pytest.FixtureRequest, english: OnnxModel) -> AsyncIterator[Embedder]:
    """The English model, once in this process and once behind an endpoint."""
    if request.param == "onnx":
        pool = EmbeddingPool(2)
        yield OnnxEmbedder(english, name=ENGLISH, prefix=PREFIX, pool=pool)
        pool.close()
        return
    server = FakeEndpoint(english)
    async with server.serving():
        client = EmbeddingEndpoint(EmbeddingSettings(url=server.url))
        yield RemoteModel(client, ENGLISH, dimensions=384, prefix=PREFIX)
        await client.close()


async def test_every_vector_has_the_promised_dimension_and_unit_length(embedder: Embedder) -> None:
    vectors = await embedder.embed(TEXTS)

    assert [len(vector) for vector in vectors] == [embedder.dimensions] * len(TEXTS)
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1.0] * len(TEXTS), abs=1e-6)


async def test_a_text_has_the_same_vector_alone_and_in_any_company(embedder: Embedder) -> None:
    alone = [(await embedder.embed([text]))[0] for text in TEXTS]

    together = await embedder.embed(TEXTS * 5)
    reversed_ = await embedder.embed(TEXTS[::-1])

    assert together == alone * 5
    assert reversed_ == alone[::-1]


async def test_no_texts_have_no_vectors(embedder: Embedder) -> None:
    vectors = await embedder.embed([])

    assert vectors == []


async def test_more_texts_than_one_request_takes_keep_their_order(embedder: Embedder) -> None:
    texts = [f"entry {number}" for number in range(150)]

    vectors = await embedder.embed(texts)

    assert vectors[149] == (await embedder.embed([texts[149]]))[0]
    assert len({tuple(vector) for vector in vectors}) == 150


async def test_a_question_is_embedded_with_the_prefix_and_a_memory_without(embedder: Embedder) -> None:
    question = await embedder.embed_query(TEXTS[0])

    plain, prefixed = await embedder.embed([TEXTS[0], PREFIX + TEXTS[0]])
    assert question == prefixed != plain


async def test_of_a_long_text_the_first_512_tokens_make_the_vector(embedder: Embedder) -> None:
    beginning = "tea " * 510  # with the two tokens that mark beginning and end

    long, longer, earlier = await embedder.embed([beginning, beginning + "and coffee " * 300, "coffee " + beginning])

    assert long == longer != earlier


@pytest.mark.parametrize("text", ODD, ids=[ascii(text[:12]) for text in ODD])
async def test_odd_text_has_a_vector(embedder: Embedder, text: str) -> None:
    first = await embedder.embed([text])
    second = await embedder.embed([text])

    assert first == second
    assert math.hypot(*first[0]) == pytest.approx(1.0, abs=1e-6)


async def test_a_cancelled_bulk_leaves_nothing_behind(embedder: Embedder) -> None:
    bulk = asyncio.create_task(embedder.embed(TEXTS * 1000))
    await embedder.embed(["the bulk is under way by now"])

    bulk.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bulk

    async with asyncio.timeout(20):  # the bulk would have taken half a minute, and minutes on a busy machine
        await embedder.embed(TEXTS)


async def test_many_callers_at_once_get_their_own(embedder: Embedder) -> None:
    async def call(number: int) -> list[Vector]:
        return await embedder.embed([f"caller {number}", TEXTS[number % len(TEXTS)]])

    found = await asyncio.gather(*map(call, range(32)))

    assert found == [await call(number) for number in range(32)]
