"""Memories that bench/memory.py writes and looks for: seeded texts with a natural distribution of words, and vectors.

Stop words apart, words are as frequent as in English (Zipf); a conversation keeps to the words of its topic. The vector
of a text is the sum of its words' vectors: texts that share rare words are near one another, whatever the model.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from holdfast.core.memory_settings import EmbeddingSettings
from holdfast.embeddings import Embeddings, Vector
from holdfast.memory.owners import Owner, user

SEED = 6
STARTS = [*"bcdfghlmnprstvw", "st", "tr", "pl"]  # of syllables
DIMENSIONS = 384
VOCABULARY = 20_000
TOPIC = 400  # words of one topic
TURNS = 20  # of a conversation
SPOKEN = 0.7  # of the memories: said in a dialogue; the others are facts
SHARES = (0.1, 1.0, 3.0, 10.0, 30.0)  # percent: each memory is in some of these shares of its bank
START = datetime(2026, 1, 1, tzinfo=UTC)

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def unit(vectors: Floats) -> Floats:
    """The same directions, of length one."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


class Tongue:
    """Words, how frequent each is, and what each means."""

    def __init__(self) -> None:
        rng = np.random.default_rng(SEED)
        syllables = [start + vowel for start in STARTS for vowel in "aeiou"]
        words: dict[str, None] = {}
        while len(words) < VOCABULARY:
            count = 2 + int(rng.integers(2))
            words["".join(rng.choice(syllables, count)) + str(rng.choice(["", "n", "r", "k", "l"]))] = None
        self.words = list(words)
        frequency = 1 / (np.arange(VOCABULARY) + 2.7)
        self.cumulated = np.cumsum(frequency / frequency.sum())
        weights = -np.log(frequency / frequency.sum())  # a rare word says more of what a text is about
        self.meanings: Floats = rng.standard_normal((VOCABULARY, DIMENSIONS), dtype=np.float32)
        self.meanings *= weights[:, None].astype(np.float32)
        self.common = unit(
            rng.standard_normal(DIMENSIONS, dtype=np.float32)
        )  # any two texts of a model are a bit alike

    def topic(self, rng: np.random.Generator) -> Ints:
        """Words that a conversation comes back to."""
        return rng.choice(VOCABULARY, TOPIC, replace=False)

    def text(self, rng: np.random.Generator, topic: Ints, length: int) -> Ints:
        """So many words, a third of them of the topic."""
        drawn = np.searchsorted(self.cumulated, rng.random(length)).clip(max=VOCABULARY - 1)
        own = topic[(TOPIC * rng.random(length) ** 3).astype(int)]
        return np.where(rng.random(length) < 1 / 3, own, drawn)

    def spelled(self, text: Ints) -> str:
        """The words."""
        places: list[int] = text.tolist()
        return " ".join(self.words[place] for place in places)

    def vector(self, texts: Sequence[Ints], rng: np.random.Generator) -> Floats:
        """What the texts mean, and a little that their words do not say."""
        sums = unit(np.array([self.meanings[text].sum(axis=0) for text in texts], np.float32))
        noise = unit(rng.standard_normal((len(texts), DIMENSIONS), dtype=np.float32))
        return unit((sums + self.common + 0.5 * noise).astype(np.float32))


@dataclass(frozen=True)
class Bank:
    """The memories of one owner; the same for the same number."""

    language: Tongue
    number: int
    size: int

    @property
    def owner(self) -> Owner:
        """Whose they are."""
        return user(f"user-{self.number}")

    @cached_property
    def texts(self) -> list[Ints]:
        """Their words."""
        rng = np.random.default_rng([SEED, self.number])
        found: list[Ints] = []
        while len(found) < self.size:
            topic = self.language.topic(rng)
            lengths = 5 + rng.poisson(8, TURNS)
            found += [self.language.text(rng, topic, length) for length in lengths]
        return found[: self.size]

    @cached_property
    def vectors(self) -> Floats:
        """Their vectors."""
        return self.language.vector(self.texts, np.random.default_rng([SEED, self.number, 1]))

    def drafts(self) -> list[dict[str, Any]]:
        """Dialogues and facts, as the service takes them."""
        made: list[dict[str, Any]] = []
        for place, text in enumerate(self.texts):
            talk, seq = divmod(place, TURNS)
            draft: dict[str, Any] = {"content": self.language.spelled(text), "metadata": self.metadata(place)}
            if talk % 10 < 10 * SPOKEN:
                author = ("user", "assistant")[seq % 2]
                at = START + timedelta(hours=talk, minutes=seq)
                draft |= {"conversation": f"talk-{talk}", "seq": seq, "author": author, "at": at}
            made.append(draft)
        return made

    def metadata(self, place: int) -> dict[str, Any]:
        """Its place, and the shares that it is in."""
        return {"place": place, "in": [f"{share:g}" for share in SHARES if place in self.share(share)]}

    def share(self, percent: float) -> range:
        """The places of a share of the memories, evenly spread."""
        return range(0, self.size, round(100 / percent))

    def questions(self, count: int) -> list[tuple[str, Floats]]:
        """Questions with their vectors: words of one memory, and some that are not in it."""
        rng = np.random.default_rng([SEED, self.number, 2])
        asked: list[Ints] = []
        for _ in range(count):
            text = self.texts[int(rng.integers(self.size))]
            known = rng.choice(text, min(4, len(text)), replace=False)
            asked.append(np.concatenate([known, self.language.text(rng, self.language.topic(rng), 2)]))
        vectors = self.language.vector(asked, rng)
        return [(f"{self.language.spelled(text)}?", vector) for text, vector in zip(asked, vectors, strict=True)]


def banks(sizes: Sequence[tuple[int, int]]) -> Iterator[Bank]:
    """Banks of these sizes, so many of each."""
    language = Tongue()
    number = 0
    for size, count in sizes:
        for _ in range(count):
            yield Bank(language, number, size)
            number += 1


class Known(Embeddings):
    """Vectors that were made before: the embedding is not what is measured."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__(settings)
        self._known: dict[str, Floats] = {}

    async def __aenter__(self) -> Self:
        """With the model loaded, though it is not asked: till then its files are looked at again and again."""
        await super().query(".", self.model("en") or "")
        return self

    def learn(self, texts: Sequence[str], vectors: Floats) -> None:
        """Know these."""
        self._known.update(zip(texts, vectors, strict=True))

    def forget(self) -> None:
        """Know nothing any more."""
        self._known.clear()

    async def vectors(self, texts: Sequence[str], languages: object = None) -> list[Vector | None]:
        """The vectors of texts."""
        return [self._known[text].tolist() for text in texts]

    async def query(self, text: str, model: str, *, asker: Hashable = None) -> Vector | None:
        """The vector of a question."""
        return self._known[text].tolist()
