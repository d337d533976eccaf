"""Embedding models behind an OpenAI-compatible `/embeddings` endpoint."""

import asyncio
import math
import random
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from holdfast.core.errors import BadSetting, HoldfastError, InvalidInput, TimedOut, Unavailable
from holdfast.core.memory_settings import EmbeddingSettings
from holdfast.core.text import parse_large, render
from holdfast.embeddings.embedder import Embedder, Vector, encodable, wrong_dimensions

if TYPE_CHECKING:
    from aiohttp import ClientSession

BATCH = 64
HARMLESS = "."  # a text that every model accepts
MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_ANSWER_VALUES = 500_000  # 64 vectors of 4,096 numbers have half as many
PAUSES = (0.25, 0.5, 1.0, 0.0)  # back-off in seconds after each attempt; for longer outages, `ModelSupply` retries
MAX_ERROR_CHARACTERS = 300  # characters of an error response to quote
LARGEST = 1e300  # JSON can hold integers that are too large for a float

RETRYABLE = frozenset({408, 409, 425, 429})
REFUSED_TEXT = frozenset({400, 413, 422})


class EmbeddingEndpoint:
    """A client of the configured endpoint. It retries temporary failures within the configured timeout."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._url = f"{(settings.url or '').rstrip('/')}/embeddings"
        self._headers = {"Content-Type": "application/json"}
        if settings.api_key is not None:
            self._headers["Authorization"] = f"Bearer {settings.api_key.get_secret_value()}"
        self._timeout = settings.timeout
        self._session: ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def ask(self, body: Mapping[str, object]) -> Any:
        """Send a request, with retries, and return the response."""
        data = render(body)
        deadline = time.monotonic() + self._timeout
        for pause in PAUSES:
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    return await self._try(data)
            except _Retryable as failure:
                wait = max(failure.retry_after, random.uniform(pause / 2, pause))
                if pause == PAUSES[-1] or time.monotonic() + wait >= deadline:
                    raise failure.error from None
            except TimeoutError:
                raise TimedOut(
                    f"the embedding endpoint {self._url} did not respond within {self._timeout:g} s",
                    next="Check memory.embedding.url and memory.embedding.timeout.",
                ) from None
            await asyncio.sleep(wait)
        raise AssertionError("the last pause is not waited for")

    async def _try(self, data: bytes) -> Any:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        try:
            async with self._session.post(self._url, data=data, headers=self._headers) as answer:
                body = await answer.content.read(MAX_ANSWER_BYTES)
                while not answer.content.at_eof() and len(body) < MAX_ANSWER_BYTES:
                    body += await answer.content.read(MAX_ANSWER_BYTES)
                if answer.status != 200:
                    self._raise_status_error(answer.status, body, answer.headers.get("Retry-After", ""))
        except aiohttp.InvalidURL:
            raise BadSetting(
                f"{self._url} is not a valid URL", next="Set memory.embedding.url to a URL like http://host:8000/v1."
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            why = str(error) or type(error).__name__
            raise _Retryable(
                Unavailable(
                    f"the embedding endpoint {self._url} cannot be reached", why=why, next="Check memory.embedding.url."
                )
            ) from None
        try:
            return await parse_large(body, limit=MAX_ANSWER_BYTES, most_values=MAX_ANSWER_VALUES)
        except HoldfastError as error:
            raise Unavailable(
                f"the embedding endpoint {self._url} did not return JSON",
                why=error.why or error.what,
                next="Check memory.embedding.url, which ends before /embeddings, and memory.embedding.dimensions.",
            ) from None

    def _raise_status_error(self, status: int, body: bytes, retry_after: str) -> None:
        why = body[:MAX_ERROR_CHARACTERS].decode(errors="replace").strip() or "it returned no message"
        what = f"the embedding endpoint {self._url} returned {status}"
        if status in RETRYABLE or status >= 500:
            wait = float(retry_after) if retry_after.isdecimal() else 0.0
            raise _Retryable(Unavailable(what, why=why), wait)
        if status in REFUSED_TEXT:
            raise InvalidInput(what, why=why)
        next = "Check memory.embedding.url, memory.embedding.api_key and memory.embedding.model."
        raise BadSetting(what, why=why, next=next)


class RemoteModel:
    """A model behind the endpoint. It is both an embedder and the source of it."""

    longest_pause = 60.0

    def __init__(self, endpoint: EmbeddingEndpoint, name: str, *, dimensions: int, prefix: str = "") -> None:
        self._endpoint = endpoint
        self._name = name
        self._dimensions = dimensions
        self._prefix = prefix

    @property
    def name(self) -> str:
        """The name that is stored with its vectors. It includes the dimensions: some models offer several."""
        return f"{self._name}@{self._dimensions}"

    @property
    def dimensions(self) -> int:
        """The dimensions of its vectors."""
        return self._dimensions

    def find_error(self) -> HoldfastError | None:
        """Return None: only a request can tell whether the endpoint works."""
        return None

    async def open(self) -> Embedder:
        """Return itself, without a request."""
        return self

    async def provide(self) -> Embedder:
        """Return itself if the endpoint embeds a test text."""
        await self.embed([HARMLESS])
        return self

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts, in order."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            vectors += await self._embed(texts[start : start + BATCH])
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        return (await self._embed([self._prefix + text]))[0]

    async def _embed(self, texts: Sequence[str]) -> list[Vector]:
        answer = await self._ask(texts)
        rows = answer.get("data") if isinstance(answer, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if not isinstance(rows, list) or len(cast(list[object], rows)) != len(texts):
            count = f"{len(cast(list[object], rows))} vectors" if isinstance(rows, list) else "no vectors"
            raise self._invalid_response(f"it returned {count} for {len(texts)} texts")
        fields = [cast(dict[str, Any], row) if isinstance(row, dict) else {} for row in cast(list[Any], rows)]
        vectors = [self._unit(row.get("embedding")) for row in fields]
        indexes: list[Any] = [row.get("index") for row in fields]
        if all(index is None for index in indexes):  # then the vectors are in the order of the texts
            return vectors
        if not all(type(index) is int for index in indexes) or sorted(indexes) != list(range(len(texts))):
            raise self._invalid_response("the indexes of its vectors are invalid")
        by_index = dict(zip(indexes, vectors, strict=True))
        return [by_index[place] for place in range(len(texts))]

    async def _ask(self, texts: Sequence[str]) -> object:
        try:
            return await self._endpoint.ask({"model": self._name, "input": [encodable(text) for text in texts]})
        except BadSetting:
            raise
        except InvalidInput:
            if list(texts) != [HARMLESS]:
                await self._check_model()
            raise

    async def _check_model(self) -> None:
        """Raise BadSetting if the endpoint refuses every text of this model, and not only the last one."""
        try:
            await self._endpoint.ask({"model": self._name, "input": [HARMLESS]})
        except InvalidInput as error:
            next = "Check memory.embedding.model and memory.embedding.url."
            raise BadSetting(error.what, why=error.why, next=next) from None

    def _unit(self, numbers: object) -> Vector:
        if not isinstance(numbers, list):
            raise self._invalid_response("a vector is not a list of numbers")
        vector = cast(list[Any], numbers)
        if len(vector) != self._dimensions:
            raise wrong_dimensions(self._name, found=len(vector), expected=self._dimensions)
        if not all(
            isinstance(number, float | int) and not isinstance(number, bool) and abs(number) < LARGEST
            for number in vector
        ):
            raise self._invalid_response("a vector is not a list of numbers")
        length = math.hypot(*vector)
        if not 0 < length < math.inf:
            raise self._invalid_response(f"a vector has the length {length:g}")
        return [number / length for number in vector]

    def _invalid_response(self, why: str) -> Unavailable:
        return Unavailable(
            f"the response of the embedding endpoint for the model {self._name} is invalid",
            why=why,
            next="Check memory.embedding.url, memory.embedding.model and memory.embedding.dimensions.",
        )


class _Retryable(Exception):
    """A failure that may be temporary: the request is retried."""

    def __init__(self, error: Unavailable, retry_after: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after = retry_after
