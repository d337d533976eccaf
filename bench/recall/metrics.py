"""Measures of what a search finds, and their means."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Found:
    """How much of the evidence is among the first, whether any is, and how early the first of it comes."""

    recall_3: float
    recall_10: float
    recall_20: float
    hit_10: float
    reciprocal_rank: float


def found(ranked: Sequence[str], gold: Collection[str]) -> Found:
    """Measure one answer: ids, best first, beside those that are the evidence."""
    first = next((rank for rank, name in enumerate(ranked, 1) if name in gold), None)
    return Found(
        recall_3=_recall(ranked[:3], gold),
        recall_10=_recall(ranked[:10], gold),
        recall_20=_recall(ranked[:20], gold),
        hit_10=float(first is not None and first <= 10),
        reciprocal_rank=1 / first if first else 0.0,
    )


def mean(measured: Collection[Found]) -> Found:
    """The mean over questions."""
    return Found(
        recall_3=fmean(one.recall_3 for one in measured),
        recall_10=fmean(one.recall_10 for one in measured),
        recall_20=fmean(one.recall_20 for one in measured),
        hit_10=fmean(one.hit_10 for one in measured),
        reciprocal_rank=fmean(one.reciprocal_rank for one in measured),
    )


def by_category(measured: Iterable[tuple[str, Found]]) -> Mapping[str, Found]:
    """The means over the questions of each category."""
    sorted_out: dict[str, list[Found]] = {}
    for category, one in measured:
        sorted_out.setdefault(category, []).append(one)
    return {category: mean(sorted_out[category]) for category in sorted(sorted_out)}


def _recall(ranked: Sequence[str], gold: Collection[str]) -> float:
    return len(set(ranked).intersection(gold)) / len(gold)
