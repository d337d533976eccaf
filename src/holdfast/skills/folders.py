"""Skill folders in the open SKILL.md format: reads and writes them.

A folder has a `SKILL.md`. Its front matter gives `name`, `description` and other fields, and its text is the
instructions. Scripts and references are files beside it. Fields of this project are below `metadata.holdfast`:

    name: returns
    description: How to take goods back.
    metadata:
      holdfast:
        version: 1.2.0
        parent: sales
        requires: [orders]        # loaded with it
        optional: [refunds]       # loaded on request
        tools:
          - track
          - {name: refund, access: execute}
"""

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast

from holdfast.core.errors import AlreadyExists, HoldfastError, InvalidInput, TooLarge
from holdfast.skills.front_matter import FILE, MarkdownPage, line_error, read_page, write_page
from holdfast.skills.parameters import storable
from holdfast.skills.tool import LEVELS, Access

MAX_BYTES = 10 * 1024 * 1024  # of a skill with all its files
MAX_FILES = 1000
MAX_NAME = 64
MAX_OWN_NAME = 126  # of a skill's name in the registry
MAX_DESCRIPTION = 1024
MAX_VERSION = 20
MAX_PATH = 255
FIRST_VERSION = "1.0.0"

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\:\ud800-\udfff]")
_IGNORED = frozenset((".git", ".DS_Store", "__pycache__"))
_OWN_KEYS = ("name", "version", "parent", "requires", "optional", "tools")


@dataclass(frozen=True, slots=True)
class FolderTool:
    """A tool of a skill and the access that the skill grants; None: the access that the tool needs."""

    name: str
    access: Access | None = None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class FolderSkill:
    """A skill as a folder contains it. `front_matter` holds the fields without an attribute here."""

    name: str
    description: str
    instructions: str
    front_matter: Mapping[str, Any] = field(default_factory=dict[str, Any])
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    executable: frozenset[str] = frozenset()
    version: str = FIRST_VERSION
    parent: str | None = None
    requires: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    tools: tuple[FolderTool, ...] = ()


def read_folder(files: Mapping[str, bytes], *, executable: Collection[str] = ()) -> FolderSkill:
    """Parse a skill from the files of its folder, by path. An InvalidInput names the line of an error."""
    check_files({path: len(content) for path, content in files.items()})
    if FILE not in files:
        raise InvalidInput(f"there is no {FILE}", next=f"Add a {FILE} to the folder; case matters.")
    page = read_page(_decode(files[FILE]))
    head = dict(page.head)
    name, description = _text(page, head, "name"), _text(page, head, "description", most=MAX_DESCRIPTION)
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise line_error(
            page.lines["name"],
            f"the name {name!r:.100} is invalid",
            f"Use up to {MAX_NAME} lower-case letters and digits, separated by single hyphens.",
        )
    own = _pop_own_fields(page, head)
    other_files = {path: bytes(content) for path, content in files.items() if path != FILE}
    return FolderSkill(
        name=_own_text(page, own, "name", MAX_OWN_NAME) or name,
        description=description,
        instructions=page.text,
        front_matter=head,
        files=other_files,
        executable=frozenset(executable) & other_files.keys(),
        version=_own_text(page, own, "version", MAX_VERSION) or _version(head),
        parent=_own_text(page, own, "parent", MAX_OWN_NAME),
        requires=_names(page, own, "requires"),
        optional=_names(page, own, "optional"),
        tools=tuple(_tools(page, own)),
    )


def write_folder(skill: FolderSkill) -> dict[str, bytes]:
    """Return the files of a skill's folder. `read_folder` returns the same skill again."""
    check_files({path: len(content) for path, content in skill.files.items()} | {FILE: 0})
    if FILE in skill.files:
        raise InvalidInput(
            f"the skill {skill.name:.100} has a file {FILE} among its other files", next="Rename that file."
        )
    rest = storable(skill.front_matter)
    if own := _own_fields(skill, rest):
        metadata = _mapping(rest.get("metadata"))
        other_fields = None if metadata is None else _mapping(metadata.get("holdfast"))
        if metadata is None or other_fields is None:
            raise InvalidInput(f"the skill {skill.name:.100} cannot be written", why="its metadata is not a mapping")
        rest["metadata"] = {**metadata, "holdfast": {**other_fields, **own}}
    head = {"name": folder_name(skill.name), "description": skill.description, **rest}
    page = write_page(storable(head), skill.instructions)
    return {FILE: page.encode(errors="replace"), **skill.files}


def folder_name(name: str) -> str:
    """Return a skill's name in the open format: unchanged if it is valid, otherwise the closest valid one."""
    if len(name) <= MAX_NAME and _NAME.fullmatch(name):
        return name
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:MAX_NAME].strip("-") or "skill"


