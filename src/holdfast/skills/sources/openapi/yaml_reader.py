"""Reads the YAML of API descriptions: only what JSON can also express, and nothing executable.

Values follow the core schema of YAML 1.2: a date, `yes` and `=` are text, and so is every key. Values are built from
libyaml's events. That takes a quarter of the time of PyYAML's loader, and gives access to positions, depth and aliases.
Input that libyaml refuses although other parsers accept it is replaced first: control characters, tabs before block
text, and JSON's escapes of emoji.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import yaml
from yaml import cyaml

from holdfast.core.errors import InvalidInput
from holdfast.core.text import MAX_JSON_DEPTH

PIECE = 1_000_000  # characters
MOST_ALIASED = 500_000  # values that aliases may add: a few lines could expand to billions

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
# JSON's escape of a character above U+FFFF (a surrogate pair), or of a lone surrogate.
_PAIR = re.compile(
    r"\\\\|\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_TABS_ALONE = re.compile("^[ \t]*\t[ \t]*$", re.MULTILINE)
_TABS_FIRST = re.compile("^( *)(\t+)", re.MULTILINE)
_TAB = "\ue009"  # a private-use character that replaces a tab which libyaml refuses
_TAB_REFUSED = "found a tab character where an indentation space is expected"

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {text: text[0] in "tT" for text in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}|0o[0-7]{1,4000}|0x[0-9a-fA-F]{1,4000}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MAY_BE_NUMBER = frozenset("+-.0123456789")
_parser = cast(Callable[[str], Any], vars(cyaml)["CParser"])  # missing in its type stubs
_TEXT_TAG = "tag:yaml.org,2002:str"


def read_yaml(text: str) -> Any:
    """Return the value of one YAML document. An InvalidInput names the line of an error."""
    text = "".join(_CONTROL.sub(" ", piece) for piece in _pieces(text))
    if "\\u" in text:
        text = _PAIR.sub(_join_surrogates, text)
    if "\t" in text:
        text = "".join(_TABS_ALONE.sub("", piece) for piece in _pieces(text))
    try:
        try:
            return _Values(_parser(text)).document()
        except yaml.MarkedYAMLError as error:
            if error.problem != _TAB_REFUSED:
                raise
            return _read_with_tabs(text, error)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = " ".join(filter(None, (error.context, error.problem)))
        raise _yaml_error(why, mark) from None
    except yaml.YAMLError as error:
        raise _yaml_error(str(error).partition("\n")[0], None) from None


def _pieces(text: str) -> Iterator[str]:
    """Yield the text in pieces that end with a line if possible: nothing else runs while one is searched."""
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + PIECE) + 1 or start + PIECE
        yield text[start:end]
        start = end


def _read_with_tabs(text: str, first: yaml.MarkedYAMLError) -> Any:
    # If the tabs were indentation after all, the first error is the useful one.
    marked = _TABS_FIRST.sub(lambda found: found[1] + _TAB * len(found[2]), text)
    try:
        return _Values(_parser(marked), tabs=True).document()
    except (yaml.YAMLError, InvalidInput):
        raise first from None


@dataclass(slots=True)
class _Anchor:
    value: Any
    weight: int


class _Values:
    """Builds values from a parser's events."""

    def __init__(self, parser: Any, *, tabs: bool = False) -> None:
        self._next = parser.get_event
        self._tabs = tabs
        self._anchors: dict[str, _Anchor | None] = {}
        self._made = 0
        self._aliased = 0

    def document(self) -> Any:
        self._next()  # start of the stream
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        value = self._value(self._next(), 0)
        self._next()  # end of the document
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise _yaml_error("it has more than one document", event.start_mark)
        return value

    def _value(self, event: Any, depth: int) -> Any:
        kind = event.__class__
        self._made += 1
        if kind is yaml.AliasEvent:
            return self._alias(event)
        if depth > MAX_JSON_DEPTH:
            raise _yaml_error(f"it is nested deeper than {MAX_JSON_DEPTH} levels", event.start_mark)
        anchor = event.anchor
        if anchor is None:
            return self._build(event, kind, depth)
        self._anchors[anchor] = None  # until it is complete: a value cannot contain itself
        before = self._made
        value = self._build(event, kind, depth)
        self._anchors[anchor] = _Anchor(value, self._made - before + 1)
        return value

    def _build(self, event: Any, kind: type, depth: int) -> Any:
        if kind is yaml.ScalarEvent:
            return self._scalar(event)
        return self._mapping(depth) if kind is yaml.MappingStartEvent else self._sequence(depth)

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[Any] = []
        while type(event := self._next()) is not yaml.MappingEndEvent:
            plain = type(event) is yaml.ScalarEvent and event.implicit[0]
            key = self._text(event) if type(event) is yaml.ScalarEvent else self._value(event, depth + 1)
            if not isinstance(key, str):
                raise _yaml_error("a key is not a string", event.start_mark)
            if type(event) is yaml.ScalarEvent and event.anchor is not None:
                self._anchors[event.anchor] = _Anchor(key, 1)
            value = self._value(self._next(), depth + 1)
            if plain and key == "<<":
                merged += cast(list[Any], value) if isinstance(value, list) else [value]
            else:
                found[key] = value
        for other in merged:
            if isinstance(other, dict):
                found = {**cast(dict[str, Any], other), **found}
        return found

    def _sequence(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            found.append(self._value(event, depth + 1))
        return found

    def _alias(self, event: Any) -> Any:
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            raise _yaml_error(f"the alias *{event.anchor} has no anchor, or is inside its anchor", event.start_mark)
        self._made += anchor.weight
        self._aliased += anchor.weight
        if self._aliased > MOST_ALIASED:
            raise _yaml_error(f"its aliases expand to more than {MOST_ALIASED} values", event.start_mark)
        return anchor.value

    def _scalar(self, event: Any) -> Any:
        text = self._text(event)
        if event.style or event.tag == _TEXT_TAG:  # quoted, a block, or tagged as text
            return text
        if text in _NULL:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if text[0] in _MAY_BE_NUMBER:
            return _number(text)
        return text

    def _text(self, event: Any) -> str:
        return event.value.replace(_TAB, "\t") if self._tabs else event.value


def _join_surrogates(found: re.Match[str]) -> str:
    if found[1] is None:
        return "\ufffd" if "u" in found[0] else found[0]
    return (bytes.fromhex(found[1]) + bytes.fromhex(found[2])).decode("utf-16-be")


def _number(text: str) -> int | float | str:
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def _yaml_error(why: str, mark: Any) -> InvalidInput:
    details = {} if mark is None else {"line": mark.line + 1, "column": mark.column + 1}
    place = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
    return InvalidInput("this is not YAML", why=f"{why}{place}", next="Correct the document.", **details)
