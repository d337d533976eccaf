import asyncio
import time
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.core.errors import Unavailable
from holdfast.embeddings.downloads import DownloadCancelled, Progress, fetch_from_hub, no_progress
from holdfast.embeddings.known_models import KNOWN, KnownModel, PinnedFile
from tests.embeddings.hub import Hub
from tests.embeddings.models import ENGLISH

pytestmark = pytest.mark.req("EMB-02")

FILES = {"onnx/model_quantized.onnx": bytes(range(256)) * 8000, "tokenizer.json": b"{}"}
MODEL = replace(
    KNOWN[ENGLISH],
    onnx=PinnedFile("onnx/model_quantized.onnx", 2_048_000, sha256(FILES["onnx/model_quantized.onnx"]).hexdigest()),
    tokenizer=PinnedFile("tokenizer.json", 2, sha256(b"{}").hexdigest()),
)


async def fetch(hub: Hub, draft: Path, *, known: KnownModel = MODEL, progress: Progress = no_progress) -> None:
    """Fetch from that hub, beside the event loop that serves it."""
    await asyncio.to_thread(partial(fetch_from_hub, known, draft, progress, endpoint=hub.url))


async def test_the_hub_gives_a_model_and_says_how_far_it_is(tmp_path: Path) -> None:
    hub, seen = Hub(FILES), list[tuple[int, int]]()
    async with hub.serving():
        await fetch(hub, tmp_path, progress=lambda here, total: seen.append((here, total)))

    assert (tmp_path / "model.onnx").read_bytes() == FILES["onnx/model_quantized.onnx"]
    assert (tmp_path / "tokenizer.json").read_bytes() == b"{}"
    assert len(seen) > 2
    assert [here for here, _ in seen] == sorted(here for here, _ in seen)
    assert seen[-1] == (MODEL.bytes, MODEL.bytes)


async def test_an_interrupted_fetch_goes_on_where_it_ended(tmp_path: Path) -> None:
    hub = Hub(FILES)

    def give_up(here: int, total: int) -> None:
        if here > 1_000_000:
            raise DownloadCancelled

    async with hub.serving():
        with pytest.raises(DownloadCancelled):
            await fetch(hub, tmp_path, progress=give_up)
        await fetch(hub, tmp_path)

    (_, beginning), (again, middle) = hub.sent[:2]
    assert again == "onnx/model_quantized.onnx"
    assert beginning == 0
    assert middle > 1_000_000
    assert (tmp_path / "model.onnx").read_bytes() == FILES["onnx/model_quantized.onnx"]


async def test_a_connection_that_breaks_off_is_made_again(tmp_path: Path) -> None:
    hub = Hub(FILES)
    hub.break_after = 700_000
    async with hub.serving():
        await fetch(hub, tmp_path)

    starts = [start for name, start in hub.sent if name != "tokenizer.json"]
    assert len(starts) > 2
    assert starts == sorted(set(starts))
    assert (tmp_path / "model.onnx").read_bytes() == FILES["onnx/model_quantized.onnx"]


async def test_a_file_that_was_already_fetched_is_not_fetched_again(tmp_path: Path) -> None:
    hub = Hub(FILES)
    async with hub.serving():
        await fetch(hub, tmp_path)
        (tmp_path / "tokenizer.json").unlink()

        await fetch(hub, tmp_path)

    assert [name for name, _ in hub.sent] == ["onnx/model_quantized.onnx", "tokenizer.json", "tokenizer.json"]


async def test_of_a_file_that_is_larger_than_the_known_one_no_more_is_fetched(tmp_path: Path) -> None:
    hub = Hub(FILES | {"onnx/model_quantized.onnx": bytes(20_000_000)})
    async with hub.serving():
        await fetch(hub, tmp_path)

    assert MODEL.onnx.bytes < (tmp_path / "model.onnx").stat().st_size < 4_000_000


async def test_a_hub_without_the_model_says_so(tmp_path: Path) -> None:
    hub = Hub({})
    async with hub.serving():
        with pytest.raises(Unavailable, match="it returned 404"):
            await fetch(hub, tmp_path)


async def test_a_hub_that_cannot_be_reached_is_given_up_within_seconds(tmp_path: Path) -> None:
    hub = Hub(FILES)
    async with hub.serving():
        pass
    started = time.monotonic()

    with pytest.raises(Unavailable, match="the hub cannot be reached"):
        await fetch(hub, tmp_path)

    assert time.monotonic() - started < 5
