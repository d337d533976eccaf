"""Source code, split at classes and functions.

With the extra `holdfast[code]`, a grammar finds them in Python, JavaScript, TypeScript, Java, Go and Rust. Other
languages, and files that are very long, are split at blank lines before lines without indentation.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits
from holdfast.knowledge.parsing.portions import (
    Part,
    check_units,
    clean,
    cut_at_blank_line,
    estimated_total,
    open_text,
    portions,
    too_long,
    trimmed,
    units_of,
)
from holdfast.knowledge.parsing.units import Block, Unit

LARGEST = 2_000_000  # bytes of a file that a grammar reads: it is in memory as a whole
WHOLE = 1500  # bytes of a class that is not split into its methods
DEEPEST = 6  # classes in classes


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language. `named` are the kinds of its nodes that have a name, `wrappers` those around them."""

    module: str
    function: str
    named: frozenset[str]
    wrappers: frozenset[str] = frozenset()


_SCRIPT_NODES = """
    function_declaration generator_function_declaration class_declaration abstract_class_declaration
    method_definition interface_declaration enum_declaration type_alias_declaration internal_module module
    lexical_declaration variable_declaration function_signature abstract_method_signature
"""
_JAVA_NODES = """
    class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration
    method_declaration constructor_declaration compact_constructor_declaration
"""
_RUST_NODES = """
    function_item struct_item enum_item union_item trait_item impl_item mod_item macro_definition
"""
_SCRIPT = frozenset(_SCRIPT_NODES.split())
_SCRIPT_WRAPPERS = frozenset({"export_statement", "ambient_declaration", "expression_statement"})
GRAMMARS = {
    "python": Grammar(
        "tree_sitter_python",
        "language",
        frozenset({"function_definition", "class_definition"}),
        frozenset({"decorated_definition"}),
    ),
    "javascript": Grammar("tree_sitter_javascript", "language", _SCRIPT, _SCRIPT_WRAPPERS),
    "typescript": Grammar("tree_sitter_typescript", "language_typescript", _SCRIPT, _SCRIPT_WRAPPERS),
    "tsx": Grammar("tree_sitter_typescript", "language_tsx", _SCRIPT, _SCRIPT_WRAPPERS),
    "java": Grammar(
        "tree_sitter_java",
        "language",
        frozenset(_JAVA_NODES.split()),
    ),
    "go": Grammar(
        "tree_sitter_go", "language", frozenset({"function_declaration", "method_declaration", "type_declaration"})
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        "language",
        frozenset(_RUST_NODES.split()),
    ),
}
_BODIES = frozenset({"block", "class_body", "interface_body", "enum_body", "declaration_list", "statement_block"})
_BEFORE = frozenset({"comment", "line_comment", "block_comment", "decorator", "attribute_item"})  # of what follows
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function", "class", "generator_function"})
_MODIFIERS = """
    export public private protected static async abstract final virtual inline extern const local pub unsafe open
    override internal sealed partial create replace or default declare
"""
_KINDS = """
    def defp defmodule func fun fn function sub proc procedure class struct interface trait enum union object namespace
    module type table view protocol extension impl message service
"""
_NAMED = re.compile(
    rf"^\s*(?:(?:{'|'.join(_MODIFIERS.split())})\b\s*)*"
    rf"(?:{'|'.join(_KINDS.split())})\s+([\w.:$\"-]+)",
    re.IGNORECASE | re.MULTILINE,
)
_TOP = re.compile(r"\n[ \t]*\n(?=[^\s})\]])")


