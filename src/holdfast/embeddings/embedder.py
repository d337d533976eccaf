"""What turns text into vectors, as the rest of the engine knows it."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.core.errors import BadSetting

Vector = list[float]


class Embedder(Protocol):
    """Turns texts into unit vectors: the same text always into the same one, whatever is embedded beside it."""

    @property
    def name(self) -> str:
        """What every vector knows of its model; another model has another name."""
        ...

    @property
    def dimensions(self) -> int:
        """How long every vector is."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of texts as they are stored, in order.

        Unavailable when it cannot now, BadSetting when it cannot as it is configured, InvalidInput for a text that it
        refuses: then none of these texts has a vector.
        """
        ...

    async def embed_query(self, text: str) -> Vector:
        """The vector of a question, with the prefix that the model wants before it."""
        ...


def wrong_dimensions(model: str, *, found: int, expected: int) -> BadSetting:
    """What is said of a model whose vectors are not as long as the settings say."""
    return BadSetting(
        f"the model {model} makes vectors of {found} numbers, not {expected}",
        next=f"Set memory.embedding.dimensions (or chinese_dimensions, where it is that model) to {found}.",
    )


def encodable(text: str) -> str:
    """The text with a question mark for each lone surrogate, which no tokenizer takes and no wire carries."""
    return text.encode("utf-8", "replace").decode()
