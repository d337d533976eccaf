"""Embeddings: the model of each language, where models come from, and how they run.

The engine uses `Embeddings`: one model per language, in this process or behind an endpoint. An `Embedder` is one model.
A `Store` finds and downloads models.

The names are imported at their first use: a process that needs only the language of a text must start fast.
"""

from typing import TYPE_CHECKING

from holdfast.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from holdfast.embeddings.embedder import Embedder as Embedder
    from holdfast.embeddings.embedder import Vector as Vector
    from holdfast.embeddings.embeddings import Embeddings as Embeddings
    from holdfast.embeddings.language import Language as Language
    from holdfast.embeddings.language import language_of as language_of
    from holdfast.embeddings.store import Store as Store

__getattr__ = lazy_exports(
    __name__,
    {
        "Embedder": "holdfast.embeddings.embedder",
        "Embeddings": "holdfast.embeddings.embeddings",
        "Language": "holdfast.embeddings.language",
        "Store": "holdfast.embeddings.store",
        "Vector": "holdfast.embeddings.embedder",
        "language_of": "holdfast.embeddings.language",
    },
)
