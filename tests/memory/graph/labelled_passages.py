"""Passages with the entities that they name, and how well extraction finds them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.memory.graph.extraction import entities_of, key_of

FOLDER = Path(__file__).parent / "labelled"


@dataclass
class Counts:
    """How many names were found rightly, found wrongly, and missed."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def f1(self) -> float:
        return 2 * self.right / max(1, 2 * self.right + self.wrong + self.missed)


@dataclass
class Scores:
    """The counts of names, whatever their type, and the counts of names with the right type, by type."""

    names: Counts = field(default_factory=Counts)
    typed: Counts = field(default_factory=Counts)
    by_type: dict[str, Counts] = field(default_factory=dict[str, Counts])


def passages(language: str, half: int) -> list[tuple[str, dict[str, str]]]:
    """Return one half of the passages: 0 is the half that the rules were developed on, 1 the other."""
    items = json.loads((FOLDER / f"{language}.json").read_text())
    return [(item["text"], item["entities"]) for item in items[half::2]]


def score(given: Sequence[tuple[str, dict[str, str]]]) -> Scores:
    """Compare what extraction finds with what the passages name."""
    scores = Scores()
    for text, entities in given:
        gold = {key_of(name): kind for name, kind in entities.items()}
        found = {entity.key: entity.type for entity in entities_of(text)}
        _count(scores.names, set(gold), set(found))
        _count(scores.typed, set(gold.items()), set(found.items()))
        for kind in {*gold.values(), *found.values()}:
            counts = scores.by_type.setdefault(kind, Counts())
            _count(
                counts,
                {each for each in gold.items() if each[1] == kind},
                {each for each in found.items() if each[1] == kind},
            )
    return scores


def _count(counts: Counts, gold: set[object], found: set[object]) -> None:
    counts.right += len(gold & found)
    counts.wrong += len(found - gold)
    counts.missed += len(gold - found)
