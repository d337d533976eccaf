"""Embeddings: the model of each language, where models come from, and how they run.

The engine uses `Embeddings`: one model per language, in this process or behind an endpoint. An `Embedder` is one model.
A `Store` finds and downloads models.
"""

from holdfast.embeddings.embedder import Embedder, Vector
from holdfast.embeddings.embeddings import Embeddings
from holdfast.embeddings.language import Language, language_of
from holdfast.embeddings.store import Store

__all__ = ["Embedder", "Embeddings", "Language", "Store", "Vector", "language_of"]
