"""Finds entities that may be the same, by their keys. Nothing is merged: a person decides."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from holdfast.memory.graph.records import DuplicateReason

_SHORTEST_SPELLING = 6  # letters: shorter names that differ by one letter are seldom the same
_MOST_ALIKE = 20  # entities that share a form: more are a series, such as "chapter 1", not duplicates
_ENDINGS = (
    "inc",
    "incorporated",
    "corp",
    "corporation",
    "ltd",
    "limited",
    "llc",
    "gmbh",
    "ag",
    "co",
    "company",
    "plc",
    "sa",
    "group",
)
_CHINESE_ENDINGS = ("股份有限公司", "有限责任公司", "有限公司", "公司", "集团", "市", "省")


@dataclass(frozen=True, slots=True)
class Named:
    """An entity to compare."""

    id: UUID
    key: str
    type: str


@dataclass(frozen=True, slots=True)
class Alike:
    """Two entities that may be the same. The longer name is kept."""

    keep: UUID
    other: UUID
    reason: DuplicateReason


def find_duplicates(entities: Iterable[Named]) -> Iterator[Alike]:
    """Yield pairs that may be the same, the most likely first."""
    every = list(entities)
    seen: set[tuple[UUID, UUID]] = set()
    forms_by_reason: dict[DuplicateReason, Callable[[Named], list[str]]] = {
        "spaces": lambda each: [each.key.replace(" ", "")],
        "ending": _without_ending,
        "initials": _initials,
        "spelling": _spellings,
    }
    for reason, forms in forms_by_reason.items():
        groups: defaultdict[str, list[Named]] = defaultdict(list)
        for each in every:
            for form in set(forms(each)):
                groups[form].append(each)
        for group in groups.values():
            if 1 < len(group) <= _MOST_ALIKE:
                yield from _pairs(group, reason, seen)


def _pairs(group: list[Named], reason: DuplicateReason, seen: set[tuple[UUID, UUID]]) -> Iterator[Alike]:
    for place, one in enumerate(group):
        for other in group[place + 1 :]:
            pair = (min(one.id, other.id), max(one.id, other.id))
            if pair in seen or one.key == other.key or not _may_be_same(one, other, reason):
                continue
            seen.add(pair)
            keep, rest = (one, other) if (len(one.key), one.key) >= (len(other.key), other.key) else (other, one)
            yield Alike(keep.id, rest.id, reason)


def _may_be_same(one: Named, other: Named, reason: str) -> bool:
    if reason in {"spelling", "initials"} and one.type != other.type and "Name" not in (one.type, other.type):
        return False
    if reason == "initials":
        return (" " in one.key) != (" " in other.key)  # a short form and a long one
    if reason == "spelling":
        return _numbers(one.key) == _numbers(other.key) and _is_one_edit(one.key, other.key)
    return True


def _numbers(key: str) -> str:
    return "".join(letter for letter in key if letter.isdigit())


def _without_ending(each: Named) -> list[str]:
    words = each.key.split(" ")
    while len(words) > 1 and words[-1] in _ENDINGS:
        del words[-1]
    bare = " ".join(words)
    for ending in _CHINESE_ENDINGS:
        if len(bare) > len(ending) + 1 and bare.endswith(ending):
            bare = bare.removesuffix(ending)
            break
    return [bare]


def _initials(each: Named) -> list[str]:
    words = each.key.split(" ")
    if len(words) == 1:
        return [each.key] if 2 <= len(each.key) <= 6 and each.key.isascii() else []
    capitals = [word for word in words if word not in {"of", "the", "and", "for", "de"}]
    return ["".join(word[0] for word in capitals)] if len(capitals) > 1 else []


def _spellings(each: Named) -> list[str]:
    """Return the key, and the key without each of its letters: keys one edit apart share one of these."""
    key = each.key
    if len(key) < _SHORTEST_SPELLING or len(key) > 60 or each.type == "Identifier":
        return []
    return [key, *(key[:place] + key[place + 1 :] for place in range(len(key)))]


def _is_one_edit(one: str, other: str) -> bool:
    if len(one) > len(other):
        one, other = other, one
    if len(other) - len(one) > 1:
        return False
    start = 0
    while start < len(one) and one[start] == other[start]:
        start += 1
    if len(one) == len(other):
        return one[start + 1 :] == other[start + 1 :]
    return one[start:] == other[start + 1 :]
