"""The language rules of the offline model, for English and Chinese: stop words, stems, pronouns."""

import re
from collections.abc import Callable
from typing import cast

import Stemmer  # pyright: ignore[reportMissingTypeStubs]

from holdfast.core.words import STOP_CHARACTERS

HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

# More than the stop words of searches: also what people say to a model in a chat.
_STOP_WORDS = """
    a about again all also am an and any are as at be been but by can could did do does doing else ever every for from
    get give got had has have he her here hers him his how i if in into is it its just know let like may me mine more
    most much my need no not now of off on one or our out over please right say she should show so some tell than thank
    that the their them then there these they thing this those to too up us very want was we were what when where which
    who whom whose why will with would yes you your yours hello hi hey
"""
_STOPS = frozenset(_STOP_WORDS.split())
_VERBS = frozenset({"like", "need", "want"})  # stop words that are all there is to "What do I like?"
_WORD = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+")
_JOINTS = re.compile(r"[_\W]+|(?<=[a-z0-9])(?=[A-Z])")
_HAN = re.compile(f"[{HAN}]")
_HAN_STOPS = re.compile(f"[{''.join(STOP_CHARACTERS)}]")

_TO_YOU = {
    "i am": "you are", "i'm": "you're", "i was": "you were", "am i": "are you", "was i": "were you", "i": "you",
    "i've": "you've", "i'd": "you'd", "i'll": "you'll", "me": "you", "my": "your", "mine": "yours",
    "myself": "yourself", "we": "you", "we're": "you're", "we've": "you've", "us": "you", "our": "your",
    "ours": "yours", "ourselves": "yourselves", "you are": "I am", "you're": "I'm", "you can": "I can",
    "you may": "I may", "you should": "I should", "you": "me", "your": "my", "yours": "mine", "yourself": "myself",
    "我们": "你们", "你们": "我们", "咱们": "你们", "我": "你", "咱": "你", "你": "我", "您": "我",
}  # fmt: skip
_PRONOUN = re.compile(
    r"(?<![\w'])(?:you (?:are|can|may|should)|i (?:am|was)|(?:am|was) i|i'(?:m|ve|d|ll)|we'(?:re|ve)|you're|myself"
    r"|ourselves|yourself|yours|your|you|mine|my|me|ours|our|us|we|i)(?![\w'])|我们|你们|咱们|[我咱你您]",
    re.IGNORECASE,
)

_stem = cast(Callable[[str], str], Stemmer.Stemmer("english").stemWord)  # pyright: ignore[reportUnknownMemberType]


def is_chinese(text: str) -> bool:
    """Whether a text has Chinese characters, so that the answer should be in Chinese."""
    return _HAN.search(text) is not None


def swap_person(text: str) -> str:
    """Turn a user's words around, to repeat them to the user: "my name is Ann" becomes "your name is Ann"."""
    turned = _PRONOUN.sub(lambda found: _TO_YOU[found[0].lower()], text.replace("\u2019", "'"))
    return turned.strip()


def words(text: str) -> frozenset[str]:
    """Return the meaningful words of a text, as stems. For Chinese, return pairs of characters, and lone characters."""
    found: set[str] = set()
    for word in _WORD.findall(_JOINTS.sub(" ", text)):
        if _HAN.match(word):
            for run in filter(None, _HAN_STOPS.split(word)):
                found.update([run] if len(run) == 1 else (run[n : n + 2] for n in range(len(run) - 1)))
        elif word.lower() not in _STOPS and (len(word) > 1 or word.isdigit()):
            found.add(_stem(word.lower()))
    return frozenset(found)


def verbs(text: str) -> frozenset[str]:
    """Return the stop words of a text that can carry its meaning if it has no other words."""
    return _VERBS.intersection(_WORD.findall(text.lower()))
