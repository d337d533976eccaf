"""Catalogues: what each agent can use, cached until the registry changes."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast
from uuid import UUID

from holdfast.core.errors import InvalidInput
from holdfast.core.names import stored_name
from holdfast.core.text import dumps
from holdfast.core.threads import run_in_thread
from holdfast.llm.model import ToolSpec
from holdfast.llm.tokens import TokenCounter
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.disclosure import Catalog, KnownSkill, Opening, SkillGrant, catalog_of, opening_of, resolve_opening
from holdfast.skills.offers import Offer, offer_of
from holdfast.skills.runnable_kinds import RunnableKinds, can_run
from holdfast.skills.tools import Tools

KNOWN_FOR = 10.0  # seconds after which changes by plain SQL are seen, too
REMEMBERED = 500  # cached catalogues of agents
OPENED = 100  # cached sets of opened skills per agent
COUNTED = 5  # skills whose tokens are counted in one batch
MOST_COUNTED = 20_000  # cached token counts of skills

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedSkill:
    """A skill that an agent has opened: its instructions, and the skills to which it leads."""

    id: UUID
    name: str
    description: str
    instructions: str
    leads_to: tuple[KnownSkill, ...]


@dataclass(frozen=True, slots=True)
class OpenedSkills:
    """Opened skills in load order, their tools by name, and the tools that may not be called, with reasons."""

    skills: tuple[OpenedSkill, ...] = ()
    disclosed: Mapping[str, Offer] = field(default_factory=dict[str, Offer])
    refused: Mapping[str, str] = field(default_factory=dict[str, str])

    def has(self, names: Iterable[str]) -> bool:
        """Whether these skills are among the opened ones."""
        return {*names} <= {skill.name for skill in self.skills}

    @property
    def specs(self) -> list[ToolSpec]:
        """The specifications of the tools that a model sees."""
        return [each.spec for each in self.disclosed.values()]


@dataclass(frozen=True, slots=True)
class _CachedCatalog:
    """A cached catalogue, when it was read, and what was opened from it."""

    catalog: Catalog
    read_at: float
    opened: dict[tuple[UUID, ...], OpenedSkills] = field(default_factory=dict[tuple[UUID, ...], OpenedSkills])
    tokens: dict[str, int] = field(default_factory=dict[str, int])  # of the whole catalogue, by token counter

    @property
    def is_fresh(self) -> bool:
        """Whether it was read so recently that changes by plain SQL can be ignored."""
        return time.monotonic() < self.read_at + KNOWN_FOR


class Catalogs:
    """Reads what the agents of one tenant can use.

    Each answer reflects the registry at the time of the request: one short statement checks that the cache is current.
    Changes by plain SQL are seen within ten seconds.
    """

    def __init__(self, database: Database, tools: Tools) -> None:
        self._database = database
        self._tools = tools
        self._cache: OrderedDict[str, _CachedCatalog] = OrderedDict()
        self._counting = asyncio.Lock()
        self._counted: dict[str, int] = {}  # tokens of skills, by `_stamp`

    async def of(self, agent: str) -> Catalog:
        """Return everything that an agent can use; nothing for an unknown agent."""
        cached, _ = await self._current(agent, None)
        return cached.catalog

    async def open(self, agent: str, names: Sequence[str], *, conversation: UUID | None = None) -> OpenedSkills:
        """Open skills by name, with all that they require. Raise NotFound if the agent cannot use one.

        With a `conversation`, they stay open in it.
        """
        cached = self._cache.get(agent)
        if cached is not None and cached.is_fresh and all(name in cached.catalog.by_name for name in names):
            # The cache is usually current, and the answer says whether it is. So a model waits for one round trip.
            found, revision = await self._open(cached.catalog, names, conversation)
            if revision == cached.catalog.revision and found.has(names):
                return found
        cached = await self._read(agent)
        found, _ = await self._open(cached.catalog, names, conversation)
        if not found.has(names):  # they were deactivated meanwhile
            resolve_opening(await self.of(agent), names)
        return found

    async def loaded(self, agent: str, conversation: UUID) -> tuple[Catalog, OpenedSkills]:
        """Return what an agent can use, and what is open in a conversation; usually by one short statement."""
        cached, loaded = await self._current(agent, conversation)
        ids = tuple(loaded)
        if not ids:
            return cached.catalog, OpenedSkills()
        found = cached.opened.get(ids)
        if found is None:
            found, _ = await self._fetch(cached.catalog, opening_of(cached.catalog, ids), (), None)
            if len(cached.opened) >= OPENED:
                cached.opened.clear()
            cached.opened[ids] = found
        return cached.catalog, found

    async def count_tokens(self, agent: str, counter: TokenCounter) -> int:
        """Return the tokens of everything that an agent could load. A skill is counted again only if it changed."""
        cached = self._cache.get(agent) or await self._read(agent)
        if counter.name not in cached.tokens:
            async with self._counting:
                if counter.name not in cached.tokens:
                    cached.tokens[counter.name] = await self._count(cached.catalog, counter)
        return cached.tokens[counter.name]

    async def load(self, conversation: UUID, agent: str, skills: Sequence[UUID]) -> None:
        """Store that skills are open in a conversation."""
        await self._database.one(sql("open_skills"), [], [], conversation, stored_name("agent", agent), [*skills])

    async def _count(self, catalog: Catalog, counter: TokenCounter) -> int:
        """Count the skills without a cached count, in batches, so that other tasks run in between."""
        everything = opening_of(catalog, catalog.skills)
        grants: dict[UUID, dict[str, tuple[SkillGrant, KnownSkill]]] = {skill.id: {} for skill in everything.skills}
        for name, (grant, skill) in everything.tools.items():
            grants[skill.id][name] = grant, skill
        stamps = {
            skill.id: _stamp(counter, skill, grants[skill.id].values(), everything.configs.get(skill.id, ()))
            for skill in everything.skills
        }
        if len(self._counted) > MOST_COUNTED:
            self._counted.clear()
        new = [skill for skill in everything.skills if stamps[skill.id] not in self._counted]
        for start in range(0, len(new), COUNTED):
            batch = tuple(new[start : start + COUNTED])
            their_grants = {name: given for skill in batch for name, given in grants[skill.id].items()}
            found, _ = await self._fetch(catalog, replace(everything, skills=batch, tools=their_grants), (), None)
            for skill in found.skills:
                tools = [offer.spec.to_json() for offer in found.disclosed.values() if offer.skill == skill.id]
                count = partial(_tokens, counter, [skill.instructions, *tools])
                tokens = await run_in_thread(count, name="holdfast tokens")
                self._counted[stamps[skill.id]] = tokens
        return sum(self._counted.get(stamp, 0) for stamp in stamps.values())

    async def _current(self, agent: str, conversation: UUID | None) -> tuple[_CachedCatalog, Sequence[UUID]]:
        state = cast(Row, await self._database.one(sql("registry_state"), conversation, stored_name("agent", agent)))
        cached = self._cache.get(agent)
        if cached is None or not cached.is_fresh or cached.catalog.revision != state["revision"]:
            cached = await self._read(agent)
        return cached, state["loaded"]

    async def _read(self, agent: str) -> _CachedCatalog:
        began = time.monotonic()
        row = cast(Row, await self._database.one(sql("catalog"), stored_name("agent", agent)))
        assigned = {UUID(each["skill_id"]): each["config"] for each in row["assigned"]}
        catalog, former = (
            catalog_of(agent, row["revision"], assigned, (_skill(each, self._tools.runs) for each in row["skills"])),
            self._cache.get(agent),
        )
        same = former is not None and former.catalog == catalog
        cached = _CachedCatalog(former.catalog if former is not None and same else catalog, began)
        if former is not None and former.catalog.revision == cached.catalog.revision:
            cached.tokens.update(former.tokens)
        self._cache[agent] = cached
        self._cache.move_to_end(agent)
        if len(self._cache) > REMEMBERED:
            self._cache.popitem(last=False)
        return cached

    async def _open(
        self, catalog: Catalog, names: Sequence[str], conversation: UUID | None
    ) -> tuple[OpenedSkills, int]:
        wanted = resolve_opening(catalog, names)
        return await self._fetch(catalog, wanted, [catalog.by_name[name].id for name in names], conversation)

    async def _fetch(
        self, catalog: Catalog, wanted: Opening, load: Sequence[UUID], conversation: UUID | None
    ) -> tuple[OpenedSkills, int]:
        """Read what is to be opened, and the registry's revision at that time."""
        row = cast(Row, await self._database.one(
            sql("open_skills"), [skill.id for skill in wanted.skills], [grant.id for grant, _ in wanted.tools.values()],
            conversation, stored_name("agent", catalog.agent), [*load],
        ))  # fmt: skip
        instructions: Mapping[str, str] = row["instructions"]
        tools = {tool.name: tool for tool in map(self._tools.parse_tool, row["tools"])}
        skills = tuple(
            OpenedSkill(
                skill.id,
                skill.name,
                skill.description,
                _instructions_of(skill, instructions[str(skill.id)]),
                tuple(catalog.skills[id] for id in skill.leads_to),
            )
            for skill in wanted.skills
            if str(skill.id) in instructions
        )
        disclosed: dict[str, Offer] = {}
        refused = dict(wanted.refused)
        for name, (grant, skill) in wanted.tools.items():
            if name in tools:
                try:
                    configs = wanted.configs.get(skill.id, ())
                    disclosed[name] = offer_of(tools[name], grant.config, *configs, skill=skill.id)
                except InvalidInput as error:
                    refused[name] = f"{error.what}: {error.why}. Tell the user that the skill needs to be fixed."
                    log.warning(
                        "the agent %s cannot use the tool %s of the skill %s: %s",
                        catalog.agent,
                        name,
                        skill.name,
                        error,
                    )
        return OpenedSkills(skills, disclosed, refused), row["revision"]


