"""A model of the settings: had when it is first needed, and looked for again as long as it cannot be had."""

import asyncio
import logging
from typing import Protocol

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.embeddings.embedder import Embedder

log = logging.getLogger(__name__)


class Source(Protocol):
    """Where an embedder comes from."""

    longest_pause: float  # seconds between two looks, at most

    @property
    def name(self) -> str:
        """What the vectors of its embedder know it by."""
        ...

    @property
    def dimensions(self) -> int:
        """How long they are meant to be."""
        ...

    def lack(self) -> HoldfastError | None:
        """Why it cannot be opened now, as far as one can see without trying."""
        ...

    async def open(self) -> Embedder:
        """The embedder, of what is here."""
        ...

    async def provide(self) -> Embedder:
        """The embedder, however long it takes to get it here; known to work."""
        ...


class Supply:
    """Hands out the embedder of one source, or none and the reason."""

    first_pause = 1.0

    def __init__(self, source: Source, arrived: asyncio.Event) -> None:
        self._source = source
        self._arrived = arrived
        self._opening = asyncio.Lock()
        self._embedder: Embedder | None = None
        self._search: asyncio.Task[None] | None = None
        self._why = ""

    @property
    def name(self) -> str:
        """The model's name."""
        return self._embedder.name if self._embedder else self._source.name

    @property
    def dimensions(self) -> int:
        """How long its vectors are."""
        return self._source.dimensions

    @property
    def why(self) -> str:
        """Why there is no embedder; empty when there is one, or will be when it is asked for."""
        if self._embedder is not None:
            return ""
        lack = self._source.lack()
        return str(lack) if lack else self._why

    async def embedder(self) -> Embedder | None:
        """The embedder; the first to ask waits until it is loaded, and nobody until it is fetched."""
        if self._embedder is None and self._search is None:
            async with self._opening:
                if self._embedder is None and self._search is None:
                    try:
                        self._embedder = await self._source.open()
                    except HoldfastError as error:
                        self.lose(error)
                    except Exception as error:
                        log.exception("a defect")
                        self.lose(Unavailable(f"the embedding model {self.name} cannot be had", why=str(error)))
        return self._embedder

    def lose(self, error: HoldfastError) -> None:
        """Hand it out no more until it is known to work again."""
        self._embedder = None
        self._why = str(error)
        if self._search is None:
            log.warning("search goes by words only: %s", self._why)
            self._search = asyncio.create_task(self._find_again(), name="holdfast embedding model")

    async def close(self) -> None:
        """Stop looking."""
        if self._search is not None:
            self._search.cancel()
            await asyncio.gather(self._search, return_exceptions=True)

    async def _find_again(self) -> None:
        pause = self.first_pause
        while True:
            try:
                self._embedder = await self._source.provide()
            except HoldfastError as error:
                self._why = str(error)
            except Exception as error:
                self._why = f"the embedding model {self._source.name} cannot be had: {error}"
                log.exception("a defect")
            else:
                break
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._source.longest_pause)
        self._why, self._search = "", None
        log.info("the embedding model %s is here", self.name)
        self._arrived.set()
