"""Finds names in English text by rules: capital letters, the words around them, and quotation marks.

A capital letter at the start of a sentence, in a heading or in a table says little, so a common word there is no name.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from holdfast.memory.graph.english_names import (
    ACRONYM_STOPS,
    DATES,
    DEMONYMS,
    DOUBTFUL_GIVEN,
    FUNCTION_WORDS,
    GIVEN,
    HONORIFICS,
    IMPERATIVES,
    KEPT_HONORIFICS,
    NUMBERED,
    ORGANIZATION_ENDS,
    ORGANIZATION_MIDDLES,
    ORGANIZATION_STARTS,
    ORGANIZATIONS,
    PLACE_ENDS,
    PLACE_STARTS,
    PLACES,
    ROLES,
    SOFT_WORDS,
    TECHNOLOGIES,
    WORK_ENDS,
)
from holdfast.memory.graph.english_words import is_common
from holdfast.memory.graph.entity import MAX_NAME, EntityType, Mention


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UPPER = "A-Z\u00c0-\u00d6\u00d8-\u00de\u0100\u0106\u010c\u010e\u0141\u0143\u0158\u015a\u0160\u0179\u017b\u017d\u0391-\u03a9\u0410-\u042f"
_ABBREVIATIONS = [
    "Mr",
    "Mrs",
    "Ms",
    "Dr",
    "Prof",
    "St",
    "Gen",
    "Sen",
    "Rep",
    "Lt",
    "Col",
    "Capt",
    "Rev",
    "Hon",
    "Mt",
    "Ft",
    "Sgt",
    "Gov",
    "Jr",
    "Sr",
    "Inc",
    "Ltd",
    "Co",
    "Corp",
    "Bros",
]
_ABBREVIATED = rf"(?:{'|'.join(_ABBREVIATIONS)})\."
# It begins with one set of characters, by which the search skips fast.
_WORD = (
    rf"[{_UPPER}](?:\.(?:[{_UPPER}]\.)*(?:[{_UPPER}](?![^\W_]))?"
    r"|\w*(?:['\u2019&.+-](?:(?!s\b)\w+|s(?= (?:College|Hospital|School|Church|Cathedral|Club|Day|Castle|Court|Square|Island|Park)\b)))*"
    rf"(?:\+\+|\#|\.(?:{'|'.join(rf'(?<={each}.)' for each in _ABBREVIATIONS)}))?)"
)
_JOINT = (
    r"(?:[ \u00a0](?:(?:of|de|da|di|del|della|der|den|des|du|van|von|la|le|bin|ibn|al|el|y|for|the|and)[ \u00a0]){0,3}"
    r"|[ ]&[ ]|,[ ](?=(?:Inc|Ltd|LLC|Jr|Sr|Co)\b))"
)
_RUN = re.compile(rf"{_WORD}(?:{_JOINT}{_WORD}|[ ](?:\d{{1,3}}|(?!19|20)\d{{4}})(?![\w.,%:/-]\w|\w))*")
_PARTICLES = _set(
    """
    of de da di del della der den des du van von la le bin ibn al el y for the and
    """
)
_PERSON_PARTICLES = _set(
    """
    de da di del della der den des du van von la le bin ibn al el y
    """
)
_SENTENCE_START = re.compile(
    r"(?:^|[.!?:;\u2026|>#*=\u3002\uff01\uff1f\uff1a\uff1b\n\t\u2022]|[-\u2013\u2014] )[\s\"'\u201c\u2018(\[*_]*$"
)
_SENTENCE_SIGNS = frozenset(".!?:;\u2026|>#*=\u3002\uff01\uff1f\uff1a\uff1b\n\t\u2022-\u2013\u2014\"'\u201c\u2018([_")
# It begins with a character, by which the search skips, and looks back from behind that; so does `_QUOTED`.
_WRAPPED = re.compile(r"\n(?<=[^\n]{50}\n)(?<![.!?:;|]\n)(?=[^\s\-*\u2022#|\d>])")
_CALLED = _set(
    """
    called named titled entitled
    """
)
_WORKS = _set(
    """
    film movie novel book song album series play poem painting opera game magazine newspaper show
    """
)
_FIRMS = _set(
    """
    company startup employer vendor firm supplier band label publisher airline manufacturer retailer
    """
)
_PLACES_OF = _set(
    """
    city town village capital suburb district port
    """
)
_WORKED = _set(
    """
    work works worked working job employed intern interned
    """
)
_LIVED = _set(
    """
    born live lives lived living located based died raised headquartered moved moving flew travelled traveled
    trip grew plant event office factory relocated arrived visit visited shot filmed held
    """
)
_PERSON_AFTER = re.compile(
    r"(?:['\u2019]s (?:wife|husband|father|mother|son|daughter|sister|brother|friend|boyfriend|girlfriend|birthday|team)\b"
    r"| \((?:born|b\.|n[ée]e|\d{4})| (?:was born|said|says|told|married|asked|replied|wrote|joined|thinks|wants|likes|loves|prefers|lives|moved)\b"
    r"|, (?:who|aged|\d\d)\b)"
)
_QUOTED = re.compile(
    r"[\u201c\"*_](?:(?<=\u201c)([^\u201c\u201d\n]{2,90})\u201d|(?<=\")(?<!\w\")([^\"\n]{2,90})\"(?!\w)"
    r"|(?<=\*)(?<![\w*]\*)([A-Z][^*\n]{1,90})\*(?![\w*])|(?<=_)(?<!\w_)([A-Z][^_\n]{1,90})_(?!\w))"
)
_WORK_BEFORE = re.compile(
    r"\b(?:film|movie|novel|book|song|single|album|series|play|poem|painting|opera|game|magazine|show|called|titled|entitled|"
    r"watched|watch|watching|read|reading|documentary|musical|essay|article|report|paper|podcast|episode|story)(?:,| is| was)? [\"\u201c*_]?$"
)
_BRACKET_ALIAS = re.compile(
    r"\s?\((?:(?:the|also|or|formerly|abbreviated(?: as| to)?|hereinafter|hereafter) )*[\"\u201c']?(?P<short>[A-Z][\w.&-]{1,14})[\"\u201d']?\)"
)
_KNOWN_AS = re.compile(
    r",? \(?(?:also |better |formerly |previously |commonly |often |widely )*(?:known (?:simply )?as|a\.k\.a\.|aka|nicknamed|abbreviated (?:as|to)|n[ée]e) (?:the )?[\"\u201c']?"
)
_ENDS_IN_ABBREVIATION = re.compile(rf"(?:{_ABBREVIATED}|(?:[A-Z]\.)+)$")
_INITIALS = re.compile(r"(?:[A-Z]\.)+")
_INITIAL = re.compile(r"[A-Z]\.")
_MIXED_CASE = re.compile(r"[a-z][A-Z]")
_PREFIXES_OF_SURNAMES = ("Mc", "Mac", "De", "La", "Le", "Di", "Du")
_USUAL_ENDINGS = ("ly", "ing", "ed", "ness", "tion", "ment", "ity", "ism")
_ENDING_FUNCTION_WORDS = frozenset({"well", "last"})
_SURNAMES_LIKE_PLACES = frozenset(
    {"Park", "Hill", "Lake", "Lane", "Street", "Hills", "Rivers", "Castle", "Temple", "Forest", "Peak"}
)
_SAINTS = frozenset({"San", "Santa", "El", "Los", "Las"})
_LONGEST_HEADING = 90
_SHOUTED = 7  # letters of an all-capitals word that is no acronym
_SHARE_OF_TITLE = 0.6
_LONGEST_PERSON = 5


_MEASURES = _set(
    """
    share member part resident citizen fan founder co-founder most many some one all customer employee user copy
    version bottle piece image picture photo end start
    """
)


class _Run(NamedTuple):
    """What a run of capitalised words names, and where that begins in the run. `type` is None if the name is doubtful."""

    offset: int
    name: str
    type: EntityType
    is_doubtful: bool


def mentions(text: str, *, lowered: "_LowerWords | None" = None) -> Iterator[Mention]:
    """Yield what a text names by capitalised words and quoted titles, in order within each kind."""
    text = _WRAPPED.sub(" ", text)
    if '"' in text or "\u201c" in text or "*" in text or "_" in text:
        titles = list(_titles(text))
        yield from titles
        for title in titles:
            text = f"{text[: title.start]}{' ' * (title.end - title.start)}{text[title.end :]}"
    lowered = lowered or _LowerWords(text)
    previous: Mention | None = None
    for match in _RUN.finditer(text):
        start, end = match.span()
        before = text[start - 1] if start else "\n"
        if (
            before.isalnum()
            or before in "_@/\\$&."
            or (end < len(text) and text[end] in "(_=@\\" and text[end - 1] != " ")
        ):
            continue  # code, or the inner part of a word
        is_start = start < 2 or _is_sentence_start(text, start, before)
        for run in _names_in(match[0], is_start):
            place = start + run.offset
            mention = _judge(text, place, run, lowered, previous)
            if mention is not None:
                yield mention
                previous = mention


def _is_sentence_start(text: str, start: int, before: str) -> bool:
    if before == " " and start > 1 and text[start - 2] not in _SENTENCE_SIGNS and text[start - 2] != " ":
        return False
    if before == "\u2019" or before.isalnum():
        return False
    return _SENTENCE_START.search(text, max(0, start - 6), start) is not None


def _judge(text: str, start: int, run: _Run, lowered: "_LowerWords", previous: Mention | None) -> Mention | None:
    name, kind = run.name, run.type
    end = start + len(name)
    if run.is_doubtful:
        if _is_heading(text, start, end) or lowered.has(name.split(" ")[0]):
            return None
        if " " not in name and kind != "Organization" and not _PERSON_AFTER.match(text, end):
            return None
    elif (name.isupper() or kind == "Name") and _is_heading_name(text, start, end, name):
        return None
    if kind == "Name":
        kind = _type_by_context(text, start, end, name)
    if (
        previous is not None
        and 0 < start - previous.end < len(", also commonly known simply as the xx")
        and _KNOWN_AS.fullmatch(text, previous.end, start)
    ):
        return Mention(start, end, name, previous.type, previous.name)
    if end < len(text) - 2 and text[end] in " (" and (bracket := _BRACKET_ALIAS.match(text, end)):
        short = bracket["short"].rstrip(".")
        if is_short_form(short, name):
            return Mention(start, end, name, kind if kind != "Name" else "Organization", short)
    return Mention(start, end, name, kind)


def is_short_form(short: str, name: str) -> bool:
    """Whether the letters of an abbreviation occur in a name in their order, beginning with its first letter."""
    letters = [letter for letter in short.casefold() if letter.isalnum()]
    long = name.casefold().removeprefix("the ")
    if not letters or len(letters) >= len(long) or not long.startswith(letters[0]):
        return False
    initials = "".join(word[0] for word in re.findall(r"\w+", long))
    if "".join(letters) == initials or (len(letters) > 1 and initials.startswith("".join(letters))):
        return True
    rest = iter(long)
    return short.isupper() and " " in name and all(letter in rest for letter in letters)


def _type_by_context(text: str, start: int, end: int, name: str) -> EntityType:
    words = name.count(" ") + 1
    if _PERSON_AFTER.match(text, end) and words <= _LONGEST_PERSON and not name.isupper():
        return "Person"
    if text[start - 1 : start] != " ":
        return "Name"
    before = text[max(0, start - 32) : start].replace(",", "").split(" ")[:-1]
    if before and before[-1] in _CALLED:
        del before[-1]
    last = before[-1] if before else ""
    if last in _WORKS:
        return "Work"
    if last in _FIRMS:
        return "Organization"
    if last in ROLES and words <= _LONGEST_PERSON:
        return "Person"
    if len(before) > 1:
        if last in {"in", "to", "from", "near"} and (before[-2] in _LIVED or (before[-2] == "up" and last == "in")):
            return "Place"
        if last == "of" and before[-2] in _PLACES_OF:
            return "Place"
        if last in {"at", "for", "with"} and before[-2] in _WORKED:
            return "Organization"
    return "Name"


class _LowerWords:
    """The words that a text also writes in lower case: computed when asked."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words: frozenset[str] | None = None

    def has(self, word: str) -> bool:
        if self._words is None:
            self._words = frozenset(self._text.split())
        return word.lower() in self._words


