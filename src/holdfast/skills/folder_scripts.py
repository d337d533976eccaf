"""The scripts of a skill's folder: each file below `scripts/` in a known language is a tool. Pure.

The description is the docstring or the comment at the top. Without a schema, a script takes `args`, the words of a
command line, and `input`, its standard input. A file `NAME.schema.json` beside it is the JSON Schema of other
arguments, which the script gets as JSON on its standard input.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.skills.folders import FolderSkill
from holdfast.skills.tool import Kind, Tool

FOLDER = "scripts"
KINDS: Mapping[str, Kind] = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".sh": "bash",
    ".bash": "bash",
}
MAX_NAME = 64
MAX_DESCRIPTION = 2000
FREE_FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "args": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The words after the script's name on its command line.",
        },
        "input": {"type": "string", "description": "The script's standard input."},
    },
    "additionalProperties": False,
}

_UNUSABLE = re.compile(r"[^a-zA-Z0-9_-]+")
_COMMENTS = {"javascript": re.compile(r"\s*//\s?(.*)"), "bash": re.compile(r"\s*#\s?(.*)")}
_BLOCK = re.compile(r"\s*/\*+(.*?)\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FolderScript:
    """A script of a skill, as a tool. `reference` names the file and the skill."""

    name: str
    kind: Kind
    reference: str
    code: str
    description: str
    parameters: Mapping[str, Any]


def scripts_of(folder: FolderSkill) -> list[FolderScript]:
    """Return the scripts of a skill, by path. An InvalidInput names a file that cannot be read."""
    paths = sorted(path for path in folder.files if _kind(path) is not None)
    stems = [PurePosixPath(path).stem for path in paths]
    return [_script(folder, path, short=stems.count(stem) == 1) for path, stem in zip(paths, stems, strict=True)]


def is_script_of(tool: Tool, skill: str) -> bool:
    """Whether a tool is a script of a skill's folder."""
    path, of_skill, name = tool.reference.partition(":")
    return bool(of_skill) and name == skill and _kind(path) == tool.kind


def _kind(path: str) -> Kind | None:
    place = PurePosixPath(path)
    return KINDS.get(place.suffix) if place.parent == PurePosixPath(FOLDER) else None


def _script(folder: FolderSkill, path: str, *, short: bool) -> FolderScript:
    place, kind = PurePosixPath(path), KINDS[PurePosixPath(path).suffix]
    try:
        code = folder.files[path].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} of the skill {folder.name} is not UTF-8", next="Save it as UTF-8.") from None
    name = place.stem if short else place.name
    return FolderScript(
        _UNUSABLE.sub("_", f"{folder.name}_{name}")[-MAX_NAME:],
        kind,
        f"{path}:{folder.name}",
        code,
        _description(kind, code)[:MAX_DESCRIPTION] or f"Runs {path} of the skill {folder.name}.",
        _parameters(folder, f"{place.parent}/{place.stem}.schema.json"),
    )


def _parameters(folder: FolderSkill, path: str) -> Mapping[str, Any]:
    content = folder.files.get(path)
    if content is None:
        return FREE_FORM
    try:
        schema: object = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"{path} of the skill {folder.name} is not JSON", why=str(error), next="Correct it."
        ) from None
    if not isinstance(schema, dict):
        raise InvalidInput(f"{path} of the skill {folder.name} is not a JSON Schema", next="Write an object.")
    return cast(dict[str, Any], schema)


def _description(kind: Kind, code: str) -> str:
    """Return the first paragraph of what a script says about itself."""
    text = "\n".join(_lines(kind, code))
    return " ".join(text.strip().partition("\n\n")[0].split())


def _lines(kind: Kind, code: str) -> Iterator[str]:
    if kind == "python":
        try:
            yield ast.get_docstring(ast.parse(code)) or ""
        except (SyntaxError, ValueError, RecursionError):
            return  # the script says so when it runs
        return
    code = re.sub(r"\A#!.*\n\s*", "", code)
    if kind == "javascript" and (block := _BLOCK.match(code)):
        yield from (line.strip().lstrip("*").strip() for line in block[1].splitlines())
        return
    for line in code.splitlines():
        comment = _COMMENTS[kind].fullmatch(line)
        if comment is None:
            return
        yield comment[1].strip()
