"""Skills as tools: a caller who acts for an agent has that agent's skills, an admin of the tenant has all."""

from typing import Annotated, Any

from msgspec import Meta

from holdfast.agents.memory_tools import Text
from holdfast.engine import Engine
from holdfast.gateway.runs import view_in
from holdfast.gateway.tool_search import note_of
from holdfast.gateway.views import USER
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.skills import Skills, unknown_skill
from holdfast.skills.tool import Tool

MOST_FOUND = 20


def skill_tools(engine: Engine) -> list[Tool]:
    """Return the tools that find and open skills."""

    async def search_skills(
        run: Run, query: Text, limit: Annotated[int, Meta(ge=1, le=MOST_FOUND)] = 5
    ) -> dict[str, Any]:
        """Find skills by what they are for: instructions for a kind of task. Read what you find with use_skill.

        Args:
            query: what you want to do, in a few words.
            limit: how many, at most.
        """
        found = await engine.finding.search(query, kinds=["skill"], agent=run.agent, limit=limit)
        skills = [{"name": each.name, "description": each.description} for each in found]
        return {"skills": skills, **note_of(found.reduced)}

    async def use_skill(run: Run, name: Text) -> dict[str, Any]:
        """Read a skill: its instructions, and the tools that they speak of. Follow them for the task at hand.

        Args:
            name: as search_skills tells it.
        """
        instructions, tools = await open_skill(engine, run, name)
        seen = view_in(run).by_name
        return {
            "name": name,
            "instructions": instructions,
            "tools": [seen[each].name for each in tools if each in seen],
        }

    return [
        tool_of(search_skills, idempotent=True, access="read"),
        tool_of(use_skill, idempotent=True, access="read"),
    ]


async def open_skill(engine: Engine, run: Run, name: str) -> tuple[str, list[str]]:
    """Return the instructions of a skill that the caller may read, and the names of its tools."""
    if run.agent is not None:
        opened = await engine.catalogs.open(run.agent, [name])
        return "\n\n".join(skill.instructions for skill in opened.skills), [*opened.disclosed]
    if view_in(run).who.kind == USER:
        raise unknown_skill(name)
    instructions = await _instructions(engine.skills, name)
    return instructions, [link.tool for link in await engine.skills.tools_of(name) if link.active]


async def _instructions(skills: Skills, name: str) -> str:
    """Return the instructions of an active skill, after those of the skills that it requires."""
    found: dict[str, str] = {}
    begun: set[str] = set()

    async def read(each: str) -> None:
        if each in begun:
            return
        begun.add(each)
        skill = await skills.get(each)
        if not skill.active:
            return
        for need in await skills.needs(each):
            if need.required and need.active:
                await read(need.on)
        found[each] = skill.instructions

    await read(name)
    if name not in found:
        raise unknown_skill(name)
    return "\n\n".join(found.values())
