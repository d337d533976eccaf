"""Counts tokens as the embedding model does."""

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from holdfast.core.errors import Unavailable

MAX_WORDS = 100_000  # whose tokens are kept
LONGEST_WORD = 40  # characters of a word whose tokens are kept

# Without a model: a character of a script without spaces, up to six letters or digits, or a mark.
_ESTIMATED = re.compile(
    "[\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff]"
    r"|[^\W_]{1,6}|[^\w\s]|_"
)


class Tokenizer:
    """Counts the tokens of texts. It does not truncate, and does not count the marks that a model adds to a text."""

    def __init__(self, model: Any = None) -> None:
        self._model = model
        # BERT's tokenizers split at blanks first, so the tokens of a word do not depend on the text around it.
        self._splits = model is not None and _splits_at_blanks(model)
        self._words: dict[str, int] = {}

    @classmethod
    def load(cls, path: Path | None) -> "Tokenizer":
        """Load the tokenizer.json of a model; without one, counts are estimated. Raises Unavailable."""
        if path is None:
            return cls()
        from tokenizers import Tokenizer as Model

        try:
            model: Any = Model.from_file(str(path))
        except Exception as error:
            raise Unavailable(
                "the tokenizer of the embedding model cannot be loaded",
                why=str(error).partition("\n")[0],
                next=f"Check the file {path}.",
            ) from error
        model.no_padding()
        model.no_truncation()
        return cls(model)

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text. The count of two texts, joined at a blank, is their sum."""
        if self._model is None:
            return [len(_ESTIMATED.findall(text)) for text in texts]
        if not self._splits:
            return self._encoded(list(texts))
        split = [text.split() for text in texts]
        new = list(set(chain.from_iterable(split)).difference(self._words))
        if len(self._words) + len(new) > MAX_WORDS:
            self._words.clear()
            new = list(set(chain.from_iterable(split)))
        self._words.update(zip(new, self._encoded(new), strict=True))
        found = [sum(map(self._words.__getitem__, words)) for words in split]
        for word in filter(_is_long, new):  # a sentence of Chinese, which does not come again
            del self._words[word]
        return found

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return self.counts([text])[0]

    def _encoded(self, texts: list[str]) -> list[int]:
        return [len(each) for each in self._model.encode_batch_fast(texts, add_special_tokens=False)]


def _splits_at_blanks(model: Any) -> bool:
    return type(model.pre_tokenizer).__name__ == "BertPreTokenizer"


def _is_long(word: str) -> bool:
    return len(word) > LONGEST_WORD
