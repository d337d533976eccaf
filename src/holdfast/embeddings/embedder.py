"""The interface of an embedding model."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.core.errors import BadSetting

Vector = list[float]


class Embedder(Protocol):
    """Turns texts into unit vectors. A text always gets the same vector, also in a batch with other texts."""

    @property
    def name(self) -> str:
        """The name that is stored with every vector. Each model has a different name."""
        ...

    @property
    def dimensions(self) -> int:
        """The dimensions of its vectors."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts to store, in order.

        Raises Unavailable if the model cannot be reached now, BadSetting if it is configured wrongly, and InvalidInput
        or Broken if it fails on a text. After an error, none of these texts has a vector.
        """
        ...

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, with the prefix that the model expects before it."""
        ...


def wrong_dimensions(model: str, *, found: int, expected: int) -> BadSetting:
    """Return the error for a model whose vectors do not have the dimensions of the settings."""
    return BadSetting(
        f"the vectors of the model {model} have {found} dimensions, not {expected}",
        next=f"Set memory.embedding.dimensions (chinese_dimensions for the Chinese model) to {found}.",
    )


def encodable(text: str) -> str:
    """Replace each lone surrogate by a question mark: tokenizers and UTF-8 cannot represent it."""
    return text.encode("utf-8", "replace").decode()
