"""Quotations: text from others inside a prompt, between tags that the text itself cannot contain."""

import re

from holdfast.llm.tokens import TokenCounter

CHARACTERS = 16  # most characters per token: a text with more is cut before its tokens are counted
ROUNDS = 6

# All tags with which `quoted` is called.
_OUR_TAG = re.compile(r"<(?=\s*/?\s*(?:conversation|document|memories|notes|summary|tool_output)\b)", re.IGNORECASE)


_CHARACTERS = re.compile(r", characters \d+-\d+\Z")


def neutral(text: str) -> str:
    """Replace the `<` of our tags in a text by a character that looks similar, so that they are no tags."""
    return _OUR_TAG.sub("\u2039", text) if "<" in text else text


def quoted(tag: str, text: str) -> str:
    """Put a neutral text between tags that say what it is."""
    return f"<{tag}>\n{text}\n</{tag}>"


def excerpt(source: str, text: str) -> str:
    """Put an excerpt of a document between tags with its source, such as "handbook.pdf, p. 3"."""
    name = neutral(one_line(source)).replace('"', "\u2033")
    return f'<document source="{name}">\n{neutral(text.strip())}\n</document>'


def short_citation(citation: str) -> str:
    """Return a citation without the characters: document and page are enough for people who read an answer."""
    return _CHARACTERS.sub("", citation)


def one_line(text: str) -> str:
    """Return a text without line ends, so that it cannot begin a line, a list or a section of the prompt."""
    return " ".join(text.split())


def fits(text: str, limit: int, counter: TokenCounter) -> bool:
    """Return whether a text has at most `limit` tokens. The tokens of a far too long text are not counted."""
    return len(text) <= limit * CHARACTERS and counter.count(text) <= limit


def shortened(text: str, limit: int, counter: TokenCounter) -> str:
    """Return a text of at most `limit` tokens: all of it, or its beginning and end around a note of what is missing."""
    if fits(text, limit, counter):
        return text
    keep = min(len(text) - 1, limit * CHARACTERS)
    for round in range(ROUNDS + keep.bit_length()):
        part = _without_middle(text, keep)
        tokens = counter.count(part)
        if tokens <= limit:
            return part
        # In a uniform text, the next part fits. In any other text, halving terminates.
        keep = min(keep - 1, keep * limit // tokens) if round < ROUNDS else keep // 2
        if keep <= 0:
            break
    mark = _without_middle(text, 0).strip()
    return mark if counter.count(mark) <= limit else ""


def _without_middle(text: str, keep: int) -> str:
    """Return the first two thirds and the last third of `keep` characters, with a mark between them."""
    end = keep // 3
    mark = f"\n[… {len(text) - keep:,} of {len(text):,} characters are left out here …]\n"
    return text[: keep - end] + mark + text[len(text) - end :]
