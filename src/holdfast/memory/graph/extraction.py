"""Extraction: what a text names, by rules and without a language model, in English and Chinese.

`entities_of` runs on every chunk of a document and every memory, so it is linear in the length of the text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from holdfast.core.text import store
from holdfast.memory.graph import chinese, english
from holdfast.memory.graph.entity import HAN, MAX_NAME, TYPES, Entity, EntityType, Mention, Relation, key_of, normalize
from holdfast.memory.graph.relations import NamePlace, relations

__all__ = [
    "TYPES",
    "Entity",
    "EntityType",
    "Relation",
    "entities_of",
    "graph_of",
    "key_of",
    "query_keys",
    "relations_of",
    "title_keys",
]

MAX_ENTITIES = 500  # of one text
_MOST_POSITIONS = 100
_LONGEST_GRAM = 12  # words or characters of a key in a question
_MOST_UNITS = 160  # words and characters of a question that are examined
_MOST_KEYS = 1200

_HAS_UPPER = re.compile(r"[A-Z\u00c0-\u00de\u0391-\u03a9\u0410-\u042f]")
_HAS_HAN = re.compile(f"[{HAN}]")
_FENCES = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_BACKTICKS = re.compile(r"`([^`\n]{2,80})`")
_CODE_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|/|-)[\w$]+)*(?:\(\))?")
_LINK = re.compile(
    r"https?://(?:[^\s/@]+@)?([A-Za-z0-9.-]+\.[A-Za-z]{2,}|\d{1,3}(?:\.\d{1,3}){3}|localhost)(?::\d+)?[^\s<>\"')\]\u3002\uff0c]*"
)
_MAIL = re.compile(r"[A-Za-z0-9][\w.+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")
# Each of these begins with a set of characters, by which the search skips, and looks back from behind the first one.
_CODES = re.compile(
    r"[A-Zv\d](?:(?<![\w.-].)(?:(?<=C)VE-\d{4}-\d{4,}|(?<=[A-Z])[A-Z0-9]{1,9}(?:-\d+)+(?![\w-])|(?<=0)x[0-9A-Fa-f]{3,}|(?<=[A-Z])[A-Z]{0,3}\d{3,}[A-Z0-9]*(?![\w-]))"
    r"|(?<=v)(?<![\w.].)\d+(?:\.\d+){1,3}(?:-[\w.]+)?(?![\w])|(?<=\d)(?<![\w.:/-].)\d*\.\d+\.\d+(?:\.\d+)?(?:-(?:rc|alpha|beta)[\w.]*)?(?![\w/-]|\.\d))"
)
_SNAKE = re.compile(r"(?<![\w./-])[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?:\(\))?(?!\w)")
_CALL = re.compile(
    r"(?<![\w.])[a-z][a-zA-Z0-9]*(?:[A-Z][a-z0-9]+)+(?:\(\))?(?!\w)|(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*\(\)|(?<!\w)(?:i(?:Phone|Pad)|Windows|Android|PlayStation|Xbox|GPT) \d{1,2}(?:\.\d+)?(?![\w.]\w)"
)
# What each code and each name of code contains, to look for first: the search skips to the characters that they begin with.
_MAY_BE_CODE = re.compile(r"[0-9](?:(?<=[A-Z].)|(?<=[A-Z]-.)|(?<=v.)|\.\d+\.\d|x[0-9A-Fa-f]{3})")
_MAY_BE_CALL = re.compile(r"[A-Z(](?:(?<=[a-z].)|(?<=\()\)|(?:indows|ndroid|layStation|box|PT)[ ]\d)")
_DATE = re.compile(r"\d{1,2}\.\d{1,2}\.(?:19|20)\d\d$|(?:19|20)\d\d\.\d{1,2}\.\d{1,2}$")
_DISAMBIGUATED = re.compile(r"\s*[(\uff08][^()\uff08\uff09]{1,40}[)\uff09]\s*$")
_FILE_ENDING = re.compile(r"\.(?:pdf|docx?|pptx?|xlsx?|md|txt|html?|csv|epub|rst|json|ya?ml|py|js|ts)$", re.IGNORECASE)
_SPECIFIC: dict[EntityType, int] = {kind: place for place, kind in enumerate(TYPES)}
_UNIT = re.compile(rf"[{HAN}]|[^\s{HAN}]+")
_QUESTION_STOPS = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "to",
        "for",
        "from",
        "by",
        "with",
        "and",
        "or",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "being",
        "do",
        "does",
        "did",
        "has",
        "have",
        "had",
        "which",
        "who",
        "whom",
        "whose",
        "what",
        "when",
        "where",
        "why",
        "how",
        "that",
        "this",
        "these",
        "those",
        "it",
        "its",
        "he",
        "she",
        "they",
        "his",
        "her",
        "their",
        "than",
        "as",
        "not",
        "no",
        "if",
        "into",
        "about",
        "film",
        "director",
        "the",
        "i",
        "you",
        "we",
        "my",
        "your",
        "our",
        "me",
        "us",
        "can",
        "could",
        "will",
        "would",
        "should",
        "may",
        "might",
        "must",
        "there",
        "here",
        "most",
        "more",
        "some",
        "any",
        "all",
    ]
)


def entities_of(text: str, *, title: str | None = None) -> list[Entity]:
    """Return what a text names, in the order of the first mentions; at most 500.

    The title of the text, if given, is an entity too, with its position in the text if it occurs there.
    """
    return _gather(_mentions(text), title)


def relations_of(text: str) -> list[Relation]:
    """Return the relations that sentences of a text state between what they name; at most 200."""
    found = _mentions(text)
    return relations(text, _places(found, _gather(found, None)))


def graph_of(text: str, *, title: str | None = None) -> dict[str, Any] | None:
    """Return what `holdfast.link_entities` stores of a text, without the id of its memory; None if it names nothing."""
    found = _mentions(text)
    entities = _gather(found, title)
    if not entities:
        return None
    graph: dict[str, Any] = {"entities": [_entity_item(entity) for entity in entities]}
    if len(entities) > 1 and (stated := relations(text, _places(found, entities))):
        graph["relations"] = [
            {"source": each.source, "type": each.type, "target": each.target, "description": store(each.description)}
            for each in stated
        ]
    return graph


def _entity_item(entity: Entity) -> dict[str, Any]:
    item: dict[str, Any] = {"key": entity.key, "name": store(entity.name), "type": entity.type}
    if entity.count > 1:
        item["count"] = entity.count
    if entity.aliases:
        item["aliases"] = [{"key": key_of(alias), "name": store(alias)} for alias in entity.aliases]
    return item


def _places(found: Sequence[Mention], entities: Sequence[Entity]) -> list[NamePlace]:
    """Return the mentions with the keys and types of their entities."""
    by_position = {position: entity for entity in entities for position in entity.positions}
    places: list[NamePlace] = []
    for mention in found:
        entity = by_position.get(mention.start)
        if entity is not None and (not places or mention.start >= places[-1].end):
            end = min(mention.end, mention.start + len(mention.name))
            places.append(NamePlace(mention.start, end, entity.key, entity.type))
    return places


def _mentions(text: str) -> list[Mention]:
    found: list[Mention] = []
    text = _take_code(text, found)
    text = _take_identifiers(text, found)
    if _HAS_HAN.search(text):
        found += chinese.mentions(text)
        if _HAS_UPPER.search(text):
            taken = list(found)
            found += (each for each in english.mentions(text) if not _is_inside(each, taken))
    elif _HAS_UPPER.search(text):
        found += english.mentions(text)
    found.sort(key=lambda mention: (mention.start, mention.alias_of is not None))
    return found


def _is_inside(mention: Mention, others: Iterable[Mention]) -> bool:
    return any(other.start <= mention.start and mention.end <= other.end for other in others)


def _take_code(text: str, found: list[Mention]) -> str:
    """Note names in backticks, and blank out code."""
    if "```" in text or "~~~" in text:
        text = _FENCES.sub(_blank, text)
    if "`" in text:

        def take(match: re.Match[str]) -> str:
            if _CODE_NAME.fullmatch(match[1]) and any(letter.isalpha() for letter in match[1]):
                name = match[1].removesuffix("()")
                kind: EntityType = "Technology" if name in english.TECHNOLOGIES else "Identifier"
                found.append(Mention(match.start(1), match.start(1) + len(name), name, kind))
            return _blank(match)

        text = _BACKTICKS.sub(take, text)
    return text


def _take_identifiers(text: str, found: list[Mention]) -> str:
    """Note hosts of links, e-mail addresses, codes, versions and names of code, and blank them out."""

    def take(match: re.Match[str]) -> str:
        name = match[match.lastindex or 0]
        if name in english.TECHNOLOGIES:
            found.append(Mention(match.start(), match.start() + len(name), name, "Technology"))
            return _blank(match)
        if _DATE.match(name) or (name[0].isdigit() and name.replace(".", "").isdigit() and name.count(".") < 2):
            return match[0]
        name = name.removesuffix("()").removeprefix("www.")
        if " " in name:
            found.append(Mention(match.start(), match.end(), name, "Technology"))
        elif len(name) <= MAX_NAME:
            found.append(Mention(match.start(), match.end(), name, "Identifier"))
        return _blank(match)

    if "://" in text:
        text = _LINK.sub(take, text)
    if "@" in text:
        text = _MAIL.sub(take, text)
    if _MAY_BE_CODE.search(text):
        text = _CODES.sub(take, text)
    if "_" in text:
        text = _SNAKE.sub(take, text)
    return _CALL.sub(take, text) if _MAY_BE_CALL.search(text) else text


def _blank(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


class _Gathered:
    """An entity while its mentions are gathered."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.types: Counter[EntityType] = Counter()
        self.aliases: dict[str, None] = {}
        self.positions: list[int] = []
        self.is_title = False

    def entity(self, key: str) -> Entity:
        return Entity(
            self.name,
            key,
            min(self.types, key=lambda kind: (kind == "Name", -self.types[kind], _SPECIFIC[kind])),
            tuple(self.aliases),
            tuple(self.positions[:_MOST_POSITIONS]),
            self.is_title,
        )


