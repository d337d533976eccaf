"""The floors that a search must beat on the same texts and vectors: exact vectors, BM25, and the fusion of their ranks.

Each gives the places of a bank's memories, best first.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75
RRF_K = 60

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


def plain_words(text: str) -> list[str]:
    """Words in lower case; characters and pairs of Chinese, Japanese and Korean."""
    found: list[str] = []
    for token in _TOKEN.findall(text.lower()):
        if token[0] < "\u3040":
            found.append(token)
        else:
            found += [*token, *(token[place : place + 2] for place in range(len(token) - 1))]
    return found


class ExactVectors:
    """By the cosine of normalised vectors."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = vectors

    def search(self, vector: NDArray[np.float32]) -> list[int]:
        """All memories, the nearest first."""
        return np.argsort(-(self._vectors @ vector), kind="stable").tolist()


class Bm25:
    """By words, with the usual constants and statistics of the bank."""

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []
        for place, words in enumerate(documents):
            self._lengths.append(len(words))
            for word, times in Counter(words).items():
                self._postings[word].append((place, times))
        self._mean = max(1.0, sum(self._lengths) / max(1, len(self._lengths)))

    def search(self, words: Iterable[str]) -> list[int]:
        """The memories that share a word with the question, the best first."""
        scores: defaultdict[int, float] = defaultdict(float)
        for word in dict.fromkeys(words):
            postings = self._postings.get(word, [])
            rarity = math.log(1 + (len(self._lengths) - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, times in postings:
                length = 1 - B + B * self._lengths[place] / self._mean
                scores[place] += rarity * times * (K1 + 1) / (times + K1 * length)
        return sorted(scores, key=lambda place: (-scores[place], place))


def fused(*rankings: Sequence[int]) -> list[int]:
    """Reciprocal rank fusion."""
    scores: defaultdict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            scores[place] += 1 / (RRF_K + rank)
    return sorted(scores, key=lambda place: (-scores[place], place))
