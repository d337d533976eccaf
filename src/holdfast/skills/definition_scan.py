"""Scans definitions of tools for text that addresses the model instead of describing the tool. Pure.

Whoever writes a tool's description writes into the prompt of every model that sees the tool. The scan finds known ways
to abuse that: orders to the model, text that people do not see, names that look like other names. It finds no attack
that is worded in a new way. So a warning asks a person to look, and the absence of one promises nothing.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from importlib.resources import files
from typing import Any, Literal, cast, get_args

WarningCode = Literal[
    "hidden_characters", "hidden_text", "instructions", "secrecy", "other_tools", "private_data", "side_channel",
    "lookalike",
]  # fmt: skip
WARNING_CODES: tuple[WarningCode, ...] = get_args(WarningCode)

MOST = 20  # warnings of a tool
SHOWN = 120  # characters of a text in a warning
LONGEST = 20_000  # characters of a text that are scanned
SHORTEST = 11  # characters of a text that says something
REMEMBERED = 5000  # texts
MAX_DEPTH = 64  # levels of a schema

_FILE = tomllib.loads((files("holdfast.skills") / "suspicious_text.toml").read_text(encoding="utf-8"))


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub("<([A-Z]+)>", lambda word: _FILE["words"][word[1]], pattern), re.IGNORECASE)


# For each kind: without a match of the first pattern, a text has none of the second.
_PATTERNS: Mapping[WarningCode, tuple[re.Pattern[str], re.Pattern[str]]] = {
    code: (_compile(kind["hint"]), _compile("|".join(f"(?:{each})" for each in kind["patterns"])))
    for code, kind in _FILE["kinds"].items()
}
_CONFUSABLE = str.maketrans({each: letter for letter, others in _FILE["lookalikes"].items() for each in others})

# Names of arguments that no service needs, and by which a model hands over what it knows.
_SIDE_CHANNELS = re.compile(
    r"_?(?:side_?notes?|conversation_?(?:history|context|log|transcript)|chat_?(?:history|context|log|transcript)"
    r"|(?:full|entire|whole)_?(?:context|conversation|history|prompt|chat)|(?:system|original|user)_?prompt_?(?:text|copy|dump)?"
    r"|context_?(?:dump|summary)|(?:model|llm|ai|agent|hidden|internal|secret)_?(?:thoughts?|notes?|reasoning|memory|context|state)"
    r"|chain_?of_?thought|scratch_?pad|previous_?messages|tool_?(?:call_?)?history|available_?tools|tools_?list|model_?name_?used)",
    re.IGNORECASE,
)

_ZERO_WIDTH = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
)
_BIDI = "\u202a-\u202e\u2066-\u2069"
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_HIDDEN = re.compile(f"[{_ZERO_WIDTH}{_BIDI}{_CONTROL}\U000e0000-\U000e0fff\U000f0000-\U0010ffff\ue000-\uf8ff]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f]{2,}")  # one after a character chooses its form; several carry data
# Joiners between letters of some scripts, and inside of emoji; flags of regions, which are spelled with tags.
_JOINED = re.compile("(?<=[\u0600-\u07ff\u0900-\u0dff])[\u200c\u200d](?=[\u0600-\u07ff\u0900-\u0dff ])")
_EMOJI = re.compile("(?<=[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f])\u200d(?=[\u2190-\u2bff\U0001f000-\U0001faff])")
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,6}\U000e007f")
_TAG_BASE = 0xE0000

_WORD = re.compile(r"[^\W\d_]{2,}")
_TWINS = str.maketrans({"0": "o", "1": "l", "i": "l", "I": "l", "|": "l", "5": "s", "-": "_", "$": "s", "@": "a"})


@dataclass(frozen=True, slots=True)
class ToolWarning:
    """What is suspicious in the definition of a tool: the kind, the place in the definition, and the text."""

    code: WarningCode
    where: str
    what: str


def scan(definition: Mapping[str, Any]) -> tuple[ToolWarning, ...]:
    """Return what is suspicious in a definition: its texts at any depth, and the names in it."""
    found: dict[ToolWarning, None] = {}
    for where, text, is_name in _texts(definition, ""):
        if len(text) > SHORTEST or not text.isascii():
            found |= {ToolWarning(code, where, what): None for code, what in _suspicions(text)}
        if is_name and _SIDE_CHANNELS.fullmatch(text):
            what = f"the argument {text!r:.80} asks for what the model knows"
            found[ToolWarning("side_channel", where, what)] = None
    return tuple(found)[:MOST]


def lookalikes(name: str, others: Mapping[str, str]) -> tuple[ToolWarning, ...]:
    """Return a warning if a name looks like another tool's. `others` maps the `skeleton` of names to the names."""
    other = others.get(skeleton(name))
    if other is None or other == name:
        return ()
    return (ToolWarning("lookalike", "name", f"it looks like the name of the tool {other}"),)


