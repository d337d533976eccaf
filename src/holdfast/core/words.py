"""The words of a text, in the form that searches compare.

A lexeme is a stemmed word, a number, or one or two characters of a script without spaces. A term is the hash of a
lexeme; the database stores terms. If you change this module, all stored terms have to be computed again.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from typing import cast

import Stemmer  # pyright: ignore[reportMissingTypeStubs]

_LONGEST_CACHED = 40  # characters of a word whose lexemes are cached; a page of Chinese is one word
_LONGEST_NAME = 4  # characters of a Chinese, Japanese or Korean name

_STOP_WORDS = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it
    its itself they them their theirs themselves what which who whom whose this that these those am is are was were be
    been being have has had having do does did doing done a an the and but if or because as until while of at by for
    with about against between into through during before after above below to from up down in out on off over under
    again further then once here there when where why how all any both each few more most other some such no nor not
    only own same so than too very can cannot will would could shall should might must just also now let s t
"""
_STOPS = frozenset(_STOP_WORDS.split())
STOP_CHARACTERS = frozenset(
    "的了是我你您他她它们咱在有和与跟也就都还而及着或个这那些不没吗呢吧啊呀哦嘛么什谁哪怎为把被给对从到于之其所以但很会要能可请"
)

# Scripts that are indexed by characters: Han, kana, hangul, and Thai, Lao, Myanmar and Khmer, which have no spaces.
_SPACELESS = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff\u1100-\u11ff\u3131-\u318e\uac00-\ud7af\u0e01-\u0e3a\u0e40-\u0eff\u1000-\u1049\u1780-\u17d3"
)
# Vowel signs and points are part of a word, although they are not letters.
_MARKS = "\u0591-\u05c7\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962-\u0963\u0980-\u0dff"
_LETTERS = rf"[^\W_{_SPACELESS}]+(?:[{_MARKS}]+[^\W_{_SPACELESS}]*)*"
_TOKEN = re.compile(
    rf"[{_SPACELESS}]+"
    r"|(?<![^\W_])[vV]?\d+(?:[.:]\d+)+(?![^\W_])"  # 3.11, v1.2.3, 10:30
    r"|(?<!\d)\d{1,3}(?:,\d{3})+(?!\d)"  # 1,000
    r"|(?<![^\W_])(?:[A-Z]\.){2,}"  # U.S.A.
    rf"|{_LETTERS}(?:[-_'\u2019]{_LETTERS})*(?:\+\+|\#)?"  # night, foo_bar, e-mail, o'clock, C++
)
_IS_SPACELESS = re.compile(f"[{_SPACELESS}]")
_ACCENTS = re.compile("[\u0300-\u036f]")
_NUMBER = re.compile(r"v?(\d[\d.:,]*)")
_NOT = re.compile(r"n['\u2019]t$", re.IGNORECASE)  # don't
_ENDING = re.compile(r"['\u2019](?:s|m|re|ve|ll|d)$", re.IGNORECASE)  # Ann's, I'm
_JOINTS = re.compile(
    r"[-_'\u2019]|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"  # foo_bar, fooBar, HTTPServer
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n])[\s\"'(\u201c\u2018]*$")

_stem = cast(Callable[[str], str], Stemmer.Stemmer("english", 0).stemWord)  # pyright: ignore[reportUnknownMemberType]


def lexemes(text: str) -> list[str]:
    """Return the distinct lexemes of a text in any language, in order."""
    found = (_lexemes_of(token) if len(token) <= _LONGEST_CACHED else _split(token) for token in _tokens(text))
    return list(dict.fromkeys(chain.from_iterable(found)))


def terms(text: str) -> list[int]:
    """Return the distinct lexemes of a text as terms."""
    found = (_terms_of(token) if len(token) <= _LONGEST_CACHED else _terms_of_split(token) for token in _tokens(text))
    return list(dict.fromkeys(chain.from_iterable(found)))


@lru_cache(maxsize=1 << 16)
def term(lexeme: str) -> int:
    """Return the term of a lexeme: a signed 64-bit number that never changes."""
    return int.from_bytes(hashlib.blake2b(lexeme.encode(), digest_size=8).digest(), "big", signed=True)


def names(text: str) -> list[int]:
    """Return the terms of all possible names of authors in a query; compare with `author_terms`."""
    text = _normalize(text)
    found: dict[str, None] = {}
    for match in _TOKEN.finditer(text):
        token = match[0]
        if _IS_SPACELESS.match(token):
            found.update(dict.fromkeys(_grams(token, _LONGEST_NAME)))
            continue
        # In the middle of a sentence, "Will" is a name and "will" is not.
        before = text[max(0, match.start() - 9) : match.start()]
        may_be_stop = token[0].isupper() and not _SENTENCE_START.search(before)
        found.update(dict.fromkeys(word for word in _words_of(token) if may_be_stop or word not in _STOPS))
    return [term(name) for name in found]


def author_terms(author: str) -> list[int]:
    """Return the terms of an author's name: each word; for Chinese, Japanese and Korean the whole name or its end."""
    found: dict[str, None] = {}
    for token in _TOKEN.findall(_normalize(author.partition("@")[0])):
        if _IS_SPACELESS.match(token):
            found[token[:_LONGEST_NAME]] = None
            if len(token) in (3, 4):
                found[token[-2:]] = None
        else:
            found.update(dict.fromkeys(word for word in _words_of(token) if len(word) > 1 and not word.isdigit()))
    return [term(name) for name in found]


def _normalize(text: str) -> str:
    """Normalize a text: compatibility forms (NFKC), without accents."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _tokens(text: str) -> dict[str, None]:
    """Return the distinct tokens of a text, in order."""
    return dict.fromkeys(_TOKEN.findall(_normalize(text)))


@lru_cache(maxsize=1 << 16)
def _terms_of(token: str) -> tuple[int, ...]:
    return _terms_of_split(token)


def _terms_of_split(token: str) -> tuple[int, ...]:
    return tuple(map(term, _split(token)))


@lru_cache(maxsize=1 << 14)
def _lexemes_of(token: str) -> tuple[str, ...]:
    return _split(token)


def _split(token: str) -> tuple[str, ...]:
    if _IS_SPACELESS.match(token):
        return tuple(_significant_grams(token))
    return tuple(_stem(word) for word in _words_of(token) if word not in _STOPS)


def _words_of(token: str) -> list[str]:
    """Return the parts of a compound and the whole, so that e-mail matches email."""
    if number := _NUMBER.fullmatch(token.lower()):
        return [number[1].replace(",", "")]
    if _NOT.search(token):
        return []
    parts = [part.lower() for part in _JOINTS.split(_ENDING.sub("", token).replace(".", ""))]
    return parts if len(parts) == 1 else [*parts, "".join(parts)]


def _grams(run: str, longest: int) -> Iterator[str]:
    for start in range(len(run)):
        for length in range(1, min(longest, len(run) - start) + 1):
            yield run[start : start + length]


def _significant_grams(run: str) -> Iterator[str]:
    """Yield characters and bigrams, without stop characters."""
    for gram in _grams(run, 2):
        if not STOP_CHARACTERS.issuperset(gram):
            yield gram
