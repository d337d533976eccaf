"""Sets of documents with questions: which documents answer them, or which characters.

2Wiki: passages of Wikipedia with questions that need two or more of them. CMRC 2018: Chinese paragraphs with questions
about one. Chunking evaluation: long texts with the characters that answer each question.
"""

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

csv.field_size_limit(sys.maxsize)

Range = tuple[str, int, int]  # a document's name, and the characters from start to end


@dataclass(frozen=True, slots=True)
class Source:
    """A document: a text with a name, and perhaps with a title."""

    name: str
    text: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, with the names of the documents or the ranges of characters that answer it."""

    text: str
    documents: frozenset[str] = frozenset()
    ranges: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class Collected:
    """The documents of a set, and its questions."""

    name: str
    sources: tuple[Source, ...]
    questions: tuple[Asked, ...]


def two_wiki(folder: Path) -> Collected:
    """2WikiMultihopQA as HippoRAG prepared it: a passage is a document with a title."""
    sources = [
        Source(f"{place}.txt", passage["text"], passage["title"])
        for place, passage in enumerate(json.loads((folder / "corpus.json").read_text("utf-8")))
    ]
    named = {source.title: source.name for source in reversed(sources)}
    questions = [
        Asked(asked["question"], frozenset(named[title] for title in asked["gold_titles"]))
        for asked in json.loads((folder / "questions.json").read_text("utf-8"))
    ]
    return Collected("2Wiki", tuple(sources), tuple(questions))


def cmrc(folder: Path) -> Collected:
    """CMRC 2018, the part for development: a paragraph is a document with the title of its article."""
    sources: list[Source] = []
    questions: list[Asked] = []
    for article in json.loads((folder / "dev.json").read_text("utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            source = Source(f"{len(sources)}.txt", paragraph["context"], article["title"])
            sources.append(source)
            questions += (Asked(asked["question"], frozenset([source.name])) for asked in paragraph["qas"])
    return Collected("CMRC 2018", tuple(sources), tuple(questions))


def chunking(folder: Path) -> Collected:
    """The chunking evaluation: five long texts without titles."""
    sources = [
        Source(path.name, path.read_bytes().decode(), None) for path in sorted((folder / "corpora").glob("*.md"))
    ]
    with (folder / "questions.csv").open(newline="", encoding="utf-8") as file:
        questions = [
            Asked(
                row["question"],
                ranges=tuple(
                    (f"{row['corpus_id']}.md", each["start_index"], each["end_index"])
                    for each in json.loads(row["references"])
                ),
            )
            for row in csv.DictReader(file)
        ]
    return Collected("chunking", tuple(sources), tuple(questions))


def recall_of(ranked: Iterable[str], gold: Collection[str], first: int) -> float:
    """The share of `gold` among the first documents; a document counts once."""
    return len(set(list(dict.fromkeys(ranked))[:first]).intersection(gold)) / len(gold)


def characters_found(returned: Sequence[Range], gold: Sequence[Range]) -> float:
    """The share of the characters of `gold` that are in what was returned."""
    by_document: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, start, end in sorted(returned):
        by_document[name].append((start, end))
    found = 0
    for name, start, end in gold:
        place = start  # what lies before was counted
        for first, last in by_document[name]:
            found += max(0, min(last, end) - max(first, place))
            place = max(place, min(last, end))
    return found / sum(end - start for _, start, end in gold)


def within(tokens: float, ranges: Sequence[Range], sizes: Sequence[int]) -> Sequence[Range]:
    """The first ranges that have so many tokens together; the last one is cut in proportion."""
    kept: list[Range] = []
    for (name, start, end), size in zip(ranges, sizes, strict=True):
        if tokens <= 0:
            break
        share = min(1.0, tokens / max(1, size))
        kept.append((name, start, start + round(share * (end - start))))
        tokens -= size
    return kept


def part_of(collected: Collected, documents: int, questions: int) -> Collected:
    """A part of a set: some questions, what answers them, and other documents up to so many; the short ones first."""
    sources = sorted(collected.sources, key=lambda source: len(source.text))
    kept = {source.name for source in sources[:documents]}
    answered = [
        each for each in collected.questions if not each.ranges or kept.issuperset(n for n, _, _ in each.ranges)
    ]
    asked = answered[:: max(1, len(answered) // questions)]
    gold = {name for each in asked for name in each.documents}
    others = [source for source in sources if source.name not in gold]
    needed = [source for source in sources if source.name in gold]
    return Collected(collected.name, (*needed, *others[: max(0, documents - len(needed))]), tuple(asked))
