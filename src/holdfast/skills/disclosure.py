"""Progressive disclosure: what an agent sees of its skills and tools, step by step. Pure.

At first, an agent sees the names and descriptions of its skills. When it opens one, it gets the skills that this one
requires, the tools of all of them, and the names of skills that it leads to: its parts and its optional skills.
"""

import difflib
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from uuid import UUID

from holdfast.core.errors import NotFound
from holdfast.llm.tokens import TokenCounter
from holdfast.skills.permissions import refusal_reason
from holdfast.skills.tool import Access

MAX_NAMED = 20  # skills named in an error


@dataclass(frozen=True, slots=True)
class SkillGrant:
    """A tool of a skill: a call needs `access`, and the skill grants `level`.

    `permissions` are the tool's own, `config` is the skill's overlay for it.
    """

    id: UUID
    name: str
    description: str
    access: Access
    level: Access
    permissions: Mapping[str, Any]
    config: Mapping[str, Any]
    version: int = 1


@dataclass(frozen=True, slots=True)
class KnownSkill:
    """A skill that an agent can use, without its instructions.

    `configs` are those of the assignment by which the agent has it, or else of all assignments that lead to it; later
    ones override earlier ones. `optional` are skills that it can use on request. `lacks` names required skills that are
    not available now.
    """

    id: UUID
    name: str
    description: str
    parts: tuple[UUID, ...] = ()
    requires: tuple[UUID, ...] = ()
    optional: tuple[UUID, ...] = ()
    tools: tuple[SkillGrant, ...] = ()
    configs: tuple[Mapping[str, Any], ...] = ()
    lacks: tuple[str, ...] = ()
    version: int = 1

    @property
    def leads_to(self) -> tuple[UUID, ...]:
        """The skills that can be opened from it."""
        return tuple(dict.fromkeys((*self.parts, *self.optional)))


@dataclass(frozen=True)
class Catalog:
    """Everything that an agent can use. `assigned` are its skills, in order; `skills` also has those they lead to."""

    agent: str
    revision: int = 0
    assigned: tuple[UUID, ...] = ()
    skills: Mapping[UUID, KnownSkill] = field(default_factory=dict[UUID, KnownSkill])

    @cached_property
    def by_name(self) -> Mapping[str, KnownSkill]:
        """The skills by name."""
        return {skill.name: skill for skill in self.skills.values()}

    @cached_property
    def tool_ids(self) -> frozenset[UUID]:
        """The tools that the agent may call, once it has opened their skills."""
        return frozenset(
            grant.id for skill in self.skills.values() for grant in skill.tools if not refusal(grant, self.agent)
        )


@dataclass(frozen=True, slots=True)
class Listing:
    """The skills that an agent sees at first, one line each, and those that did not fit."""

    lines: tuple[str, ...]
    tokens: int
    shown: tuple[KnownSkill, ...]
    left_out: tuple[KnownSkill, ...]

    @property
    def text(self) -> str:
        """The lines as one text for the prompt."""
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class Opening:
    """Skills to open, each once and after those that it requires.

    `tools` are those that may be called, by name, with the skill that gives each. `refused` are the others, with the
    reasons. `configs` are those of the agent's assignments for the tools of each skill: of its own assignment, and of
    those by which it is opened.
    """

    skills: tuple[KnownSkill, ...]
    tools: Mapping[str, tuple[SkillGrant, KnownSkill]]
    refused: Mapping[str, str]
    configs: Mapping[UUID, tuple[Mapping[str, Any], ...]] = field(
        default_factory=dict[UUID, tuple[Mapping[str, Any], ...]]
    )


def catalog_of(
    agent: str, revision: int, assigned: Mapping[UUID, Mapping[str, Any]], skills: Iterable[KnownSkill]
) -> Catalog:
    """Return the catalogue of an agent. `assigned` are the configs of its assignments, in order.

    Missing skills, such as inactive ones, are left out, and so are skills to which only they lead.
    """
    by_id = {skill.id: skill for skill in skills}
    assigned_ids = [id for id in assigned if id in by_id]
    found = _reachable(by_id, assigned_ids)
    configs = {id: [assigned[id]] for id in assigned_ids if assigned[id]}
    for id in reversed(assigned_ids):
        if assigned[id]:
            for reachable in _reachable(by_id, [id]) - {*assigned_ids}:
                configs.setdefault(reachable, []).append(assigned[id])

    def filter_found(ids: Iterable[UUID]) -> tuple[UUID, ...]:
        return tuple(id for id in ids if id in found)

    reached = {
        id: replace(
            skill,
            parts=filter_found(skill.parts),
            requires=filter_found(skill.requires),
            optional=filter_found(skill.optional),
            configs=tuple(configs.get(id, ())),
        )
        for id in dict.fromkeys((*assigned_ids, *by_id))
        if id in found and (skill := by_id[id])
    }
    return Catalog(agent, revision, filter_found(assigned), reached)


