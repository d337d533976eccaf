"""Terms: the words that skills and tools are found by. Pure.

A word of the name is kept twice, as a word and as a word of a name: so a search knows which ones count more. Terms are
kept for ever: whoever changes this module makes all of them anew.
"""

from holdfast.core.words import lexemes, term, terms

READ = 8000  # characters of a description: beyond, words tell little

_IN_NAME = "@"  # which stands in no lexeme


def terms_of(name: str, description: str) -> list[int]:
    """The distinct terms of a skill or a tool."""
    said = terms(f"{name}\n{description[:READ]}")
    return list(dict.fromkeys([*said, *(in_name(lexeme) for lexeme in lexemes(name))]))


def in_name(lexeme: str) -> int:
    """A word as it is kept of names."""
    return term(_IN_NAME + lexeme)
