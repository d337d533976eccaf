"""Catalogues: what each agent can use, kept as long as the registry stays as it is."""

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
from holdfast.core.threads import in_thread
from holdfast.llm.model import ToolSpec
from holdfast.llm.tokens import TokenCounter
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.disclosure import Catalog, Grant, KnownSkill, Opening, catalog_of, opened, opening
from holdfast.skills.offers import Offer, offer_of
from holdfast.skills.runnable import Runs, can_run
from holdfast.skills.tools import Tools

KNOWN_FOR = 10.0  # seconds after which what came by plain SQL is seen, too
REMEMBERED = 500  # agents whose catalogues are kept
OPENED = 100  # sets of opened skills that are kept of each
COUNTED = 5  # skills whose tokens are counted at once
MOST_COUNTED = 20_000  # skills whose tokens are kept

sql = statements(__name__)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedSkill:
    """A skill that an agent has opened: its instructions, and what it leads to."""

    id: UUID
    name: str
    description: str
    instructions: str
    leads_to: tuple[KnownSkill, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """Skills in the order in which they are read, their tools by name, and those that may not be called, and why."""

    skills: tuple[OpenedSkill, ...] = ()
    disclosed: Mapping[str, Offer] = field(default_factory=dict[str, Offer])
    refused: Mapping[str, str] = field(default_factory=dict[str, str])

    def has(self, names: Iterable[str]) -> bool:
        """Whether these skills are among them."""
        return {*names} <= {skill.name for skill in self.skills}

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools, as a model is told of them."""
        return [each.spec for each in self.disclosed.values()]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A catalogue, when it was read, and what was opened of it since."""

    catalog: Catalog
    read_at: float
    opened: dict[tuple[UUID, ...], Opened] = field(default_factory=dict[tuple[UUID, ...], Opened])
    tokens: dict[str, int] = field(default_factory=dict[str, int])  # of all of it, by what counted them

    @property
    def is_fresh(self) -> bool:
        """Whether it was read so lately that plain SQL may be left out of account."""
        return time.monotonic() < self.read_at + KNOWN_FOR


class Catalogs:
    """Reads what the agents of one tenant can use.

    Each answer is as of a registry that was current when it was asked for: one short statement tells whether what is
    kept still is. Rows that were written by plain SQL are seen within ten seconds.
    """

    def __init__(self, database: Database, tools: Tools) -> None:
        self._database = database
        self._tools = tools
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._counting = asyncio.Lock()
        self._counted: dict[
            str, int
        ] = {}  # tokens of skills, by what they and their tools are, and by what counted them

    async def of(self, agent: str) -> Catalog:
        """Everything that an agent can use; nothing of an agent that there is not."""
        kept, _ = await self._current(agent, None)
        return kept.catalog

    async def open(self, agent: str, names: Sequence[str], *, conversation: UUID | None = None) -> Opened:
        """Open skills by name, with all that they require; NotFound where the agent cannot use one.

        With a `conversation` they stay loaded in it.
        """
        kept = self._kept.get(agent)
        if kept is not None and kept.is_fresh and all(name in kept.catalog.by_name for name in names):
            # It is current, mostly, and the answer says whether it is: a model waits for one round trip, not for two.
            found, revision = await self._open(kept.catalog, names, conversation)
            if revision == kept.catalog.revision and found.has(names):
                return found
        kept = await self._read(agent)
        found, _ = await self._open(kept.catalog, names, conversation)
        if not found.has(names):  # they were deactivated just now
            opened(await self.of(agent), names)
        return found

    async def loaded(self, agent: str, conversation: UUID) -> tuple[Catalog, Opened]:
        """What an agent can use, and what of it is open in a conversation: with one short statement, mostly."""
        kept, loaded = await self._current(agent, conversation)
        ids = tuple(loaded)
        if not ids:
            return kept.catalog, Opened()
        found = kept.opened.get(ids)
        if found is None:
            found, _ = await self._fetch(kept.catalog, opening(kept.catalog, ids), (), None)
            if len(kept.opened) >= OPENED:
                kept.opened.clear()
            kept.opened[ids] = found
        return kept.catalog, found

    async def whole(self, agent: str, counter: TokenCounter) -> int:
        """The tokens of all that an agent could load, told at once; each skill is counted once, until it is another."""
        kept = self._kept.get(agent) or await self._read(agent)
        if counter.name not in kept.tokens:
            async with self._counting:
                if counter.name not in kept.tokens:
                    kept.tokens[counter.name] = await self._count(kept.catalog, counter)
        return kept.tokens[counter.name]

    async def load(self, conversation: UUID, agent: str, skills: Sequence[UUID]) -> None:
        """Note that skills are open in a conversation."""
        await self._database.one(sql("open_skills"), [], [], conversation, stored_name("agent", agent), [*skills])

    async def _count(self, catalog: Catalog, counter: TokenCounter) -> int:
        """Count what was not counted before, some skills after the others, while others are served here."""
        everything = opening(catalog, catalog.skills)
        grants: dict[UUID, dict[str, tuple[Grant, KnownSkill]]] = {skill.id: {} for skill in everything.skills}
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
            some = tuple(new[start : start + COUNTED])
            theirs = {name: given for skill in some for name, given in grants[skill.id].items()}
            found, _ = await self._fetch(catalog, replace(everything, skills=some, tools=theirs), (), None)
            for skill in found.skills:
                tools = [offer.spec.told() for offer in found.disclosed.values() if offer.skill == skill.id]
                count = partial(_tokens, counter, [skill.instructions, *tools])
                tokens = await in_thread(count, name="holdfast tokens")
                self._counted[stamps[skill.id]] = tokens
        return sum(self._counted.get(stamp, 0) for stamp in stamps.values())

    async def _current(self, agent: str, conversation: UUID | None) -> tuple[_Kept, Sequence[UUID]]:
        state = cast(Row, await self._database.one(sql("registry_state"), conversation, stored_name("agent", agent)))
        kept = self._kept.get(agent)
        if kept is None or not kept.is_fresh or kept.catalog.revision != state["revision"]:
            kept = await self._read(agent)
        return kept, state["loaded"]

    async def _read(self, agent: str) -> _Kept:
        began = time.monotonic()
        row = cast(Row, await self._database.one(sql("catalog"), stored_name("agent", agent)))
        assigned = {UUID(each["skill_id"]): each["config"] for each in row["assigned"]}
        catalog, former = (
            catalog_of(agent, row["revision"], assigned, (_skill(each, self._tools.runs) for each in row["skills"])),
            self._kept.get(agent),
        )
        same = former is not None and former.catalog == catalog
        kept = _Kept(former.catalog if former is not None and same else catalog, began)
        if former is not None and former.catalog.revision == kept.catalog.revision:
            kept.tokens.update(former.tokens)
        self._kept[agent] = kept
        self._kept.move_to_end(agent)
        if len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)
        return kept

    async def _open(self, catalog: Catalog, names: Sequence[str], conversation: UUID | None) -> tuple[Opened, int]:
        asked = opened(catalog, names)
        return await self._fetch(catalog, asked, [catalog.by_name[name].id for name in names], conversation)

    async def _fetch(
        self, catalog: Catalog, asked: Opening, load: Sequence[UUID], conversation: UUID | None
    ) -> tuple[Opened, int]:
        """What is to be opened, and the revision of the registry that it is as of."""
        row = cast(Row, await self._database.one(
            sql("open_skills"), [skill.id for skill in asked.skills], [grant.id for grant, _ in asked.tools.values()],
            conversation, stored_name("agent", catalog.agent), [*load],
        ))  # fmt: skip
        instructions: Mapping[str, str] = row["instructions"]
        tools = {tool.name: tool for tool in map(self._tools.told, row["tools"])}
        skills = tuple(
            OpenedSkill(
                skill.id,
                skill.name,
                skill.description,
                _told(skill, instructions[str(skill.id)]),
                tuple(catalog.skills[id] for id in skill.leads_to),
            )
            for skill in asked.skills
            if str(skill.id) in instructions
        )
        disclosed: dict[str, Offer] = {}
        refused = dict(asked.refused)
        for name, (grant, skill) in asked.tools.items():
            if name in tools:
                try:
                    configs = asked.configs.get(skill.id, ())
                    disclosed[name] = offer_of(tools[name], grant.config, *configs, skill=skill.id)
                except InvalidInput as error:
                    refused[name] = f"{error.what}: {error.why}. Tell the user that somebody has to mend it."
                    log.warning("%s does not get the tool %s of %s: %s", catalog.agent, name, skill.name, error)
        return Opened(skills, disclosed, refused), row["revision"]


