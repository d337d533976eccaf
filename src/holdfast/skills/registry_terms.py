"""Terms: the words by which skills and tools are found. Pure.

A word of the name is stored twice: as a word, and as a word of a name, so that a search can give it more weight. Terms
are stored permanently: a change of this module requires computing all of them again.
"""

from holdfast.core.words import lexemes, term, terms

READ = 8000  # characters of a description: words beyond add little

_IN_NAME = "@"  # occurs in no lexeme


def terms_of(name: str, description: str) -> list[int]:
    """Return the distinct terms of a skill or a tool."""
    text_terms = terms(f"{name}\n{description[:READ]}")
    return list(dict.fromkeys([*text_terms, *(in_name(lexeme) for lexeme in lexemes(name))]))


def in_name(lexeme: str) -> int:
    """Return the term of a word in a name."""
    return term(_IN_NAME + lexeme)