def _gather(found: list[Mention], title: str | None) -> list[Entity]:
    entities: dict[str, _Gathered] = {}
    keys: dict[str, str] = {}  # the key of an alias or a short form -> the key of its entity
    if title is not None:
        for index, name in enumerate(_title_names(title)):
            _add(entities, key_of(name), name, "Work" if index == 0 else "Name", None).is_title = True
    for mention in found:
        if mention.alias_of is not None:
            # The mention of "X (Y)" has Y as `alias_of`, that of "X, also known as Y" is Y and has X.
            name_key, other_key = key_of(mention.name), key_of(mention.alias_of)
            target, alias = (
                (other_key, mention.name)
                if other_key in entities or other_key in keys
                else (name_key, mention.alias_of)
            )
            target = keys.get(target, target)
            if key_of(alias) != target and key_of(alias):
                if target not in entities or target == name_key:
                    _add(entities, target, mention.name, mention.type, mention.start)
                entities[target].aliases[alias] = None
                keys[key_of(alias)] = target
                if (again := entities.pop(key_of(alias), None)) is not None and key_of(alias) != target:
                    entities[target].positions += again.positions
                continue
        key = key_of(mention.name)
        if not key or (len(key) < 2 and not _HAS_HAN.match(key)):
            continue
        _add(entities, keys.get(key, key), mention.name, mention.type, mention.start)
    _join_short_names(entities)
    return [each.entity(key) for key, each in list(entities.items())[:MAX_ENTITIES]]


