import asyncio
import json
import shutil
import threading
from pathlib import Path
from typing import Any, cast

import numpy
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from tokenizers import Tokenizer

from holdfast.core.errors import BadSetting, Unavailable
from holdfast.embeddings.known_models import KNOWN
from holdfast.embeddings.onnx import OnnxEmbedder, OnnxModel
from holdfast.embeddings.pool import EmbeddingPool
from holdfast.embeddings.store import ModelFiles, Store
from tests.embeddings.models import CHINESE, ENGLISH

pytestmark = pytest.mark.req("EMB-01")

PAIRS = {
    ENGLISH: [
        ("She prefers tea.", "What does she drink?"),
        ("She prefers tea.", "The server was restarted twice."),
        ("Paris is the capital of France.", "France has its government in Paris."),
    ],
    CHINESE: [("她喜欢喝茶。", "她喝什么？"), ("她喜欢喝茶。", "服务器重启了两次。")],  # noqa: RUF001
}


def files_of(models: Store, name: str) -> ModelFiles:
    """A model's files."""
    files = models.find(name)
    assert files is not None
    return files


def token_states(files: ModelFiles, text: str) -> Any:
    """What the model says of each token, by the plain recipe and nothing of ours."""
    runtime = cast(Any, onnxruntime)
    session = runtime.InferenceSession(str(files.onnx), providers=["CPUExecutionProvider"])
    ids = Tokenizer.from_file(str(files.tokenizer)).encode(text).ids
    ones = numpy.ones((1, len(ids)), numpy.int64)
    given = {"input_ids": ones * ids, "attention_mask": ones, "token_type_ids": 0 * ones}
    return session.run(None, given)[0][0]


def cosine(one: Any, other: Any) -> float:
    """How near two vectors are."""
    return float(numpy.dot(one, other) / numpy.linalg.norm(one) / numpy.linalg.norm(other))


@pytest.mark.parametrize("name", [ENGLISH, CHINESE])
def test_vectors_are_the_normalised_first_token_of_the_model(models: Store, name: str) -> None:
    files = files_of(models, name)
    model = OnnxModel(files)

    for one, other in PAIRS[name]:
        ours = cosine(model.vector(one), model.vector(other))

        plain = cosine(token_states(files, one)[0], token_states(files, other)[0])
        assert ours == pytest.approx(plain, abs=1e-6)


@pytest.mark.parametrize("name", [ENGLISH, CHINESE])
def test_what_belongs_together_is_nearer_than_what_does_not(models: Store, name: str) -> None:
    model = OnnxModel(files_of(models, name))

    near, far = (cosine(model.vector(one), model.vector(other)) for one, other in PAIRS[name][:2])

    assert near > far + 0.1
    assert model.dimensions == KNOWN[name].dimensions


@pytest.mark.req("EMB-03")
def test_a_model_whose_files_say_so_is_pooled_by_the_mean(models: Store, tmp_path: Path) -> None:
    source = files_of(models, ENGLISH)
    folder = tmp_path / "mine"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    shutil.copy(source.onnx, folder)
    shutil.copy(source.tokenizer, folder)

    vector = OnnxModel(files_of(Store(tmp_path), "mine")).vector("She prefers tea.")

    assert cosine(vector, token_states(source, "She prefers tea.").mean(axis=0)) == pytest.approx(1, abs=1e-6)


async def test_a_question_does_not_wait_behind_a_bulk(english: OnnxModel, pool: EmbeddingPool) -> None:
    embedder = OnnxEmbedder(english, name=ENGLISH, prefix="", pool=pool)
    finished: list[str] = []

    async def bulk(number: int) -> None:
        await embedder.embed([f"entry {number} {place}" for place in range(30)])
        finished.append("bulk")

    async def question() -> None:
        await embedder.embed_query("what?")
        finished.append("question")

    await asyncio.gather(*map(bulk, range(5)), question())

    assert finished == ["question"] + ["bulk"] * 5


async def test_bulks_take_turns(english: OnnxModel, pool: EmbeddingPool) -> None:
    embedder = OnnxEmbedder(english, name=ENGLISH, prefix="", pool=pool)
    finished: list[int] = []

    async def bulk(size: int) -> None:
        await embedder.embed([f"entry {place} of {size}" for place in range(size)])
        finished.append(size)

    await asyncio.gather(bulk(100), bulk(10))

    assert finished == [10, 100]


async def test_models_run_off_the_event_loop_and_on_every_thread(
    english: OnnxModel, pool: EmbeddingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = OnnxEmbedder(english, name=ENGLISH, prefix="", pool=pool)
    threads: set[int] = set()
    vector = OnnxModel.vector

    def watched(model: OnnxModel, text: str) -> list[float]:
        threads.add(threading.get_ident())
        return vector(model, text)

    monkeypatch.setattr(OnnxModel, "vector", watched)
    await embedder.embed([f"entry {place}" for place in range(40)])

    assert len(threads) == 2
    assert threading.get_ident() not in threads


async def test_a_turn_that_its_owner_no_longer_wants_goes_to_the_next(pool: EmbeddingPool) -> None:
    gate = threading.Event()
    held = [asyncio.create_task(pool.run(gate.wait)) for _ in range(pool.threads)]
    waiting = [asyncio.create_task(pool.run(lambda number=number: number)) for number in range(3)]
    await asyncio.sleep(0)

    waiting[0].cancel()
    gate.set()
    await asyncio.gather(*held)
    waiting[1].cancel()  # it has its turn and does not know it yet

    async with asyncio.timeout(5):
        assert await waiting[2] == 2
        assert await asyncio.gather(*(pool.run(lambda: 7) for _ in range(10))) == [7] * 10


@pytest.mark.req("EMB-03")
async def test_another_dimension_than_the_settings_say_is_refused(models: Store, pool: EmbeddingPool) -> None:
    with pytest.raises(BadSetting, match=r"384 dimensions, not 512. Set memory.embedding.dimensions"):
        await OnnxEmbedder.load(files_of(models, ENGLISH), name=ENGLISH, dimensions=512, pool=pool)


@pytest.mark.req("EMB-02")
async def test_a_file_that_is_no_model_is_refused(models: Store, pool: EmbeddingPool, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"no model")
    shutil.copy(files_of(models, ENGLISH).tokenizer, folder)

    with pytest.raises(Unavailable, match="the model mine cannot be loaded"):
        await OnnxEmbedder.load(files_of(Store(tmp_path), "mine"), name="mine", dimensions=384, pool=pool)
