"""Chunks of documents, as searches of memories and of documents return them."""

from collections.abc import Sequence

from holdfast.core.errors import InvalidInput
from holdfast.core.memory_settings import KnowledgeScoringSettings
from holdfast.core.text import store
from holdfast.memory.graph.extraction import query_keys
from holdfast.memory.query import READ

MAX_COLLECTIONS = 10_000  # that a search can be limited to


def chunk_weights(settings: KnowledgeScoringSettings, limit: int) -> list[float]:
    """Return the weights in the order of `holdfast.search_knowledge`, then the thresholds and the size of the pool."""
    return [
        settings.words,
        settings.chinese_words,
        settings.english_length,
        settings.chinese_length,
        settings.title,
        settings.hop,
        settings.mention,
        settings.hop_margin,
        settings.rare,
        settings.longest_titled,
        settings.exact_to,
        max(settings.pool, limit),
        settings.frequent,
    ]


def asked_keys(question: str) -> list[str]:
    """Return the keys of all names that a query may contain, as they are stored."""
    return [store(key) for key in query_keys(question[:READ])]


def answering_range(
    length: int, passages: Sequence[int], nearness: Sequence[float], *, least: float
) -> tuple[int, int]:
    """Return which characters of a chunk to return: from the first to the last passage that is near enough.

    The best passage always is, and another one if its cosine is at least `least`: if it were a chunk of its own, it
    would be among the hits. Without vectors, it is the whole chunk.
    """
    if not nearness or 2 * len(nearness) != len(passages):
        return 0, length
    enough = min(least, max(nearness))
    near = [place for place, each in enumerate(nearness) if each >= enough]
    return passages[2 * near[0]], passages[2 * near[-1] + 1]


def citation(name: str, page: int | None, last_page: int | None, start: int, end: int) -> str:
    """Return where a part of a document is, for people: `handbook.pdf, p. 12, characters 1042-2210`."""
    if page is None:
        pages = ""
    elif last_page in (None, page):
        pages = f", p. {page}"
    else:
        pages = f", pp. {page}-{last_page}"
    return f"{name}{pages}, characters {start}-{end}"


def stored_collections(collections: object) -> list[str] | None:
    """Return the stored names of the collections that a search is limited to; None for all."""
    if collections is None:
        return None
    if (
        not isinstance(collections, list | tuple | set | frozenset)
        or len(collections) > MAX_COLLECTIONS  # pyright: ignore[reportUnknownArgumentType]
        or not all(isinstance(name, str) for name in collections)  # pyright: ignore[reportUnknownVariableType]
    ):
        raise InvalidInput(
            f"the collections {collections!r:.100} are invalid",
            next=f"Pass a list of their names, at most {MAX_COLLECTIONS}.",
        )
    return [store(str(name)) for name in collections]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