def _told(skill: KnownSkill, instructions: str) -> str:
    """The instructions of a skill, and what of it is not there."""
    lacks = ", ".join(skill.lacks)
    return f"{instructions}\n\n(It requires {lacks}, which cannot be used now.)" if lacks else instructions


def _stamp(
    counter: TokenCounter,
    skill: KnownSkill,
    grants: Iterable[tuple[Grant, KnownSkill]],
    configs: Sequence[Mapping[str, Any]],
) -> str:
    """What is another one whenever a skill has other tokens."""
    tools = [(str(grant.id), grant.version, grant.config) for grant, _ in grants]
    return dumps([counter.name, str(skill.id), skill.version, skill.lacks, tools, configs])


def _tokens(counter: TokenCounter, texts: Iterable[str]) -> int:
    return sum(map(counter.count, texts))


def _skill(told: Mapping[str, Any], runs: Runs) -> KnownSkill:
    needs = [(UUID(id), required) for id, required, _, _ in told["needs"]]
    return KnownSkill(
        UUID(told["id"]),
        told["name"],
        told["description"],
        parts=tuple(map(UUID, told["parts"])),
        requires=tuple(id for id, required in needs if required),
        optional=tuple(id for id, required in needs if not required),
        tools=tuple(
            Grant(
                UUID(each["id"]), each["name"], each["description"], each["access"], each["level"], each["permissions"],
                each["config"], each["version"],
            )
            for each in told["tools"]
            if can_run(each["kind"], each["mode"], runs)
        ),
        lacks=tuple(name for _, required, name, active in told["needs"] if required and not active),
        version=told["version"],
    )  # fmt: skip