def _is_heading(text: str, start: int, end: int) -> bool:
    """Whether the name is most of a short line, which is then a heading, a list item or a cell of a table."""
    first = max(text.rfind("\n", 0, start), text.rfind("|", 0, start)) + 1
    last = text.find("\n", end)
    line = text[first : last if last >= 0 else len(text)].partition("|")[0].strip(" \t#*-\u2022:>")
    return len(line) <= _LONGEST_HEADING and (end - start) * 2 >= len(line) and not line.endswith((".", "!", "?"))


def _is_heading_name(text: str, start: int, end: int, name: str) -> bool:
    """Whether the name is only a heading: a line in capitals, or one of common words."""
    if name.isupper() and len(name) > 1:
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        line = text[first : last if last >= 0 else len(text)]
        if " " in line.strip() and line.isupper():
            return True
    words = [word for word in name.lower().split(" ") if word not in _PARTICLES]
    if all(is_common(word) or word in FUNCTION_WORDS for word in words):
        return _is_heading(text, start, end)
    return False


def _titles(text: str) -> Iterator[Mention]:
    for match in _QUOTED.finditer(text):
        content = next(group for group in match.groups() if group is not None)
        title = content.rstrip(",.;")
        words = title.split()
        if (
            not words
            or not words[0][0].isupper()
            or (content[-1] in ".,!?" and content[0] != title[0])
            or len(title) > MAX_NAME
        ):
            continue
        counted = [word for word in words if word.lower() not in FUNCTION_WORDS]
        capitals = sum(word[0].isupper() or word[0].isdigit() for word in counted)
        is_named = _WORK_BEFORE.search(text, max(0, match.start() - 24), match.start()) is not None
        follows = text[match.end() : match.end() + 2]
        is_title_case = bool(counted) and capitals >= max(1, _SHARE_OF_TITLE * len(counted)) and len(words) > 1
        if (
            (is_named or (is_title_case and not content.endswith((",", "!", "?", "."))))
            and not follows.startswith(" =")
            and capitals
        ):
            if all(len(word) > 1 and word.isupper() for word in words) and not is_named:
                continue
            start = match.start() + match[0].index(content)
            yield Mention(start, start + len(title), title, "Work")


