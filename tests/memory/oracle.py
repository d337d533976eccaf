"""The score of a memory, said once more in plain Python: what the statement has to agree with."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import UUID

from holdfast.core.memory_settings import ScoringSettings
from holdfast.core.words import names, terms
from holdfast.memory import query
from holdfast.memory.dates import date_value, find_dates

TRUST = {"system": 1.0, "user": 1.0, "agent": 0.8, "tool": 0.6, "untrusted": 0.2}
Score = tuple[float, float, float, float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the score looks at."""

    id: UUID
    text: str  # as it was spoken
    language: str
    vector: Sequence[float] | None  # by the model of the question, where it has one
    conversation: str | None
    seq: int | None
    at: datetime | None
    author_terms: Sequence[int]
    by_owner: bool
    tells_when: bool
    importance: float
    trust: str

    @property
    def day(self) -> date | None:
        """The day it belongs to, where it belongs to no conversation."""
        return None if self.conversation is not None or self.at is None else self.at.astimezone(UTC).date()


def scores(
    question: str,
    vectors: Sequence[Sequence[float]],
    unrelated: float,
    rows: Sequence[Remembered],
    weights: ScoringSettings,
    now: datetime,
) -> dict[UUID, Score]:
    """The parts of every memory's score; `vectors` are the question's: of the whole, then of its sentences."""
    parts = [question, *query.sentences_of(question)]
    dates = find_dates(question, now)
    vector, words = _sums(parts, vectors, unrelated, rows, weights)
    summed = {row.id: vector[row.id] + words[row.id] for row in rows}
    neighbours, conversation = _around(rows, summed, weights)
    asked = set(names(question))
    found: dict[UUID, Score] = {}
    for row in rows:
        named = bool(asked & set(row.author_terms)) or (query.is_first_person(question) and row.by_owner)
        dated = weights.date * date_value(dates, row.at.astimezone(UTC)) if row.at is not None else 0.0
        dated += weights.when if query.asks_when(question) and row.tells_when else 0.0
        found[row.id] = (
            vector[row.id],
            words[row.id],
            neighbours[row.id],
            conversation[row.id],
            weights.author if named else 0.0,
            dated,
            weights.recency,
            weights.importance * row.importance,
            weights.trust * TRUST[row.trust],
        )
    return found


def _sums(
    parts: Sequence[str],
    vectors: Sequence[Sequence[float]],
    unrelated: float,
    rows: Sequence[Remembered],
    weights: ScoringSettings,
) -> tuple[dict[UUID, float], dict[UUID, float]]:
    """By vector and by words; of several sentences, half is that of the one that is answered best."""
    vector: dict[UUID, float] = {}
    words: dict[UUID, float] = {}
    held = {row.id: set(terms(row.text)) for row in rows}
    for row in rows:
        pairs = [
            (
                _cosine(vectors[n], row.vector) - unrelated if vectors and row.vector is not None else 0.0,
                weights.words * _matched(terms(part), held, row, weights),
            )
            for n, part in enumerate(parts)
        ]
        best = max(pairs[1:], key=sum, default=pairs[0])
        vector[row.id], words[row.id] = ((whole + one) / 2 for whole, one in zip(pairs[0], best, strict=True))
    return vector, words


def _matched(asked: Sequence[int], held: Mapping[UUID, set[int]], row: Remembered, weights: ScoringSettings) -> float:
    idf: dict[int, float] = {}
    for term in asked:
        if count := sum(term in each for each in held.values()):
            idf[term] = math.log(1 + (len(held) - count + 0.5) / (count + 0.5))
    usual = weights.english_length if row.language == "en" else weights.chinese_length
    length = 1 + 1.2 * math.sqrt(max(1.0, len(held[row.id]) / usual))
    shared = sum(idf[term] for term in asked if term in idf and term in held[row.id])
    return 2.2 / length * shared / math.sqrt(max(sum(idf.values()), 1e-6))


def _around(
    rows: Sequence[Remembered], summed: Mapping[UUID, float], weights: ScoringSettings
) -> tuple[dict[UUID, float], dict[UUID, float]]:
    """What a memory gets from those that were said with it."""
    together: defaultdict[tuple[str | None, date | None], list[Remembered]] = defaultdict(list)
    for row in rows:
        together[row.conversation, row.day].append(row)
    neighbours, conversation = dict.fromkeys(summed, 0.0), dict.fromkeys(summed, 0.0)
    for (talk, day), group in together.items():
        if talk is None and day is None:
            continue
        group.sort(key=lambda row: row.seq or 0)
        values = [summed[row.id] for row in group]
        for place, row in enumerate(group):
            own, count = values[place], len(group)
            conversation[row.id] = weights.conversation * (count - 1) / (count + 1) * (max(values) - own)
            if talk is not None:
                # At an end of the conversation the turn itself stands for the one that is missing.
                beside = max(values[place - 1] if place else own, values[place + 1] if place + 1 < count else own)
                around = max(values[max(0, place - 2) : place + 3])
                neighbours[row.id] = weights.neighbours * (beside - own) + weights.around * (around - own)
    return neighbours, conversation


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))
