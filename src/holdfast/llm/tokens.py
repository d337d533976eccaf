"""Token counters: how much of a model's context window a text takes.

For the model in the settings, the `tokenizer.json` in the settings counts, if there is one. OpenAI's models are counted
with their own vocabularies if `holdfast[tokens]` is installed. Otherwise the count is an estimate: a token is up to
seven letters, three digits, two punctuation characters, three letters of a non-Latin script, or one Chinese, Japanese
or Korean character. Compared with OpenAI's vocabularies, the estimate is 0.9 to 1.2 of the real count for English, code
and JSON, 0.7 to 1 for German, 0.9 to 1.4 for Chinese and Japanese, 0.8 to 1.4 for Russian. Emoji have two to three
times as many tokens as estimated.
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

PART = 20_000  # characters counted at a time, so that memory and time grow only linearly with the text
SAMPLES = 10  # parts of a long text that are counted for the estimate: counting all of it would block the event loop

_O200K = re.compile(r"(chatgpt-|gpt-oss|gpt-4o|gpt-4\.\d|gpt-[5-9]|o[1-9])")
_CL100K = re.compile(r"gpt-(4|3\.5)")
_ESTIMATED = re.compile(
    r"[A-Za-z\u00c0-\u024f]{1,7}| (?=[0-9])|[0-9]{1,3}|[!-/:-@\[-`{-~]{1,2}|[\u0370-\u1fff]{1,3}|\s{2,16}|\S"
)


class TokenCounter(Protocol):
    """Counts the tokens of a text as a model does. The name of a counter says if it only estimates."""

    @property
    def name(self) -> str:
        """The rule by which it counts."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens in a text."""
        ...


def counter_for(model: str, settings: LlmSettings) -> TokenCounter:
    """Return the best token counter for a model. Its vocabulary is loaded on first use."""
    if settings.tokenizer is not None and model == settings.model:
        return _of_file(settings.tokenizer)
    vocabulary = vocabulary_of(model)
    return _of_openai(vocabulary) if vocabulary and find_spec("bpe_openai") else ESTIMATE


def vocabulary_of(model: str) -> str | None:
    """Return the vocabulary of an OpenAI model, served by OpenAI or OpenRouter; None for other models."""
    kind, _, name = model.partition(":")
    if kind not in ("openai", "openrouter"):
        return None
    name = name.removeprefix("openai/").removeprefix("ft:")
    if _O200K.match(name):
        return "o200k_base"
    return "cl100k_base" if _CL100K.match(name) else None


class Estimate:
    """Estimates the number of tokens, by the rule in the module's docstring."""

    name = "estimate"

    def count(self, text: str) -> int:
        """Estimate the number of tokens in a text; for a long text, extrapolate from samples of it."""
        if len(text) <= SAMPLES * PART:
            return sum(len(_ESTIMATED.findall(part)) for part in _parts(text))
        starts = (number * (len(text) - PART) // (SAMPLES - 1) for number in range(SAMPLES))
        found = sum(len(_ESTIMATED.findall(text[start : start + PART])) for start in starts)
        return found * len(text) // (SAMPLES * PART)


ESTIMATE = Estimate()


class OpenAiCounter:
    """Counts with a vocabulary of OpenAI."""

    def __init__(self, vocabulary: str) -> None:
        self.name = vocabulary

    def count(self, text: str) -> int:
        """Return the number of tokens. It may be off by one at each place where a long text is split."""
        return sum(len(self._encoding.encode_ordinary(part)) for part in _parts(text))

    @cached_property
    def _encoding(self) -> "_Encoding":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it uses an API that Python 3.11 deprecates
            return cast(_Encoding, import_module("bpe_openai").get_encoding(self.name))


class FileCounter:
    """Counts with a `tokenizer.json`."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path

    def count(self, text: str) -> int:
        """Return the number of tokens. It may be off by one at each place where a long text is split."""
        return sum(len(self._tokenizer.encode(part, add_special_tokens=False).ids) for part in _parts(text))

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._path))
        except Exception as error:  # noqa: BLE001 - the library has no exception of its own
            raise BadSetting(
                f"{self._path} cannot count tokens",
                why=str(error).partition("\n")[0],
                next="Set llm.tokenizer to the tokenizer.json of a model.",
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
        # Tokenizers reject lone surrogates.
        yield part if part.isascii() else part.encode(errors="replace").decode()