def load_folders(path: Path) -> list[FolderSkill]:
    """Load the skill of a folder, or those of its subfolders, by name."""
    if not path.is_dir():
        raise InvalidInput(
            f"there is no folder {path}", next=f"Pass a folder with a {FILE}, or a folder with such folders."
        )
    if (path / FILE).is_file():
        return [_load(path)]
    folders = sorted(each for each in path.iterdir() if each.is_dir() and (each / FILE).is_file())
    if not folders:
        raise InvalidInput(f"there is no {FILE} in {path} or its subfolders", next="Pass the folder of a skill.")
    return [_load(each) for each in folders]


def save_folder(path: Path, skill: FolderSkill, *, force: bool = False) -> None:
    """Write a skill's folder, and delete the files of a skill that was there before.

    A folder with other contents is refused; with `force`, the skill is written beside them.
    """
    former = (path / FILE).is_file() and not path.is_symlink()
    if (
        not force
        and not former
        and (path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))))
    ):
        raise AlreadyExists(
            f"{path} exists and is not the folder of a skill", next="Choose another folder, or use force."
        )
    files = write_folder(skill)
    try:
        _save(path, files, skill.executable, former=former)
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written", why=str(error.strerror), next="Choose another folder."
        ) from None


def _save(path: Path, files: Mapping[str, bytes], executable: Collection[str], *, former: bool) -> None:
    for name in files:
        for place in (path / name, *(path / each for each in PurePosixPath(name).parents)):
            if place.is_symlink():
                raise InvalidInput(
                    f"{place} is a symbolic link",
                    why="files outside the folder must not change",
                    next="Remove the link.",
                )
    stale = {name for name, _ in _list_files(path)} - files.keys() if former else ()
    for name in stale:  # first: a new folder may replace an old file, and the other way round
        (path / name).unlink()
        for folder in (path / name).parents[: name.count("/")]:
            if not any(folder.iterdir()):
                folder.rmdir()
    for name, content in files.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(0o755 if name in executable else 0o644)


def check_files(sizes: Mapping[str, int]) -> None:
    """Refuse too many or too large files, and invalid paths, such as those that lead out of the folder."""
    if len(sizes) > MAX_FILES:
        raise TooLarge(f"the skill has {len(sizes)} files", why=f"the limit is {MAX_FILES}", next="Remove some files.")
    size = sum(sizes.values())
    if size > MAX_BYTES:
        raise TooLarge(f"the skill has {size} bytes", why=f"the limit is {MAX_BYTES}", next="Remove some files.")
    for path in sizes:
        parts = path.split("/")
        if not path or _UNSAFE.search(path) or len(path) > MAX_PATH or any(each in ("", ".", "..") for each in parts):
            raise InvalidInput(
                f"the file path {path!r:.200} is invalid",
                why="it leads out of the folder, or some operating systems do not allow it",
                next=f"Use paths such as scripts/check.py, of up to {MAX_PATH} characters.",
            )
        if any("/".join(parts[:end]) in sizes for end in range(1, len(parts))):
            raise InvalidInput(f"the file {path!r:.200} has a path below another file", next="Rename one of them.")


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise line_error(
            content[: error.start].count(b"\n") + 1, "the file is not UTF-8", "Save it as UTF-8."
        ) from None


def _text(page: MarkdownPage, head: dict[str, Any], key: str, *, most: int | None = None) -> str:
    if key not in head:
        raise line_error(1, f"the front matter has no {key}", f"Add a line `{key}: …`.")
    text = head.pop(key)
    if not isinstance(text, str):
        raise line_error(page.lines[key], f"the {key} is not a string", "Put it in quotes.")
    if most is not None and len(text) > most:
        raise line_error(page.lines[key], f"the {key} has {len(text)} characters", f"Shorten it to at most {most}.")
    return text


def _pop_own_fields(page: MarkdownPage, head: dict[str, Any]) -> dict[str, Any]:
    """Remove the fields below `metadata.holdfast` from the front matter, and return them."""
    metadata, place = _mapping(head.get("metadata")), page.lines.get("metadata", 1)
    if metadata is None:
        raise line_error(place, "`metadata` is not a mapping", "Write `key: value` lines below it.")
    if "holdfast" not in metadata:
        return {}
    own = _mapping(metadata.pop("holdfast"))
    if own is None:
        raise line_error(place, "`metadata.holdfast` is not a mapping", "Write `key: value` lines below it.")
    if unknown := {key: value for key, value in own.items() if key not in _OWN_KEYS}:
        metadata["holdfast"] = unknown
    if metadata:
        head["metadata"] = metadata
    else:
        del head["metadata"]
    return own


