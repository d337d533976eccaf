"""What a text mentions: entities and relations, and the keys by which names are compared."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

EntityType = Literal["Person", "Organization", "Place", "Work", "Technology", "Identifier", "Name"]
TYPES: tuple[EntityType, ...] = ("Person", "Organization", "Place", "Work", "Technology", "Identifier", "Name")
MAX_NAME = 255  # characters, as in the column `entities.name`
MAX_KEY = 200

HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ACCENTS = re.compile("[\u0300-\u036f]")
_POSSESSIVE = re.compile(r"['\u2019]s(?![^\W_])", re.IGNORECASE)
_DOTTED = re.compile(r"(?<![^\W\d_])((?:[^\W\d_]\.){2,})([^\W\d_]?)(?![^\W\d_])")  # U.S.A., J.R.R
_APOSTROPHES = re.compile(r"['\u2018\u2019\u02bc`\u00b4]")
_PUNCTUATION = re.compile(r"(?:[^\w+#]|_)+")
_LOOSE_SIGNS = re.compile(r"(?<![^\s])[+#]+|(?<=\s)[+#]+")  # the signs of C++ and C#, but not a lone one
_AROUND_HAN = re.compile(rf"(?<=[{HAN}])\s+|\s+(?=[{HAN}])")


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that a text names. `type` is "Name" if the text does not tell what it is.

    `positions` are the characters at which its mentions start: none if only the title of the text names it.
    """

    name: str
    key: str
    type: EntityType
    aliases: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()
    is_title: bool = False

    @property
    def count(self) -> int:
        """Return how often the text mentions it."""
        return len(self.positions)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation that a sentence states, such as ("Ann", "WORKS_AT", "Acme"), by the keys of its entities."""

    source: str
    type: str
    target: str
    description: str


class Mention(NamedTuple):
    """One place where a text names something."""

    start: int
    end: int
    name: str
    type: EntityType
    alias_of: str | None = None


@lru_cache(maxsize=1 << 16)
def key_of(name: str) -> str:
    """Return the key of a name, which is equal for its spellings. It never changes: the database stores it.

    It ignores letter case, accents, punctuation, spaces, a leading "the" and possessive endings.
    """
    text = normalize(name)
    if text.startswith("the ") and len(text) > len("the "):
        text = text[len("the ") :]
    return text[:MAX_KEY].rstrip()


def normalize(text: str) -> str:
    """Return a text as lower-case words without punctuation, for comparison."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    folded = text.casefold()
    if "." in folded:
        folded = _DOTTED.sub(lambda match: match[1].replace(".", "") + match[2] + " ", folded)
    folded = _APOSTROPHES.sub("", _POSSESSIVE.sub("", folded)).replace("&", " and ")
    words = _PUNCTUATION.sub(" ", folded)
    if "+" in words or "#" in words:
        words = _LOOSE_SIGNS.sub("", words)
    words = " ".join(words.split())
    if not words.isascii():
        words = _AROUND_HAN.sub("", words)
    return words or " ".join(folded.split())
