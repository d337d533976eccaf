"""Rules for the Python modules of the package."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePosixPath

from tests.rules.tree import source

MAX_LINES = 700
BUCKETS = frozenset({"common", "helper", "helpers", "manager", "managers", "misc", "models", "util", "utils"})
# What has such a name and is a concept, and why.
CONCEPTS = {"src/holdfast/cli/models.py": "`holdfast models` is about the embedding models"}
# Words that end as a participle or gerund does, and are nouns.
NOUNS = frozenset({"feed"})
MAX_SAME_LINES = 12
# What breaks a rule today, by rule. What is mended is removed here.
KNOWN = {
    "one class name, two meanings": "",
    "a module named by a participle or gerund": """
        src/holdfast/agents/serving.py src/holdfast/core/batching.py src/holdfast/execution/trimming.py
        src/holdfast/llm/scripted.py src/holdfast/llm/tool_matching.py src/holdfast/postgres/embedded.py
        src/holdfast/server/serving.py src/holdfast/skills/sources/openapi/pruning.py
    """,
}
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


def doubled_classes(root: Path) -> list[str]:
    """A class name has one meaning in the whole package."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in source(root, ".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    return [
        f"one class name, two meanings: {name}; it stands in {' and '.join(files)}: rename all but one"
        for name, files in places.items()
        if len(files) > 1
    ]


def participles(root: Path) -> list[str]:
    """A module is named by a noun that somebody would search for."""
    return [
        f"a module named by a participle or gerund: {name}; name the thing, not what happens to it"
        for name, _ in source(root, ".py")
        for word in [PurePosixPath(name).stem.rpartition("_")[2]]
        if word.endswith(("ing", "ed")) and word not in NOUNS
    ]


def repeated_lines(root: Path) -> list[str]:
    """What stands twice is a function that nobody has written yet."""
    found: dict[tuple[str, ...], str] = {}
    pairs: dict[str, str] = {}
    for name, text in chain(source(root, ".py"), source(root, ".sql")):
        lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if _counts(line)]
        for at in range(len(lines) - MAX_SAME_LINES):
            block = tuple(line for _, line in lines[at : at + MAX_SAME_LINES + 1])
            first = found.setdefault(block, f"{name}:{lines[at][0]}")
            if first != f"{name}:{lines[at][0]}":
                pair = "=".join(sorted({first.partition(":")[0], name}))
                pairs.setdefault(pair, f"{first} and {name}:{lines[at][0]}")
    return [
        f"the same lines in two places: {pair}; more than {MAX_SAME_LINES} lines from {places} on: write them once"
        for pair, places in pairs.items()
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


def _counts(line: str) -> bool:
    return line.strip() != "" and not line.lstrip().startswith(("#", "--", "import ", "from "))


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