def _add(entities: dict[str, _Gathered], key: str, name: str, kind: EntityType, start: int | None) -> _Gathered:
    found = entities.get(key)
    if found is None:
        found = entities[key] = _Gathered(name[:MAX_NAME])
    found.types[kind] += 1
    if start is not None:
        found.positions.append(start)
    return found


def _join_short_names(entities: dict[str, _Gathered]) -> None:
    """Count a surname, or a given name, as a mention of the only person of the text who has it."""
    parts: dict[str, list[str]] = {}
    for key, found in entities.items():
        if found.types["Person"] and " " in key:
            words = key.split(" ")
            for word in {words[0], words[-1]}:
                if len(word) > 2:
                    parts.setdefault(word, []).append(key)
    for part, owners in parts.items():
        if (
            part in entities
            and len(owners) == 1
            and not (set(entities[part].types) - {"Person", "Name"})
            and not entities[part].is_title
        ):
            entities[owners[0]].positions += entities.pop(part).positions
            entities[owners[0]].positions.sort()


def _title_names(title: str) -> list[str]:
    """Return a title, and the title without a remark in brackets, such as "(1912 film)"."""
    name = " ".join(_FILE_ENDING.sub("", title).split())
    bare = _DISAMBIGUATED.sub("", name)
    return [each[:MAX_NAME] for each in dict.fromkeys([name, bare]) if key_of(each)]


def title_keys(title: str) -> list[str]:
    """Return the keys by which a title is looked up: of the title, and of the title without a remark in brackets."""
    return list(dict.fromkeys(key_of(name) for name in _title_names(title)))


def query_keys(question: str) -> list[str]:
    """Return the keys of all names that a question may contain: its runs of words and characters, shortest first."""
    units = _UNIT.findall(normalize(question))[:_MOST_UNITS]
    found: dict[str, None] = {}
    for length in range(1, min(_LONGEST_GRAM, len(units)) + 1):
        for gram in _grams(units, length):
            found[gram] = None
        if len(found) >= _MOST_KEYS:
            break
    return list(found)[:_MOST_KEYS]


def _grams(units: list[str], length: int) -> Iterator[str]:
    is_spaced = all(map(str.isascii, units))
    for begin in range(len(units) - length + 1):
        first, last = units[begin], units[begin + length - 1]
        if first == "the" or (length == 1 and (first in _QUESTION_STOPS or len(first) < 2)):
            continue
        if length <= 2 and (first in _QUESTION_STOPS and last in _QUESTION_STOPS):
            continue
        key = units[begin]
        if is_spaced:
            yield " ".join(units[begin : begin + length])
            continue
        for before, unit in zip(units[begin:], units[begin + 1 : begin + length], strict=False):
            key += unit if _HAS_HAN.match(unit) or _HAS_HAN.match(before) else f" {unit}"
        yield key
