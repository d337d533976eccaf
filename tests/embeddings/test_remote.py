import json
import math
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from holdfast.core.errors import BadSetting, HoldfastError, InvalidInput, TimedOut, Unavailable
from holdfast.core.memory_settings import EmbeddingSettings
from holdfast.embeddings.remote import EmbeddingEndpoint, RemoteModel
from tests.embeddings.endpoint import FakeEndpoint

pytestmark = pytest.mark.req("EMB-03")


@pytest.fixture
async def model(endpoint: FakeEndpoint) -> AsyncIterator[RemoteModel]:
    """A model behind the endpoint."""
    client = EmbeddingEndpoint(EmbeddingSettings(url=endpoint.url, api_key=SecretStr("sk-1"), timeout=20))
    yield RemoteModel(client, "text-embedding-3-small", dimensions=384, prefix="query: ")
    await client.close()


async def test_the_request_is_as_openai_has_it(endpoint: FakeEndpoint, model: RemoteModel) -> None:
    await model.embed(["tea", "coffee"])
    await model.embed_query("tea")

    assert endpoint.requests == [
        {"model": "text-embedding-3-small", "input": ["tea", "coffee"]},
        {"model": "text-embedding-3-small", "input": ["query: tea"]},
    ]
    assert endpoint.keys == ["Bearer sk-1"] * 2


async def test_many_texts_go_in_several_requests(endpoint: FakeEndpoint, model: RemoteModel) -> None:
    await model.embed([f"entry {number}" for number in range(130)])

    assert [len(request["input"]) for request in endpoint.requests] == [64, 64, 2]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_may_pass_is_tried_again(endpoint: FakeEndpoint, model: RemoteModel, status: int) -> None:
    endpoint.failures.append(lambda: web.Response(status=status))

    vectors = await model.embed(["tea"])

    assert len(vectors) == 1
    assert len(endpoint.requests) == 2


async def test_it_waits_as_long_as_it_is_told(endpoint: FakeEndpoint, model: RemoteModel) -> None:
    endpoint.failures.append(lambda: web.Response(status=429, headers={"Retry-After": "1"}))
    started = time.monotonic()

    await model.embed(["tea"])

    assert time.monotonic() - started >= 1


async def test_it_does_not_wait_longer_than_it_has_time(endpoint: FakeEndpoint, model: RemoteModel) -> None:
    endpoint.broken = lambda _: web.Response(status=429, headers={"Retry-After": "60"}, text="slow down")
    started = time.monotonic()

    with pytest.raises(Unavailable, match="returned 429: slow down"):
        await model.embed(["tea"])

    assert time.monotonic() - started < 30


async def test_an_endpoint_that_does_not_answer_is_given_up(endpoint: FakeEndpoint) -> None:
    client = EmbeddingEndpoint(EmbeddingSettings(url=endpoint.url, timeout=0.001))

    with pytest.raises(TimedOut, match=r"within 0.001 s. Check memory.embedding.url"):
        await RemoteModel(client, "m", dimensions=384).embed(["tea"])

    await client.close()


async def test_an_endpoint_that_is_not_there_is_said(endpoint: FakeEndpoint) -> None:
    client = EmbeddingEndpoint(EmbeddingSettings(url="http://127.0.0.1:1/v1"))

    with pytest.raises(Unavailable, match=r"127.0.0.1:1/v1/embeddings cannot be reached"):
        await RemoteModel(client, "m", dimensions=384).embed(["tea"])

    await client.close()


def rows(*embeddings: object, first: int = 0) -> dict[str, Any]:
    """An answer with these vectors."""
    data = [{"index": first + place, "embedding": embedding} for place, embedding in enumerate(embeddings)]
    return {"text": json.dumps({"data": data})}


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (rows([1.0] * 3), BadSetting, "3 dimensions, not 384. Set memory.embedding.dimensions"),
        (rows([math.nan] * 384), Unavailable, "memory.embedding.dimensions"),
        (rows([0.0] * 384), Unavailable, "a vector has the length 0"),
        (rows(["1"] * 384), Unavailable, "a vector is not a list of numbers"),
        (rows("AAAA"), Unavailable, "a vector is not a list of numbers"),
        (rows([1.0] * 384, first=7), Unavailable, "indexes of its vectors"),
        (rows([10**400] * 384), Unavailable, "is invalid|did not return JSON"),
        (rows([1e301] * 384), Unavailable, "a vector is not a list of numbers"),
        (rows(), Unavailable, "0 vectors for 1 texts"),
        ({"text": '{"data": null}'}, Unavailable, "no vectors"),
        ({"text": "[1]"}, Unavailable, "no vectors"),
        ({"text": "<html>"}, Unavailable, "did not return JSON"),
        ({"status": 401, "text": "who are you"}, BadSetting, "returned 401: who.*memory.embedding.api_key"),
        ({"status": 404}, BadSetting, "returned 404.*memory.embedding.model"),
        ({"status": 400, "text": "no such model"}, BadSetting, "returned 400: no such model"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_a_clear_error(
    endpoint: FakeEndpoint, model: RemoteModel, answer: dict[str, Any], error: type[HoldfastError], said: str
) -> None:
    endpoint.broken = lambda _: web.Response(**answer)

    with pytest.raises(error, match=said):
        await model.embed(["tea"])


@pytest.mark.parametrize(
    "indexes",
    [
        [[0], [1]],
        [0, [1]],
        [0, "1"],
        ["0", "1"],
        [0, None],
        [None, 1],
        [0, 0],
        [1, 2],
        [0, 1.0],
        [False, True],
        [{}, 0],
    ],
    ids=json.dumps,
)
async def test_vectors_that_may_be_anybodys_are_nobodys(
    endpoint: FakeEndpoint, model: RemoteModel, indexes: list[object]
) -> None:
    data = [{"index": index, "embedding": [1.0] * 384} for index in indexes]
    data = [{name: value for name, value in row.items() if value is not None} for row in data]
    endpoint.broken = lambda _: web.json_response({"data": data})

    with pytest.raises(Unavailable, match="the indexes of its vectors are invalid"):
        await model.embed(["tea", "coffee"])


async def test_vectors_without_any_index_are_in_the_order_of_the_texts(
    endpoint: FakeEndpoint, model: RemoteModel
) -> None:
    texts = ["tea", "coffee", "milk"]
    expected = await model.embed(texts)

    def without_indexes(body: dict[str, Any]) -> web.Response:
        data = endpoint.answer(body["input"])["data"][::-1]
        return web.json_response({"data": [{"embedding": row["embedding"]} for row in data]})

    endpoint.broken = without_indexes

    assert await model.embed(texts) == expected


async def test_a_text_that_it_refuses_is_not_taken_for_a_wrong_setting(
    endpoint: FakeEndpoint, model: RemoteModel
) -> None:
    endpoint.broken = lambda body: web.Response(status=400, text="too long") if "tea" in body["input"] else None

    with pytest.raises(InvalidInput, match="returned 400: too long") as refused:
        await model.embed(["tea", "coffee"])

    assert not isinstance(refused.value, BadSetting)