def parse(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """Yield the portions of source code in any language, split at blank lines before lines without indentation."""
    total = estimated_total(path)
    for number, text in enumerate(portions(path, limits, cut=_cut), 1):
        check_units(path, number, limits)
        if number >= first:
            yield Unit(number, text, _blocks(text), total=max(total, number))


def parse_language(
    path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS, language: str
) -> Iterator[Unit]:
    """Yield the portions of source code in a language that has a grammar."""
    parser = _parser(language)
    if parser is None or path.stat().st_size > LARGEST:
        yield from parse(path, first=first, limits=limits)
        return
    with open_text(path, limits) as file:
        text = clean(file.read(limits.characters + 1))
    if len(text) > limits.characters:
        raise too_long(path, limits)
    parts = _Splitter(text.encode(errors="replace"), GRAMMARS[language], parser).parts()
    yield from units_of(path, parts, first=first, limits=limits, total=estimated_total(path))


python: Callable[..., Iterator[Unit]] = partial(parse_language, language="python")
javascript: Callable[..., Iterator[Unit]] = partial(parse_language, language="javascript")
typescript: Callable[..., Iterator[Unit]] = partial(parse_language, language="typescript")
tsx: Callable[..., Iterator[Unit]] = partial(parse_language, language="tsx")
java: Callable[..., Iterator[Unit]] = partial(parse_language, language="java")
go: Callable[..., Iterator[Unit]] = partial(parse_language, language="go")
rust: Callable[..., Iterator[Unit]] = partial(parse_language, language="rust")


@cache
def _parser(language: str) -> Any:
    """Return the parser of a language, or None if the extra is not installed."""
    grammar = GRAMMARS[language]
    try:
        tree_sitter: Any = import_module("tree_sitter")
        found = getattr(import_module(grammar.module), grammar.function)
    except ImportError:
        return None
    return tree_sitter.Parser(tree_sitter.Language(found()))


class _Splitter:
    """Splits one file. Its parts cover the text, in order."""

    def __init__(self, source: bytes, grammar: Grammar, parser: Any) -> None:
        self._source = source
        self._grammar = grammar
        self._root = parser.parse(source).root_node
        self._edges: list[tuple[int, tuple[str, ...]]] = [(0, ())]  # where a part begins, and what it is in

    def parts(self) -> Iterator[Part]:
        """Yield the parts: functions, small classes, the heads of larger ones, and what is between them."""
        self._visit(self._root, ())
        kept: tuple[str, tuple[str, ...]] | None = None
        for (start, path), (end, _) in zip(self._edges, [*self._edges[1:], (len(self._source), ())], strict=True):
            text = trimmed(self._source[start:end].decode(errors="replace"))
            if not text:
                continue
            if kept is not None and not any(letter.isalnum() for letter in text):  # a closing bracket
                kept = (f"{kept[0]}\n{text}", kept[1])
                continue
            if kept is not None:
                yield Part("code", kept[0], path=kept[1])
            kept = (text, path)
        if kept is not None:
            yield Part("code", kept[0], path=kept[1])

    def _visit(self, node: Any, path: tuple[str, ...]) -> None:
        before: int | None = None  # where comments and decorators of the next definition begin
        last_row = -1
        for child in node.named_children:
            if child.type in _BEFORE:
                if before is None or child.start_point[0] > last_row + 1:
                    before = self._line_start(child.start_byte)
                last_row = child.end_point[0]
                continue
            inner = self._definition(child)
            if inner is not None:
                start = self._line_start(child.start_byte)
                if before is not None and child.start_point[0] <= last_row + 1:
                    start = before
                self._enter(inner, child, start, path)
            before = None

    def _enter(self, inner: Any, outer: Any, start: int, path: tuple[str, ...]) -> None:
        within = (*path, *self._names(inner))
        self._edges.append((max(start, self._edges[-1][0]), within))
        body = inner.child_by_field_name("body")
        if (
            body is not None
            and body.type in _BODIES
            and "function" not in inner.type
            and "method" not in inner.type
            and "constructor" not in inner.type
            and outer.end_byte - outer.start_byte > WHOLE
            and len(within) < DEEPEST
        ):
            self._visit(body, within)
        self._edges.append((outer.end_byte, path))

    def _definition(self, node: Any) -> Any:
        """Return the definition that a node is, or is around, or None."""
        for _ in range(3):
            if node.type in self._grammar.named:
                return node if self._names(node) else None
            if node.type not in self._grammar.wrappers:
                return None
            inner = node.child_by_field_name("definition") or node.child_by_field_name("declaration")
            if inner is None:
                inner = next((each for each in node.named_children if each.type in self._grammar.named), None)
            if inner is None:
                return None
            node = inner
        return None

    def _names(self, node: Any) -> tuple[str, ...]:
        if node.type in ("lexical_declaration", "variable_declaration"):
            declared = next((each for each in node.named_children if each.type == "variable_declarator"), None)
            value = None if declared is None else declared.child_by_field_name("value")
            return self._names(declared) if value is not None and value.type in _FUNCTIONS else ()
        if node.type == "type_declaration":
            spec = next((each for each in node.named_children if each.type in ("type_spec", "type_alias")), None)
            return () if spec is None else self._names(spec)
        name = node.child_by_field_name("name") or (node.child_by_field_name("type") if "impl" in node.type else None)
        if name is None:
            return ()
        found = (self._text(name),)
        receiver = node.child_by_field_name("receiver")
        if receiver is not None and (owner := re.search(r"(\w+)(?:\[[^\]]*\])?\s*\)$", self._text(receiver))):
            return (owner[1], *found)
        return found

    def _text(self, node: Any) -> str:
        return " ".join(self._source[node.start_byte : node.end_byte].decode(errors="replace").split())[:200]

    def _line_start(self, place: int) -> int:
        start = self._source.rfind(b"\n", 0, place) + 1
        return start if not self._source[start:place].strip() else place


def _cut(text: str) -> int:
    """Return the end of the last part of a portion that is followed by a line without indentation."""
    found = [match.end() for match in _TOP.finditer(text, len(text) // 2)]
    return found[-1] if found else cut_at_blank_line(text)


def _blocks(text: str) -> list[Block]:
    edges = [0, *(match.end() for match in _TOP.finditer(text)), len(text)]
    blocks: list[Block] = []
    for start, end in pairwise(edges):
        piece = text[start:end].rstrip()
        if piece.strip():
            named = _NAMED.search(piece[:2000])
            path = (named[1].strip('":'),) if named else ()
            blocks.append(Block("code", start, start + len(piece), path=path))
    return blocks
