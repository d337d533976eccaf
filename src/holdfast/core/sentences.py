"""Sentences of a text in English or Chinese."""

import re

# A full stop ends a sentence if a space follows, but not after a title or a common abbreviation.
_END = re.compile(
    r"(?<=[\u3002\uff01\uff1f\uff1b])"
    r"|(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bMrs\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<=[.!?])\s+"
    r"|\n+"
)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, with their marks. A line end always ends a sentence."""
    return [sentence for part in _END.split(text) if (sentence := part.strip())]
