"""Exports skills as folders and imports them, with links to tools and dependencies. An import is all or nothing."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from holdfast.core.errors import AlreadyExists, NotFound
from holdfast.postgres.database import Database, Transaction
from holdfast.skills.folder_scripts import FolderScript, is_script_of, scripts_of
from holdfast.skills.folders import FolderSkill, FolderTool
from holdfast.skills.runnable_kinds import RunnableKinds, every_kind
from holdfast.skills.skill import Skill, SkillContent, SkillDependency, ToolLink
from holdfast.skills.skills import Skills
from holdfast.skills.tools import MAX_LISTED, Tools


@dataclass(frozen=True, slots=True)
class ImportedSkill:
    """An imported skill, and what the import changed."""

    name: str
    change: Literal["created", "changed", "unchanged"]
    version: int


@dataclass(frozen=True, slots=True)
class _State:
    """The state of a skill that a folder can contain."""

    skill: Skill
    tools: list[ToolLink]
    needs: list[SkillDependency]


class SkillTransfer:
    """Imports and exports the skills of one tenant as folders."""

    def __init__(self, database: Database, runs: RunnableKinds = every_kind) -> None:
        self._database = database
        self._runs = runs
        self._tools = Tools(database, runs)
        self._skills = Skills(database, self._tools)

    async def export(self, name: str) -> FolderSkill:
        """Return a skill as a folder. Inactive links are left out."""
        state = await _state(self._skills, name)
        files = await self._skills.files(name)
        own = await _script_versions(self._tools, name)  # an import makes them of the files
        return FolderSkill(
            state.skill.name,
            state.skill.description,
            state.skill.instructions,
            state.skill.front_matter,
            {path: file.content for path, file in files.items()},
            frozenset(path for path, file in files.items() if file.executable),
            state.skill.label,
            state.skill.parent,
            tuple(need.on for need in state.needs if need.active and need.required),
            tuple(need.on for need in state.needs if need.active and not need.required),
            tuple(
                FolderTool(link.tool, link.access, link.config)
                for link in state.tools
                if link.active and link.tool not in own
            ),
        )

    async def load(self, folder: FolderSkill, *, replace: bool = False, by: str = "") -> ImportedSkill:
        """Store the skill of a folder. A different skill of the same name is overwritten only with `replace`.

        Its scripts become tools of the skill, as far as the sandbox can run their languages.
        """
        scripts = [each for each in scripts_of(folder) if await self._runs.refusal(each.kind) is None]

        async def work(tx: Transaction) -> ImportedSkill:
            # A transaction has the methods of `Database` that are used here. So all statements are in this transaction.
            database = cast(Database, tx)
            tools = Tools(database, self._runs)
            return await _load(Skills(database, tools), tools, folder, scripts, replace=replace, by=by)

        return await self._database.atomically(work)


async def _load(
    skills: Skills, tools: Tools, folder: FolderSkill, scripts: Sequence[FolderScript], *, replace: bool, by: str
) -> ImportedSkill:
    try:
        before = await _state(skills, folder.name)
        former = await skills.files(folder.name)
    except NotFound:
        before, former = None, {}
    changed = {path for path, content in folder.files.items() if path not in former or former[path].content != content}
    await skills.put(
        folder.name,
        instructions=folder.instructions,
        description=folder.description,
        label=folder.version,
        parent=folder.parent,
        front_matter=folder.front_matter,
        files={path: SkillContent(content, path in folder.executable) for path, content in folder.files.items()},
        version=None if before is None else before.skill.version,
        by=by,
    )
    await _store_scripts(tools, folder, scripts, changed, by=by)
    links = [*folder.tools, *(FolderTool(each.name) for each in scripts)]
    if before is not None:
        await _unlink(skills, before, folder, links, by=by)
    for tool in links:
        await skills.link(folder.name, tool.name, access=tool.access, config=tool.config, active=True, by=by)
    for required, names in ((True, folder.requires), (False, folder.optional)):
        for name in names:
            await skills.depend(folder.name, name, required=required, active=True, by=by)
    after = await _state(skills, folder.name)
    if before is None:
        return ImportedSkill(folder.name, "created", after.skill.version)
    if before == after:
        return ImportedSkill(folder.name, "unchanged", after.skill.version)
    if not replace:
        raise AlreadyExists(
            f"the skill {folder.name} already exists",
            why="and differs from the folder",
            next="Rename the skill in the folder, or replace the stored one (`--replace`).",
        )
    return ImportedSkill(folder.name, "changed", after.skill.version)


async def _store_scripts(
    tools: Tools, folder: FolderSkill, scripts: Sequence[FolderScript], changed: Collection[str], *, by: str
) -> None:
    """Store the scripts of a folder as tools, and remove those of scripts that it no longer has."""
    versions = await _script_versions(tools, folder.name)
    for name in sorted(versions.keys() - {each.name for each in scripts}):
        await tools.remove(name, by=by)
    for each in scripts:
        if each.name not in versions or changed:  # a schema beside it may have changed, too
            await tools.put(
                each.name,
                description=each.description,
                parameters=each.parameters,
                kind=each.kind,
                reference=each.reference,
                script=each.code,
                version=versions.get(each.name),
                by=by,
            )


async def _script_versions(tools: Tools, skill: str) -> dict[str, int]:
    """Return the versions of the tools that are scripts of a skill, by name."""
    entries = await tools.list(skill=skill, limit=MAX_LISTED)
    return {entry.tool.name: entry.version for entry in entries if is_script_of(entry.tool, skill)}


async def _unlink(skills: Skills, before: _State, folder: FolderSkill, links: Iterable[FolderTool], *, by: str) -> None:
    """Remove the links that the folder does not have."""
    present = {link.tool for link in await skills.tools_of(folder.name)}
    removed = _removed_names((link.tool for link in before.tools), (tool.name for tool in links))
    for tool in (each for each in removed if each in present):
        await skills.unlink(folder.name, tool, by=by)
    for name in _removed_names((need.on for need in before.needs), (*folder.requires, *folder.optional)):
        await skills.undepend(folder.name, name, by=by)


def _removed_names(before: Iterable[str], after: Iterable[str]) -> list[str]:
    return sorted({*before} - {*after})


async def _state(skills: Skills, name: str) -> _State:
    return _State(await skills.get(name), await skills.tools_of(name), await skills.needs(name))
