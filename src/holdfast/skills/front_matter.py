"""Front matter: the YAML between two `---` lines at the start of a Markdown file. Pure.

An unquoted value is null, true, false, a number if it would be written the same way again, or text: `yes`, `1.10` and
2026-01-31 stay text. Aliases and duplicate keys are refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import yaml

from holdfast.core.errors import InvalidInput

FILE = "SKILL.md"
MAX_HEADER = 64 * 1024  # characters
MAX_DEPTH = 20

_HEADER = re.compile(r"---[ \t]*\r?\n(?P<header>.*?)(?<=\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_parse_events = cast(Callable[..., Iterator[yaml.Event]], vars(yaml)["parse"])  # PyYAML does not declare its type
_compose = cast(Callable[..., yaml.Node | None], vars(yaml)["compose"])
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,99})")
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]+(?:e[-+][0-9]+)?")


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A Markdown file: its front matter, the line of each key, and the unchanged text below."""

    head: dict[str, Any]
    lines: Mapping[str, int]
    text: str


class _Dumper(yaml.CSafeDumper):
    """Writes repeated values in full, without aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def read_page(text: str) -> MarkdownPage:
    """Parse a Markdown file with front matter. An InvalidInput names the line of an error."""
    found = _HEADER.match(text)
    if found is None:
        begun = re.match(r"---[ \t]*\r?\n", text)
        why = "the front matter has no closing `---`" if begun else "there is no front matter"
        raise line_error(1, why, "Begin the file with a line `---`, then `name:` and `description:`, then `---`.")
    header = found["header"]
    if len(header) > MAX_HEADER:
        raise line_error(1, f"the front matter has {len(header)} characters", f"Shorten it to at most {MAX_HEADER}.")
    root = _compose_tree(header)
    if not isinstance(root, yaml.MappingNode):
        raise line_error(2, "the front matter is not a mapping", "Write `name: …` and `description: …` on lines.")
    head = cast(dict[str, Any], _value(root))
    lines = {str(key.value): _line(key) for key, _ in _pairs(root)}
    return MarkdownPage(head, lines, text[found.end() :])


def write_page(head: Mapping[str, Any], text: str) -> str:
    """Return a Markdown file with front matter, with the line endings of the text."""
    written = yaml.dump(
        dict(head), Dumper=_Dumper, allow_unicode=True, sort_keys=False, default_flow_style=False, width=2**31 - 1
    )
    page = f"---\n{written}---\n"
    return (page.replace("\n", "\r\n") if re.match(r"[^\n]*\r\n", text) else page) + text


def line_error(line: int, why: str, next: str) -> InvalidInput:
    """Return the error for a line."""
    return InvalidInput(f"{FILE}:{line}: {why}", next=next, line=line)


def _compose_tree(header: str) -> yaml.Node | None:
    """Parse a header into a tree. This is safe only after the checks for its depth and for aliases."""
    depth = 0
    try:
        for event in _parse_events(header, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise line_error(_line(event), "YAML aliases are not allowed", "Replace the alias with its value.")
            if isinstance(event, yaml.CollectionStartEvent | yaml.CollectionEndEvent):
                depth += 1 if isinstance(event, yaml.CollectionStartEvent) else -1
            if depth > MAX_DEPTH:
                raise line_error(
                    _line(event), f"the front matter is nested more than {MAX_DEPTH} levels deep", "Flatten it."
                )
        return _compose(header, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = " ".join(filter(None, (error.context, error.problem)))
        raise line_error(2 if mark is None else mark.line + 2, f"invalid YAML, {why}", "Correct the line.") from None
    except yaml.YAMLError as error:
        why = str(error).partition("\n")[0]
        raise line_error(2, f"invalid YAML, {why}", "Remove characters that are not printable text.") from None


def _value(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key, value in _pairs(node):
            if not isinstance(key, yaml.ScalarNode):
                raise line_error(_line(key), "a key is not a string", "Use strings as keys.")
            name = str(cast(object, key.value))
            if name in mapping:
                raise line_error(_line(key), f"the key `{name:.60}` is there twice", "Remove one of them.")
            mapping[name] = _value(value)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(each) for each in cast(list[yaml.Node], node.value)]
    scalar = cast(yaml.ScalarNode, node)
    text = str(cast(object, scalar.value))
    return text if scalar.style else _plain(text)  # pyright: ignore[reportUnknownMemberType]


def _plain(text: str) -> Any:
    """Return the value of an unquoted text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    # PyYAML writes 1e+16 as 1.0e+16.
    return float(text) if _FLOAT.fullmatch(text) and repr(float(text)) in (text, text.replace(".0e", "e")) else text


def _pairs(node: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
    return cast(list[tuple[yaml.Node, yaml.Node]], node.value)


def _line(of: Any) -> int:
    return of.start_mark.line + 2  # the first line is `---`
