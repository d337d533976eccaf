"""`holdfast skills`: import, export, assign, enable and disable skills."""

import base64
import json
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.arguments import json_object
from holdfast.cli.chat_output import shortened
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, message, page, table

if TYPE_CHECKING:
    from holdfast.skills.folders import FolderSkill

app = group("Import, export, assign, enable and disable skills: instructions and tools that agents load on demand.")

PAGE = 200
COLUMNS = {"name": "NAME", "label": "VERSION", "active": "ACTIVE", "parent": "PART OF", "description": "DESCRIPTION"}
FOUND = ["score", "name", "description"]
CHANGES = {"at": "AT", "by": "BY", "operation": "OPERATION", "kind": "KIND", "what": "WHAT"}

Name = Annotated[str, typer.Argument(metavar="NAME")]
SkillName = Annotated[str, typer.Argument(metavar="SKILL")]
Config = Annotated[
    str | None, typer.Option(metavar="JSON", help="Overlay for tool calls: arguments, defaults, timeout, approve.")
]
Undo = Annotated[bool, typer.Option("--undo", help="Reverse it: disable, unlink or unassign.")]


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
                body = {"files": encode_files(write_folder(each), each.executable), "replace": replace}
                done.append(await api.call("import_skill", **body))
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
            folder = to / _free_name(folder_name(name), {Path(each["folder"]).name for each in done})
            save_folder(folder, await _read_skill(api, name))
            done.append({"name": name, "folder": str(folder)})
    invocation.output.rows(done, {"name": "NAME", "folder": "FOLDER"})


@command(app)
async def activate(invocation: Invocation, name: Name, undo: Undo = False) -> None:
    """Enable a skill, or disable it with --undo."""
    async with reach(invocation) as api:
        skill = await api.call("activate_skill", name=name, active=not undo)
    invocation.output.record(skill)
    invocation.output.say(f"The skill {name} is {'no longer' if undo else 'now'} active.")


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
    link, options = {"name": skill, "tool": tool}, {"access": access, "config": _config(config)}
    async with reach(invocation) as api:
        result = await (api.call("unlink_tool", **link) if undo else api.call("link_tool", **link, **options))
    invocation.output.record(result or {"skill": skill, "tool": tool})
    invocation.output.say(f"{skill} no longer uses {tool}." if undo else f"{skill} uses {tool} ({result['access']}).")


@command(app)
async def need(
    invocation: Invocation,
    skill: SkillName,
    other: Annotated[str, typer.Argument(metavar="OTHER")],
    optional: Annotated[bool, typer.Option("--optional", help="Load the other skill only on request.")] = False,
    undo: Undo = False,
) -> None:
    """Make a skill depend on another skill, which is loaded with it."""
    need, options = {"name": skill, "other": other}, {"required": not optional}
    async with reach(invocation) as api:
        result = await (api.call("spare_skill", **need) if undo else api.call("need_skill", **need, **options))
    invocation.output.record(result or {"skill": skill, "on": other})
    invocation.output.say(f"{skill} no longer depends on {other}." if undo else f"{skill} {_needs(result)}.")


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
    assignment, options = {"agent": agent, "name": skill}, {"priority": priority, "config": _config(config)}
    async with reach(invocation) as api:
        result = await (
            api.call("unassign_skill", **assignment) if undo else api.call("assign_skill", **assignment, **options)
        )
    invocation.output.record(result or {"agent": agent, "skill": skill})
    invocation.output.say(f"{agent} no longer has {skill}." if undo else f"{agent} has {skill}.")


@command(app)
async def history(
    invocation: Invocation,
    name: Name,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Maximum number of changes.")] = 50,
) -> None:
    """List changes of a skill and of its links, newest first."""
    async with reach(invocation) as api:
        found = [
            await api.call("registry_history", name=name, kind=kind, limit=limit)
            for kind in ("skill", "skill_tool", "skill_dependency")
        ]
    changes = [change for each in found for change in each["changes"]]
    rows = sorted(changes, key=lambda each: (each["revision"], each["number"]), reverse=True)[:limit]
    invocation.output.rows(
        rows if invocation.json else [{**row, "what": _summarize_change(row)} for row in rows], CHANGES
    )


def encode_files(files: Mapping[str, bytes], executable: Collection[str]) -> dict[str, Any]:
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


def format_skill(skill: dict[str, Any]) -> Iterator[str]:
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
    return json_object("--config", text, '{"approve": true}')


def _level(link: dict[str, Any]) -> str:
    off = "" if link["active"] else ", not active"
    return f"{link['access']}{', with a config' if link['config'] else ''}{off}"


def _needs(need: dict[str, Any]) -> str:
    return f"{'depends on' if need['required'] else 'can use'} {need['on']}"


def _summarize_change(change: dict[str, Any]) -> str:
    """Summarize a change: the other end of a link, or the changed columns."""
    before: dict[str, Any] = change["before"] or {}
    after: dict[str, Any] = change["after"] or {}
    other = {**before, **after}.get({"skill_tool": "tool", "skill_dependency": "needs"}.get(change["kind"], ""))
    aside = {"aggregate_version", "update_ts", "update_user"}
    names = [name for name in {**before, **after} if name not in aside and before.get(name) != after.get(name)]
    changes = (
        [f"{name}={json.dumps(after.get(name), ensure_ascii=False)}" for name in names] if before and after else []
    )
    return shortened(" ".join(filter(None, [other, *changes])))


async def _all_names(api: Api) -> AsyncIterator[str]:
    after: str | None = None
    while True:
        page = await api.call("list_skills", limit=PAGE, after=after)
        for each in page["skills"]:
            yield each["name"]
        after = page["cursor"]
        if after is None:
            return


async def _read_skill(api: Api, name: str) -> "FolderSkill":
    from holdfast.skills.folders import read_folder

    files: dict[str, Any] = (await api.call("export_skill", name=name))["files"]
    contents = {path: base64.b64decode(file["content"]) for path, file in files.items()}
    return read_folder(contents, executable=[path for path, file in files.items() if file["executable"]])


def _free_name(folder: str, taken: Collection[str]) -> str:
    """Return a free folder name: different names of skills can lead to the same folder name."""
    return folder if folder not in taken else next(one for n in count(2) if (one := f"{folder}-{n}") not in taken)


derive(app, "ls", "list_skills", table(COLUMNS, found=FOUND), without=["after"], arguments=["query"])
derive(app, "show", "get_skill", page(lambda skill: "\n".join(format_skill(skill))))
derive(app, "rm", "remove_skill", message("Removed the skill {name}."))
