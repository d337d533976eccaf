"""`holdfast skills`: import, export, assign, enable and disable skills."""

import base64
import json
import sys
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.chat_output import shortened
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.output import printable, write
from holdfast.cli.tools import say_more, scored
from holdfast.cli.urls import address, given
from holdfast.core.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.skills.folders import FolderSkill

app = group("Import, export, assign, enable and disable skills: instructions and tools that agents load on demand.")

PAGE = 200
COLUMNS = {"name": "NAME", "label": "VERSION", "active": "ACTIVE", "parent": "PART OF", "description": "DESCRIPTION"}
FOUND = {"score": "SCORE", "name": "NAME", "description": "DESCRIPTION"}
CHANGES = {"at": "AT", "by": "BY", "operation": "OPERATION", "kind": "KIND", "what": "WHAT"}

Name = Annotated[str, typer.Argument(metavar="NAME")]
SkillName = Annotated[str, typer.Argument(metavar="SKILL")]
Config = Annotated[
    str | None, typer.Option(metavar="JSON", help="Overlay for tool calls: arguments, defaults, timeout, approve.")
]
Undo = Annotated[bool, typer.Option("--undo", help="Reverse it: disable, unlink or unassign.")]


@command(app)
async def ls(
    invocation: Invocation,
    query: Annotated[str | None, typer.Argument(metavar="[QUERY]", help="What to search for.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, max=PAGE, help="Maximum number of skills.")] = None,
) -> None:
    """List skills by name, or search for skills, best match first."""
    async with reach(invocation) as api:
        found = await api.get(address("skills", query=query, limit=limit))
    rows: list[dict[str, Any]] = found["skills"]
    invocation.output.rows(rows if invocation.json else scored(rows), COLUMNS if query is None else FOUND)
    say_more(invocation, found, len(rows))


@command(app)
async def show(invocation: Invocation, name: Name) -> None:
    """Show a skill: instructions, tools, dependencies and agents."""
    async with reach(invocation) as api:
        skill = await api.get(skill_address(name))
    if invocation.json:
        invocation.output.record(skill)
    else:
        write(sys.stdout, printable("\n".join(shown(skill))))


@command(app, "import")
async def import_(
    invocation: Invocation,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with a SKILL.md, or a folder of such folders.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace existing skills of the same names.")] = False,
) -> None:
    """Import skills from SKILL.md folders. Each skill is stored completely or not at all.

    \b
    holdfast skills import ./skills
    holdfast skills import ./skills/returns --replace
    """
    from holdfast.skills.folders import load_folders, write_folder

    done: list[dict[str, Any]] = []
    async with reach(invocation) as api:
        try:
            for each in in_order(load_folders(folder)):
                body = {"files": sent(write_folder(each), each.executable), "replace": replace}
                done.append(await api.post(address("skills", "import"), body))
        finally:
            invocation.output.rows(done, {"name": "NAME", "change": "CHANGE", "version": "VERSION"})


@command(app)
async def export(
    invocation: Invocation,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Skills to export. [default: all]", show_default=False),
    ] = None,
    to: Annotated[Path, typer.Option(metavar="DIR", help="Target folder.")] = Path(),
) -> None:
    """Export skills as SKILL.md folders, one folder per skill.

    \b
    holdfast skills export returns --to ./skills
    """
    from holdfast.skills.folders import folder_name, save_folder

    done: list[dict[str, Any]] = []
    async with reach(invocation) as api:
        for name in names or [name async for name in _all_names(api)]:
            folder = to / _free(folder_name(name), {Path(each["folder"]).name for each in done})
            save_folder(folder, await _exported(api, name))
            done.append({"name": name, "folder": str(folder)})
    invocation.output.rows(done, {"name": "NAME", "folder": "FOLDER"})


@command(app)
async def rm(invocation: Invocation, name: Name) -> None:
    """Remove a skill that no other skill depends on. It is removed from all agents."""
    async with reach(invocation) as api:
        await api.delete(skill_address(name))
    invocation.output.record({"name": name})
    invocation.output.say(f"The skill {name} is removed.")


@command(app)
async def activate(invocation: Invocation, name: Name, undo: Undo = False) -> None:
    """Enable a skill, or disable it with --undo."""
    async with reach(invocation) as api:
        skill = await api.put(skill_address(name, "active"), {"active": not undo})
    invocation.output.record(skill)
    invocation.output.say(f"{name} is {'not active any more' if undo else 'active'}.")


@command(app)
async def link(
    invocation: Invocation,
    skill: SkillName,
    tool: Annotated[str, typer.Argument(metavar="TOOL")],
    access: Annotated[
        Literal["read", "write", "execute"] | None,
        typer.Option(metavar="LEVEL", help="Access level: read, write or execute. [default: what the tool requires]"),
    ] = None,
    config: Config = None,
    undo: Undo = False,
) -> None:
    """Link a tool to a skill. Omitted options of an existing link are unchanged.

    \b
    holdfast skills link returns refund --config '{"approve": true, "arguments": {"currency": "EUR"}}'
    """
    at = skill_address(skill, "tools", tool)
    said = given(access=access, config=_config(config))
    async with reach(invocation) as api:
        made = await (api.delete(at) if undo else api.put(at, said))
    invocation.output.record(made or {"skill": skill, "tool": tool})
    invocation.output.say(f"{skill} does without {tool}." if undo else f"{skill} works with {tool} ({made['access']}).")


@command(app)
async def need(
    invocation: Invocation,
    skill: SkillName,
    other: Annotated[str, typer.Argument(metavar="OTHER")],
    optional: Annotated[bool, typer.Option("--optional", help="Load the other skill only on request.")] = False,
    undo: Undo = False,
) -> None:
    """Make a skill depend on another skill, which is loaded with it."""
    at = skill_address(skill, "needs", _twice(other))
    async with reach(invocation) as api:
        made = await (api.delete(at) if undo else api.put(at, {"required": not optional}))
    invocation.output.record(made or {"skill": skill, "on": other})
    invocation.output.say(f"{skill} does without {other}." if undo else f"{skill} {_needs(made)}.")


@command(app)
async def assign(
    invocation: Invocation,
    agent: Annotated[str, typer.Argument(metavar="AGENT")],
    skill: SkillName,
    priority: Annotated[
        int | None, typer.Option(metavar="N", help="Skills with the highest priority come first. [default: 0]")
    ] = None,
    config: Config = None,
    undo: Undo = False,
) -> None:
    """Assign a skill to an agent. Omitted options of an existing assignment are unchanged."""
    at = address("agents", agent, "skills", _twice(skill))
    said = given(priority=priority, config=_config(config))
    async with reach(invocation) as api:
        made = await (api.delete(at) if undo else api.put(at, said))
    invocation.output.record(made or {"agent": agent, "skill": skill})
    invocation.output.say(f"{agent} does without {skill}." if undo else f"{agent} has {skill}.")


@command(app)
async def history(
    invocation: Invocation,
    name: Name,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Maximum number of changes.")] = 50,
) -> None:
    """List changes of a skill and of its links, newest first."""
    async with reach(invocation) as api:
        found = [
            await api.get(address("registry", "history", name=name, kind=kind, limit=limit))
            for kind in ("skill", "skill_tool", "skill_dependency")
        ]
    changes = [change for each in found for change in each["changes"]]
    rows = sorted(changes, key=lambda each: (each["revision"], each["number"]), reverse=True)[:limit]
    invocation.output.rows(rows if invocation.json else [{**row, "what": _what(row)} for row in rows], CHANGES)


def skill_address(name: str, *names: str) -> str:
    """Build the URL path of a skill or of a part of it."""
    return address("skills", _twice(name), *names)


def sent(files: Mapping[str, bytes], executable: Collection[str]) -> dict[str, Any]:
    """Encode the files of a folder for the API."""
    return {
        path: {"content": base64.b64encode(content).decode(), "executable": path in executable}
        for path, content in files.items()
    }


def in_order(folders: Iterable["FolderSkill"]) -> list["FolderSkill"]:
    """Sort skills: each comes after its dependencies and its parent, as far as they are in the list."""
    known = {folder.name: folder for folder in folders}
    ordered: dict[str, FolderSkill] = {}
    begun = set[str]()
    stack = [*reversed(known.values())]
    while stack:
        folder = stack[-1]
        if folder.name not in begun:
            begun.add(folder.name)
            names = (*folder.requires, *folder.optional, *([folder.parent] if folder.parent else []))
            stack += [known[name] for name in reversed(names) if name in known and name not in begun]
        else:  # its dependencies are done, or part of a circle, which the registry rejects
            stack.pop()
            ordered.setdefault(folder.name, folder)
    return list(ordered.values())


def shown(skill: dict[str, Any]) -> Iterator[str]:
    """Format a skill for the terminal."""
    yield skill["name"]
    about = {
        "description": skill["description"],
        "version": f"{skill['label']}, changed {skill['version'] - 1} times",
        "from": "a program" if skill["origin"] == "code" else skill["updated_by"],
        "active": "" if skill["active"] else "no",
        "part of": skill["parent"] or "",
        "needs": ", ".join(each["on"] for each in skill["needs"] if each["required"]),
        "can use": ", ".join(each["on"] for each in skill["needs"] if not each["required"]),
        "tools": ", ".join(f"{each['tool']} ({_level(each)})" for each in skill["tools"]),
        "agents": ", ".join(each["agent"] for each in skill["agents"]),
        "files": ", ".join(each["path"] for each in skill["files"]),
    }
    yield from (f"{name:<11}  {value}" for name, value in about.items() if value)
    instructions = skill["instructions"].replace("\r\n", "\n").strip()
    if instructions:
        yield ""
        yield instructions


def _config(text: str | None) -> dict[str, Any] | None:
    try:
        value = None if text is None else json.loads(text)
    except ValueError as error:
        why, value = str(error), []
    else:
        why = "it is no object"
    if value is not None and not isinstance(value, dict):
        raise InvalidInput("--config cannot be read", why=why, next="""Write it like '{"approve": true}'.""")
    return cast(dict[str, Any] | None, value)


def _level(link: dict[str, Any]) -> str:
    off = "" if link["active"] else ", not active"
    return f"{link['access']}{', with a config' if link['config'] else ''}{off}"


def _needs(need: dict[str, Any]) -> str:
    return f"{'needs' if need['required'] else 'can use'} {need['on']}"


def _what(change: dict[str, Any]) -> str:
    """Summarize a change: the other end of a link, or the changed columns."""
    before: dict[str, Any] = change["before"] or {}
    after: dict[str, Any] = change["after"] or {}
    other = {**before, **after}.get({"skill_tool": "tool", "skill_dependency": "needs"}.get(change["kind"], ""))
    aside = {"aggregate_version", "update_ts", "update_user"}
    names = [name for name in {**before, **after} if name not in aside and before.get(name) != after.get(name)]
    told = [f"{name}={json.dumps(after.get(name), ensure_ascii=False)}" for name in names] if before and after else []
    return shortened(" ".join(filter(None, [other, *told])))


async def _all_names(api: Api) -> AsyncIterator[str]:
    after: str | None = None
    while True:
        page = await api.get(address("skills", limit=PAGE, after=after))
        for each in page["skills"]:
            yield each["name"]
        after = page["cursor"]
        if after is None:
            return


async def _exported(api: Api, name: str) -> "FolderSkill":
    from holdfast.skills.folders import read_folder

    files: dict[str, Any] = (await api.get(skill_address(name, "export")))["files"]
    contents = {path: base64.b64decode(file["content"]) for path, file in files.items()}
    return read_folder(contents, executable=[path for path, file in files.items() if file["executable"]])


def _free(folder: str, taken: Collection[str]) -> str:
    """Return a free folder name: different names of skills can lead to the same folder name."""
    return folder if folder not in taken else next(one for n in count(2) if (one := f"{folder}-{n}") not in taken)


def _twice(name: str) -> str:
    """Encode slashes and percent signs, because the server decodes a path before it splits it."""
    return name.replace("%", "%25").replace("/", "%2F")
