"""Extracts: reports without a language model, from the sentences of passages that share the most with a question."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.core.sentences import sentences
from holdfast.knowledge.research.citations import CitedStatement, cite, locate
from holdfast.knowledge.research.passages import Passage
from holdfast.llm.language_rules import words

MOST_SENTENCES = 12
SHORTEST, LONGEST = 20, 600  # characters of a sentence
SIMILAR = 0.7  # of the words of a sentence that another has said already
OF_BEST = 0.35  # of the best score: worse sentences say little about the question


@dataclass(frozen=True, slots=True)
class _RankedSentence:
    text: str
    passage: Passage
    rank: int
    terms: frozenset[str]


def extract_statements(
    question: str, queries: Sequence[str], passages: Sequence[Passage], *, most: int = MOST_SENTENCES
) -> list[CitedStatement]:
    """Return the sentences that say the most about a question, verbatim, with citations; passages come best first.

    A sentence counts by the rare words that it shares with the question, and by the rank of its passage, which the
    search has found by words and meaning. Sentences that repeat others are left out.
    """
    asked = frozenset(word for text in (question, *queries) for word in words(text))
    found = [
        _RankedSentence(text, passage, rank, words(text))
        for rank, passage in enumerate(passages)
        for text in sentences(passage.text)
        if SHORTEST <= len(text) <= LONGEST
    ]
    counts = Counter(term for sentence in found for term in sentence.terms & asked)
    weights = {term: math.log(1 + len(found) / (1 + count)) for term, count in counts.items()}
    main = words(question)

    def score(sentence: _RankedSentence) -> float:
        shared = sum(weights[term] * (1.5 if term in main else 1.0) for term in sentence.terms & asked)
        return shared / (1 + len(sentence.terms) / 40) / (1 + sentence.rank / 10)

    ranked = sorted(found, key=lambda sentence: (-score(sentence), sentence.rank))
    best = score(ranked[0]) if ranked else 0.0
    chosen: list[_RankedSentence] = []
    for sentence in ranked:
        if len(chosen) == most or not best or score(sentence) < OF_BEST * best:
            break
        if not any(_repeats(sentence, other) for other in chosen):
            chosen.append(sentence)
    return [statement for sentence in chosen if (statement := _statement(sentence)) is not None]


@dataclass(frozen=True, slots=True)
class PromptRoom:
    """How much notes may take in a prompt: tokens as they are counted, and as they are reserved."""

    tokens: int
    reserved: int


def shorten_notes(question: str, notes: Sequence[CitedStatement], *, most: int) -> list[CitedStatement]:
    """Return the `most` notes that share the most with a question, in their order."""
    return [notes[place] for place in sorted(_ranked(question, notes)[:most])]


def first_fitting(
    question: str,
    notes: Sequence[CitedStatement],
    size: Callable[[CitedStatement], tuple[int, int]],
    room: PromptRoom,
) -> list[CitedStatement]:
    """Return the notes that share the most with a question, as many as there is room for, in their order."""
    kept: list[int] = []
    tokens, reserved = room.tokens, room.reserved
    for place in _ranked(question, notes):
        counted, most = size(notes[place])
        if counted <= tokens and most <= reserved:
            kept.append(place)
            tokens -= counted
            reserved -= most
    return [notes[place] for place in sorted(kept)]


def _ranked(question: str, notes: Sequence[CitedStatement]) -> list[int]:
    asked = words(question)
    return sorted(range(len(notes)), key=lambda place: (-len(words(notes[place].text) & asked), place))


def _repeats(sentence: _RankedSentence, other: _RankedSentence) -> bool:
    return len(sentence.terms & other.terms) >= SIMILAR * max(1, min(len(sentence.terms), len(other.terms)))


def _statement(sentence: _RankedSentence) -> CitedStatement | None:
    place = locate(sentence.text, sentence.passage.text)
    return None if place is None else CitedStatement(sentence.text, (cite(sentence.passage, *place),))
