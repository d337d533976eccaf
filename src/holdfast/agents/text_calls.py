"""Commands: tool calls that a model writes as lines of its reply.

    # Run track AB-123
    # Run track parcel=AB-123
    # Run track {"parcel": "AB-123"}

A command is a whole line, outside of code fences, with the quoting of a shell. Words without a name are the tool's
parameters in order. A tool whose only parameter is text takes the rest of the line.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.core.errors import HoldfastError
from holdfast.core.text import parse, render
from holdfast.llm.model import ToolCall
from holdfast.skills.arguments import MAX_ECHO, ArgumentRefusal, unknown_tool
from holdfast.skills.tool import Tool

MAX_COMMANDS = 32  # in one reply
MAX_WORDS = 10_000  # characters of a line that is split into words: a longer one would take too much time

_COMMAND = re.compile(r" {0,3}# Run[ \t]+(\S+)[ \t]*(.*?)[ \t\r]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_NAMED = re.compile(r"([a-zA-Z_][\w.-]*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TextCall:
    """A tool call written as a line, and why it cannot be made, if so."""

    call: ToolCall
    refusal: ArgumentRefusal | None = None


def commands(reply: str, tools: Mapping[str, Tool], *, id: str) -> list[TextCall]:
    """Return the commands in a reply, in order. The ids of their calls are `id` and a number."""
    found: list[TextCall] = []
    for name, rest in _lines(reply):
        found.append(_command(f"{id}-{len(found) + 1}", name, rest, tools))
        if len(found) == MAX_COMMANDS:
            break
    return found


def _lines(reply: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the arguments of each line that is a command."""
    fence = ""
    for line in reply.split("\n"):
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        elif command := _COMMAND.fullmatch(line):
            yield command[1], command[2]


def _command(id: str, name: str, rest: str, tools: Mapping[str, Tool]) -> TextCall:
    tool = tools.get(name)
    if tool is None:
        return TextCall(ToolCall(id, name, rest if _is_object(rest) else "{}"), unknown_tool(name, tools))
    if _is_object(rest):
        return TextCall(ToolCall(id, name, rest))
    arguments = _arguments(tool, rest)
    if isinstance(arguments, ArgumentRefusal):
        return TextCall(ToolCall(id, name, "{}"), arguments)
    return TextCall(ToolCall(id, name, render(arguments).decode()))


def _is_object(rest: str) -> bool:
    return rest.startswith("{") and rest.endswith("}")


def _words(tool: Tool, rest: str) -> list[str] | ArgumentRefusal:
    if len(rest) > MAX_WORDS:
        why = f"its line is longer than {MAX_WORDS:,} characters. Write the arguments as a JSON object."
        return ArgumentRefusal(f"{tool.name} was not called: {why}")
    try:
        return shlex.split(rest)
    except ValueError as error:
        return ArgumentRefusal(
            f"this cannot be read: {str(error).lower()} in `# Run {tool.name} {rest}"[:MAX_ECHO] + "`"
        )


def _arguments(tool: Tool, rest: str) -> dict[str, Any] | ArgumentRefusal:
    words = _words(tool, rest)
    if isinstance(words, ArgumentRefusal):
        return words
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    arguments: dict[str, Any] = {}
    unnamed: list[str] = []
    for word in words:
        named = _NAMED.fullmatch(word)
        if named and named[1] in properties and named[1] not in arguments:
            arguments[named[1]] = _value(tool, named[1], named[2])
        else:
            unnamed.append(word)
    if len(properties) == 1 and len(unnamed) > 1 and not arguments:
        [only] = properties
        if _takes_text(tool, properties[only]):
            return {only: rest}
    free = [name for name in properties if name not in arguments]
    if len(unnamed) > len(free):
        names = ", ".join(properties) or "none"
        return ArgumentRefusal(
            f"{tool.name} was not called: there are more words than arguments. Its arguments: {names}."
        )
    for name, word in zip(free, unnamed, strict=False):
        arguments[name] = _value(tool, name, word)
    return arguments


def _value(tool: Tool, name: str, word: str) -> Any:
    """Convert a word for its parameter: unchanged if that takes text, otherwise parsed as JSON if possible."""
    if _takes_text(tool, tool.parameters["properties"][name]):
        return word
    try:
        return parse(word.encode())
    except (HoldfastError, UnicodeEncodeError):
        return word


def _takes_text(tool: Tool, schema: Mapping[str, Any]) -> bool:
    if "$ref" in schema:
        schema = tool.parameters.get("$defs", {}).get(schema["$ref"].rpartition("/")[2], {})
    return schema.get("type") == "string" or any(_takes_text(tool, each) for each in schema.get("anyOf", ()))