@lru_cache(maxsize=1 << 16)
def _names_in(run: str, is_start: bool) -> tuple[_Run, ...]:
    """Return the names in a run of capitalised words: without words that only begin a sentence, split where two meet."""
    found: list[_Run] = []
    place = 0
    for part in _split(run.replace("\u00a0", " ")):
        offset = run.replace("\u00a0", " ").index(part, place)
        place = offset + len(part)
        name = _trimmed(part, is_start and offset == 0)
        if name is None:
            continue
        text, kind, is_doubtful = name
        found.append(_Run(offset + part.index(text), text, kind, is_doubtful))
    return tuple(found)


def _split(run: str) -> Iterator[str]:
    """Split at "and", and where "of", "for" or "the" does not belong to a name."""
    words = run.split(" ")
    begin = 0
    for index, word in enumerate(words):
        if word in {"and", "y"} and _is_known(words[begin:], ORGANIZATIONS | PLACES):
            continue
        if word == "and" or (
            word in {"of", "for", "the", "al", "el", "la", "le"} and index > begin and not _binds(words, begin, index)
        ):
            if index > begin:
                yield " ".join(words[begin:index])
            begin = index + 1
    while begin < len(words) and words[begin] in {"of", "for", "the", "and"}:
        begin += 1
    if begin < len(words):
        yield " ".join(words[begin:])


