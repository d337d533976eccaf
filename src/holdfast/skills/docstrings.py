"""Parses docstrings in Google or reST style: the description of a function and of each parameter."""

import re
from dataclasses import dataclass

_SECTION = re.compile(
    r"(args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?|see also|attributes):\s*",
    re.IGNORECASE,
)
_OF_PARAMETERS = ("args", "arguments", "parameters", "params")
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_REST = re.compile(r":(\w+)(?:\s+[^:]*?(\w+))?\s*:\s*(.*)")
_OF_PARAMETER = ("param", "parameter", "arg", "argument", "key", "keyword")


@dataclass(frozen=True, slots=True)
class Docstring:
    """The description of a function, and of its parameters by name."""

    text: str
    parameters: dict[str, str]


def parse_docstring(docstring: str) -> Docstring:
    """Parse a docstring without indentation. Other sections, such as Returns and Raises, are left out."""
    text: list[str] = []
    parameters: dict[str, list[str]] = {}
    section, indent, name = "", None, None
    for line in docstring.splitlines():
        depth, bare = len(line) - len(line.lstrip()), line.strip()
        if depth == 0 and (found := _SECTION.fullmatch(bare)):
            section, indent, name = found[1].lower(), None, None
        elif depth == 0 and (found := _REST.match(bare)):
            section, name = "fields", found[2] if found[1] in _OF_PARAMETER else None
            if name is not None:
                parameters[name] = [found[3]]
        elif section in _OF_PARAMETERS and depth > 0:
            indent = depth if indent is None else indent
            if depth <= indent and (found := _GOOGLE.match(bare)):
                name = found[1]
                parameters[name] = [found[2]]
            elif name is not None:
                parameters[name].append(bare)
        elif section == "fields" and depth > 0 and name is not None:
            parameters[name].append(bare)
        elif bare and depth == 0 and section:
            section, name = "", None
            text.append(line)
        elif not section:
            text.append(line)
    return Docstring("\n".join(text).strip(), {name: " ".join(filter(None, said)) for name, said in parameters.items()})