def skeleton(name: str) -> str:
    """Return what a name looks like: the same for names that people can mistake for each other."""
    plain = unicodedata.normalize("NFKC", name).casefold().translate(_CONFUSABLE).translate(_TWINS)
    return plain.replace("rn", "m").replace("vv", "w").replace("__", "_")


def visible(text: str) -> str:
    """Return a text with its hidden characters spelled out: `\\u{200b}`."""
    if text.isascii() and text.isprintable():
        return text
    return _SELECTORS.sub(_spell, _HIDDEN.sub(_spell, text))


def readable(text: str) -> str:
    """Return a text as a model may read it: tags and entities as letters, without hidden characters, normalized."""
    if "&" in text:
        text = unescape(text)
    if text.isascii():
        return text
    revealed = "".join(chr(ord(each) - _TAG_BASE) if 0xE0020 <= ord(each) <= 0xE007E else each for each in text)
    plain = unicodedata.normalize("NFKC", _HIDDEN.sub("", revealed))
    return "".join(each.translate(_CONFUSABLE) if _is_mixed(each) else each for each in re.split(r"(\W+)", plain))


def _texts(value: Any, where: str, depth: int = 0) -> Iterator[tuple[str, str, bool]]:
    """Yield the texts in a value with their places, and whether they are names of properties."""
    if isinstance(value, str):
        yield where, value, False
    elif depth > MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        has_names = where.endswith(("properties", "$defs"))
        for key, each in cast(Mapping[str, Any], value).items():
            place = f"{where}.{key}" if where else key
            if has_names:
                yield place, key, True
            yield from _texts(each, place, depth + 1)
    elif isinstance(value, list | tuple):
        for number, each in enumerate(cast(Sequence[Any], value)):
            yield from _texts(each, f"{where}[{number}]", depth + 1)


@lru_cache(maxsize=REMEMBERED)
def _suspicions(text: str) -> tuple[tuple[WarningCode, str], ...]:
    """Return what is suspicious in a text. Documents repeat most of their texts."""
    found: list[tuple[WarningCode, str]] = []
    if len(text) > LONGEST:
        found.append(("hidden_text", f"it has {len(text)} characters; the first {LONGEST} were scanned"))
        text = text[:LONGEST]
    if not text.isascii() or _HIDDEN.search(text):
        found += [*_hidden(text), *_mixed_scripts(text)]
    plain = readable(text)
    for code, (hint, pattern) in _PATTERNS.items():
        match = pattern.search(plain) if hint.search(plain) else None
        if match is not None:
            found.append((code, _excerpt(plain, match.start(), match.end())))
    return tuple(found)


def _hidden(text: str) -> Iterator[tuple[WarningCode, str]]:
    rest = text.removeprefix("\ufeff")
    for allowed in (_JOINED, _EMOJI, _FLAG):
        rest = allowed.sub("", rest)
    match = _HIDDEN.search(rest) or _SELECTORS.search(rest)
    if match is not None:
        secret = "".join(chr(ord(each) - _TAG_BASE) for each in rest if 0xE0020 <= ord(each) <= 0xE007E)
        shown = f"it hides the text {secret[:SHOWN]!r}" if secret else _excerpt(rest, match.start(), match.end())
        yield "hidden_characters", shown


def _mixed_scripts(text: str) -> Iterator[tuple[WarningCode, str]]:
    word = next((each for each in _WORD.findall(text) if _is_mixed(each)), None)
    if word is not None:
        odd = next(each for each in word if _script(each) in _OTHERS)
        yield "lookalike", f"the word {word[:40]!r} mixes alphabets: {unicodedata.name(odd, hex(ord(odd)))}"


_OTHERS = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})  # with letters that look like Latin ones


def _is_mixed(word: str) -> bool:
    if word.isascii():
        return False
    scripts = {_script(each) for each in word if each.isalpha()}
    letters = [each for each in word if each.isalpha()]
    return "LATIN" in scripts and not _OTHERS.isdisjoint(scripts) and len(letters) > 2


def _script(character: str) -> str:
    return unicodedata.name(character, "").split(" ", 1)[0]


def _excerpt(text: str, start: int, end: int) -> str:
    """Return the text around a match on one line, with hidden characters spelled out."""
    room = max(0, SHOWN - min(end - start, SHOWN)) // 3
    part = text[max(0, start - room) : min(end, start + SHOWN) + room]
    short = visible(" ".join(part.split()))[:SHOWN]
    return f"…{short}…" if short != text else short


def _spell(match: re.Match[str]) -> str:
    return "".join(each if each in "\t\n\r" else f"\\u{{{ord(each):x}}}" for each in match.group())


def names_by_skeleton(names: Iterable[str]) -> dict[str, str]:
    """Return names by what they look like."""
    return {skeleton(name): name for name in names}
