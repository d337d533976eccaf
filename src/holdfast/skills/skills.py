"""Stores skills: their content, their links to tools and other skills, and their assignments to agents."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from msgspec import UNSET, UnsetType

from holdfast.core.errors import AlreadyExists, Conflict, HoldfastError, InvalidInput, NotFound
from holdfast.core.names import stored_name
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.folders import check_files
from holdfast.skills.front_matter import FILE
from holdfast.skills.overlays import check_config, check_values
from holdfast.skills.registry_columns import (
    MAX_INSTRUCTIONS,
    MAX_LABEL,
    MAX_SKILL_DESCRIPTION,
    check_object,
    check_skill_name,
    check_text,
)
from holdfast.skills.registry_terms import terms_of
from holdfast.skills.runnable_kinds import check_runnable
from holdfast.skills.skill import Assignment, Skill, SkillContent, SkillDependency, SkillFile, ToolLink
from holdfast.skills.tool import LEVELS, Access
from holdfast.skills.tools import Tools, advice_for_declared, author_of, check_limit, unknown_tool

LARGEST_NUMBER = 2**31 - 1  # of a priority or a sequence

sql = statements(__name__)


class Skills:
    """Stores and finds the skills of one tenant, and links them.

    A link is created, or changed if it exists. With `version`, it must have that version (0: it must not exist yet).
    Omitted fields are unchanged.
    """

    def __init__(self, database: Database, tools: Tools) -> None:
        self._database = database
        self._tools = tools

    async def put(
        self,
        name: str,
        *,
        instructions: str,
        description: str | UnsetType = UNSET,
        label: str | UnsetType = UNSET,
        parent: str | UnsetType | None = UNSET,
        front_matter: Mapping[str, Any] | None = None,
        files: Mapping[str, bytes | SkillContent] | None = None,
        active: bool | UnsetType = UNSET,
        version: int | None = None,
        by: str = "",
    ) -> Skill:
        """Create or change a skill. `version` is its expected version; None: it must not exist yet.

        Omitted fields are unchanged, also `files` and `front_matter` if they are None.
        """
        if version is None and description is UNSET:
            description = ""
        given = skill_item(name, description, instructions, label)
        if parent is not UNSET:
            given["parent"] = None if parent is None else store(parent)
        if active is not UNSET:
            given["active"] = bool(active)
        if front_matter is not None:
            given["front_matter"] = check_object(f"the skill {name}", "front matter", front_matter)
        row = await self._one("put_skill", store(name), given, *file_columns(name, files), version, author_of(by))
        match row["outcome"]:
            case "parent":
                raise unknown_skill(parent or "")
            case "circle":
                raise cycle_error([name, *map(restore, row["names"])], "is part of")
            case "conflict" if version is None:
                raise AlreadyExists(
                    f"the skill {name} already exists", next=f"Pass its version, {row['version']}, to change it."
                )
            case _:
                _refuse(row, name, version, "Change")
        return await self.get(name)

    async def get(self, name: str) -> Skill:
        """Return a skill."""
        row = await self._database.one(sql("skill"), store(name))
        if row is None:
            raise unknown_skill(name)
        return _skill(row)

    async def files(self, name: str) -> dict[str, SkillContent]:
        """Return the files of a skill, by path."""
        rows = await self._rows("skill_files", name, "path")
        return {restore(row["path"]): SkillContent(row["content"], row["executable"]) for row in rows}

    async def file(self, name: str, path: str) -> SkillContent:
        """Return a file of a skill."""
        row = await self._database.one(sql("skill_file"), store(name), store(path))
        if row is None:
            raise NotFound(
                f"the skill {name!r:.200} has no file {path!r:.200}",
                next=f"`holdfast skills show {name:.200}` lists them.",
            )
        return SkillContent(row["content"], row["executable"])

    async def file_sizes(self, name: str) -> list[SkillFile]:
        """List the files of a skill, without their contents."""
        rows = await self._rows("skill_file_sizes", name, "path")
        return [SkillFile(restore(row["path"]), row["size"], row["executable"]) for row in rows]

    async def remove(self, name: str, *, version: int | None = None, by: str = "") -> None:
        """Remove a skill, also from its agents. Refuse if other skills need it or are parts of it."""
        row = await self._one("remove_skill", store(name), version, author_of(by))
        if row["outcome"] == "needed":
            parts, dependents = ([restore(each) for each in row[column]] for column in ("parts", "dependents"))
            reasons = [f"{each} is part of it" for each in parts] + [f"{each} needs it" for each in dependents]
            raise InvalidInput(
                f"the skill {name} cannot be removed",
                why=f"{', '.join(reasons)}"[:2000],
                next="Remove these skills first, or remove their links to it.",
                parts=parts,
                dependents=dependents,
            )
        _refuse(row, name, version, "Remove")

    async def activate(self, name: str, active: bool, *, version: int | None = None, by: str = "") -> Skill:
        """Activate or deactivate a skill of any origin."""
        row = await self._one("activate_skill", store(name), bool(active), version, author_of(by))
        _refuse(row, name, version, "Change")
        return await self.get(name)

    async def link(
        self,
        skill: str,
        tool: str,
        *,
        access: Access | UnsetType | None = UNSET,
        config: Mapping[str, Any] | UnsetType = UNSET,
        active: bool | UnsetType = UNSET,
        version: int | None = None,
        by: str = "",
    ) -> ToolLink:
        """Link a skill to a tool. `access` is the granted one; None, as in a new link: the one that the tool needs."""
        if access not in (UNSET, None, *LEVELS):
            raise InvalidInput(f"the access {access!r:.100} is unknown", next=f"Use one of {', '.join(LEVELS)}.")
        known = await self._tools.by_names([tool])
        if tool in known and active is not False:
            await check_runnable(known[tool], self._tools.runs)
        if config is not UNSET and (config := check_config(config)):
            if tool not in known:
                raise unknown_tool(tool)
            check_values(known[tool], config, all=True)
        given = _given_fields(access_level=access, config=config, active=active)
        row = await self._one("link_tool", store(skill), store(tool), given, version, author_of(by))
        if row["outcome"] == "missing":
            raise unknown_skill(skill) if row["absent"] == "skill" else unknown_tool(tool)
        _refuse_stale(row, f"the link of the skill {skill} to the tool {tool}", version)
        return next(link for link in await self.tools_of(skill) if link.tool == tool)

    async def unlink(self, skill: str, tool: str, *, version: int | None = None, by: str = "") -> None:
        """Remove the link of a skill to a tool."""
        await self._unlink("skill_tool", f"the skill {skill} does not have the tool {tool}", skill, tool, version, by)

    async def depend(
        self,
        skill: str,
        on: str,
        *,
        required: bool | UnsetType = UNSET,
        active: bool | UnsetType = UNSET,
        version: int | None = None,
        by: str = "",
    ) -> SkillDependency:
        """Make a skill depend on another one, loaded with it, or only on request if it is not `required`."""
        given = _given_fields(required=required, active=active)
        row = await self._one("link_need", store(skill), store(on), given, version, author_of(by))
        if row["outcome"] == "missing":
            raise unknown_skill(skill if row["absent"] == "skill" else on)
        if row["outcome"] == "circle":
            raise cycle_error([skill, *map(restore, row["names"])], "needs")
        _refuse_stale(row, f"that the skill {skill} needs {on}", version)
        return next(need for need in await self.needs(skill) if need.on == on)

    async def undepend(self, skill: str, on: str, *, version: int | None = None, by: str = "") -> None:
        """Remove a dependency of a skill on another one."""
        await self._unlink("skill_dependency", f"the skill {skill} does not need {on}", skill, on, version, by)

    async def assign(
        self,
        agent: str,
        skill: str,
        *,
        config: Mapping[str, Any] | UnsetType = UNSET,
        priority: int | UnsetType = UNSET,
        sequence: int | UnsetType = UNSET,
        active: bool | UnsetType = UNSET,
        version: int | None = None,
        by: str = "",
    ) -> Assignment:
        """Assign a skill to an agent. In the prompt, a higher `priority` comes first, then a lower `sequence`."""
        for field, number in (("priority", priority), ("sequence", sequence)):
            if number is not UNSET and (not isinstance(number, int) or abs(number) > LARGEST_NUMBER):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(
                    f"the {field} {number!r:.100} is invalid", next=f"Use an integer of up to {LARGEST_NUMBER}."
                )
        if config is not UNSET and (config := check_config(config)):
            links = await self.tools_of(skill)
            for tool in (await self._tools.by_names(link.tool for link in links)).values():
                check_values(tool, config)
        given = _given_fields(config=config, priority=priority, sequence_id=sequence, active=active)
        row = await self._one("assign_skill", stored_name("agent", agent), store(skill), given, version, author_of(by))
        if row["outcome"] == "missing":
            raise unknown_agent(agent) if row["absent"] == "agent" else unknown_skill(skill)
        _refuse_stale(row, f"the assignment of the skill {skill} to the agent {agent}", version)
        return next(each for each in await self.skills_of(agent) if each.skill == skill)

    async def unassign(self, agent: str, skill: str, *, version: int | None = None, by: str = "") -> None:
        """Remove a skill from an agent."""
        await self._unlink(
            "agent_skill", f"the agent {agent} does not have the skill {skill}", agent, skill, version, by
        )

    async def tools_of(self, skill: str) -> list[ToolLink]:
        """List the tools of a skill, by name."""
        return [
            ToolLink(skill, row["tool"], row["access_level"], row["config"], *_audit(row))
            for row in await self._rows("tools_of_skill", skill, "tool")
        ]

    async def needs(self, skill: str) -> list[SkillDependency]:
        """List the dependencies of a skill, by name."""
        return [
            SkillDependency(skill, restore(row["needed"]), row["required"], *_audit(row))
            for row in await self._rows("needs_of_skill", skill, "needed")
        ]

    async def skills_of(self, agent: str) -> list[Assignment]:
        """List the skills of an agent, in the order of its prompt."""
        rows = await self._database.all(sql("skills_of_agent"), stored_name("agent", agent))
        if not rows:
            raise unknown_agent(agent)
        return [_assignment(row) for row in rows if row["skill"] is not None]

    async def agents_of(self, skill: str) -> list[Assignment]:
        """List the agents that have a skill, by name."""
        return [_assignment(row) for row in await self._rows("agents_of_skill", skill, "agent")]

    async def list(self, *, limit: int = 100, after: str | None = None, active: bool | None = None) -> list[Skill]:
        """List skills by name. `after` is the last name of the previous page."""
        check_limit(limit)
        return [_skill(row) for row in await self._database.all(sql("list_skills"), store(after or ""), limit, active)]

    async def _unlink(self, kind: str, absent: str, owner: str, other: str, version: int | None, by: str) -> None:
        row = await self._one("unlink", kind, store(owner), store(other), version, author_of(by))
        if row["outcome"] == "missing":
            raise NotFound(absent, next="`holdfast skills show NAME` lists what a skill has, and who has it.")
        _refuse_stale(row, f"the link between {owner} and {other}", version)

    async def _one(self, statement: str, *args: object) -> Row:
        return cast(Row, await self._database.one(sql(statement), *args))

    async def _rows(self, statement: str, skill: str, column: str) -> Sequence[Row]:
        """Return what a skill has. A row where `column` is null only shows that the skill exists."""
        rows = await self._database.all(sql(statement), store(skill))
        if not rows:
            raise unknown_skill(skill)
        return [row for row in rows if row[column] is not None]


def skill_item(name: str, description: str | UnsetType, instructions: str, label: str | UnsetType) -> dict[str, Any]:
    """Return the given columns of a skill. Raise InvalidInput with the reason if it cannot be stored."""
    check_skill_name(name)
    what = f"the skill {name}"
    item: dict[str, Any] = {"content_markdown": check_text(what, "instructions", instructions, MAX_INSTRUCTIONS)}
    if description is not UNSET:
        item["description"] = check_text(what, "description", description, MAX_SKILL_DESCRIPTION)
        item["terms"] = terms_of(name, description)
    if label is not UNSET:
        item["version"] = check_text(what, "label", label, MAX_LABEL, empty=False)
    return item


def file_columns(
    name: str, files: Mapping[str, bytes | SkillContent] | None
) -> tuple[list[str] | None, list[bytes] | None, list[bool] | None]:
    """Return paths, contents and executable flags. Raise InvalidInput for a file that a skill cannot have."""
    if files is None:
        return None, None, None
    whole = {path: each if isinstance(each, SkillContent) else SkillContent(each) for path, each in files.items()}
    check_files({path: len(each.content) for path, each in whole.items()})
    if FILE in whole:
        raise InvalidInput(
            f"the skill {name} cannot have a file {FILE}",
            why="this file is written from the skill itself",
            next="Pass its text as `instructions`, or import the folder.",
        )
    return (
        [store(path) for path in whole],
        [each.content for each in whole.values()],
        [each.executable for each in whole.values()],
    )


def _given_fields(**columns: object) -> dict[str, Any]:
    """Return the columns of a link that are given."""
    return {name: value for name, value in columns.items() if value is not UNSET}


def _skill(row: Row) -> Skill:
    return Skill(
        row["skill_id"],
        restore(row["name"]),
        restore(row["description"]),
        restore(row["content_markdown"]),
        restore(row["version"]),
        None if row["parent"] is None else restore(row["parent"]),
        row["front_matter"],
        row["origin"],
        row["active"],
        row["aggregate_version"],
        row["created_at"],
        row["update_ts"],
        restore(row["update_user"]),
    )


def _assignment(row: Row) -> Assignment:
    return Assignment(
        restore(row["agent"]), restore(row["skill"]), row["config"], row["priority"], row["sequence_id"], *_audit(row)
    )


def _audit(row: Row) -> tuple[Any, ...]:
    return row["active"], row["aggregate_version"], row["update_ts"], restore(row["update_user"])


def unknown_skill(name: str) -> NotFound:
    """Return the error for an unknown skill."""
    return NotFound(f"there is no skill {name!r:.200}", next="`holdfast skills ls` and `GET /api/skills` list them.")


def unknown_agent(name: str) -> NotFound:
    """Return the error for an unknown agent."""
    return NotFound(f"there is no agent {name!r:.200}", next="`holdfast agents ls` and `GET /api/agents` list them.")


def cycle_error(cycle: Sequence[str], verb: str) -> InvalidInput:
    """Return the error for a cycle of skills; `cycle` begins and ends with the same skill."""
    links = ", ".join(f"{one} {verb} {other}" for one, other in pairwise(cycle))
    return InvalidInput(
        f"the skill {cycle[0]} cannot be stored" if verb != "needs" else f"the skill {cycle[0]} cannot need {cycle[1]}",
        why=f"that would be a cycle: {links}"[:2000],
        next="Remove one of these links first.",
        circle=list(cycle),
    )


def _refuse(row: Row, name: str, version: int | None, verb: str) -> None:
    """Raise the error of an outcome that changed nothing."""
    refusal: HoldfastError
    match row["outcome"]:
        case "missing":
            refusal = unknown_skill(name)
        case "code":
            refusal = AlreadyExists(f"an app declares the skill {name}", next=advice_for_declared(verb))
        case "conflict":
            refusal = Conflict(f"the skill {name} has changed", expected=version or 0, current=row["version"])
        case _:
            return
    raise refusal


def _refuse_stale(row: Row, what: str, version: int | None) -> None:
    if row["outcome"] == "conflict":
        raise Conflict(f"{what} has changed", expected=version or 0, current=row["version"] or 0)