def _reachable(by_id: Mapping[UUID, KnownSkill], ids: Iterable[UUID]) -> set[UUID]:
    """Return skills and all to which they lead."""
    found = {*ids}
    waiting = deque(found)
    while waiting:
        skill = by_id[waiting.popleft()]
        new = {id for id in (*skill.requires, *skill.leads_to) if id in by_id} - found
        found |= new
        waiting += new
    return found


def list_skills(catalog: Catalog, budget: int, counter: TokenCounter, *, without: Collection[UUID] = ()) -> Listing:
    """List an agent's skills, in order, as far as they fit into `budget` tokens; `without` the open ones."""
    lines: list[str] = []
    shown: list[KnownSkill] = []
    left_out: list[KnownSkill] = []
    tokens = 0
    for skill in (catalog.skills[id] for id in catalog.assigned if id not in without):
        line = line_of(skill.name, skill.description)
        takes = counter.count(line + "\n")
        if tokens + takes > budget:
            left_out.append(skill)
        else:
            tokens += takes
            lines.append(line)
            shown.append(skill)
    return Listing(tuple(lines), tokens, tuple(shown), tuple(left_out))


def line_of(name: str, description: str) -> str:
    """Return a skill or a tool as one line, so that no description starts a new line."""
    text = " ".join(description.split())
    return f"- {name}: {text}" if text else f"- {name}"


def resolve_opening(catalog: Catalog, names: Sequence[str]) -> Opening:
    """Return the skills of these names, and those that they require. Raise NotFound if the agent cannot use one."""
    unknown = [name for name in names if name not in catalog.by_name]
    if unknown:
        raise _unknown_skill_error(catalog, unknown[0])
    return opening_of(catalog, [catalog.by_name[name].id for name in names])


def opening_of(catalog: Catalog, ids: Iterable[UUID]) -> Opening:
    """Return the skills of these ids that the agent can use, and those that they require."""
    ids = [*ids]
    skills = in_load_order(catalog, ids)
    tools: dict[str, tuple[SkillGrant, KnownSkill]] = {}
    refused: dict[str, str] = {}
    for skill in skills:
        for grant in skill.tools:
            if why := refusal(grant, catalog.agent):
                refused[grant.name] = why
            else:
                tools.setdefault(grant.name, (grant, skill))
    return Opening(
        skills, tools, {name: why for name, why in refused.items() if name not in tools}, _configs(catalog, skills, ids)
    )


def _configs(
    catalog: Catalog, skills: Iterable[KnownSkill], ids: Iterable[UUID]
) -> dict[UUID, tuple[Mapping[str, Any], ...]]:
    """Return the configs for the tools of each skill: of its own assignment, and of those it is opened with."""
    found = dict[UUID, list[Mapping[str, Any]]]()
    for wanted in (catalog.skills[id] for id in ids if id in catalog.skills):
        if wanted.configs:
            for skill in in_load_order(catalog, [wanted.id]):
                found.setdefault(skill.id, []).extend(wanted.configs)
    for skill in skills:  # its own config overrides those that led to it
        if skill.configs and skill.id in catalog.assigned:
            found.setdefault(skill.id, []).extend(skill.configs)
    return {id: tuple(configs) for id, configs in found.items()}


def in_load_order(catalog: Catalog, ids: Iterable[UUID]) -> tuple[KnownSkill, ...]:
    """Return skills and all that they require, transitively; required skills come first."""
    ordered: dict[UUID, KnownSkill] = {}
    visited: set[UUID] = set()
    stack = [id for id in reversed([*ids]) if id in catalog.skills]
    while stack:
        skill = catalog.skills[stack[-1]]
        if skill.id not in visited:
            visited.add(skill.id)
            stack += [id for id in reversed(skill.requires) if id not in visited]
        else:  # its requirements are done, or in a cycle, which the registry prevents
            stack.pop()
            ordered.setdefault(skill.id, skill)
    return tuple(ordered.values())


def refusal(grant: SkillGrant, agent: str) -> str:
    """Return why an agent may not call a tool of this skill, or an empty text."""
    return refusal_reason(grant.access, grant.level, grant.permissions, agent)


def _unknown_skill_error(catalog: Catalog, name: str) -> NotFound:
    names = list(catalog.by_name)
    near = difflib.get_close_matches(name[:200], names, n=3) or names[:MAX_NAMED]
    return NotFound(
        f"{catalog.agent} has no skill {name!r:.200}",
        next=f"Use one of its skills, such as {', '.join(near)}, or search for others."
        if near
        else "The agent has no skills.",
    )
