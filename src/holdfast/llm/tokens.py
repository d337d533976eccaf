"""Tokens: how much of a model's window a text takes.

The models of OpenAI are counted by their own vocabularies where `holdfast[tokens]` is installed, others by the
`tokenizer.json` that the settings name. Else it is an estimate: a token is up to seven letters, three digits, two
signs, three letters of a script beyond Latin, or one character of Chinese, Japanese or Korean. Beside OpenAI's
vocabularies that is 0.9 to 1.2 of the truth for English, code and JSON, 0.7 to 1 for German, 0.9 to 1.4 for Chinese
and Japanese, 0.8 to 1.4 for Russian; emoji have two to three times as many.
"""

import re
import warnings
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from holdfast.core.errors import BadSetting
from holdfast.core.settings import LlmSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PART = 20_000  # characters counted at once: memory and time grow with the text, never faster
SAMPLES = 10  # parts by which a long text is estimated: to count all of it would keep others waiting

_O200K = re.compile(r"(chatgpt-|gpt-oss|gpt-4o|gpt-4\.\d|gpt-[5-9]|o[1-9])")
_CL100K = re.compile(r"gpt-(4|3\.5)")
_ESTIMATED = re.compile(
    r"[A-Za-z\u00c0-\u024f]{1,7}| (?=[0-9])|[0-9]{1,3}|[!-/:-@\[-`{-~]{1,2}|[\u0370-\u1fff]{1,3}|\s{2,16}|\S"
)


class TokenCounter(Protocol):
    """Counts the tokens of a text as one model does, or says by its name that it estimates."""

    @property
    def name(self) -> str:
        """By which rule it counts."""
        ...

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        ...


def counter_for(model: str, settings: LlmSettings) -> TokenCounter:
    """What counts the tokens of a model best; a vocabulary is loaded when first used."""
    if settings.tokenizer is not None and model == settings.model:
        return _of_file(settings.tokenizer)
    vocabulary = vocabulary_of(model)
    return _of_openai(vocabulary) if vocabulary and find_spec("bpe_openai") else ESTIMATE


def vocabulary_of(model: str) -> str | None:
    """The vocabulary of a model of OpenAI's, wherever it is served."""
    kind, _, name = model.partition(":")
    if kind not in ("openai", "openrouter"):
        return None
    name = name.removeprefix("openai/").removeprefix("ft:")
    if _O200K.match(name):
        return "o200k_base"
    return "cl100k_base" if _CL100K.match(name) else None


class Estimate:
    """Counts as the module says."""

    name = "estimate"

    def count(self, text: str) -> int:
        """How many tokens a text has, about; of a long one, so many for a character as parts of it have."""
        if len(text) <= SAMPLES * PART:
            return sum(len(_ESTIMATED.findall(part)) for part in _parts(text))
        starts = (number * (len(text) - PART) // (SAMPLES - 1) for number in range(SAMPLES))
        found = sum(len(_ESTIMATED.findall(text[start : start + PART])) for start in starts)
        return found * len(text) // (SAMPLES * PART)


ESTIMATE = Estimate()


class OpenAiCounter:
    """Counts by a vocabulary of OpenAI's."""

    def __init__(self, vocabulary: str) -> None:
        self.name = vocabulary

    def count(self, text: str) -> int:
        """How many tokens a text has; one more or less where a long text is cut to be counted."""
        return sum(len(self._encoding.encode_ordinary(part)) for part in _parts(text))

    @cached_property
    def _encoding(self) -> "_Encoding":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it reads its files as one did before Python 3.11
            return cast(_Encoding, import_module("bpe_openai").get_encoding(self.name))


class FileCounter:
    """Counts by a `tokenizer.json`."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path

    def count(self, text: str) -> int:
        """How many tokens a text has; one more or less where a long text is cut to be counted."""
        return sum(len(self._tokenizer.encode(part, add_special_tokens=False).ids) for part in _parts(text))

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._path))
        except Exception as error:  # noqa: BLE001 - it has no error of its own
            raise BadSetting(
                f"{self._path} cannot count tokens",
                why=str(error).partition("\n")[0],
                next="Set llm.tokenizer to a tokenizer.json, as models have it in their folder.",
                key="llm.tokenizer",
            ) from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


class _Encoding(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...


@cache
def _of_openai(vocabulary: str) -> OpenAiCounter:
    return OpenAiCounter(vocabulary)


@cache
def _of_file(path: Path) -> FileCounter:
    return FileCounter(path)


def _parts(text: str) -> Iterator[str]:
    for start in range(0, len(text), PART):
        part = text[start : start + PART]
        # Half a character is none to a tokenizer.
        yield part if part.isascii() else part.encode(errors="replace").decode()
