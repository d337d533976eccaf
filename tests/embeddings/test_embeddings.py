import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.errors import Broken, InvalidInput, Unavailable
from holdfast.core.memory_settings import EmbeddingSettings
from holdfast.embeddings import Embedder, Embeddings, Store, onnx
from holdfast.embeddings.downloads import Progress
from holdfast.embeddings.known_models import KnownModel
from holdfast.embeddings.language import Language
from holdfast.embeddings.local import LocalModel
from holdfast.embeddings.model_supply import ModelSupply
from holdfast.embeddings.onnx import OnnxEmbedder, OnnxModel
from holdfast.embeddings.store import Source
from tests.embeddings.endpoint import FakeEndpoint
from tests.embeddings.models import CHINESE, ENGLISH

NO_FETCH = EmbeddingSettings(fetch=False)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is looked for again at once."""
    monkeypatch.setattr(ModelSupply, "first_pause", 0.01)


@pytest.fixture
async def embeddings(models: Store) -> AsyncIterator[Embeddings]:
    """Both models, as they come."""
    async with Embeddings(NO_FETCH, store=models) as embeddings:
        yield embeddings


def lengths(vectors: list[Any]) -> list[int | None]:
    """How long each vector is."""
    return [len(vector) if vector else None for vector in vectors]


@pytest.mark.req("EMB-01", "MEM-11")
async def test_each_language_has_its_model_and_japanese_and_korean_have_none(embeddings: Embeddings) -> None:
    vectors = await embeddings.vectors(["tea", "她喜欢喝茶", "お茶が好きです", "차를 좋아한다", "coffee"])

    assert lengths(vectors) == [384, 512, None, None, 384]
    assert (embeddings.model("en"), embeddings.model("zh"), embeddings.model("other")) == (ENGLISH, CHINESE, None)
    assert (embeddings.dimensions(ENGLISH), embeddings.dimensions(CHINESE)) == (384, 512)
    assert embeddings.state == ("ok", f"{ENGLISH}, {CHINESE}")


@pytest.mark.req("EMB-03")
async def test_without_a_chinese_model_one_model_serves_every_language(models: Store) -> None:
    async with Embeddings(EmbeddingSettings(chinese_model="", fetch=False), store=models) as embeddings:
        vectors = await embeddings.vectors(["tea", "她喜欢喝茶", "お茶が好きです"])

    assert lengths(vectors) == [384] * 3
    assert embeddings.model("other") == ENGLISH


@pytest.mark.req("EMB-01")
def test_nothing_heavy_is_loaded_before_the_first_text() -> None:
    program = """if True:
        import sys
        from holdfast.core.memory_settings import EmbeddingSettings
        from holdfast.embeddings import Embeddings
        embeddings = Embeddings(EmbeddingSettings())
        print(embeddings.state[0] in ("ok", "reduced"), embeddings.model("en"))
        print({"numpy", "onnxruntime", "tokenizers", "aiohttp", "huggingface_hub"} & set(sys.modules))
    """

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [f"True {ENGLISH}", "set()"]


@pytest.mark.req("EMB-02")
async def test_without_a_model_there_are_no_vectors_and_it_says_why_and_what_to_do(tmp_path: Path) -> None:
    async with Embeddings(NO_FETCH, store=Store(None, tmp_path)) as embeddings:
        ready = embeddings.ready(ENGLISH)
        vectors = await embeddings.vectors(["tea", "茶"])
        question = await embeddings.query("tea?", ENGLISH)

        assert not ready
        assert (vectors, question) == ([None, None], None)
        state, why = embeddings.state
        assert state == "reduced"
        assert (
            f"English by words only: the embedding model {ENGLISH} is not installed. Run `holdfast models fetch`."
            in why
        )


@pytest.mark.req("EMB-02")
async def test_a_model_that_arrives_late_is_noticed(models: Store, tmp_path: Path) -> None:
    files = models.find(ENGLISH)
    assert files is not None
    async with Embeddings(NO_FETCH, store=Store(None, tmp_path)) as embeddings:
        missed = await embeddings.vectors(["tea"])
        shutil.copytree(files.onnx.parent, tmp_path / "copy")
        (tmp_path / "copy").rename(tmp_path / ENGLISH)

        async with asyncio.timeout(10):
            await embeddings.model_available.wait()

        assert missed == [None]
        assert lengths(await embeddings.vectors(["tea"])) == [384]
        assert embeddings.ready(ENGLISH)


def copied(models: Store) -> Source:
    """A source that gives the English model, whichever is asked for."""

    def source(known: KnownModel, draft: Path, progress: Progress) -> None:
        files = models.find(ENGLISH)
        assert files is not None
        shutil.copy(files.onnx, draft / "model.onnx")
        shutil.copy(files.tokenizer, draft / "tokenizer.json")

    return source


@pytest.mark.req("EMB-02")
async def test_a_missing_model_is_fetched_behind_the_callers_back(models: Store, tmp_path: Path) -> None:
    async with Embeddings(EmbeddingSettings(), store=Store(None, tmp_path, (copied(models),))) as embeddings:
        missed = await embeddings.vectors(["tea"])
        async with asyncio.timeout(10):
            await embeddings.model_available.wait()

        assert missed == [None]
        assert lengths(await embeddings.vectors(["tea"])) == [384]


@pytest.mark.req("EMB-02", "ENG-01")
async def test_a_server_fetches_what_is_missing_before_anyone_asks(models: Store, tmp_path: Path) -> None:
    async with Embeddings(EmbeddingSettings(), store=Store(None, tmp_path, (copied(models),))) as embeddings:
        embeddings.prepare()
        async with asyncio.timeout(10):
            await embeddings.model_available.wait()

        assert lengths(await embeddings.vectors(["tea"])) == [384]


@pytest.mark.req("EMB-02")
async def test_a_fetch_that_failed_is_told_by_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = asyncio.Event()
    provide = LocalModel.provide

    async def watched(model: LocalModel) -> Embedder:
        try:
            return await provide(model)
        finally:
            failed.set()

    monkeypatch.setattr(LocalModel, "provide", watched)

    def origin(known: KnownModel, draft: Path, progress: Progress) -> None:
        raise Unavailable("the hub cannot be reached", why="no route")

    async with Embeddings(EmbeddingSettings(), store=Store(None, tmp_path, (origin,))) as embeddings:
        await embeddings.vectors(["tea"])
        async with asyncio.timeout(5):
            await failed.wait()

        state, why = embeddings.state
        assert state == "reduced"
        assert "the hub cannot be reached: no route" in why


@pytest.mark.req("EMB-02")
async def test_a_damaged_model_in_the_cache_is_replaced(models: Store, tmp_path: Path) -> None:
    files = models.find(ENGLISH)
    assert files is not None
    shutil.copytree(files.onnx.parent, tmp_path / ENGLISH)
    with (tmp_path / ENGLISH / "model.onnx").open("r+b") as file:
        file.write(b"damage")

    def origin(known: KnownModel, draft: Path, progress: Progress) -> None:
        shutil.copy(files.onnx, draft / "model.onnx")
        shutil.copy(files.tokenizer, draft / "tokenizer.json")

    async with Embeddings(EmbeddingSettings(), store=Store(None, tmp_path, (origin,))) as embeddings:
        await embeddings.vectors(["tea"])
        async with asyncio.timeout(10):
            await embeddings.model_available.wait()

        assert lengths(await embeddings.vectors(["tea"])) == [384]


@pytest.mark.req("EMB-01")
async def test_a_question_is_embedded_once_for_each_who_asks(
    embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    embed_query = OnnxEmbedder.embed_query

    async def counted(embedder: OnnxEmbedder, text: str) -> list[float]:
        asked.append(text)
        return await embed_query(embedder, text)

    monkeypatch.setattr(OnnxEmbedder, "embed_query", counted)
    at_once = await asyncio.gather(*(embeddings.query("tea?", ENGLISH, asker="acme") for _ in range(5)))
    later = await embeddings.query("tea?", ENGLISH, asker="acme")
    others = await embeddings.query("tea?", ENGLISH, asker="globex")

    assert asked == ["tea?", "tea?"]
    assert at_once == [later] * 5
    assert others == later


@pytest.mark.req("EMB-01")
async def test_the_least_recently_asked_question_is_forgotten(models: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    embed_query = OnnxEmbedder.embed_query

    async def counted(embedder: OnnxEmbedder, text: str) -> list[float]:
        asked.append(text)
        return await embed_query(embedder, text)

    monkeypatch.setattr(OnnxEmbedder, "embed_query", counted)
    async with Embeddings(EmbeddingSettings(cached_queries=2, fetch=False), store=models) as embeddings:
        for question in ("a", "b", "a", "c", "a", "b"):
            await embeddings.query(question, ENGLISH)

    assert asked == ["a", "b", "c", "b"]


@pytest.mark.req("EMB-01")
async def test_who_no_longer_waits_for_a_question_takes_nothing_from_others(embeddings: Embeddings) -> None:
    await embeddings.vectors(["the model is loaded now"])
    first = asyncio.create_task(embeddings.query("tea?", ENGLISH))
    second = asyncio.create_task(embeddings.query("tea?", ENGLISH))
    await asyncio.sleep(0)

    first.cancel()

    assert lengths([await second]) == [384]


@pytest.mark.req("EMB-03")
async def test_vectors_of_a_former_model_can_still_be_searched(models: Store) -> None:
    settings = EmbeddingSettings(model=CHINESE, dimensions=512, chinese_model="", fetch=False)
    async with Embeddings(settings, store=models) as embeddings:
        question = await embeddings.query("tea?", ENGLISH)

        assert lengths([question]) == [384]
        assert embeddings.dimensions(ENGLISH) == 384
        assert await embeddings.query("tea?", "never heard of") is None
        with pytest.raises(InvalidInput):
            embeddings.dimensions("never heard of")


@pytest.mark.req("EMB-03")
async def test_any_model_in_the_folder_can_be_had_and_knows_its_file(models: Store, tmp_path: Path) -> None:
    files = models.find(ENGLISH)
    assert files is not None
    shutil.copytree(files.onnx.parent, tmp_path / "mine")
    settings = EmbeddingSettings(model="mine", chinese_model="", folder=tmp_path)
    async with Embeddings(settings) as embeddings:
        vectors = await embeddings.vectors(["tea"])

        assert lengths(vectors) == [384]
        assert embeddings.model("en") == "mine-6c9c6101"
        assert await embeddings.query("tea?", "mine-6c9c6101")


@pytest.mark.req("EMB-03")
async def test_a_wrong_dimension_takes_the_vectors_and_says_which_setting(models: Store) -> None:
    async with Embeddings(EmbeddingSettings(dimensions=768, fetch=False), store=models) as embeddings:
        vectors = await embeddings.vectors(["tea", "茶"])

        assert lengths(vectors) == [None, 512]
        assert embeddings.state[0] == "reduced"
        assert "Set memory.embedding.dimensions" in embeddings.state[1]


@pytest.mark.req("EMB-02")
async def test_a_runtime_that_cannot_be_loaded_is_told_and_not_raised(
    embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(onnx, "OnnxModel", OnnxModel)  # not one that was loaded before

    vectors = await embeddings.vectors(["tea"])

    assert vectors == [None]
    assert embeddings.state[0] == "reduced"
    assert "onnxruntime" in embeddings.state[1]


def remote(endpoint: FakeEndpoint) -> Embeddings:
    """One model for every language, behind the endpoint."""
    return Embeddings(EmbeddingSettings(url=endpoint.url, model="m", chinese_model="", timeout=5))


@pytest.mark.req("EMB-03")
async def test_what_was_embedded_before_the_endpoint_went_away_is_kept(endpoint: FakeEndpoint) -> None:
    def fail_later(body: dict[str, Any]) -> web.Response | None:
        return web.Response(status=503) if len(endpoint.requests) > 1 else None

    endpoint.broken = fail_later
    async with remote(endpoint) as embeddings:
        vectors = await embeddings.vectors([f"entry {number}" for number in range(130)])

        assert lengths(vectors) == [384] * 64 + [None] * 66
        assert embeddings.state[0] == "reduced"
        assert not embeddings.ready("m@384")


@pytest.mark.req("EMB-03")
async def test_an_endpoint_that_comes_back_is_noticed(endpoint: FakeEndpoint) -> None:
    endpoint.broken = lambda _: web.Response(status=503)
    async with remote(endpoint) as embeddings:
        missed = await embeddings.vectors(["tea"])
        waiting = await embeddings.query("tea?", "m@384")

        endpoint.broken = lambda _: None
        async with asyncio.timeout(10):
            await embeddings.model_available.wait()

        assert (missed, waiting) == ([None], None)
        assert lengths(await embeddings.vectors(["tea"])) == [384]
        assert embeddings.state == ("ok", "m@384")


@pytest.mark.req("EMB-03")
async def test_a_text_that_is_refused_costs_the_others_nothing(endpoint: FakeEndpoint) -> None:
    endpoint.broken = lambda body: web.Response(status=400) if "entry 20" in body["input"] else None
    async with remote(endpoint) as embeddings:
        vectors = await embeddings.vectors([f"entry {number}" for number in range(64)])

        assert [number for number, vector in enumerate(vectors) if vector is None] == [20]
        assert embeddings.ready("m@384")


@pytest.mark.req("EMB-01")
async def test_a_text_that_the_model_fails_on_costs_the_others_nothing(
    embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = OnnxModel.vector

    def failing(model: OnnxModel, text: str) -> list[float]:
        if text == "bad":
            raise Broken("the model failed on a text")
        return vector(model, text)

    monkeypatch.setattr(OnnxModel, "vector", failing)
    vectors = await embeddings.vectors(["a", "bad", "b", "c"])

    assert lengths(vectors) == [384, None, 384, 384]
    assert embeddings.state[0] == "ok"


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize("languages", [[], ["en"], ["en", "zh", "en"]], ids=len)
async def test_as_many_languages_as_texts_are_given_or_none(embeddings: Embeddings, languages: list[Language]) -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        await embeddings.vectors(["tea", "茶"], languages)

    assert lengths(await embeddings.vectors([], [])) == []
    assert lengths(await embeddings.vectors(["tea", "茶"], ["zh", "en"])) == [512, 384]
