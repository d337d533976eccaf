"""Documents with the real models, and an embedder that counts and waits."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence

import pytest

from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.language import Language
from holdfast.embeddings.store import Store
from holdfast.engine import Engine
from holdfast.knowledge.knowledge import Knowledge


class Watched:
    """The embeddings of an engine, without its models: each text has a vector that stands for it.

    `texts` were given to them. After `most` calls they wait, and `stopped` is set.
    """

    def __init__(self, engine: Engine, *, most: int | None = None) -> None:
        self.texts: list[str] = []
        self.stopped = asyncio.Event()
        self._free = asyncio.Event()
        self._left = most
        engine.embeddings.vectors = self.vectors

    def stop(self, most: int = 0) -> None:
        """Wait after this many further calls."""
        self._left = most

    def go_on(self) -> None:
        """Do not wait any more."""
        self._left = None
        self._free.set()

    async def vectors(self, texts: Sequence[str], languages: Sequence[Language] | None = None) -> list[Vector | None]:
        """Return the vectors of texts, when they may."""
        assert languages is not None
        if self._left is not None:
            if not self._left:
                self.stopped.set()
                await self._free.wait()
            else:
                self._left -= 1
        self.texts += texts
        return [
            _vector(text, 512 if language == "zh" else 384) for text, language in zip(texts, languages, strict=True)
        ]


def _vector(text: str, dimensions: int) -> Vector:
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())
    return [float(place == number % dimensions) for place in range(dimensions)]


@pytest.fixture
def knowledge(engine: Engine, models: Store) -> Knowledge:
    """The documents of an engine that has its models."""
    assert models.find(engine.config.memory.embedding.model)
    return engine.knowledge


@pytest.fixture
def watched(engine: Engine) -> Watched:
    """The embeddings of the engine."""
    return Watched(engine)


async def stream(*parts: bytes) -> AsyncGenerator[bytes]:
    """A stream of bytes, as of an upload."""
    for part in parts:
        await asyncio.sleep(0)
        yield part


def story(word: str, sections: int = 12) -> str:
    """A Markdown text of some chunks, in which each section says something else about a word."""
    return "\n\n".join(
        f"## Section {number} of {word}\n\n"
        + " ".join(f"The {word} number {number}.{line} was seen in the harbour of town {line}." for line in range(12))
        for number in range(1, sections + 1)
    )