def _binds(words: list[str], begin: int, index: int) -> bool:
    """Whether the particle at `index` is inside a name, as in "University of Oxford" and "Lord of the Rings"."""
    word = words[index]
    head = words[index - 1]
    if word == "the":
        return head in _PARTICLES and index - 1 > begin
    if word == "for":
        return any(each in ORGANIZATION_STARTS or each in ORGANIZATION_ENDS for each in words[begin:index])
    if word == "of":
        return (
            head.lower().rstrip("s") not in _MEASURES
            and head.lower().rstrip("s") not in ROLES
            and head not in DATES
            and head not in {"CEO", "CTO", "CFO", "VP", "Head", "Director", "Chief"}
        )
    return True


def _is_known(words: list[str], names: frozenset[str]) -> bool:
    return " ".join(words) in names


def _trimmed(part: str, is_start: bool) -> tuple[str, EntityType, bool] | None:
    """Return the name in a part of a run, its type, and whether it is doubtful."""
    if part in PLACES:
        return part, "Place", False
    words, is_start, is_person = _without_head(part.split(" "), is_start, may_be_date=part not in PLACES)
    _remove_tail(words)
    if not words:
        return None
    name = " ".join(words)
    if name.endswith(".") and not _ENDS_IN_ABBREVIATION.search(name):
        name = name.rstrip(".")
    if len(name) > MAX_NAME:
        return None
    if len(words) == 1:
        return _single(name, is_start=is_start, is_person=is_person)
    if is_person:
        return name, "Person", False
    kind = _type_of(words)
    if kind == "Name" and is_start and is_common(words[0].lower()):
        return _behind_common_word(name, words)
    return name, kind, False


