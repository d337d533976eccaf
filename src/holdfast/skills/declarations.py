"""Stores the tools, skills and links that an app declares. Each start of the app updates them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from holdfast.core.errors import AlreadyExists, HoldfastError, InvalidInput, NotFound
from holdfast.core.text import dumps, restore, store
from holdfast.core.threads import run_in_thread
from holdfast.postgres.database import Database, Row, Transaction
from holdfast.postgres.sql import statements
from holdfast.skills.overlays import check_config
from holdfast.skills.registry_columns import check_object, check_tool, tool_item
from holdfast.skills.skill import DeclaredSkill
from holdfast.skills.skills import cycle_error, file_columns, skill_item, unknown_agent, unknown_skill
from holdfast.skills.tool import LEVELS, Tool
from holdfast.skills.tools import service_taken_error, unknown_tool

sql = statements(__name__)


class Declarations:
    """Stores the declarations of a tenant's apps."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def declare(
        self,
        app_name: str,
        tools: Iterable[Tool],
        skills: Iterable[DeclaredSkill] = (),
        assignments: Mapping[str, Sequence[str]] | None = None,
        *,
        whole: bool = False,
    ) -> Mapping[str, Tool]:
        """Store tools, skills and the skills of agents, in order, in one transaction. Return the stored tools.

        Changes by an administrator are kept: activation, permissions and links. With `whole`, these are all
        declarations of the app: tools and skills that it no longer declares are deactivated.
        """
        by_name = {tool.name: tool for tool in tools}
        _refuse_duplicates(by_name.values())
        ordered = in_order(skills)
        await run_in_thread(lambda: [check_tool(tool) for tool in by_name.values()], name="holdfast tools")

        async def work(tx: Transaction) -> Mapping[str, Tool]:
            stored = await self._tools(tx, app_name, by_name, whole=whole)
            await self._skills(tx, app_name, ordered, whole=whole)
            await self._links(tx, ordered, assignments or {})
            return stored

        return await self._database.atomically(work)

    async def _tools(
        self, tx: Transaction, app_name: str, tools: Mapping[str, Tool], *, whole: bool
    ) -> Mapping[str, Tool]:
        if not tools:
            return {}
        rows = await tx.all(sql("declare_tools"), store(app_name), [*map(tool_item, tools.values())], whole)
        for row in rows:
            if row["taken"] == "service":
                raise service_taken_error(row["name"], tools[row["name"]].service or "", f"the tool {row['owner']}")
            if row["taken"] is not None:
                raise _name_taken_error("tool", row["name"], row["taken"], row["owner"])
        return {row["name"]: replace(tools[row["name"]], id=row["id"], version=row["version"]) for row in rows}

    async def _skills(self, tx: Transaction, app_name: str, skills: Sequence[DeclaredSkill], *, whole: bool) -> None:
        if not skills and not whole:
            return
        files = [(each.name, *file) for each in skills for file in zip(*_files(each), strict=True)]
        row = cast(Row, await tx.one(
            sql("declare_skills"),
            store(app_name),
            [store(each.name) for each in skills],
            [None if each.parent is None else store(each.parent) for each in skills],
            [
                skill_item(each.name, each.description, each.instructions, each.label)
                | {"front_matter": check_object(f"the skill {each.name}", "front matter", each.front_matter)}
                for each in skills
            ],
            [store(name) for name, _, _, _ in files],
            [path for _, path, _, _ in files],
            [content for _, _, content, _ in files],
            [executable for _, _, _, executable in files],
            whole,
        ))  # fmt: skip
        if row["outcome"] == "stored":
            return
        name = restore(row["subject"])
        match row["outcome"]:
            case "taken":
                raise _name_taken_error("skill", name, "code" if row["owner"] else "db", row["owner"])
            case "parent":
                raise unknown_skill(next(each.parent or "" for each in skills if each.name == name))
            case "circle":
                raise cycle_error([name, *map(restore, row["names"])], "is part of")
            case _:
                pass

    async def _links(
        self, tx: Transaction, skills: Sequence[DeclaredSkill], assignments: Mapping[str, Sequence[str]]
    ) -> None:
        if not skills and not assignments:
            return
        row = cast(Row, await tx.one(
            sql("declare_links"),
            [store(each.name) for each in skills],
            [dumps(_tools(each)) for each in skills],
            [dumps(_needs(each)) for each in skills],
            [store(agent) for agent in assignments],
            [dumps(list(dict.fromkeys(given))) for given in assignments.values()],
        ))  # fmt: skip
        if row["outcome"] == "missing":
            raise _missing_error(row)
        if row["outcome"] == "circle":
            raise cycle_error([restore(row["owner"]), *map(restore, row["names"])], "needs")