def _version(head: Mapping[str, Any]) -> str:
    """Return the version in `metadata.version`, where many authors write it, or the default."""
    version = (_mapping(head.get("metadata")) or {}).get("version")
    return (
        str(version)
        if isinstance(version, str | int | float) and 0 < len(str(version)) <= MAX_VERSION
        else FIRST_VERSION
    )


def _own_text(page: MarkdownPage, own: Mapping[str, Any], key: str, most: int) -> str | None:
    value = own.get(key)
    if value is None:
        return None
    text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    if not text.strip() or len(text) > most:
        why = f"`metadata.holdfast.{key}` has the invalid value {value!r:.60}"
        raise line_error(page.lines["metadata"], why, f"Use a string of 1 to {most} characters.")
    return text


def _names(page: MarkdownPage, own: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names: object = own.get(key) or []
    if not isinstance(names, list) or not all(isinstance(each, str) and each for each in cast(list[Any], names)):
        why = f"`metadata.holdfast.{key}` is not a list of names"
        raise line_error(page.lines["metadata"], why, f"Write `{key}: [orders, refunds]`.")
    return tuple(dict.fromkeys(cast(list[str], names)))


def _tools(page: MarkdownPage, own: Mapping[str, Any]) -> Iterator[FolderTool]:
    entries: object = own.get("tools") or []
    if not isinstance(entries, list):
        raise line_error(page.lines["metadata"], "`metadata.holdfast.tools` is not a list", "Write `tools: [track]`.")
    for each in cast(list[Any], entries):
        tool = {"name": each} if isinstance(each, str) else _mapping(each) or {}
        name, access, config = tool.get("name"), cast(Access | None, tool.get("access")), _mapping(tool.get("config"))
        known = tool.keys() <= {"name", "access", "config"} and access in (None, *LEVELS)
        if not known or config is None or not isinstance(name, str) or not name:
            why = f"`metadata.holdfast.tools` has the invalid entry {each!r:.100}"
            next = f"Write a name, or {{name: …, access: …}} with one of {', '.join(LEVELS)}."
            raise line_error(page.lines["metadata"], why, next)
        yield FolderTool(name, access, config)


def _mapping(value: object) -> dict[str, Any] | None:
    """Return a copy of a mapping, an empty one for None, and None for any other value."""
    return {} if value is None else dict(cast(Mapping[str, Any], value)) if isinstance(value, Mapping) else None


def _own_fields(skill: FolderSkill, rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields below `metadata.holdfast`, without those that have their default."""
    fields = {
        "name": None if folder_name(skill.name) == skill.name else skill.name,
        "version": None if skill.version == _version(rest) else skill.version,
        "parent": skill.parent,
        "requires": list(skill.requires),
        "optional": list(skill.optional),
        "tools": [_tool_entry(each) for each in skill.tools],
    }
    return {key: value for key, value in fields.items() if value}


def _tool_entry(tool: FolderTool) -> str | dict[str, Any]:
    if tool == FolderTool(tool.name):
        return tool.name
    fields = {"name": tool.name, "access": tool.access, "config": dict(tool.config)}
    return {key: value for key, value in fields.items() if value}


def _load(folder: Path) -> FolderSkill:
    try:
        found = dict(_list_files(folder))
        check_files({name: status.st_size for name, status in found.items()})
        contents = {name: (folder / name).read_bytes() for name in found}
        executables = [name for name, status in found.items() if status.st_mode & stat.S_IXUSR]
        return read_folder(contents, executable=executables)
    except OSError as error:
        raise InvalidInput(
            f"{folder} cannot be read", why=str(error.strerror), next="Check the folder and its permissions."
        ) from None
    except HoldfastError as error:
        error.what = f"{folder.name}/{error.what}" if error.what.startswith(FILE) else f"{folder.name}: {error.what}"
        raise


def _list_files(folder: Path) -> Iterable[tuple[str, os.stat_result]]:
    """Yield the files of a folder and its subfolders. Links are refused."""
    for count, place in enumerate(_places(folder)):
        status = place.lstat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
            raise InvalidInput(f"{place.relative_to(folder)} is {kind}", next="Replace it with a copy of the file.")
        if count > MAX_FILES:
            raise TooLarge(f"the skill has more than {MAX_FILES} files", next="Remove some files.")
        yield place.relative_to(folder).as_posix(), status


def _places(folder: Path) -> Iterator[Path]:
    for place in sorted(folder.iterdir()):
        if place.name in _IGNORED:
            continue
        if place.is_dir() and not place.is_symlink():
            yield from _places(place)
        else:
            yield place
