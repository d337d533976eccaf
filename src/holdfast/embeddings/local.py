"""An embedding model in this process, loaded from the store."""

import asyncio
import threading
import time
from concurrent.futures import Future
from functools import partial

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.embeddings.downloads import DownloadCancelled, Progress, no_progress
from holdfast.embeddings.embedder import Embedder
from holdfast.embeddings.known_models import KNOWN
from holdfast.embeddings.onnx import OnnxEmbedder
from holdfast.embeddings.pool import EmbeddingPool
from holdfast.embeddings.store import ModelFiles, Store

MISSING = 0.5  # seconds to cache that a model is not in the store
FETCH_AGAIN = 300.0  # seconds until a failed download is retried


class LocalModel:
    """A model that is loaded from the store, and downloaded into it if the settings allow it."""

    longest_pause = 3.0  # short: another process may have downloaded the model

    def __init__(
        self, name: str, *, dimensions: int, prefix: str, store: Store, pool: EmbeddingPool, fetch: bool
    ) -> None:
        self._configured = name
        self._dimensions = dimensions
        self._prefix = prefix
        self._store = store
        self._pool = pool
        self._fetch = fetch and name in KNOWN
        self._fetch_after = 0.0
        self._failed_fetch: HoldfastError | None = None
        self._fetching = False
        self._missing_until = 0.0

    @property
    def name(self) -> str:
        """The name that is stored with its vectors; the configured name if the files are not in the store."""
        if self._configured in KNOWN:
            return self._configured
        files = self._files()
        return self._store.identity(files) if files else self._configured

    @property
    def dimensions(self) -> int:
        """The dimensions of its vectors."""
        return self._dimensions

    def find_error(self) -> HoldfastError | None:
        """Return an error if the model is not in the store or is being downloaded."""
        if self._fetching:
            return Unavailable(
                f"the embedding model {self._configured} is not installed", next="Wait: it is being downloaded."
            )
        if self._files() is not None:
            return None
        if self._failed_fetch is not None:
            return self._failed_fetch
        if self._fetch:
            next = "It is downloaded when it is first needed; download it now with `holdfast models fetch`."
        elif self._configured in KNOWN:
            next = "Run `holdfast models fetch`."
        else:
            next = (
                f"Put its .onnx file and its tokenizer.json in a folder {self._configured} in memory.embedding.folder."
            )
        return Unavailable(f"the embedding model {self._configured} is not installed", next=next)

    def _files(self) -> ModelFiles | None:
        """Return its files, if they are in the store. Every search asks, so a miss is cached for a moment."""
        if time.monotonic() < self._missing_until:
            return None
        found = self._store.find(self._configured)
        self._missing_until = 0.0 if found else time.monotonic() + MISSING
        return found

    async def open(self) -> Embedder:
        """Load the model."""
        files = self._store.find(self._configured)
        if files is None:
            error = self.find_error()
            raise error or Unavailable(f"the embedding model {self._configured} was just removed")
        return await self._load(files)

    async def provide(self) -> Embedder:
        """Load the model; download it first if it is missing, or damaged in the cache."""
        if self._fetch and time.monotonic() >= self._fetch_after:
            files = self._store.find(self._configured)
            if files is None or (files.cached and await self._pool.run(partial(self._store.find_damaged, files))):
                await self._download()
        return await self.open()

    async def _download(self) -> None:
        self._failed_fetch, self._fetching = None, True
        try:
            await fetch_in_thread(self._store, self._configured)
        except HoldfastError as error:
            self._failed_fetch, self._fetch_after = error, time.monotonic() + FETCH_AGAIN
        finally:
            self._fetching = False

    async def _load(self, files: ModelFiles) -> Embedder:
        try:
            await self._pool.run(partial(self._store.verify, files), urgent=True)
            name = await self._pool.run(partial(self._store.identity, files), urgent=True)
        except OSError as error:
            raise Unavailable(f"the embedding model {files.name} cannot be read", why=str(error)) from None
        return await OnnxEmbedder.load(
            files, name=name, dimensions=self._dimensions, prefix=self._prefix, pool=self._pool
        )


async def fetch_in_thread(store: Store, name: str, progress: Progress = no_progress) -> ModelFiles:
    """Download a model in a thread. If the caller is cancelled, the download stops at its next progress report.

    The thread is a daemon, so a program can exit while the network does not respond.
    """
    done: Future[ModelFiles] = Future()
    done.set_running_or_notify_cancel()
    cancelled = threading.Event()

    def step(received: int, total: int) -> None:
        if cancelled.is_set():
            raise DownloadCancelled
        progress(received, total)

    def work() -> None:
        try:
            done.set_result(store.fetch(name, step))
        except BaseException as error:  # noqa: BLE001
            done.set_exception(error)

    threading.Thread(target=work, name=f"holdfast fetch {name}", daemon=True).start()
    try:
        return await asyncio.wrap_future(done)
    finally:
        cancelled.set()
