"""SQL as PostgreSQL's own parser reads it: the statements of a `.sql` file, and those inside of a plpgsql function."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from pglast import parse_sql
from pglast.ast import CommonTableExpr, FuncCall, InsertStmt, Node, RangeVar, String
from pglast.parser import scan

# What stands before the first word of a statement or subquery in plpgsql, and the words that one begins with.
_BEFORE = frozenset({";", "begin", "then", "else", "loop", "in", "query", "("})
_FIRST = frozenset({"select", "insert", "update", "delete", "with", "perform"})


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int


def statements(text: str) -> Iterator[Node]:
    """The statements of a text."""
    for raw in parse_sql(text):
        if raw.stmt is not None:
            yield raw.stmt


def statements_of_function(body: str) -> Iterator[Node]:
    """The statements and subqueries in a body of plpgsql; not those that it puts together from strings."""
    words = [
        _Word(body[token.start : token.end + 1].lower(), token.start, token.end + 1)
        for token in scan(body)
        if token.name not in {"SQL_COMMENT", "C_COMMENT"}
    ]
    end = 0
    for at, word in enumerate(words):
        if at >= end and word.text in _FIRST and (at == 0 or words[at - 1].text in _BEFORE):
            end = _end(words, at)
            yield from statements(_plain(body, words[at:end]))


def walk(node: object) -> Iterator[Node]:
    """A node and all below it."""
    if isinstance(node, Node):
        yield node
        for name in node:
            yield from walk(getattr(node, name))
    elif isinstance(node, tuple):
        for part in cast(tuple[object, ...], node):
            yield from walk(part)


def tables(node: object) -> set[str]:
    """The names of what a statement reads or writes: tables, views, parts of its `with`."""
    return {str(part.relname) for part in walk(node) if isinstance(part, RangeVar)}


def tables_read(statement: Node) -> set[str]:
    """The names of the tables in which a statement looks for rows: not those that it only inserts into."""
    made = {part.ctename for part in walk(statement) if isinstance(part, CommonTableExpr)}
    filled = {id(part.relation) for part in walk(statement) if isinstance(part, InsertStmt)}
    return {
        str(part.relname)
        for part in walk(statement)
        if isinstance(part, RangeVar) and part.relname not in made and id(part) not in filled
    }


def calls(node: object) -> set[str]:
    """The names of the functions that a statement calls, without their schema."""
    return {
        str(cast(String, cast(tuple[object, ...], part.funcname)[-1]).sval)
        for part in walk(node)
        if isinstance(part, FuncCall)
    }


def _end(words: Sequence[_Word], first: int) -> int:
    """Where a statement ends: before its semicolon, the `loop` over it, or the bracket that closes around it."""
    depth = 0
    for at in range(first, len(words)):
        text = words[at].text
        depth += (text in "([") - (text in ")]")
        if depth < 0 or (depth == 0 and text in {";", "loop"}):
            return at
    return len(words)


def _plain(body: str, words: Sequence[_Word]) -> str:
    """A statement of plpgsql in plain SQL: `select` for `perform`, and without the variables that it selects into."""
    kept = ["select" if words[0].text == "perform" else words[0].text]
    depth, at = 0, 1
    while at < len(words):
        text = words[at].text
        depth += (text in "([") - (text in ")]")
        if text == "into" and depth == 0 and words[at - 1].text != "insert":
            at += 2 + (words[at + 1].text == "strict")
            while at < len(words) and (words[at].text in {".", ","}):
                at += 2
        else:
            kept.append(body[words[at].start : words[at].end])
            at += 1
    return " ".join(kept)