def _instructions_of(skill: KnownSkill, instructions: str) -> str:
    """Return the instructions of a skill, with a note about missing requirements."""
    lacks = ", ".join(skill.lacks)
    return f"{instructions}\n\n(It requires {lacks}, which is not available now.)" if lacks else instructions


def _stamp(
    counter: TokenCounter,
    skill: KnownSkill,
    grants: Iterable[tuple[SkillGrant, KnownSkill]],
    configs: Sequence[Mapping[str, Any]],
) -> str:
    """Return a key that changes whenever the number of a skill's tokens can change."""
    tools = [(str(grant.id), grant.version, grant.config) for grant, _ in grants]
    return dumps([counter.name, str(skill.id), skill.version, skill.lacks, tools, configs])


def _tokens(counter: TokenCounter, texts: Iterable[str]) -> int:
    return sum(map(counter.count, texts))


def _skill(row: Mapping[str, Any], runs: RunnableKinds) -> KnownSkill:
    needs = [(UUID(id), required) for id, required, _, _ in row["needs"]]
    return KnownSkill(
        UUID(row["id"]),
        row["name"],
        row["description"],
        parts=tuple(map(UUID, row["parts"])),
        requires=tuple(id for id, required in needs if required),
        optional=tuple(id for id, required in needs if not required),
        tools=tuple(
            SkillGrant(
                UUID(each["id"]), each["name"], each["description"], each["access"], each["level"], each["permissions"],
                each["config"], each["version"],
            )
            for each in row["tools"]
            if can_run(each["kind"], each["mode"], runs)
        ),
        lacks=tuple(name for _, required, name, active in row["needs"] if required and not active),
        version=row["version"],
    )  # fmt: skip
