"""Rules for the Python modules of the package."""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tests.rules.tree import source

MAX_LINES = 700
BUCKETS = frozenset({"common", "helper", "helpers", "manager", "managers", "misc", "models", "util", "utils"})
# What has such a name and is a concept, and why.
CONCEPTS = {"src/holdfast/cli/models.py": "`holdfast models` is about the embedding models"}
STATEMENT_METHODS = frozenset({"one", "all", "value", "run", "many"})


def long_modules(root: Path) -> list[str]:
    """A module of more than 700 lines holds a second concept."""
    return [
        f"{name}: {lines} lines, at most {MAX_LINES} are meant; move its second concept to a module of its own"
        for name, text in source(root, ".py")
        if (lines := len(text.splitlines())) > MAX_LINES
    ]


def buckets(root: Path) -> list[str]:
    """A module or folder is named by its concept, not by the kind of thing that piles up in it."""
    return [
        f"{name}: `{part}` names no concept; put each piece with the concept that owns it"
        for name, _ in source(root, ".py")
        for part in PurePosixPath(name).with_suffix("").parts
        if part in BUCKETS and name not in CONCEPTS
    ]


def built_statements(root: Path) -> list[str]:
    """Outside of postgres/ a statement is a constant; values are its parameters."""
    return [
        f"{name}:{call.lineno}: a statement put together from strings; write a .sql file and pass values as parameters"
        for name, text in source(root, ".py")
        if not name.startswith("src/holdfast/postgres/")
        for call in _calls(text)
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in STATEMENT_METHODS
        and call.args
        and _is_built(call.args[0])
    ]


def branches_on_constraint_names(root: Path) -> list[str]:
    """Constraint names are empty or numbered on a distributed database: branch on SQLSTATE."""
    return [
        f"{name}:{node.lineno}: reads constraint_name, which may be empty on a distributed database; branch on SQLSTATE"
        for name, text in source(root, ".py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "constraint_name"
    ]


def _calls(text: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))


def _is_built(argument: ast.expr) -> bool:
    match argument:
        case ast.JoinedStr(values=values):
            return any(isinstance(value, ast.FormattedValue) for value in values)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            return any(_is_text(side) or _is_built(side) for side in (left, right))
        case ast.Call(func=ast.Attribute(value=value, attr="format" | "join")):
            return _is_text(value)
        case _:
            return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
