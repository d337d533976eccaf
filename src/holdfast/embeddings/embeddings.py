"""The embedding models of an engine."""

import asyncio
import logging
from collections.abc import Hashable, Sequence
from typing import Literal, Self

from holdfast.core.errors import BadSetting, HoldfastError, InvalidInput, Unavailable
from holdfast.core.memory_settings import EmbeddingSettings
from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.known_models import KNOWN
from holdfast.embeddings.language import Language, language_of
from holdfast.embeddings.local import LocalModel
from holdfast.embeddings.model_supply import ModelSupply
from holdfast.embeddings.pool import EmbeddingPool
from holdfast.embeddings.query_cache import QueryCache
from holdfast.embeddings.remote import EmbeddingEndpoint, RemoteModel
from holdfast.embeddings.store import Store

log = logging.getLogger(__name__)

WITH_PREVIOUS = "+previous"  # suffix of the model name of vectors that include the previous turn
TOGETHER = 64  # texts per batch: they fail together if the model becomes unavailable


class Embeddings:
    """The models of an engine, at most one per language. Texts of an unavailable model get None as their vector.

    A model is loaded with the first text. `model_available` is set when an unavailable model becomes available.
    """

    def __init__(self, settings: EmbeddingSettings, *, store: Store | None = None) -> None:
        self.model_available = asyncio.Event()
        self._settings = settings
        self._context = WITH_PREVIOUS if settings.with_previous_turn else ""
        self._store = store or Store(settings.folder)
        self._pool = EmbeddingPool(settings.threads)
        self._endpoint = EmbeddingEndpoint(settings) if settings.url else None
        self._queries = QueryCache(settings.cached_queries)
        main = self._supply(settings.model, settings.dimensions, settings.query_prefix)
        self._by_language: dict[Language, ModelSupply] = {"en": main}
        self._former: dict[str, ModelSupply] = {}
        self._prepare_task: asyncio.Task[None] | None = None
        if settings.chinese_model in ("", settings.model):
            self._by_language |= {"zh": main, "other": main}
        else:
            self._by_language["zh"] = self._supply(
                settings.chinese_model, settings.chinese_dimensions, settings.chinese_query_prefix
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def prepare(self) -> None:
        """Start to load the models in the background, and to download missing ones."""
        if self._prepare_task is None:
            self._prepare_task = asyncio.create_task(self._prepare(), name="holdfast embedding models")

    async def close(self) -> None:
        """Cancel running tasks, and release the models."""
        if self._prepare_task is not None:
            self._prepare_task.cancel()
            await asyncio.wait([self._prepare_task])
        await self._queries.close()
        for supply in [*self._by_language.values(), *self._former.values()]:
            await supply.close()
        if self._endpoint is not None:
            await self._endpoint.close()
        self._pool.close()

    @property
    def state(self) -> tuple[Literal["ok", "reduced"], str]:
        """Whether the models of all languages are available. If not: why, and what to do."""
        if self._by_language["zh"] is self._by_language["en"]:
            supplies = {"every language": self._by_language["en"]}
        else:
            supplies = {"English": self._by_language["en"], "Chinese": self._by_language["zh"]}
        reasons = [f"{language} by words only: {why}" for language, supply in supplies.items() if (why := supply.why)]
        return ("reduced", " ".join(reasons)) if reasons else ("ok", ", ".join(each.name for each in supplies.values()))

    def model(self, language: Language) -> str | None:
        """Return the name of the model for a language, as stored with its vectors; None if it has no model."""
        supply = self._by_language.get(language)
        return f"{supply.name}{self._context}" if supply else None

    def dimensions(self, model: str) -> int:
        """Return the dimensions of a model's vectors."""
        supply = self._supply_of(model)
        if supply is None:
            raise InvalidInput(
                f"the model {model[:200]!r} is not configured", next="List the models with `holdfast models ls`."
            )
        return supply.dimensions

    def ready(self, model: str) -> bool:
        """Whether a model is available now, as far as is known without trying."""
        supply = self._supply_of(model)
        return supply is not None and not supply.why

    def unrelated(self, model: str) -> float:
        """Return the cosine similarity that a model gives to unrelated texts."""
        chinese = self._supply_of(model) is self._by_language.get("zh") is not self._by_language["en"]
        return self._settings.chinese_unrelated if chinese else self._settings.unrelated

    async def vectors(self, texts: Sequence[str], languages: Sequence[Language] | None = None) -> list[Vector | None]:
        """Return the vectors of texts to store, in order; None for a text whose model is unavailable or failed."""
        places: dict[ModelSupply, list[int]] = {}
        known_languages: Sequence[Language] = [language_of(text) for text in texts] if languages is None else languages
        for place, (_, language) in enumerate(zip(texts, known_languages, strict=True)):
            supply = self._by_language.get(language)
            if supply is not None:
                places.setdefault(supply, []).append(place)
        vectors: list[Vector | None] = [None] * len(texts)

        async def fill(supply: ModelSupply, places: Sequence[int]) -> None:
            for start in range(0, len(places), TOGETHER):
                batch = places[start : start + TOGETHER]
                found = await self._embed(supply, [texts[place] for place in batch])
                for place, vector in zip(batch, found, strict=True):
                    vectors[place] = vector

        await asyncio.gather(*(fill(supply, batch) for supply, batch in places.items()))
        return vectors

    async def query(self, text: str, model: str, *, asker: Hashable = None) -> Vector | None:
        """Return the vector of a query, with the model's prefix; None if the model is unavailable or failed.

        Each `asker` has separate cache entries. Otherwise, the response time would tell what others have asked.
        """
        supply = self._supply_of(model)
        embedder = await supply.embedder() if supply else None
        if supply is None or embedder is None:
            return None
        try:
            return await self._queries.vector((asker, embedder.name, text), lambda: embedder.embed_query(text))
        except HoldfastError as error:
            _handle_error(supply, error)
            return None

    async def _embed(self, supply: ModelSupply, texts: Sequence[str]) -> Sequence[Vector | None]:
        embedder = await supply.embedder()
        if embedder is None:
            return [None] * len(texts)
        try:
            return await embedder.embed(texts)
        except HoldfastError as error:
            if len(texts) == 1 or _is_persistent(error):
                _handle_error(supply, error)
                return [None] * len(texts)
        # The model failed on one of the texts: bisect, so that the others get their vectors.
        half = len(texts) // 2
        return [*await self._embed(supply, texts[:half]), *await self._embed(supply, texts[half:])]

    async def _prepare(self) -> None:
        for supply in dict.fromkeys(self._by_language.values()):
            if self._settings.fetch or not supply.why:
                await supply.embedder()

    def _supply_of(self, model: str) -> ModelSupply | None:
        model = model.removesuffix(WITH_PREVIOUS)
        for supply in self._by_language.values():
            if supply.name == model:
                return supply
        # While memories are re-embedded, search still uses the vectors of the previous model.
        known = KNOWN.get(model)
        if model not in self._former and known is not None and self._store.find(model):
            self._former[model] = self._local(model, known.dimensions, known.query_prefix, fetch=False)
        return self._former.get(model)

    def _supply(self, name: str, dimensions: int, prefix: str) -> ModelSupply:
        if self._endpoint is not None:
            return ModelSupply(
                RemoteModel(self._endpoint, name, dimensions=dimensions, prefix=prefix), self.model_available
            )
        return self._local(name, dimensions, prefix, fetch=self._settings.fetch)

    def _local(self, name: str, dimensions: int, prefix: str, *, fetch: bool) -> ModelSupply:
        model = LocalModel(name, dimensions=dimensions, prefix=prefix, store=self._store, pool=self._pool, fetch=fetch)
        return ModelSupply(model, self.model_available)


def _is_persistent(error: HoldfastError) -> bool:
    return isinstance(error, Unavailable | BadSetting)


def _handle_error(supply: ModelSupply, error: HoldfastError) -> None:
    if _is_persistent(error):
        supply.mark_unavailable(error)
    else:
        log.warning("could not embed a text: %s", error)
