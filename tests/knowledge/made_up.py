"""Made-up documents: many chunks with vectors in clusters and words of a vocabulary, as quickly as can be stored."""

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.engine import Engine
from tests.knowledge.stored import StoredChunk, StoredDocument, store

MODEL = "bge-small-en-v1.5-q"
LATENT = 24  # in how many ways texts differ, about: those of a model lie far from filling its space
SHARES = {"0.1 %": 1000, "1 %": 100, "10 %": 10, "30 %": 3}  # of the documents have it in their metadata
CHUNKS = 20  # of a document
AT_ONCE = 100  # documents
_VOCABULARY = [f"w{n}" for n in range(20_000)]

Matrix = NDArray[np.float32]


def halfvecs(vectors: Matrix) -> list[bytes]:
    """The vectors in PostgreSQL's binary format."""
    head = bytes([vectors.shape[1] >> 8, vectors.shape[1] & 255, 0, 0])
    return [head + row.tobytes() for row in vectors.astype(">f2")]


class Clusters:
    """Vectors that lie in topics, and in these in documents, as those of a model do."""

    def __init__(self, topics: int = 50, seed: int = 7) -> None:
        self._dice = np.random.default_rng(seed)
        self._axes = self._dice.normal(size=(LATENT, 384))
        self._topics = self._dice.normal(size=(topics, LATENT))

    def document(self, number: int, count: int) -> Matrix:
        """The vectors of a document's passages."""
        topic = self._topics[number % len(self._topics)]
        about = topic + 0.7 * self._dice.normal(size=LATENT)
        return self._unit(about + 0.7 * self._dice.normal(size=(count, LATENT)))

    def question(self) -> Matrix:
        """The vector of a question: near a topic, and near no document in particular."""
        topic = self._topics[self._dice.integers(len(self._topics))]
        return self._unit((topic + 0.9 * self._dice.normal(size=LATENT))[None])

    def _unit(self, latent: NDArray[np.float64]) -> Matrix:
        vectors = latent @ self._axes
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def words(dice: random.Random, count: int) -> str:
    """A text of made-up words, of which few are frequent."""
    ranks = (int(len(_VOCABULARY) ** dice.random()) - 1 for _ in range(count))
    return " ".join(_VOCABULARY[rank] for rank in ranks)


async def store_many(engine: Engine, clusters: Clusters, chunks: int, *, passages: int = 2, first: int = 0) -> None:
    """Store documents of twenty chunks, numbered from `first`; each chunk has words and a vector for each passage."""
    dice = random.Random(first)
    last = first + chunks // CHUNKS
    for start in range(first, last, AT_ONCE):
        batch: list[StoredDocument] = []
        for number in range(start, min(start + AT_ONCE, last)):
            vectors = halfvecs(clusters.document(number, CHUNKS * passages))
            batch.append(
                StoredDocument(
                    f"made up {number}",
                    [_chunk(words(dice, 40), vectors[passages * n : passages * (n + 1)]) for n in range(CHUNKS)],
                    title=f"Title {number}",
                    metadata={share: number % every == 0 for share, every in SHARES.items()}
                    | {"topic": number % 50, "half": number % 2},
                )
            )
        await store(engine, *batch, model=MODEL, link=False)


def _chunk(text: str, vectors: Sequence[bytes]) -> StoredChunk:
    size = len(text) // len(vectors)
    return StoredChunk(text, passages=tuple((n * size, (n + 1) * size) for n in range(len(vectors))), vectors=vectors)
