"""The supply of one configured model: it opens the model on first use, and retries while it is unavailable."""

import asyncio
import logging
from typing import Protocol

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.embeddings.embedder import Embedder

log = logging.getLogger(__name__)


class ModelOpener(Protocol):
    """Opens the embedder of one model."""

    longest_pause: float  # maximum seconds between two retries

    @property
    def name(self) -> str:
        """The name that is stored with the vectors."""
        ...

    @property
    def dimensions(self) -> int:
        """The configured dimensions of the vectors."""
        ...

    def find_error(self) -> HoldfastError | None:
        """Return why it cannot be opened now, as far as is known without trying; None if nothing is known."""
        ...

    async def open(self) -> Embedder:
        """Open the embedder without a download."""
        ...

    async def provide(self) -> Embedder:
        """Open the embedder, and download or test it first if needed. This can take long."""
        ...


class ModelSupply:
    """Provides the embedder of one source, or None while it is unavailable."""

    first_pause = 1.0

    def __init__(self, source: ModelOpener, model_available: asyncio.Event) -> None:
        self._source = source
        self._model_available = model_available
        self._lock = asyncio.Lock()
        self._embedder: Embedder | None = None
        self._retry_task: asyncio.Task[None] | None = None
        self._why = ""

    @property
    def name(self) -> str:
        """The model's name."""
        return self._embedder.name if self._embedder else self._source.name

    @property
    def dimensions(self) -> int:
        """The dimensions of its vectors."""
        return self._source.dimensions

    @property
    def why(self) -> str:
        """Why the embedder is unavailable; empty if it is open, or not opened yet and not known to be unavailable."""
        if self._embedder is not None:
            return ""
        error = self._source.find_error()
        return str(error) if error else self._why

    async def embedder(self) -> Embedder | None:
        """Return the embedder, or None. The first callers wait until it is loaded; no caller waits for a download."""
        if self._embedder is None and self._retry_task is None:
            async with self._lock:
                if self._embedder is None and self._retry_task is None:
                    try:
                        self._embedder = await self._source.open()
                    except HoldfastError as error:
                        self.mark_unavailable(error)
                    except Exception as error:
                        log.exception("internal error: could not load the embedding model %s", self._source.name)
                        self.mark_unavailable(
                            Unavailable(f"the embedding model {self.name} is not available", why=str(error))
                        )
        return self._embedder

    def mark_unavailable(self, error: HoldfastError) -> None:
        """Mark the embedder as unavailable, and retry in the background until it works again."""
        self._embedder = None
        self._why = str(error)
        if self._retry_task is None:
            log.warning("search uses words only: %s", self._why)
            self._retry_task = asyncio.create_task(self._retry(), name="holdfast embedding model")

    async def close(self) -> None:
        """Stop the retries."""
        if self._retry_task is not None:
            self._retry_task.cancel()
            await asyncio.gather(self._retry_task, return_exceptions=True)

    async def _retry(self) -> None:
        pause = self.first_pause
        while True:
            try:
                self._embedder = await self._source.provide()
            except HoldfastError as error:
                self._why = str(error)
            except Exception as error:
                self._why = f"the embedding model {self._source.name} is not available: {error}"
                log.exception("internal error: could not load the embedding model %s", self._source.name)
            else:
                break
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._source.longest_pause)
        self._why, self._retry_task = "", None
        log.info("the embedding model %s is available", self.name)
        self._model_available.set()