def _without_head(words: list[str], is_start: bool, *, may_be_date: bool) -> tuple[list[str], bool, bool]:
    """Remove words that only begin a sentence, titles of people, and dates. Also return whether a title was removed."""
    is_person = False
    while words:
        first = words[0].rstrip(".")
        lower = first.lower().replace("'", "").replace("\u2019", "")
        if _is_function_word(words, first, lower, is_start=is_start):
            del words[0]
            is_start = is_start and lower != "the"
        elif first in HONORIFICS and len(words) > 1 and words[1] not in _PARTICLES:
            is_person = words[1].rstrip(".") not in ORGANIZATION_ENDS
            if first in KEPT_HONORIFICS and len(words) <= 3:
                break
            del words[0]
            is_start = False
        elif is_start and len(words) > 1 and lower in IMPERATIVES:
            del words[0]
            is_start = False
        elif may_be_date and _is_date_or_origin(words, first):
            del words[0]
        else:
            break
    return words, is_start, is_person


def _is_function_word(words: list[str], first: str, lower: str, *, is_start: bool) -> bool:
    if lower not in FUNCTION_WORDS or (len(words) == 1 and first in GIVEN):
        return False
    is_soft = lower in SOFT_WORDS and not is_start and len(words) > 1
    return not is_soft and not (first.isupper() and len(first) > 1 and not is_start)


def _is_date_or_origin(words: list[str], first: str) -> bool:
    """Whether a name begins with a month or a day, or with the origin of a person: "French Jean Renoir"."""
    if first in DEMONYMS and len(words) > 1 and _is_person(words[1:]):
        return True
    is_given_name = first in GIVEN and len(words) > 1 and first not in {"April", "May", "June"}
    return first in DATES and not is_given_name


def _remove_tail(words: list[str]) -> None:
    """Remove dates and function words at the end, and a number that counts, as in "Chapter 5"."""
    while words and (
        words[-1] in DATES or words[-1] in _PARTICLES or words[-1].lower() in FUNCTION_WORDS - _ENDING_FUNCTION_WORDS
    ):
        if len(words) == 1 and words[-1] in GIVEN:
            break
        del words[-1]
    if words and words[-1].isdigit() and (len(words) == 1 or words[-2].lower() in NUMBERED or words[-2] in DATES):
        del words[-2:]


def _behind_common_word(name: str, words: list[str]) -> tuple[str, EntityType, bool]:
    """Judge a name at the start of a sentence whose first word is a common one, and may be no part of it."""
    rest = words[1:]
    if len(rest) == 1:
        single = _single(rest[0], is_start=False, is_person=False)
        if single is None:
            return name, "Name", True
        return single if single[1] != "Name" else (name, "Name", False)
    if _type_of(rest) == "Person":
        return " ".join(rest), "Person", False
    return name, "Name", all(is_common(word.lower()) or word in _PARTICLES for word in words)


