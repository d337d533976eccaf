"""Quotations: what others wrote, inside of what a model reads; between marks that they cannot write themselves."""

import re

from holdfast.llm.tokens import TokenCounter

CHARACTERS = 16  # of a token: what has more for each token it may have is cut unread
ROUNDS = 6

# Every tag that `quoted` is called with anywhere.
_OUR_TAG = re.compile(r"<(?=\s*/?\s*(?:conversation|memories|notes|summary|tool_output)\b)", re.IGNORECASE)


def neutral(text: str) -> str:
    """A text without tags of ours: their `<` becomes a mark that looks like it, and is none."""
    return _OUR_TAG.sub("\u2039", text) if "<" in text else text


def quoted(tag: str, text: str) -> str:
    """A neutral text between the tags that say what it is."""
    return f"<{tag}>\n{text}\n</{tag}>"


def one_line(text: str) -> str:
    """A text without line ends, so that it cannot begin a line, a list or a section of its own."""
    return " ".join(text.split())


def fits(text: str, limit: int, counter: TokenCounter) -> bool:
    """Whether a text has at most `limit` tokens; of one that is far too long none is counted."""
    return len(text) <= limit * CHARACTERS and counter.count(text) <= limit


def shortened(text: str, limit: int, counter: TokenCounter) -> str:
    """A text of at most `limit` tokens: the whole, or its beginning and end with a mark of how much is missing."""
    if fits(text, limit, counter):
        return text
    keep = min(len(text) - 1, limit * CHARACTERS)
    for round in range(ROUNDS + keep.bit_length()):
        part = _without_middle(text, keep)
        tokens = counter.count(part)
        if tokens <= limit:
            return part
        # In a text of one kind the next part fits; in any other, halving ends.
        keep = min(keep - 1, keep * limit // tokens) if round < ROUNDS else keep // 2
        if keep <= 0:
            break
    mark = _without_middle(text, 0).strip()
    return mark if counter.count(mark) <= limit else ""


def _without_middle(text: str, keep: int) -> str:
    """The first two thirds and the last third of `keep` characters."""
    end = keep // 3
    mark = f"\n[… {len(text) - keep:,} of {len(text):,} characters are left out here …]\n"
    return text[: keep - end] + mark + text[len(text) - end :]
