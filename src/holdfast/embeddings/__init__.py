"""Vectors of texts: which model a text gets, where models come from, and how they are run.

`Embeddings` is what the engine has: a model for each language, in this process or behind an endpoint. An `Embedder` is
one model; `Store` finds and fetches models.
"""

from holdfast.embeddings.embedder import Embedder, Vector
from holdfast.embeddings.embeddings import Embeddings
from holdfast.embeddings.language import Language, language_of
from holdfast.embeddings.store import Store

__all__ = ["Embedder", "Embeddings", "Language", "Store", "Vector", "language_of"]