def in_order(skills: Iterable[DeclaredSkill]) -> list[DeclaredSkill]:
    """Return skills, each after its parent.

    Raise AlreadyExists for a duplicate name, and InvalidInput for a skill that cannot be stored.
    """
    declared: dict[str, DeclaredSkill] = {}
    for each in skills:
        if each.name in declared:
            raise AlreadyExists(f"the skill {each.name} is declared twice", next="Rename one of them.")
        _check(each)
        declared[each.name] = each
    ordered: dict[str, DeclaredSkill] = {}
    for each in declared.values():
        chain = [each]
        while (parent := declared.get(chain[-1].parent or "")) is not None and parent.name not in ordered:
            if parent in chain:
                names = [one.name for one in chain[chain.index(parent) :]]
                raise cycle_error([*names, names[0]], "is part of")
            chain.append(parent)
        ordered.update((one.name, one) for one in reversed(chain))
    return list(ordered.values())


def _refuse_duplicates(tools: Iterable[Tool]) -> None:
    seen: dict[str, str] = {}
    for tool in tools:
        if tool.service is not None and seen.setdefault(tool.service, tool.name) != tool.name:
            raise service_taken_error(tool.name, tool.service, f"the tool {seen[tool.service]}")


def _check(skill: DeclaredSkill) -> None:
    wrong = [level for level in skill.tools.values() if level is not None and level not in LEVELS]
    both = set(skill.requires) & set(skill.optional)
    if wrong or both:
        raise InvalidInput(
            f"the skill {skill.name!r:.200} cannot be declared",
            why=f"the access {wrong[0]!r:.100} is unknown" if wrong else f"{min(both)} is both required and optional",
            next=f"Use one of {', '.join(LEVELS)}." if wrong else "List it once.",
        )


def _tools(skill: DeclaredSkill) -> list[tuple[str, str | None, dict[str, Any] | None]]:
    configs = {name: check_config(config) for name, config in skill.configs.items()}
    return [(name, level, configs.get(name)) for name, level in skill.tools.items()]


def _needs(skill: DeclaredSkill) -> list[tuple[str, bool]]:
    return [*((name, True) for name in skill.requires), *((name, False) for name in skill.optional)]


def _files(skill: DeclaredSkill) -> tuple[list[str], list[bytes], list[bool]]:
    paths, contents, executables = file_columns(skill.name, skill.files)
    return paths or [], contents or [], executables or []


def _name_taken_error(what: str, name: str, origin: str, owner: str) -> HoldfastError:
    remove = f"`holdfast {what}s rm {name}`"
    match origin:
        case "source":
            whose, next = f"from the source {owner}", "Rename this one."
        case "code":
            whose = f"that the app {restore(owner)} declares"
            off = f"tools deactivate {name}" if what == "tool" else f"skills activate {name} --undo"
            next = (
                f"Rename this one. If no app declares the other any more, deactivate it with "
                f"`holdfast {off}` and remove it with {remove}."
            )
        case _:
            whose, next = "in the registry", f"Remove it with {remove}, or rename this one."
    return AlreadyExists(
        f"the {what} {name} cannot be declared", why=f"there is already a {what} of that name {whose}", next=next
    )


def _missing_error(row: Row) -> NotFound:
    owner, other = restore(row["owner"]), restore(row["other"])
    match row["absent"]:
        case "tool":
            error = unknown_tool(other)
        case "agent":
            error = unknown_agent(owner)
        case _:
            error = unknown_skill(other)
    error.why = f"the declaration of {owner} names {other}"
    return error
