"""The tools that an agent can call in a turn: those that it always has, and those of the skills that it has loaded."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from holdfast.agents.definitions import Agent
from holdfast.agents.knowledge_tools import knowledge_tools
from holdfast.agents.memory_tools import memory_tools
from holdfast.agents.prompt_sections import AgentSkills
from holdfast.agents.research_tools import research_tools
from holdfast.agents.skill_tools import loaded_skills, skill_tools
from holdfast.agents.turn_state import TurnServices, TurnState
from holdfast.llm.tokens import TokenCounter
from holdfast.skills.catalog import KNOWN_FOR
from holdfast.skills.disclosure import Catalog
from holdfast.skills.offers import Offer, offer_of
from holdfast.skills.rules.rule_set import RuleCaller
from holdfast.skills.tool import Tool


@dataclass(frozen=True, slots=True)
class _Always:
    """The tools that an agent always has, with the agent and catalog for which they were read, and the time."""

    agent: Agent
    catalog: Catalog
    offers: Mapping[str, Offer]
    read_at: float

    def is_current(self, agent: Agent, catalog: Catalog) -> bool:
        """Return whether they are of this agent and catalog, and so new that plain SQL changes can be ignored."""
        return self.agent is agent and self.catalog is catalog and time.monotonic() < self.read_at + KNOWN_FOR


class Toolbox:
    """Finds the tools that agents of one tenant can call. Loaded skills have `room` tokens in a prompt."""

    def __init__(self, services: TurnServices, room: int) -> None:
        self._services = services
        self._room = room
        self._always: dict[str, _Always] = {}  # by agent
        self._skill_tools: dict[str, Collection[Tool]] = {}  # by the name of the token counter
        self._memory_tools: dict[tuple[str, ...] | None, Collection[Tool]] = {}  # by the collections
        self._knowledge_tools: dict[tuple[str, ...] | None, Collection[Tool]] = {}  # by the collections

    async def open(self, turn: TurnState, counter: TokenCounter) -> None:
        """Set the tools that the agent of a turn may call now, and its skills."""
        catalogs, rules, agent = self._services.catalogs, self._services.rules, turn.agent
        catalog, opened = await catalogs.loaded(agent.name, turn.run.conversation)
        always = await self._registered(agent, catalog) | self._built_in(agent, catalog, counter)
        caller = RuleCaller((await turn.view()).user, agent.name)
        opened = await rules.visible(caller, opened)
        hidden = await rules.hidden(caller, {name: offer.tool for name, offer in always.items()})
        always = {name: offer for name, offer in always.items() if name not in hidden}
        turn.tools = {**opened.disclosed, **always}
        turn.skills = None
        if catalog.skills:
            whole = await catalogs.count_tokens(agent.name, counter)
            turn.skills = AgentSkills(catalog, loaded_skills(opened, without=always), whole)

    async def _registered(self, agent: Agent, catalog: Catalog) -> dict[str, Offer]:
        """Return the declared and the registered tools of an agent that it may call."""
        known = self._always.get(agent.name)
        if known is None or not known.is_current(agent, catalog):
            began = time.monotonic()
            declared = {tool.name: tool for tool in agent.tools}
            rows = await self._services.tools.allowed([*declared, *agent.named], agent=agent.name)
            tools = [
                replace(declared[name], id=row.id, version=row.version) if name in declared else row
                for name, row in rows.items()
            ]
            known = _Always(agent, catalog, {tool.name: offer_of(tool) for tool in tools}, began)
            self._always[agent.name] = known
        return dict(known.offers)

    def _built_in(self, agent: Agent, catalog: Catalog, counter: TokenCounter) -> dict[str, Offer]:
        tools = [*self._tools_for_memory(agent), *self._tools_for_knowledge(agent)]
        tools += [tool for tool in self._services.granted if tool.name in agent.named]
        if catalog.skills:
            if counter.name not in self._skill_tools:
                services = self._services
                made = skill_tools(
                    services.catalogs, services.finding, services.rules, room=self._room, counter=counter
                )
                self._skill_tools[counter.name] = made
            tools += self._skill_tools[counter.name]
        return {tool.name: offer_of(tool) for tool in tools}

    def _tools_for_memory(self, agent: Agent) -> Collection[Tool]:
        collections, services = agent.collections, self._services
        if not agent.memory:
            return ()
        if collections not in self._memory_tools:
            self._memory_tools[collections] = memory_tools(services.notes, services.memory, collections)
        return self._memory_tools[collections]

    def _tools_for_knowledge(self, agent: Agent) -> Collection[Tool]:
        collections = agent.collections
        if collections == ():
            return ()
        if collections not in self._knowledge_tools:
            services = self._services
            self._knowledge_tools[collections] = [
                *knowledge_tools(services.knowledge, collections),
                *research_tools(services.research, services.knowledge, collections),
            ]
        return self._knowledge_tools[collections]
