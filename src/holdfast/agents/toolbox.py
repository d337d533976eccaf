"""The toolbox: what an agent can call in a turn: what it always has, and what the skills bring that it has loaded."""

from collections.abc import Mapping
from dataclasses import replace

from holdfast.agents.definitions import Agent
from holdfast.agents.skill_section import LoadedSkill, Skilled
from holdfast.agents.underway import Services, Turn
from holdfast.llm.tokens import TokenCounter
from holdfast.skills.catalog import Opened
from holdfast.skills.disclosure import Catalog
from holdfast.skills.offers import Offer, offer_of


class Toolbox:
    """Opens what agents of one tenant can call."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._always: dict[
            str, tuple[Catalog, Mapping[str, Offer]]
        ] = {}  # by agent, as long as its catalogue is current

    async def open(self, turn: Turn, counter: TokenCounter) -> None:
        """Offer the turn what its agent may call now, and tell it of its skills."""
        catalogs, agent = self._services.catalogs, turn.agent
        catalog, opened = await catalogs.loaded(agent.name, turn.run.conversation)
        turn.tools = {**await self._fixed(agent, catalog), **opened.disclosed}
        turn.skills = None
        if catalog.skills:
            turn.skills = Skilled(catalog, loaded_skills(opened), await catalogs.whole(agent.name, counter))

    async def _fixed(self, agent: Agent, catalog: Catalog) -> Mapping[str, Offer]:
        """What the agent has without loading anything; of registered tools, those that it may call."""
        known = self._always.get(agent.name)
        if known is None or known[0] is not catalog:
            declared = {tool.name: tool for tool in agent.tools}
            rows = await self._services.tools.allowed([*declared, *agent.named], agent=agent.name)
            tools = [
                replace(declared[name], id=row.id, version=row.version) if name in declared else row
                for name, row in rows.items()
            ]
            known = self._always[agent.name] = catalog, {tool.name: offer_of(tool) for tool in tools}
        builtin = self._services.builtin if agent.memory else ()
        skills = self._services.skill_tools if catalog.skills else ()
        return {**{tool.name: offer_of(tool) for tool in (*builtin, *skills)}, **known[1]}


def loaded_skills(opened: Opened) -> list[LoadedSkill]:
    """Opened skills, as a prompt has them."""
    return [
        LoadedSkill(
            skill.name,
            skill.instructions,
            [offer.spec for offer in opened.disclosed.values() if offer.skill == skill.id],
        )
        for skill in opened.skills
    ]
