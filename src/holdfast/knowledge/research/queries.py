"""Queries: what to search for to answer a question, by a model or by rules."""

import re

from holdfast.core.sentences import sentences
from holdfast.llm.language_rules import words

MOST_QUERIES = 6
LONGEST = 400  # characters of a query
SHORTEST = 2  # words of a part of a question that is searched for alone

_SEARCH = re.compile(r"\s*(?:[-*\u2022]|\d{1,2}[.)])?\s*\**SEARCH\**\s*[:\uff1a]\s*(.+)", re.IGNORECASE)
_PARTS = re.compile(
    r"\s*[;\uff1b\u3001]\s*|,\s*(?:and|or|but)\s+|\s+(?:and|as well as|compared (?:to|with)|versus|vs\.?)\s+"
    r"|以及|并且|而且|还有|和",
    re.IGNORECASE,
)


def parse_queries(answer: str, *, most: int = MOST_QUERIES) -> list[str]:
    """Return the queries in a model's answer: what follows `SEARCH:` on a line."""
    found = [match[1].strip("*`\"' ")[:LONGEST] for line in answer.splitlines() if (match := _SEARCH.match(line))]
    return list(dict.fromkeys(query for query in found if query))[:most]


def split_question(question: str, *, most: int = MOST_QUERIES) -> list[str]:
    """Return the parts of a question that can be searched for alone, by rules. None if it has only one."""
    said = sentences(question)
    parts = [part.strip() for sentence in said for part in _PARTS.split(sentence) if len(words(part)) >= SHORTEST]
    found = [*(said if len(said) > 1 else ()), *(parts if len(parts) > len(said) else ())]
    return [part[:LONGEST] for part in dict.fromkeys(found) if part != question.strip()][:most]


def fuse(rankings: list[list[str]], *, most: int) -> list[str]:
    """Return the items of several rankings, best first, by reciprocal ranks. The first ranking counts twice."""
    scores: dict[str, float] = {}
    for place, ranking in enumerate(rankings):
        for rank, item in enumerate(ranking):
            scores[item] = scores.get(item, 0.0) + (2.0 if place == 0 else 1.0) / (60 + rank)
    return sorted(scores, key=lambda item: (-scores[item], item))[:most]


def parse_numbers(answer: str, most: int) -> list[int]:
    """Return the numbers in an answer in their order, each once."""
    return list(dict.fromkeys(int(number) for number in re.findall(r"\d{1,7}", answer)))[:most]