def _single(name: str, *, is_start: bool, is_person: bool) -> tuple[str, EntityType, bool] | None:
    """Judge a single word."""
    bare = name.rstrip(".")
    if is_person and len(bare) > 1:
        return bare, "Person", False
    known = _known_single(name, bare, is_start=is_start)
    if known is not None:
        return known
    if len(bare) < 2 or bare in ACRONYM_STOPS or bare in DEMONYMS or bare in DATES or bare.isdigit():
        return None
    if bare in GIVEN:
        return bare, "Person", bare in DOUBTFUL_GIVEN and is_start
    return None if _is_usual(bare, is_start=is_start) else (bare, _type_of_single(bare), is_start and bare.istitle())


def _known_single(name: str, bare: str, *, is_start: bool) -> tuple[str, EntityType, bool] | None:
    may_be_word = is_start and bare.isalpha() and is_common(bare.lower())
    if bare in TECHNOLOGIES:
        return None if may_be_word else (bare, "Technology", False)
    if bare in ORGANIZATIONS:
        return bare, "Organization", may_be_word
    return (name, "Place", False) if name in PLACES else None


def _type_of_single(bare: str) -> EntityType:
    is_mixed = _MIXED_CASE.search(bare) and "'" not in bare
    return "Technology" if is_mixed and not bare.startswith(_PREFIXES_OF_SURNAMES) else "Name"


def _is_usual(bare: str, *, is_start: bool) -> bool:
    """Whether a word is a common one, or looks like one."""
    lower = bare.lower()
    if bare.isupper():
        return (len(bare) >= _SHOUTED and bare.isalpha()) or is_common(lower) or lower in FUNCTION_WORDS
    if lower in FUNCTION_WORDS or is_common(lower) or bare in HONORIFICS or lower in ROLES:
        return True
    if "-" in bare and all(is_common(part) or part in FUNCTION_WORDS for part in lower.split("-")):
        return True
    return is_start and (lower.endswith(_USUAL_ENDINGS) or not bare.isalpha()) and not _MIXED_CASE.search(bare)


def _is_person(words: list[str]) -> bool:
    return _type_of(words) == "Person"


def _type_of(words: list[str]) -> EntityType:
    """Return the type of a name of several words, by its words."""
    name = " ".join(words)
    if name in PLACES:
        return "Place"
    if name in ORGANIZATIONS or _is_organization(words):
        return "Organization"
    if name in TECHNOLOGIES or (words[-1].isdigit() and len(words) == 2 and words[0] in TECHNOLOGIES):
        return "Technology"
    if _is_place(words):
        return "Place"
    if words[-1] in WORK_ENDS:
        return "Work"
    return "Person" if _is_person_name(words) else "Name"


def _is_organization(words: list[str]) -> bool:
    last, first = words[-1].rstrip(".,"), words[0].rstrip(".")
    if last in ORGANIZATION_ENDS and not (last in {"Post", "United", "Technology"} and len(words) > 4):
        return True
    if len(words) > 2 and first in ORGANIZATION_STARTS and words[1] in {"of", "for", "de"}:
        return True
    if "of" in words and any(word in ORGANIZATION_ENDS for word in words[: words.index("of")]):
        return True
    return last not in PLACE_ENDS and any(word in ORGANIZATION_MIDDLES for word in words[:-1])


def _is_place(words: list[str]) -> bool:
    last, first = words[-1].rstrip(".,"), words[0].rstrip(".")
    if last in PLACE_ENDS and not (first in GIVEN and last in _SURNAMES_LIKE_PLACES):
        return True
    return first in PLACE_STARTS and len(words) <= 4 and (first not in _SAINTS or len(words) == 2)


def _is_person_name(words: list[str]) -> bool:
    last, first = words[-1].rstrip(".,"), words[0].rstrip(".")
    if "of" in words or len(words) > _LONGEST_PERSON:
        return False
    if first in KEPT_HONORIFICS:
        return True
    if "for" in words or "the" in words:
        return False
    capitals = [word for word in words if word not in _PARTICLES]
    if first in GIVEN:
        return not any(word.isdigit() or (word.isupper() and "." not in word and len(word) > 3) for word in words)
    if len(capitals) < 2:
        return False
    has_initial = _INITIALS.fullmatch(words[0]) or any(_INITIAL.fullmatch(word) for word in words[1:-1])
    has_particle = any(word in _PERSON_PARTICLES for word in words[1:-1]) and words[1] != "la"
    return bool(has_initial) or has_particle or last in {"Jr", "Sr"}
